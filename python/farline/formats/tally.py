"""What was seen while a log was read, counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

SHOWN = 20
"""Malformed records that a tally keeps in full."""

EXCERPT_CHARACTERS = 160
"""How much of a malformed record is shown."""

MOST_REASONS = 50
"""Kinds of reasons that are counted apart; what comes beyond is `OTHER_REASONS`."""
OTHER_REASONS = "other reasons"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A record that could not be read: the line it starts in (from 1), how it starts, and why.

    In both excerpts, names of users and paths of files are replaced by `*`.
    """

    line: int
    text: str
    reason: str


OnMalformed = Callable[[Malformed], None]


@dataclass
class Tally:
    """Counts of one reading of a log; they grow while its batches are taken.

    `lines` are lines of text. A record is a line or a document, as the format has it: it is a
    transfer, a failed transfer, skipped (known to be no transfer; `skipped` says why and how
    often) or malformed. One record can hold several transfers. `malformed_reasons` counts kinds
    of reasons: in them what stands in quotes, and every figure, is `…`. `filled` says of each
    value given by hand how many empty cells it filled.
    """

    lines: int = 0
    transfers: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    malformed: int = 0
    malformed_reasons: dict[str, int] = field(default_factory=dict)
    first_malformed: list[Malformed] = field(default_factory=list)
    filled: dict[str, int] = field(default_factory=dict)

    @property
    def skipped_total(self) -> int:
        """Records known to be no transfer."""
        return sum(self.skipped.values())

    @property
    def records(self) -> int:
        """Everything that was told apart: transfers, failed ones, skipped and malformed."""
        return self.transfers + self.failed + self.skipped_total + self.malformed

    def counts(self) -> dict[str, int]:
        """Everything that was counted, with a name for each reason, as a store keeps it."""
        found = {name: getattr(self, name) for name in ("lines", "transfers", "failed")}
        found["malformed"] = self.malformed
        found |= {f"malformed: {why}": many for why, many in self.malformed_reasons.items()}
        return found | {f"skipped: {why}": many for why, many in self.skipped.items()}

    def skip(self, reason: str, count: int = 1) -> None:
        """Counts records that are no transfers."""
        if count:
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    def add_malformed(self, found: Malformed, kind: str) -> None:
        """Counts a record that could not be read, of a kind of reasons; keeps the first few."""
        self.malformed += 1
        known = self.malformed_reasons
        if kind not in known and len(known) >= MOST_REASONS:
            kind = OTHER_REASONS
        known[kind] = known.get(kind, 0) + 1
        if len(self.first_malformed) < SHOWN:
            self.first_malformed.append(found)


# What names a user or a file in one of the logs, up to the field after it.
_FIELD = re.compile(r"\b(USER|FILE|VOLUME)=.*?(?= [A-Z][A-Z.]+=|$)")
_KEY = re.compile(
    r'("(?:username|label|filename|directory|title|name|jobname|\w*owner\w*|\w*user\w*'
    r'|\w*path\w*)"\s*:\s*)"[^"]*("|$)',
    re.IGNORECASE,
)
_URL = re.compile(r"(\w+://[^/\s\"]+)/[^\s\"]*")
_PATH = re.compile(r"(?<![\w.:/*])/[^\s\",:;]+")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffd\ud800-\udfff]+")


# A quote inside a word is an apostrophe; an excerpt may have lost the closing one.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))""")
_FIGURE = re.compile(r"[-+]?(?<!\w)\d(?:[\w.+:-]*\w)?")


def kind_of(reason: str) -> str:
    """A reason without what it says of the one record: values in quotes, and figures."""
    return _FIGURE.sub("…", _QUOTED.sub("…", reason))


def excerpt(text: str) -> str:
    """The start of `text` as one printable line, without names of users and files."""
    # Names are looked for in more than is shown: one that is cut must be recognised too.
    start = text[: 4 * EXCERPT_CHARACTERS]
    for pattern, instead in (
        (_FIELD, r"\1=*"),
        (_KEY, r'\1"*"'),
        (_URL, r"\1/*"),
        (_PATH, "/*"),
        (_UNPRINTABLE, " "),
    ):
        start = pattern.sub(instead, start)
    start = " ".join(start.split())
    return start if len(start) <= EXCERPT_CHARACTERS else start[:EXCERPT_CHARACTERS] + "..."
