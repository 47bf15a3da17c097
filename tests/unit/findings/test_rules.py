"""The table of verdict rules and the table of their thresholds."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pytest

from farline.findings.figures import figures_of
from farline.findings.finding import Finding
from farline.findings.rules import limits, table
from farline.findings.rules.limits import LIMITS, Limits
from farline.findings.verdict import judge
from farline.spec._types import Transport
from tests.support.runs import CLIENT, RECEIVER, SENDER, SERVER, columns, run_record, stream

RULES = Path(limits.__file__).parent


def figures(transport: str, **more: Any) -> Any:
    return replace(figures_of(run_record(), columns([]), CLIENT), transport=transport, **more)


def test_every_transport_has_thresholds_and_rules() -> None:
    assert set(get_args(Transport)) == set(table.EVERY) == set(LIMITS) - {"copy"}
    for transport in table.EVERY:
        assert any(transport in rule.transports for rule in table.RULES)


def test_no_transport_is_asked_the_same_twice() -> None:
    asked = Counter((rule.find, name) for rule in table.RULES for name in rule.transports)
    assert max(asked.values()) == 1


def test_every_rule_of_a_file_is_in_the_table() -> None:
    """A function from figures to a finding that nobody asks is a rule that was forgotten."""
    found = {rule.find for rule in table.RULES}
    modules = {rule.find.__module__ for rule in table.RULES}
    for name in modules:
        module = __import__(name, fromlist=["rules"])
        for one in vars(module).values():
            hints = getattr(one, "__annotations__", {})
            own = getattr(one, "__module__", "") == name
            if own and hints.get("return") == "Finding | None":
                assert one in found, f"{one.__module__}.{one.__name__} is not in table.RULES"


def test_the_first_rule_that_fits_gives_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(line: str | None, *transports: str) -> table.Rule:
        return table.Rule(lambda _: Finding("path", line) if line else None, transports)

    rules = (rule("udt", "udt"), rule(None, "tcp"), rule("first", "tcp"), rule("last", "tcp"))
    monkeypatch.setattr(table, "RULES", rules)
    assert judge(figures("tcp")).line == "first"
    assert judge(figures("udt")).line == "udt"
    assert judge(figures("udp")).limit == "unknown"


@pytest.mark.parametrize(("reached", "limit"), [(0.94, "unknown"), (0.96, "rate")])
def test_a_threshold_of_the_table_is_the_one_that_holds(
    reached: float, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = figures("tcp", asked_bps=1e9, asked_by="-b", throughput_bps=reached * 1e9)
    assert judge(run).limit == limit
    stricter = MappingProxyType({**LIMITS, "tcp": replace(LIMITS["tcp"], rate_reached=0.99)})
    monkeypatch.setattr(limits, "LIMITS", stricter)
    assert judge(run).limit == "unknown"


def test_every_threshold_is_used_by_a_rule() -> None:
    files = [path.read_text() for path in RULES.parent.rglob("*.py") if path.name != "limits.py"]
    unused = [one.name for one in fields(Limits) if not any(f".{one.name}" in f for f in files)]
    assert unused == []


def test_one_segment_is_singular() -> None:
    from farline.findings.rules.losses import lost

    one = run_record(stream(CLIENT, SENDER, retransmits=1), stream(SERVER, RECEIVER))
    assert lost(figures_of(one, columns([]), CLIENT)).startswith("1 segment retransmitted")
