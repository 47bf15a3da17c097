"""The plan that a report prints is one that can be run."""

from __future__ import annotations

import tomllib

from farline.plots.plan_text import plan_toml, rerun_command

JOURNAL = {
    "target": "dtn1.example.org:5470",
    "seed": 42,
    "plan": {
        "campaign": {"name": "tcp-streams", "repetitions": 5, "reference": "first"},
        "fixed": {
            "duration_s": 10.0,
            "pairs": [{"source": "192.0.2.1"}],
            "tcp": {"no_delay": True},
        },
        "grid": {"streams": [1, 2, 4], "tcp": {"congestion_control": ["reno", "cubic"]}},
    },
}


def test_the_toml_reads_back_to_the_plan_with_its_seed() -> None:
    plan = JOURNAL["plan"]
    assert isinstance(plan, dict)
    read = tomllib.loads(plan_toml(JOURNAL))
    assert read == {**plan, "campaign": {**plan["campaign"], "seed": 42}}


def test_odd_keys_and_texts_are_quoted() -> None:
    journal = {"plan": {"fixed": {"title": 'a "quoted" line\nand more', "odd key": None, "x y": 1}}}
    read = tomllib.loads(plan_toml(journal))
    assert read["fixed"] == {"title": 'a "quoted" line\nand more', "x y": 1}


def test_without_a_journal_there_is_no_plan() -> None:
    assert plan_toml({}) == ""
    assert rerun_command({}, "192.0.2.7:5470") == "farline profile 192.0.2.7:5470"
    assert rerun_command(JOURNAL, "x") == "farline profile dtn1.example.org:5470 plan.toml"
