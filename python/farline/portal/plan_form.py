"""The fields of the plan editors to the text of a plan, which its reader checks afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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


FAIRNESS_FIELDS = (
    Field("name", "Name", "fairness", "name", "udt-beside-cubic", False),
    Field("transfer", "Transfer", "subject", "transfer", "tcp:bbr,streams=4", False),
    Field("reference", "Reference to compare with", "subject", "reference", "tcp:cubic", False),
    Field("background", "Background", "background", "", "tcp:cubic", False),
    Field("loads", "Background loads", "fairness", "loads", "30%, 60%, 100%", False),
    Field("repetitions", "Repetitions", "fairness", "repetitions", "3", False),
    Field("duration", "Duration of a transfer", "fairness", "duration_s", "6s", False),
    Field("omit", "Omitted at its start", "fairness", "omit_s", "2s", False),
    Field("line", "Rate of the line", "path", "rate_bps", "100Mbit", False),
    Field("rtt", "Round-trip time", "path", "rtt_s", "10ms", False),
    Field("background_rtt", "Background round-trip time", "path", "background_rtt_s",
          "as the transfer", False),
)  # fmt: skip


def fairness_plan_of_fields(form: Mapping[str, str]) -> str:
    """The text of a fairness plan; a field that is empty is left out.

    Raises:
        SpecError: for a side that `--background` of `farline fairness` would not take either.
    """
    from farline.api.contention import tool_names
    from farline.campaign.contention.plan import parse_contender
    from farline.plots.plan_text import tables_toml

    tables: dict[str, dict[str, Any]] = {"fairness": {}, "background": {}, "subject": {}}
    for one in FAIRNESS_FIELDS:
        text = form.get(one.name, "").strip()
        if not text:
            continue
        if one.table in ("subject", "background"):
            side = parse_contender(one.label, text, tool_names()).document()
            tables[one.table] |= {one.option: side} if one.option else side
        else:
            value = int(text) if _is_number(text) else text
            tables.setdefault(one.table, {})[one.option] = value
    if "reference" in tables["subject"]:
        tables["fairness"]["reference"] = "reference"
    return _without_del(tables_toml(tables)) + "\n"


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
    return _without_del(json.dumps(part, ensure_ascii=False))


def _without_del(text: str) -> str:
    return text.replace("\x7f", "\\u007f")
