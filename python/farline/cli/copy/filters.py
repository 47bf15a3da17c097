"""Filter rules of a command line and of files, as rsync writes them, to rules of the spec.

```text
--include P, --exclude P          "+ P", "- P"; P may begin with its own "+ " or "- "
--include-from F, --exclude-from F   one a line; blank lines and comments (# or ;) are passed over
--filter RULE                     "+ P", "- P", "include P", "exclude P", "merge FILE", "!" (clear)
```
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

FILTERS: dict[str, tuple[str, str]] = {
    "include": ("--include", "+ "),
    "exclude": ("--exclude", "- "),
    "include_from": ("--include-from", "+ "),
    "exclude_from": ("--exclude-from", "- "),
    "filters": ("--filter", ""),
}
"""Parameters whose order counts: their flag, and what stands before a pattern."""

_WORDS = {"include": "+ ", "exclude": "- "}
_OTHERS = (
    "hide", "show", "protect", "risk", "dir-merge", "H", "S", "P", "R", ":",
)  # fmt: skip
MAX_FILE_BYTES = 1 << 20
_MAX_DEPTH = 8


def rules_of(values: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    """The rules in the order in which their options stood.

    Raises:
        click.UsageError: for what is no rule, and a file that cannot be read.
    """
    left = {name: iter(values.get(name) or ()) for name in FILTERS}
    zeros = bool(values.get("from0"))
    rules: list[str] = []
    for name in order:
        flag, sign = FILTERS[name]
        word = next(left[name])
        if name in ("include", "exclude"):
            found: Iterable[str] = [_of_pattern(word, sign)]
        elif name == "filters":
            found = _of_rule(word, flag, zeros, 0)
        else:
            found = (_of_pattern(line, sign) for line in _lines(word, flag, zeros))
        for rule in found:
            if rule == "!":
                rules.clear()
            else:
                rules.append(_checked(rule, flag))
    return rules


def _of_pattern(text: str, sign: str) -> str:
    """A rule; as with rsync a pattern may bring its own sign, and `!` takes all before it away."""
    return text if text[:2] in ("+ ", "- ") or text == "!" else sign + text


def _of_rule(text: str, flag: str, zeros: bool, depth: int) -> Iterator[str]:
    if text in ("!", "clear"):
        yield "!"
        return
    word, _, rest = text.partition(" ")
    if word in ("+", "-"):
        yield text
    elif word in _WORDS and rest:
        yield _WORDS[word] + rest
    elif word in (".", "merge") and rest:
        if depth == _MAX_DEPTH:
            raise click.UsageError(
                f"{flag}: {rest}: filter files include each other, more than {_MAX_DEPTH} levels "
                "deep"
            )
        for line in _lines(rest, flag, zeros):
            yield from _of_rule(line, f"{flag}: {rest}", zeros, depth + 1)
    else:
        raise click.UsageError(_unknown(text, word, flag))


def _unknown(text: str, word: str, flag: str) -> str:
    if word.partition(",")[0] in _OTHERS or word.startswith(":"):
        return (
            f"{flag}: {text!r}: rules for one end and per-folder filter files are not supported; "
            "'+ PATTERN' and '- PATTERN' apply to both ends, '. FILE' reads rules from a file"
        )
    return (
        f"{flag}: {text!r} is not a rule: write '+ PATTERN', '- PATTERN', '. FILE' or '!' (clears "
        "the rules before it)"
    )


def _checked(rule: str, flag: str) -> str:
    if len(rule) < 3:
        raise click.UsageError(f"{flag}: {rule!r}: the pattern is missing")
    try:
        rule.encode()
    except UnicodeEncodeError:
        shown = rule[2:].encode(errors="surrogateescape")
        raise click.UsageError(
            f"{flag}: {shown!r} is not valid UTF-8: write ? in place of each invalid byte"
        ) from None
    return rule


def _lines(name: str, flag: str, zeros: bool) -> Iterator[str]:
    """The lines of a file; - is standard input. A line ends with CR, LF or both."""
    try:
        if name == "-":
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"{flag}: {name}: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise click.UsageError(f"{flag}: {name}: more than {MAX_FILE_BYTES} bytes of rules")
    parts = content.split(b"\0") if zeros else content.replace(b"\r", b"\n").split(b"\n")
    for part in parts:
        if part and part[:1] not in (b"#", b";"):
            yield part.decode(errors="surrogateescape")
