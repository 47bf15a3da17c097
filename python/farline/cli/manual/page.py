"""What a page of the manual has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """A group of options: those that `--help` shows, and those that only `--help-all` does.

    Each is named by one of its spellings. Options of a transport have groups of their own, by
    themselves; those named here are shown by `--help` too.
    """

    title: str
    shown: str = ""
    more: str = ""


@dataclass(frozen=True)
class Page:
    """What the help of a command has beside its description."""

    options: tuple[Options, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    """What each does, and the command line."""
    exits: tuple[tuple[int, str], ...] = ()
    """Exit codes beside those of every command."""
    see_also: tuple[str, ...] = ()
    """Commands, and pages of the documentation."""


COMMON_EXITS = (
    (0, "Success."),
    (1, "The command line, or a file it names, is wrong."),
    (2, "This machine refused: kernel, disk, memory or permission."),
    (70, "A defect in farline."),
    (130, "Interrupted."),
)

NETWORK_EXITS = (
    (4, "Not permitted: the ticket or the server's key is wrong or has expired."),
    (5, "The server is busy or cannot be reached; try again."),
    (7, "The two ends speak different versions, or the connection broke."),
    (8, "The request exceeds the limits of the server."),
    (30, "Timed out."),
)
