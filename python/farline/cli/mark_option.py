"""`--mark NONCE`: what a farline that is started over ssh puts before its lines."""

from __future__ import annotations

import os

import click


def _read(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from farline.tools.start_mark import asked_nonce, mark_of

    if value is None:
        return asked_nonce(os.environ)
    try:
        mark_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


MARK_OPTION = click.option("--mark", hidden=True, metavar="NONCE", callback=_read)
"""Where sshd runs a forced command instead of what was asked for, the nonce is in what was."""
