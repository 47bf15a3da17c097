"""Streams, then stripes, then nodes: reference steps, reasons, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.models.end_to_end import EndToEnd, NodeCapacity, NodeSetting
from farline.models.stream_curves import FullSecondOrder
from farline.tuning.nodes import MOST_SAMPLES, NodeSearch

PATH = FullSecondOrder(0.022258, -0.912571, 18.251425)
"""0.24 for one stream, 9.6 at 40: a path of 10 Gbit/s, in Gbit/s."""


def curve_through(rates: dict[int, float]) -> FullSecondOrder:
    return FullSecondOrder.through(list(rates), list(rates.values()))


def test_the_path_is_found_from_three_samples_as_printed() -> None:
    found = curve_through({n: float(PATH.rate(n)) for n in (1, 8, 64)})
    assert (found.a, found.b, found.c) == pytest.approx((0.022258, -0.912571, 18.251425))
    assert float(found.rate(1)) == pytest.approx(0.24, abs=5e-6)
    assert (found.peak_streams, found.peak) == pytest.approx((40, 9.6), rel=1e-4)


def driven(search: NodeSearch, model: EndToEnd, noise: float = 0.0, seed: int = 0) -> list[str]:
    """What is sampled, as streams/stripes/nodes with the rate."""
    rng = np.random.default_rng(seed)
    steps = []
    while (setting := search.next()) is not None:
        rate = model.rate(setting) * float(np.exp(rng.normal(0, noise)))
        steps.append(f"{setting.streams}/{setting.stripes}/{setting.nodes} {rate:.3f}")
        search.learn(rate)
    return steps


def alike(network: FullSecondOrder, **node: float) -> EndToEnd:
    return EndToEnd(network, NodeCapacity(**node), NodeCapacity(**node))


def test_slow_interfaces_are_doubled_until_the_path_is_full() -> None:
    search = NodeSearch(most_nodes=16, nic=1.0)
    assert driven(search, alike(PATH, nic=1)) == [
        "1/1/1 0.240", "4/1/1 1.000", "2/1/1 0.492", "4/1/2 2.000", "4/1/4 4.000", "4/1/8 8.000",
        "4/1/16 8.960", "2/1/16 9.299",
    ]  # fmt: skip
    assert search.answer.label == "2stm-1str-16n-1str-16n"
    assert search.reasons["streams"] == "cap:nic"


def test_processes_come_before_nodes_where_the_interface_is_not_full() -> None:
    network = curve_through({1: 0.8, 4: 3.332, 64: 35.933})
    search = NodeSearch(most_nodes=8, nic=10.0)
    steps = driven(search, alike(network, nic=10, cpu=6, process=2))
    assert [step.split()[0] for step in steps] == [
        "1/1/1", "4/1/1", "16/1/1", "2/2/1", "2/4/1", "2/8/1", "2/4/2", "2/4/4", "2/4/8", "1/4/8"
    ]  # fmt: skip
    rates = [0.8, 2, 2, 3.332, 6, 6, 12, 24, 35.933, 28.465]
    assert [float(step.split()[1]) for step in steps] == pytest.approx(rates, rel=2e-4)
    assert search.answer.label == "2stm-4str-8n-4str-8n"
    assert search.reasons["stripes"] == "noise"


def test_a_cap_of_each_process_takes_stripes_within_the_samples_there_are() -> None:
    """10 Gbit/s, 1.5 for a process: eight stripes of eight streams are too many streams in all."""
    search, model = NodeSearch(most_nodes=1, nic=10.0), alike(PATH, nic=10, process=1.5)
    steps = driven(search, model)
    assert len(steps) <= 9
    assert steps[-2:] == ["8/16/1 7.846", "4/8/1 9.299"]
    assert search.answer.label == "4stm-8str-1n-8str-1n"
    # Of all that one node can do 3 % less may be, with as few stripes as that takes.
    settings = [NodeSetting(1, k, n) for k in range(1, 33) for n in range(1, 33) if k * n < 200]
    assert model.rate(search.answer) >= 0.96 * max(model.rate(one) for one in settings)


def test_a_disk_that_falls_past_five_processes_has_its_printed_answer() -> None:
    model = EndToEnd(
        PATH, NodeCapacity(nic=10), NodeCapacity(nic=10),
        destination_disk=lambda stripes: min(6.0, 1.2 * stripes) - 0.3 * max(0, stripes - 5),
    )  # fmt: skip
    search = NodeSearch(most_nodes=1, nic=10.0)
    driven(search, model)
    assert search.answer.label == "2stm-8str-1n-8str-1n"


def test_the_peak_between_two_samples_is_sampled() -> None:
    network = FullSecondOrder.with_peak(2.0, 8, 9.0)
    search = NodeSearch(most_nodes=1, nic=40.0)
    steps = driven(search, EndToEnd(network))
    assert "8/1/1 9.000" in steps
    best = max(network.rate(np.arange(1, 65)))
    assert network.rate(search.answer.all_streams) > 0.97 * best


def test_the_end_to_end_tool_of_the_paper_finds_its_nodes() -> None:
    # 1 Gbit/s interfaces; throughput falls after 16 nodes (Yildirim and Kosar 2011, Fig. 1).
    network = FullSecondOrder.with_peak(0.24, 28, 3.0)
    search = NodeSearch(most_nodes=32, nic=1.0)
    model = alike(network, nic=1)
    driven(search, model)
    assert 3 <= search.answer.nodes <= 16
    assert model.rate(search.answer) > 12 * model.rate(NodeSetting(1, 1, 1)) * 0.95
    assert search.reasons["nodes"] in ("decline", "noise")


@given(
    st.floats(0.05, 3), st.floats(2, 200), st.floats(4, 100), st.floats(1, 40), st.floats(1, 40),
    st.integers(1, 64), st.integers(0, 99),
)  # fmt: skip
def test_whatever_binds_ten_samples_are_enough_to_end(
    first: float, peak_at: float, peak: float, nic: float, process: float, nodes: int, seed: int
) -> None:
    network = FullSecondOrder.with_peak(first, peak_at, peak)
    search = NodeSearch(nodes, nic)
    model = alike(network, nic=nic, process=process)
    driven(search, model, noise=0.05, seed=seed)
    assert 1 <= len(search.samples) <= MOST_SAMPLES
    assert search.answer.nodes <= nodes
    assert "streams" in search.reasons
    best = max(sample.rate for sample in search.samples)
    near = [sample.setting for sample in search.samples if sample.rate >= 0.97 * best]
    assert search.answer == min(near)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SpecError, match="most_nodes"):
        NodeSearch(0)
    search = NodeSearch(2)
    with pytest.raises(SpecError, match="nothing was sampled"):
        assert search.answer
    search.next()
    with pytest.raises(SpecError, match="rate"):
        search.learn(0.0)
