"""What a context keeps of its command line: the words, and what the command's parameters set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from farline.spec.letters import PEER_FLAGS

_WORDS = "farline.words"
_SETS = "farline.sets"

Sets = Mapping[str, Sequence[str]]
"""Paths in a spec, by the names of the parameters that set them."""


def keep_words(ctx: click.Context, words: Sequence[str], sets: Sets) -> None:
    """Keeps the words behind the command's name, and what its own parameters set."""
    ctx.meta[_WORDS] = tuple(words)
    ctx.meta[_SETS] = sets


def command_words(ctx: click.Context) -> Sequence[str]:
    """The words behind the command's name."""
    words: Sequence[str] = ctx.meta.get(_WORDS, ())
    return words


def own_sets(ctx: click.Context) -> Sets:
    """What the command's own parameters set."""
    sets: Sets = ctx.meta.get(_SETS, {})
    return sets


def typed_flag(context: click.Context, option: click.Option) -> str:
    """The flag of `option` as it was typed; its long one where it was not."""
    for word in command_words(context):
        for flag in (*option.opts, *option.secondary_opts):
            is_long = flag.startswith("--")
            if word.partition("=")[0] == flag if is_long else _is_short(word, flag):
                return flag
    return long_flag(option.opts)


def long_flag(flags: Sequence[str]) -> str:
    """A long flag that is farline's own; else the best there is."""
    long = [flag for flag in flags if flag.startswith("--")]
    return next((flag for flag in long if flag not in PEER_FLAGS), (long or list(flags))[0])


def _is_short(word: str, flag: str) -> bool:
    """Whether `-Creno` or `-C` stands for `-C`."""
    return word.startswith(flag) and not word.startswith("--")
