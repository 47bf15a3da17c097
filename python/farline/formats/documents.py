"""JSON documents out of a text, however they are strung together.

One after another, pretty-printed or one a line, in an array, with a tool's messages between
them, or in front of one on its first line, the last one cut short: each whole document comes out,
the rest is malformed with its line.
Figures that are no JSON but that tools have written (`nan`, `-inf`, `5.924e 06`) are mended: one
that is no number is unknown, and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from farline.formats.reading import Reading

LONGEST_DOCUMENT_CHARACTERS = 256 << 20
"""A document beyond this is malformed; memory does not grow without end."""

Document = dict[str, Any]


def part(document: Document, name: str) -> Document:
    """The object under `name`; an empty one if there is none."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def items(document: Document, name: str) -> list[Document]:
    """The objects of the array under `name`; none if there is no array."""
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class Found:
    """A document, the line it starts in, and how it starts."""

    line: int
    text: str
    document: Document


IsMessage = Callable[[str], str | None]
"""Of a line between documents: why it is no record; None if it should not be there."""


def no_message(_line: str) -> None:
    """Nothing is expected between documents."""


def documents(reading: Reading, is_message: IsMessage = no_message) -> Iterator[Found]:
    """Every JSON object of the log at the top level or in an array there."""
    text = _Text(reading.texts())
    while text.skip_blank():
        if text.next in "{[":
            yield from _whole(reading, text)
        else:
            line_number, line = text.line, text.take_line()
            reason = is_message(line)
            if reason is None:
                reading.malformed(line_number, line, "no JSON document starts here")
            else:
                reading.skip(reason)
                text.go_back(line)


def _whole(reading: Reading, text: _Text) -> Iterator[Found]:
    """The document that starts here; none if it is cut or wrong."""
    start = text.excerpt()
    try:
        value, line_number = text.take_document()
        reading.skip("value that is not a number", text.take_unknown())
    except _Wrong as wrong:
        reading.malformed(wrong.line, start, str(wrong))
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield Found(line_number, start, item)
        else:
            reading.malformed(line_number, start, "an array element is not a JSON object")


class _Wrong(Exception):
    """Why a document cannot be read, and the line it starts in."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


# Where the next document may start after one that is wrong: at the start of a line. What fio says
# before its document is of that one.
_NEXT = re.compile(r"\n(?=[{\[]|fio: )")
# What fio says between documents without ending its line.
_UNENDED = re.compile(r"fio: .*[^{]\{\s*")
_BLANK = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()
# What printf wrote where there was no number, or into a text that had no place for a sign.
_NO_FIGURE = re.compile(r"([:\[,]\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_NO_SIGN = re.compile(r"(?<=\d)([eE]) (?=\d)")
_LONGEST_WORD = len("-Infinity")


class _Text:
    """The part of the text that is still needed, growing at its end as it is asked for."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text, self._at = "", 0
        self._unknown = 0
        self.line = 1

    @property
    def next(self) -> str:
        """The next character."""
        return self._text[self._at]

    def excerpt(self) -> str:
        """How what comes next starts."""
        return self._text[self._at : self._at + 1000]

    def skip_blank(self) -> bool:
        """Goes to the next character that is no space or comma; False at the end."""
        while True:
            match = _BLANK.match(self._text, self._at)
            self._go(match.end() if match else self._at)
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def take_line(self) -> str:
        """The rest of the line."""
        while (end := self._text.find("\n", self._at)) < 0 and self._more():
            # Of a line without end only the start is wanted.
            self._text = self._text[: self._at + 1000] if "\n" not in self._text else self._text
        end = len(self._text) if end < 0 else end
        line = self._text[self._at : end]
        self._go(end)
        return line

    def go_back(self, line: str) -> None:
        """Goes back to the document that begins at the end of the line just taken, if one does."""
        if _UNENDED.fullmatch(line):
            self._at -= len(line) - line.rindex("{")

    def take_document(self) -> tuple[Any, int]:
        """The document that starts here and its line; goes behind it.

        Raises:
            _Wrong: when there is none; goes to where the next may start.
        """
        line_number, wanted = self.line, 1
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as failure:
                if self._mend(failure.pos):
                    continue
                if not self._may_go_on(failure):
                    reason = f"not JSON: {failure.msg}"
                elif len(self._text) - self._at > LONGEST_DOCUMENT_CHARACTERS:
                    reason = "the document is longer than 256 MiB"
                elif self._more(wanted):
                    wanted *= 2
                    continue
                else:
                    reason = "the document is truncated"
            except (ValueError, RecursionError) as failure:
                kind = "deep" if isinstance(failure, RecursionError) else "long a number"
                reason = f"unreadable JSON: too {kind}"
            else:
                self._go(end)
                return value, line_number
            self._go_to_next()
            raise _Wrong(line_number, reason)

    def take_unknown(self) -> int:
        """How many figures of the last document were no numbers."""
        found, self._unknown = self._unknown, 0
        return found

    def _mend(self, place: int) -> bool:
        """Mends figures in what is there, if one of them is what is wrong at `place`."""
        near = self._text[max(self._at, place - 40) : place + 40]
        if not (_NO_FIGURE.search(near) or _NO_SIGN.search(near)):
            return False
        rest, unknown = _NO_FIGURE.subn(r"\1null", self._text[self._at :])
        self._text, self._at = _NO_SIGN.sub(r"\1+", rest), 0
        self._unknown += unknown
        return True

    def _may_go_on(self, failure: json.JSONDecodeError) -> bool:
        """Whether the text that is there may be the start of a document."""
        unended = failure.msg.startswith("Unterminated string")
        # A piece may end inside a word or an escape, and the failure is where that starts.
        return unended or failure.pos >= len(self._text.rstrip()) - _LONGEST_WORD

    def _go_to_next(self) -> None:
        while True:
            match = _NEXT.search(self._text, self._at + 1)
            if match:
                self._go(match.end())
                return
            # The last character may be the line end before the next document.
            self._go(max(self._at + 1, len(self._text) - 1))
            if not self._more():
                self._go(len(self._text))
                return

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _more(self, wanted: int = 1) -> bool:
        """Adds `wanted` pieces of text, or as many as there are; False if there is none."""
        parts = [self._text[self._at :]]
        for piece in self._pieces:
            parts.append(piece)
            if len(parts) > wanted:
                break
        self._text, self._at = "".join(parts), 0
        return len(parts) > 1
