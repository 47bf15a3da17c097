"""The plans of He et al. 2002: what they ask for, their figures, the lines of the model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

# Benches are programs, not a package: their modules are found beside them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

from farline.campaign.plan import Plan, load_plan, plan_from_document
from farline.campaign.settings import Setting
from farline.errors import SpecError
from farline.plots.axes import parameter_axis
from farline.plots.data import CampaignData, campaign_data
from farline.plots.labels import size_text
from farline.plots.style import paper_style
from farline.plots.wanted import ModelLine, line_places, wanted_figures
from farline.plots.wanted_figure import draw_wanted
from farline.testbeds import load
from scripts import rbudp_experiments as experiments
from tests.support.planned import planned_data

PLANS = Path(__file__).parents[2] / "plans"
PATHS = sorted(set(PLANS.glob("rbudp-*.toml")) - {PLANS / "rbudp-parallel-tcp.toml"})
"""Those that blast alone; parallel TCP has a blast beside it."""
MB = 10**6


def plan_of(name: str) -> Plan:
    return load_plan(PLANS / f"rbudp-{name}.toml")


def seconds(plan: Plan) -> float:
    """How long the plan's data take at the stated rates alone."""
    campaign = planned_data(plan, lambda _setting: 1e9)
    runs = [row for row in campaign.rows if row["block"] == 0]
    once = sum(8 * row["total_bytes"] / row["rate_bps"] for row in runs)
    return float(once * plan.rules.max_repetitions)


def as_asked(setting: Setting) -> float:
    return float(setting.spec["rate_bps"])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_plan_blasts_alone_as_the_paper_does_and_takes_minutes(path: Path) -> None:
    plan = load_plan(path)
    rbudp = {key.removeprefix("rbudp."): value for key, value in plan.fixed.items()}
    assert (rbudp["transport"], rbudp["in_flight"], rbudp["shared_path"]) == ("rbudp", 1, "allow")
    assert seconds(plan) < 420
    assert plan.place.host_cpus == "0"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_run_is_one_blast(path: Path) -> None:
    for row in planned_data(load_plan(path), as_asked).rows:
        assert row["rbudp.payload_bytes"] == row["total_bytes"] >= MB


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_plan_leaves_the_papers_pictures(path: Path) -> None:
    data = planned_data(load_plan(path), as_asked, with_blasts=True)
    for wanted in wanted_figures(data.plan):
        with paper_style():
            figure = draw_wanted(data, wanted)
        assert figure is not None, wanted.name
        assert len(figure.axes) == len(wanted.y)
        _, labels = figure.axes[0].get_legend_handles_labels()
        assert {line.name for line in wanted.models} <= set(labels)


def test_the_receiver_plan_is_the_papers_at_ten_times_its_rate() -> None:
    plan, network = plan_of("rates-receiver"), plan_of("rates-network")
    assert plan.place.testbed == "plans/testbeds/slow-receiver.toml"
    slow, link = load(PLANS / "testbeds" / "slow-receiver.toml"), load("chicago-amsterdam")
    (there,), (here,) = slow["links"], link["links"]
    for name, times in (("rate_bps", 10), ("delay_s", 0.1)):
        fast, slower = dict(there["forward"])[name], dict(here["forward"])[name]
        assert fast == pytest.approx(times * float(str(slower)))
    assert [host["name"] for host in slow["hosts"] if host.get("cpu_limit")] == ["chicago"]
    assert (plan.place.client_host, plan.place.server_host) == ("amsterdam", "chicago")
    assert (network.place.client_host, network.place.server_host) == ("chicago", "amsterdam")
    assert max(plan.axes["rate_bps"]) == 10 * max(network.axes["rate_bps"])


def test_the_payload_plans_lines_carry_610_and_one_loses_7_per_cent_of_the_data() -> None:
    plan = plan_of("payload")
    whole, lossy = load(PLANS / "testbeds" / "two-lines.toml")["links"]
    for link in (whole, lossy):
        there = dict(link["forward"])
        assert (
            float(str(there["rate_bps"])) * 1456 / (1500 + float(str(there["framing_bytes"])))
            > 612e6
        )
        assert there["delay_s"] == 0.055
    ways = [lossy["forward"], lossy["reverse"], whole["forward"]]
    assert [dict((way or {}).get("loss") or {}).get("random") for way in ways] == [0.07, None, None]
    pairs = {point.name: str(point.values["pairs"]) for point in plan.points}
    assert ["10.77.0.3" in text for text in pairs.values()] == [False, True, True]


LINE = ModelLine("best", 0.11, payload_bytes=600 * MB)


@pytest.mark.parametrize(("mbps", "best"), [(100, 99.763), (550, 543.109), (610, 601.541)])
def test_a_line_over_the_rate_is_equation_3(mbps: float, best: float) -> None:
    assert LINE.throughput_bps(mbps * 1e6) / 1e6 == pytest.approx(best, abs=0.001)


@pytest.mark.parametrize(("megabytes", "mbps"), [(1, 17.62), (100, 386.32), (1000, 537.65)])
def test_a_line_over_the_payload_is_equations_5_and_6(megabytes: int, mbps: float) -> None:
    line = ModelLine("lossy", 0.11, loss=0.07, rate_bps=610_000_000)
    assert line.throughput_bps(megabytes * 1e6) / 1e6 == pytest.approx(mbps, abs=0.01)


