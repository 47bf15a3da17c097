"""A choice of words that says which one may have been meant."""

from __future__ import annotations

import click

from farline.spec.near import unknown


class Words(click.Choice[str]):
    """One of several words."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """What is said of another one."""
        return f"{str(value)!r} is not allowed; {unknown(str(value), self.choices)}"
