"""The fields of the plan editor to the text of a plan, which its reader checks afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """A field: its name, its label, its table and option in a plan, an example.

    Without a table it is in `[fixed]`, or in `[grid]` where it has more than one value.
    """

    name: str
    label: str
    table: str
    option: str
    example: str
    may_vary: bool = True


FIELDS = (
    Field("name", "Name", "campaign", "name", "streams-and-distance", False),
    Field("repetitions", "Repetitions", "campaign", "repetitions", "3", False),
    Field("duration", "Duration of a run", "fixed", "duration_s", "5s", False),
    Field("transport", "Transport", "", "transport", "tcp"),
    Field("streams", "Streams", "", "streams", "1, 2, 4, 8"),
    Field("congestion", "Congestion control of TCP", "", "tcp.congestion_control", "cubic"),
    Field("rate", "Rate of a stream", "", "rate_bps", "no limit"),
    Field("line", "Rate of the line", "path", "rate_bps", "100Mbit"),
    Field("rtt", "Round-trip time", "path", "rtt_s", "10ms, 50ms, 100ms"),
    Field("loss", "Loss", "path", "loss", "0%, 0.01%"),
)


def plan_of_fields(form: Mapping[str, str]) -> str:
    """The text of a plan; a field that is empty is left out, commas part values that vary."""
    tables: dict[str, list[str]] = {"campaign": [], "fixed": [], "grid": [], "path": []}
    for one in FIELDS:
        text = form.get(one.name, "").strip()
        values = [part.strip() for part in text.split(",") if part.strip()]
        if values:
            values = values if one.may_vary else [text]
            table = one.table or ("fixed" if len(values) == 1 else "grid")
            tables[table].append(f"{one.option} = {_value(values)}")
    blocks = [f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in tables.items() if lines]
    return "\n".join(blocks)


def _value(values: Sequence[str]) -> str:
    parts = [part if _is_number(part) else _text(part) for part in values]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < 16 and str(int(part)) == part


def _text(part: str) -> str:
    """A basic string of TOML, which JSON's is but for the character DEL."""
    return json.dumps(part, ensure_ascii=False).replace("\x7f", "\\u007f")
