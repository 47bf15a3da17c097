"""The help of an option, from its row in the generated table: what it does, and its default."""

from __future__ import annotations

import re

from farline.spec.letters import PEER_FLAGS
from farline.spec.table import OPTIONS, Option
from farline.spec.units import duration_text, size_text


def option_help(option: Option) -> str:
    """What an option does, options named as on the command line, its default at the end."""
    text = re.sub(r"`([a-z_]+)`", lambda found: _spelled(found[1]), option.help)
    default = default_text(option)
    return text if default is None or "(default" in text else with_default(text, default)


def with_default(text: str, default: str) -> str:
    """A help text with its default behind it, within the brackets that it ends with, if it does."""
    if text.endswith(")."):
        return f"{text[:-2]}; default {default})."
    return f"{text[:-1]} (default {default})."


def with_note(text: str, note: str) -> str:
    """A help text with one more fact before its default."""
    head, default, tail = text.removesuffix(".").partition(" (default")
    return f"{head}; {note}{default}{tail}."


def _spelled(name: str) -> str:
    """An option as it is written on a command line; other words as they are."""
    flags = [flag for option in OPTIONS if option.name == name for flag in option.flags]
    own = [flag for flag in flags if flag.startswith("--") and flag not in PEER_FLAGS]
    long = own or [flag for flag in flags if flag.startswith("--")]
    return long[0] if long else f"--{name.rpartition('_')[0].replace('_', '-')}"


def default_text(option: Option) -> str | None:
    """The default of an option as one would write it; None where there is none to tell of."""
    default = option.default
    if default is None or default == () or default is False:
        return None
    if default is True:
        return "on"
    if option.kind == "size" and isinstance(default, int):
        return size_text(default)
    if option.kind in ("seconds", "ms") and not isinstance(default, (str, tuple)):
        return time_text(default / 1000 if option.kind == "ms" else default)
    return str(default)


def time_text(duration_s: float) -> str:
    """A duration in the largest unit that gives a whole number: `10m`, `30s`, `0.5s`."""
    for unit, scale in (("d", 86_400), ("h", 3600), ("m", 60)):
        if duration_s >= scale and duration_s % scale == 0:
            return f"{duration_s / scale:g}{unit}"
    return duration_text(duration_s)
