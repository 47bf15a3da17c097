"""What will go: each with its replacement and the version that removes it.

A name stays for one minor version at least after it was announced. Whoever still uses it is told
once a process, in one line; `scripts/release.py` fails a version that keeps what was to be gone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Deprecation:
    """An option, a call or a field that will go."""

    name: str
    """As users write it: `--flag`, `farline.call(argument=)`."""
    replacement: str
    """What to write in its place."""
    since: str
    """Version that announced it."""
    removed_in: str
    """Version that has it no more."""

    @property
    def line(self) -> str:
        """What users are told."""
        return (
            f"{self.name} is deprecated since farline {self.since} and goes in {self.removed_in}:"
            f" use {self.replacement}"
        )


DEPRECATIONS: tuple[Deprecation, ...] = ()
"""All of them: nothing is deprecated now."""


class FarlineDeprecationWarning(FutureWarning):
    """Shown by Python without being asked for, as it concerns users and not authors alone."""


@cache
def warn_once(one: Deprecation) -> None:
    """Tells of it, once a process, at the line of the caller's caller."""
    warnings.warn(one.line, FarlineDeprecationWarning, stacklevel=3)