@pytest.mark.parametrize("scale", ["linear", "log2", "log10"])
def test_a_line_stands_where_the_points_of_its_axis_do(scale: Any) -> None:
    axis = parameter_axis("rate_bps", [1e8, 4e8, 6.1e8], wanted=scale)
    places, rates = line_places(LINE, axis)
    for value in (1e8, 6.1e8):
        at = places.index(axis.position(value))
        assert rates[at] == pytest.approx(LINE.throughput_bps(value))
    middle = min(range(len(places)), key=lambda index: abs(places[index] - axis.position(4e8)))
    assert rates[middle] == pytest.approx(LINE.throughput_bps(4e8), rel=0.02)


def test_no_line_runs_between_words() -> None:
    assert line_places(LINE, parameter_axis("rbudp.receiver", ["fake", "naive"])) == ([], [])


def small(**figure: Any) -> Plan:
    """A plan of four rates with one figure."""
    rates = {"rate_bps": ["100M", "300M", "600M", "900M"]}
    fixed = {"transport": "rbudp", "total_bytes": "600MB", "rbudp": {"payload_bytes": "600MB"}}
    table = {"name": "f", "x": "rate_bps", "y": ["blast_bps"], **figure}
    return plan_from_document({"grid": rates, "fixed": fixed, "figure": [table]})


MODEL = {"name": "best", "payload_bytes": "600MB", "rtt_s": "110ms", "loss": "7%"}


def test_a_models_values_are_read_with_units_and_survive_the_document() -> None:
    plan = small(model=[MODEL])
    (figure,) = plan.figures
    assert figure.models == (ModelLine("best", 0.11, loss=0.07, payload_bytes=600 * MB),)
    assert plan_from_document(plan.document()) == plan


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"speed": 3}, "[[figure]] f model speed: unknown; allowed: name, model, rate_bps"),
        ({"rtt_s": "long"}, "[[figure]] f model rtt_s: 'long' is not a duration"),
        ({"rtt_s": True}, "[[figure]] f model rtt_s: True is not a quantity"),
        ({"loss": 2}, "[[figure]] f model loss: 2 is out of range; allowed: 0 to 0.9"),
        ({"model": "best"}, "model: 'best' is not allowed; allowed: printed, passes, early"),
        ({"rate_bps": "1G"}, "give one of rate_bps and payload_bytes; the other lies on the x"),
        ({"name": ""}, "[[figure]] f model name: '' is not a string"),
    ],
)
def test_a_models_mistake_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SpecError) as refused:
        small(model=[MODEL | changes])
    assert complaint in refused.value.message


def test_a_model_is_over_what_lies_on_the_x_axis() -> None:
    over_payload = {"name": "m", "rate_bps": "1G", "rtt_s": 0.1}
    with pytest.raises(SpecError, match=r"payload_bytes: missing, and rbudp\.payload_bytes is not"):
        small(model=[over_payload])
    with pytest.raises(SpecError, match="model rtt_s: missing"):
        small(model=[{"name": "m", "payload_bytes": 1}])
    with pytest.raises(SpecError, match="has no meaning in a figure of kind bars"):
        small(kind="bars", model=[MODEL])


def drawn(plan: Plan) -> tuple[CampaignData, list[Axes]]:
    data = planned_data(plan, as_asked, with_blasts=True)
    with paper_style():
        figure = draw_wanted(data, wanted_figures(data.plan)[0])
    assert figure is not None
    return data, figure.axes


def test_blasts_are_drawn_by_themselves_with_their_loss_and_passes() -> None:
    data, panels = drawn(small(y=["blast_bps", "first_blast_loss", "blast_passes"], model=[MODEL]))
    assert [point.mean for point in data.points["first_blast_loss"]] == pytest.approx([7] * 4, 1e-4)
    assert [point.mean for point in data.points["blast_passes"]] == [3] * 4
    assert [panel.get_ylabel() for panel in panels] == [
        "Throughput of a blast (Mbit/s)",
        "Loss of the first blast (%)",
        "Passes of a blast",
    ]
    lines = [line for line in panels[0].get_lines() if line.get_label() == "best"]
    assert len(lines) == 1 and np.max(np.asarray(lines[0].get_ydata(), float)) < 900
    assert all(line.get_label() != "best" for line in panels[1].get_lines())


def test_runs_without_blasts_have_no_such_columns() -> None:
    data = planned_data(small(), as_asked)
    assert "blast_bps" not in data.points
    assert "blast_bps" not in campaign_data("none", data.rows).points


@pytest.mark.parametrize(
    ("size", "text"),
    [(600 * MB, "600 MB"), (MB, "1 MB"), (2 * 10**9, "2 GB"), (1 << 20, "1 MiB"), (8956, "8956 B")],
)
def test_sizes_of_papers_4_keep_their_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize("name", experiments.TABLES)
def test_every_plan_has_a_table_and_a_place_for_it(name: str) -> None:
    data = planned_data(load_plan(PLANS / f"{name}.toml"), as_asked, with_blasts=True)
    lines = experiments.TABLES[name](data).splitlines()
    assert len(lines) == 2 + len({point.settings[_down(name)] for point in data.throughput})
    assert all(len(line.split("|")) == len(lines[0].split("|")) for line in lines)
    assert f"<!-- {name}: begin -->" in experiments.PAGE.read_text(encoding="utf-8")
    assert "7.00" in lines[-1] and " 3 |" in lines[-1]


def _down(name: str) -> str:
    return experiments.PAYLOAD if name == "rbudp-payload" else experiments.RATE
