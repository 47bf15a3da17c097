"""Choices of words that say which one may have been meant."""

from __future__ import annotations

from collections.abc import Sequence

import click

from farline.spec.near import unknown


class Words(click.Choice[str]):
    """One of several words."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """What is said of another one."""
        return f"{str(value)!r} is not allowed; {unknown(str(value), self.choices)}"


class WordList(click.ParamType[tuple[str, ...]]):
    """Several of some words, with commas between them, each once and in the order of the words."""

    name = "list"

    def __init__(self, words: Sequence[str]) -> None:
        """Allows these."""
        self.words = tuple(words)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The words of a text."""
        given = value if isinstance(value, tuple) else tuple(str(value).split(","))
        for word in given:
            if word not in self.words:
                self.fail(f"{word!r} is not allowed; {unknown(str(word), self.words)}", param, ctx)
        return tuple(word for word in self.words if word in given)
