"""Explanations of infrastructures whose faults are known, and of those without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from farline.errors import SpecError
from farline.findings.infrastructure import explain
from farline.findings.infrastructure_finding import Cause, Explanation
from farline.profiles.cells import Cell
from farline.spec.infrastructure import Connection, Infrastructure, Site
from tests.support import infrastructures as made
from tests.support.infrastructures import FAULTS, HARMLESS, Case, cell_of, judge

SEEDS = range(500, 520)
"""Not those that the rules were made with, nor those of the table in the documentation."""

NAMED = {"losses, CUBIC": 0.3}
"""Share that is named where it is lower than for others: the fourth root of RTT is near a ramp."""


def explained(case: Case) -> Explanation:
    return explain(case.cells, periods=case.periods, capacity_bps=case.capacity_bps)


def the_cause(explanation: Explanation, kind: str) -> Cause:
    (found,) = [one for one in explanation.causes if one.kind == kind]
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_or_left_open_and_no_other_is(fault: str) -> None:
    outcomes = [judge(case, explained(case)) for case in map(FAULTS[fault], SEEDS)]
    assert outcomes.count("wrong") <= 1
    assert outcomes.count("named") >= NAMED.get(fault, 0.8) * len(SEEDS)


@pytest.mark.parametrize("fault", HARMLESS)
def test_nobody_is_blamed_where_nothing_is_wrong(fault: str) -> None:
    outcomes = [judge(case, explained(case)) for case in map(HARMLESS[fault], SEEDS)]
    assert outcomes.count("wrong") <= 1


def test_a_case_is_explained_alike_whatever_the_order_of_its_cells() -> None:
    case = made.bad_site(7)
    shuffled = np.random.default_rng(1).permutation(len(case.cells))
    other = replace(case, cells=tuple(case.cells[index] for index in shuffled))
    one, two = explained(case), explained(other)
    assert [cause.line for cause in one.causes] == [cause.line for cause in two.causes]
    assert one.sites[0].site == two.sites[0].site


def test_the_gain_of_a_bad_site_is_what_mending_it_gives() -> None:
    case = made.bad_site(6)
    (named,) = [site for kind, site in case.truth.answers if kind == "site"]
    found = explained(case)
    assert found.sites[0].site == named
    files = [cell for cell in case.cells if cell.keys["modality"] == "E"]
    slow = [cell for cell in files if named in (cell.keys["from_site"], cell.keys["to_site"])]
    lost = sum(cell.mean_bps * (1 / found.sites[0].ratio - 1) for cell in slow) / len(files)
    assert found.causes[0].gain_bps == pytest.approx(lost, rel=0.05)
    mean = sum(cell.mean_bps for cell in files) / len(files)
    assert found.causes[0].gain_share == pytest.approx(found.causes[0].gain_bps / mean)


def test_causes_and_sites_come_by_gain() -> None:
    found = explained(made.drifting_bad_site(3))
    gains = [cause.gain_bps for cause in found.causes]
    assert len(gains) == 2
    assert gains == sorted(gains, reverse=True)
    sites = [rank.gain_bps for rank in found.sites]
    assert sites == sorted(sites, reverse=True)
    assert sites[0] > 0


def test_no_gain_goes_beyond_the_line() -> None:
    case = made.window_everywhere(4)
    cause = the_cause(explained(case), "window")
    mean = cause.gain_bps / cause.gain_share
    assert case.capacity_bps is not None
    assert 0 < cause.gain_bps <= case.capacity_bps - mean


def mesh(
    rate: Callable[[int, int, float], float],
    *,
    sites: int = 6,
    n: int = 8,
    cv: float = 0.1,
    modalities: str = "T",
    settings: Sequence[Mapping[str, object]] = ({},),
) -> list[Cell]:
    """Cells between all sites; site k is 5 · 2^k ms away from the middle."""
    random = np.random.default_rng(5)
    cells = []
    for one in range(sites):
        for other in range(one + 1, sites):
            rtt_ms = 2.0 * (2**one + 2**other)
            for setting in settings:
                for modality in modalities:
                    keys = {"from_site": f"s{one}", "to_site": f"s{other}", "modality": modality}
                    level = rate(one, other, rtt_ms)
                    if "buffer_bytes" in setting:
                        level = min(level, 8e3 * float(str(setting["buffer_bytes"])) / rtt_ms)
                    cells.append(
                        cell_of({**keys, **setting}, rtt_ms, level * random.lognormal(0, cv, n))
                    )
    return cells


def test_the_window_and_the_buffers_it_needs_are_stated() -> None:
    window = 2 * 1024 * 1024

    def rate(_one: int, _other: int, rtt_ms: float) -> float:
        return min(8e9, 4 * window * 8e3 / rtt_ms)

    found = explain(mesh(rate, settings=({"streams": 4},)), capacity_bps=10e9)
    cause = the_cause(found, "window")
    assert "2.0" in cause.line or "1.9" in cause.line
    assert "MiB" in cause.line
    assert any("tcp_rmem" in remedy and "tcp_wmem" in remedy for remedy in cause.remedies)
    assert any("-P " in remedy for remedy in cause.remedies)
    assert any("losses" in line for line in cause.evidence), "what looks alike has to be said"
    assert any("-w " in (one.command or "") for one in found.next)


def test_large_buffers_that_are_not_used_speak_for_losses() -> None:
    def rate(_one: int, _other: int, rtt_ms: float) -> float:
        return min(8e9, 1e6 * 8e3 / rtt_ms)

    large: dict[str, object] = {"streams": 1, "buffer_bytes": 512_000_000}
    small: dict[str, object] = {"streams": 1, "buffer_bytes": 2_000_000}
    assert explain(mesh(rate, settings=(large,)), capacity_bps=10e9).causes[0].kind == "loss"
    assert explain(mesh(rate, settings=(small,)), capacity_bps=10e9).causes[0].kind == "window"


def test_rates_that_grow_with_the_buffer_are_those_of_a_window() -> None:
    buffers = tuple({"streams": 1, "buffer_bytes": size} for size in (10**6, 4 * 10**6))
    found = explain(mesh(lambda *_: 8e9, settings=buffers), capacity_bps=10e9)
    assert found.causes[0].kind == "window"
    assert any("in proportion to the socket buffer" in line for line in found.causes[0].evidence)


def test_files_that_are_slow_everywhere_stay_open_without_file_systems_rates() -> None:
    cells = mesh(lambda *_: 8e9)
    cells += [
        replace(
            cell,
            keys={**cell.keys, "modality": "E"},
            sum_bps=cell.sum_bps / 3,
            sum_square=cell.sum_square / 9,
        )
        for cell in cells
    ]
    found = explain(cells, capacity_bps=10e9)
    assert found.causes == ()
    assert found.not_enough is not None and "tool" in found.not_enough
    assert "file systems" in found.next[0].what


@pytest.mark.parametrize(("level_bps", "kind"), [(2.8e9, "io"), (20e9, "tool")])
def test_file_systems_rates_tell_them_from_the_tool(level_bps: float, kind: str) -> None:
    cells = mesh(lambda *_: 8e9)
    cells += [
        replace(
            cell,
            keys={**cell.keys, "modality": "E"},
            sum_bps=cell.sum_bps / 3,
            sum_square=cell.sum_square / 9,
        )
        for cell in cells
    ]
    for site in range(6):
        keys = {"from_site": f"s{site}", "to_site": f"s{site}", "modality": "F"}
        cells.append(cell_of(keys, None, [level_bps] * 3))
    assert the_cause(explain(cells, capacity_bps=10e9), kind).site is None


def test_a_site_that_only_writes_slowly_is_named_for_what_comes_in() -> None:
    def rate(_one: int, other: int, _rtt_ms: float) -> float:
        return 2e9 if other == 3 else 8e9

    cells = mesh(rate, modalities="ET")
    there = [
        replace(
            cell,
            keys={
                **cell.keys,
                "from_site": cell.keys["to_site"],
                "to_site": cell.keys["from_site"],
            },
            sum_bps=cell.n * 8e9,
            sum_square=cell.n * 64e18,
        )
        for cell in cells
    ]
    found = explain([*cells, *there], capacity_bps=10e9)
    assert {cause.site for cause in found.causes} == {"s3"}
    assert "all transfers to s3" in found.causes[0].line


def test_two_hosts_at_many_rtts_are_explained_by_shape() -> None:
    keys = {"from_site": "one", "to_site": "other", "modality": "T", "streams": 1}
    random = np.random.default_rng(1)
    cells = [
        cell_of(keys, rtt, min(9e9, 9e9 * 20 / rtt) * random.lognormal(0, 0.1, 10))
        for rtt in (0.4, 11.8, 22.6, 45.6, 91.6, 183, 366)
    ]
    found = explain(cells, capacity_bps=10e9)
    assert [(cause.kind, cause.site) for cause in found.causes] == [("window", None)]


def test_two_hosts_whose_rates_grow_with_streams_alone_have_too_few_of_them() -> None:
    random = np.random.default_rng(1)
    keys = {"from_site": "one", "to_site": "other", "modality": "T"}
    cells = [
        cell_of({**keys, "streams": n}, rtt, min(9e9, n * 1e9) * random.lognormal(0, 0.05, 10))
        for rtt in (1, 11.8, 22.6, 45.6, 91.6, 183, 366)
        for n in (1, 4, 10)
    ]
    found = explain(cells, capacity_bps=10e9)
    assert [(cause.kind, cause.site) for cause in found.causes] == [("streams", None)]


def streams_of_paths(counts: Sequence[int], each_bps: float) -> list[Cell]:
    """Fifteen paths between six sites, each with a number of streams of its own."""
    random = np.random.default_rng(2)
    pairs = [(one, other) for one in range(6) for other in range(one + 1, 6)]
    cells = []
    for index, (one, other) in enumerate(pairs):
        n = counts[index % len(counts)]
        keys = {"from_site": f"s{one}", "to_site": f"s{other}", "modality": "T", "streams": n}
        rates = n * each_bps * random.lognormal(0, 0.05, 10)
        cells.append(cell_of(keys, 2.0 * (2**one + 2**other), rates))
    return cells


def test_streams_that_differ_between_paths_only_are_not_taken_for_losses() -> None:
    found = explain(streams_of_paths((1, 2, 8, 4), 0.8e9), capacity_bps=10e9)
    assert [(cause.kind, cause.site) for cause in found.causes] == [("streams", None)]


@pytest.mark.parametrize(("capacity_bps", "streams"), [(10e9, 24), (100e9, 64)])
def test_more_streams_are_promised_what_the_line_carries_or_four_times_as_many_reach(
    capacity_bps: float, streams: int
) -> None:
    cells = streams_of_paths((1, 2, 1, 2, 1, 2, 4, 1, 2, 4, 1, 2, 4, 8, 16), 0.4e9)
    cause = the_cause(explain(cells, capacity_bps=capacity_bps), "streams")
    mean = sum(cell.mean_bps for cell in cells) / len(cells)
    wanted = min(0.95 * capacity_bps, streams * 0.4e9)
    assert cause.gain_bps + mean == pytest.approx(wanted, rel=0.06)


@pytest.mark.parametrize("capacity_bps", [10e9, None])
def test_a_window_below_every_level_is_mended_to_the_line_or_to_the_most_seen(
    capacity_bps: float | None,
) -> None:
    def rate(_one: int, _other: int, rtt_ms: float) -> float:
        return 8e3 * 2e6 / rtt_ms

    cells = mesh(rate, settings=({"streams": 1},), n=20)
    found = explain(cells, capacity_bps=capacity_bps)
    cause = the_cause(found, "window")
    rates = [cell.mean_bps for cell in cells]
    most = 0.95 * capacity_bps if capacity_bps else max(rates)
    mean = sum(rates) / len(rates)
    assert cause.gain_bps == pytest.approx(most - mean, rel=0.1)


def test_what_is_left_open_is_said_as_a_share_of_what_could_be() -> None:
    cells = mesh(lambda *_: 8e9)
    cells += [
        replace(
            cell,
            keys={**cell.keys, "modality": "E"},
            sum_bps=cell.sum_bps / 4,
            sum_square=cell.sum_square / 16,
        )
        for cell in cells
    ]
    found = explain(cells, capacity_bps=10e9)
    assert found.not_enough is not None
    assert "file transfers are 75 % slower" in found.not_enough


def test_transfers_within_a_site_are_those_of_a_path_of_its_own() -> None:
    case = made.no_fault(3)
    keys = {"from_site": "site-1", "to_site": "site-1", "modality": "E", "streams": 1}
    inner = cell_of(keys, 0.2, [cell.mean_bps * 0.2 for cell in case.cells[:10]])
    found = explain([*case.cells, inner], capacity_bps=case.capacity_bps)
    assert all(cause.kind == "path" for cause in found.causes)


def test_connections_give_the_rtt_that_cells_lack() -> None:
    case = made.window_everywhere(2)
    bare = [replace(cell, rtt_ms=None) for cell in case.cells]
    assert explain(bare).not_enough is not None
    rtts: dict[tuple[str, str], float] = {}
    for cell in case.cells:
        one, other = sorted((str(cell.keys["from_site"]), str(cell.keys["to_site"])))
        rtts[one, other] = cell.rtt_ms or 0.0
    names = sorted({name for pair in rtts for name in pair})
    known = Infrastructure(
        "known",
        tuple(Site(name, (f"{name}.example.org",)) for name in names),
        tuple(Connection(pair, rtt) for pair, rtt in rtts.items()),
        case.capacity_bps,
    )
    found = explain(bare, infrastructure=known)
    assert found.causes[0].kind == "window"
    assert any(".example.org" in (one.command or "") for one in found.next)


def test_what_has_no_site_is_left_out_and_counted() -> None:
    case = made.no_fault(3)
    stray = replace(case.cells[0], keys={**case.cells[0].keys, "to_site": None})
    found = explain([*case.cells, stray], capacity_bps=case.capacity_bps)
    assert f"{stray.n} without a known site or RTT were left out" in found.lead


def test_too_little_says_what_is_missing_and_proposes_more() -> None:
    found = explained(made.too_small(1))
    assert found.causes == () and found.sites == ()
    assert found.not_enough is not None and found.not_enough.startswith("not enough data")
    assert any("more runs" in one.what for one in found.next)


def test_no_cells_are_too_little() -> None:
    missing = explain([]).not_enough
    assert missing is not None
    assert "no measurement between sites with a known RTT" in missing
    assert "12 measurements or more, of 4 paths or settings or more" in missing


def test_streams_that_some_measurements_do_not_state_are_spoken_of() -> None:
    case = made.window_everywhere(2)
    bare = replace(
        case.cells[0],
        keys={key: own for key, own in case.cells[0].keys.items() if key != "streams"},
    )
    found = explain([bare, *case.cells[1:]], capacity_bps=case.capacity_bps)
    assert f"{bare.n} do not state their number of streams" in found.lead


def test_a_slow_path_has_to_be_the_planted_one() -> None:
    case = made.bad_path(500)
    found = explained(case)
    assert judge(case, found) == "named"
    (cause,) = found.causes
    other = replace(cause, sites=("site-0", "site-99"))
    assert judge(case, replace(found, causes=(other,))) == "wrong"


@pytest.mark.parametrize("missing", ["from_site", "to_site", "modality"])
def test_cells_that_were_not_grouped_by_sites_are_refused(missing: str) -> None:
    (cell, *_) = made.no_fault(1).cells
    bare = replace(cell, keys={key: value for key, value in cell.keys.items() if key != missing})
    with pytest.raises(SpecError, match=missing):
        explain([bare])


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, float("nan")])
def test_a_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(SpecError, match="confidence"):
        explain([], confidence=confidence)


@pytest.mark.parametrize("capacity_bps", [0.0, -1.0, float("nan"), float("inf")])
def test_a_capacity_that_is_no_rate_is_refused(capacity_bps: float) -> None:
    with pytest.raises(SpecError, match="capacity_bps"):
        explain([], capacity_bps=capacity_bps)
