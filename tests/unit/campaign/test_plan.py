"""Plans: what is read, what is refused and how, and that nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.campaign.rules import Rules
from farline.campaign.settings import expand, make_campaign, run_seed
from farline.errors import SpecError, UsageError
from farline.spec.options import Grid
from tests.support.driving import make_plan, validate

SHIPPED = sorted((Path(__file__).parents[3] / "plans").glob("*.toml"))
PLANS = [path for path in SHIPPED if not path.stem.startswith("fairness-")]
"""Of campaigns; those of shared lines are read in `contention`."""


def plan(**parts: Any) -> Plan:
    return plan_from_document(parts)


def test_units_ranges_and_lists() -> None:
    made = plan(
        fixed={"duration_s": "500ms", "tcp": {"no_delay": True}},
        grid={
            "streams": "1..16*2",
            "block_bytes": ["64K", "1M..4M*2"],
            "rate_bps": ["10Gbit", 0],
            "client_cpus": [[0], [0, 1]],
            "tcp": {
                "congestion_control": "reno,bbr",
                "mss_bytes": 1400,
                "user_timeout_ms": ["500ms", "5s"],
            },
        },
    )
    assert made.fixed == {"duration_s": 0.5, "tcp.no_delay": True}
    assert made.axes == {
        "streams": (1, 2, 4, 8, 16),
        "block_bytes": (65536, 1 << 20, 2 << 20, 4 << 20),
        "rate_bps": (10**10, 0),
        "client_cpus": ([0], [0, 1]),
        "tcp.congestion_control": ("reno", "bbr"),
        "tcp.mss_bytes": (1400,),
        "tcp.user_timeout_ms": (500, 5000),
    }


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"gird": {}}, "plan gird: unknown; allowed: campaign, fixed, grid"),
        ({"campaign": {"repeat": 3}}, r"\[campaign\] repeat: unknown; allowed: name,"),
        ({"grid": {"strems": [1]}}, r"\[grid\] strems: unknown; did you mean streams"),
        ({"grid": {"tcp": {"mss": [1]}}}, r"\[grid.tcp\] mss: unknown; allowed: .*mss_bytes"),
        ({"fixed": {"udp": {"x": 1}}}, r"\[fixed.udp\] x: unknown; allowed: packet_bytes"),
        ({"grid": {"streams": [1, 300]}}, r"\[grid\] streams: 300 .*allowed: 1 to 256"),
        ({"grid": {"streams": [1, 1]}}, r"\[grid\] streams: 1 is listed twice"),
        ({"grid": {"streams": []}}, r"\[grid\] streams: the list is empty"),
        (
            {"grid": {"transport": ["sctp"]}},
            r"\[grid\] transport: 'sctp' .*tcp, udp, udt, rbudp, quic, null",
        ),
        ({"grid": {"title": ["a"]}}, r"\[grid\] title: cannot be varied"),
        ({"fixed": {"seed": 1}}, r"\[fixed\] seed: belongs in \[campaign\]"),
        (
            {"campaign": {"repetitions": "3"}},
            r"\[campaign\] repetitions: '3' is not a whole number",
        ),
        ({"campaign": {"repetitions": True}}, "repetitions: True is not a whole number"),
        ({"campaign": {"repetitions": 0}}, r"\[campaign\] repetitions: 0 is out of range"),
        (
            {"campaign": {"repetitions": 3, "max_repetitions": 4}},
            "max_repetitions: cannot be combined with repetitions",
        ),
        (
            {"campaign": {"min_repetitions": 9, "max_repetitions": 4}},
            "max_repetitions: 4 is out of range; allowed: 9 to 1000",
        ),
        ({"campaign": {"confidence": 1.0}}, "confidence: 1 is out of range"),
        ({"campaign": {"relative_half_width": 0}}, "relative_half_width: 0 is out of range"),
        ({"campaign": {"reference": "best"}}, "reference: 'best' .*first, none or a table"),
        ({"campaign": {"reference": {"strems": 1}}}, "strems: unknown"),
        ({"campaign": {"name": "a b"}}, "name: 'a b' is not"),
        ({"campaign": {"pause_s": -1}}, "pause_s: -1 is out of range"),
        ({"fixed": 3}, r"fixed: must be a table"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(parts: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line) as refusal:
        plan(**parts)
    assert "\n" not in refusal.value.message


def test_a_plan_file_is_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "night run.toml"
    path.write_text("[grid]\nstrems = [1]\n")
    with pytest.raises(SpecError, match=r"night run.toml: \[grid\] strems"):
        load_plan(path)
    path.write_text("[grid\n")
    with pytest.raises(UsageError, match="not TOML"):
        load_plan(path)
    with pytest.raises(UsageError, match="No such file"):
        load_plan(tmp_path / "none.toml")
    path.write_text("")
    assert load_plan(path).name == "night-run"


def test_settings_are_every_combination_in_order() -> None:
    settings = expand(make_plan(), validate)
    assert [setting.varied for setting in settings] == [
        {"streams": streams, "tcp.congestion_control": control}
        for streams in (1, 2, 4)
        for control in ("reno", "bbr")
    ]
    assert len({setting.key for setting in settings}) == 6
    assert settings[0].spec["tcp"]["congestion_control"] == "reno"


def test_a_transport_takes_only_its_own_sections() -> None:
    settings = expand(
        plan(
            fixed={"tcp": {"no_delay": True}},
            grid={
                "transport": ["tcp", "udp"],
                "tcp": {"congestion_control": ["reno", "bbr"]},
                "udp": {"gso": [True, False]},
            },
        ),
        validate,
    )
    assert [dict(setting.varied) for setting in settings] == [
        {"transport": "tcp", "tcp.congestion_control": "reno"},
        {"transport": "tcp", "tcp.congestion_control": "bbr"},
        {"transport": "udp", "udp.gso": True},
        {"transport": "udp", "udp.gso": False},
    ]
    assert all("tcp" not in s.spec for s in settings[2:])


@pytest.mark.parametrize("part", ["fixed", "grid"])
def test_options_that_apply_to_no_run_are_refused(part: str) -> None:
    with pytest.raises(SpecError, match=rf"\[{part}.udp\] gso: applies to no run"):
        expand(plan(**{part: {"udp": {"gso": True}}}), validate)


def test_a_refused_combination_is_named_before_anything_runs() -> None:
    with pytest.raises(SpecError, match="streams=13: streams: 13 is out of luck"):
        expand(plan(grid={"streams": [1, 13]}), validate)


def test_too_many_combinations_are_refused() -> None:
    wide = {"streams": "1..250+1", "tcp": {"mss_bytes": "1000..1100+1"}}
    with pytest.raises(SpecError, match="more than 10000 combinations"):
        expand(plan(grid=wide), validate)


def test_the_reference() -> None:
    first = make_campaign(make_plan(), validate)
    assert first.reference == first.settings[0]
    assert make_campaign(make_plan(reference="none"), validate).reference is None
    table = make_plan(reference={"streams": 8, "tcp": {"congestion_control": "bbr"}})
    reference = make_campaign(table, validate).reference
    assert reference is not None
    assert reference.spec["streams"] == 8
    assert reference.spec["tcp"]["congestion_control"] == "bbr"
    assert make_campaign(plan(), validate).reference is None


def test_flags_say_the_same_as_a_plan_and_win_over_it() -> None:
    grid = Grid(
        {"duration_s": 0.5},
        {"streams": (1, 2, 4), "tcp.congestion_control": ("reno", "bbr")},
    )
    by_flags = Plan(seed=7).with_grid(grid)
    assert expand(by_flags, validate) == expand(make_plan(), validate)
    changed = make_plan().with_grid(Grid({"streams": 8, "seed": 3}, {"duration_s": (1.0, 2.0)}))
    assert changed.axes == {"tcp.congestion_control": ("reno", "bbr"), "duration_s": (1.0, 2.0)}
    assert (changed.fixed, changed.seed) == ({"streams": 8}, 3)


def test_samples_are_taken_often_enough_unless_stated() -> None:
    (setting,) = expand(plan(fixed={"duration_s": 1}), validate)
    assert setting.spec["interval_s"] == 0.05
    (setting,) = expand(plan(fixed={"duration_s": 1, "interval_s": 0.5}), validate)
    assert setting.spec["interval_s"] == 0.5


def test_every_run_has_a_seed_of_its_own_that_json_keeps() -> None:
    seeds = [run_seed(1, "a", block, slot) for block in range(50) for slot in range(3)]
    assert len(set(seeds)) == 150
    assert all(0 <= seed < 2**53 for seed in seeds)
    assert run_seed(1, "a", 0, 0) == seeds[0] != run_seed(2, "a", 0, 0)


def test_plans_are_shipped() -> None:
    assert {path.stem for path in PLANS} >= {"demo", "tcp-streams", "tcp-buffers", "tcp-block"}


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_shipped_plan_loads(path: Path) -> None:
    loaded = load_plan(path)
    assert loaded.name == path.stem
    assert len(expand(loaded, validate)) > 1
    assert plan_from_document(loaded.document()) == loaded


AXES = st.fixed_dictionaries(
    {},
    optional={
        "streams": st.lists(st.integers(1, 256), min_size=1, max_size=4, unique=True),
        "block_bytes": st.lists(st.integers(1, 2**30), min_size=1, max_size=4, unique=True),
        "direction": st.lists(st.sampled_from(["forward", "reverse"]), min_size=1, unique=True),
        "client_cpus": st.lists(
            st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=3, unique_by=tuple
        ),
        "tcp": st.fixed_dictionaries(
            {},
            optional={
                "no_delay": st.lists(st.booleans(), min_size=1, unique=True),
                "congestion_control": st.lists(
                    st.sampled_from(["reno", "bbr", "cubic"]), min_size=1, unique=True
                ),
            },
        ),
    },
)
FIXED = st.fixed_dictionaries(
    {},
    optional={
        "duration_s": st.floats(0.01, 1000),
        "tcp": st.fixed_dictionaries({}, optional={"mss_bytes": st.integers(88, 32767)}),
    },
)
CAMPAIGN = st.fixed_dictionaries(
    {},
    optional={
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True),
        "min_repetitions": st.integers(1, 1000),
        "confidence": st.floats(0.5, 0.999),
        "relative_half_width": st.floats(0.001, 1),
        "reference": st.sampled_from(["first", "none", {"streams": 3}, {"tcp": {"mptcp": True}}]),
        "reference_every": st.integers(1, 1000),
        "seed": st.integers(0, 2**53),
        "pause_s": st.floats(0, 86_400),
        "store": st.text(),
    },
)


@given(campaign=CAMPAIGN, fixed=FIXED, grid=AXES)
def test_a_plan_survives_its_document(
    campaign: dict[str, Any], fixed: dict[str, Any], grid: dict[str, Any]
) -> None:
    read = plan(campaign=campaign, fixed=fixed, grid=grid)
    assert plan_from_document(read.document()) == read


def test_defaults_are_stated() -> None:
    assert Rules() == Rules(5, 27, 0.05, 0.95, 2, 5)
    assert Rules().looks == (5, 8, 12, 18, 27)
