"""The plans of copies: what they ask for is what Yu et al. 2014 and Rao et al. 2018 measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.campaign.plan import load_plan, plan_from_document
from farline.campaign.settings import Setting, make_campaign
from farline.plots.plan_text import plan_toml
from farline.plots.style import paper_style
from farline.plots.wanted import wanted_figures
from farline.plots.wanted_figure import draw_wanted
from farline.tools.native import resolve_spec
from tests.support.planned import planned_data

PLANS = Path(__file__).parents[2] / "plans"
PATHS = sorted(PLANS.glob("copy-*.toml"))


def settings_of(name: str) -> tuple[Setting, ...]:
    plan = load_plan(PLANS / f"copy-{name}.toml")
    return make_campaign(plan, lambda spec: dict(resolve_spec(spec))).settings


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_plan_of_copies_is_whole(path: Path) -> None:
    plan = load_plan(path)
    assert plan.name == path.stem
    assert plan.data is not None
    assert plan.data.size_bytes <= 1 << 30
    assert plan_from_document(plan.document()) == plan
    assert "[data]" in plan_toml({"plan": plan.document()})


@pytest.mark.parametrize(("mtu_bytes", "name"), [(9000, "jumbo"), (1500, "standard")])
def test_flows_are_those_of_papers_3(mtu_bytes: int, name: str) -> None:
    settings = settings_of(f"flows-{name}")
    plan = load_plan(PLANS / f"copy-flows-{name}.toml")
    assert plan.fixed["path.mtu_bytes"] == mtu_bytes
    assert plan.fixed["path.rtt_s"] == pytest.approx(0.00959)
    found = [(s.spec["transport"], s.spec["copy"]["read_engine"], s.spec["streams"])
             for s in settings]  # fmt: skip
    memory = [("tcp", "null", flows) for flows in range(1, 9)]
    assert sorted(found) == sorted(
        [("tcp", "auto", 1), ("udt", "auto", 1), ("udt", "null", 1), *memory]
    )


def test_the_two_plans_of_papers_3_differ_in_the_mtu_alone() -> None:
    jumbo, standard = (
        load_plan(PLANS / f"copy-flows-{name}.toml").document() for name in ("jumbo", "standard")
    )
    for document in (jumbo, standard):
        del document["path"]["mtu_bytes"], document["campaign"]["name"], document["figure"]
    assert jumbo == standard


def test_xdd_is_buffered_or_direct_at_both_ends() -> None:
    engines = {
        (s.spec["copy"]["read_engine"], s.spec["copy"]["write_engine"], s.spec["streams"])
        for s in settings_of("xdd")
    }
    assert engines == {(e, e, flows) for e in ("buffered", "direct") for flows in (1, 4, 8)}
    assert max(s.path["rtt_s"] for s in settings_of("xdd")) == 0.366


def test_gridftp_has_concurrency_times_parallelism() -> None:
    powers = (1, 2, 4, 8, 16)
    found = {(s.spec["copy"]["concurrency"], s.spec["streams"]) for s in settings_of("gridftp")}
    assert found == {(one, other) for one in powers for other in powers}
    assert {s.spec["copy"]["cipher"] for s in settings_of("gridftp")} == {"aes128-gcm"}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_figures_of_a_plan_find_what_they_show(path: Path) -> None:
    plan = load_plan(path)

    def rate(setting: Setting) -> float:
        return 1e8 * float(setting.spec["streams"])

    data = planned_data(plan, rate)
    for wanted in wanted_figures(data.plan):
        with paper_style():
            assert draw_wanted(data, wanted) is not None, wanted.name
