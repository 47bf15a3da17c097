"""Searches over any knobs: what is compared, what is believed, what is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.errors import UsageError
from farline.tuning.belief import SAMPLE_SD, log_of
from farline.tuning.choice import Choice, make_choice
from farline.tuning.grids import KnobLimits
from farline.tuning.history import belief_after, evidence_for
from farline.tuning.knobs import (
    KNOBS,
    WIDE_LIMITS,
    Knob,
    KnobValues,
    Offers,
    checked_knobs,
    wide_grid,
    wide_prior,
)
from farline.tuning.sampling import spec_with, tool_spec_with
from farline.tuning.search import BeliefSearch, Sample
from farline.tuning.situation import Setting
from tests.unit.tuning.histories import WAN, row

OFFERS: Offers = {
    "congestion": KnobValues(("bbr", "reno"), "cubic"),
    "buffers": KnobValues((1 << 20, 16 << 20), float(4 << 20)),
    "block": KnobValues((1 << 20,), float(128 << 10)),
    "transport": KnobValues(("udt",), "tcp"),
    "pipelining": KnobValues((8, 32), 1.0),
    "files": KnobValues(()),
}
LIMITS = KnobLimits(8, 8, 1, 64)
DEFAULT = Setting(2)


def searched(
    knobs: tuple[Knob, ...], rate: Callable[[Setting], float], noise: float = 0.0, seed: int = 0
) -> tuple[Choice, BeliefSearch]:
    """A search over a path whose rate in Mbit/s is known."""
    grid = wide_grid(knobs, OFFERS, DEFAULT, LIMITS)
    search = BeliefSearch(grid, wide_prior(grid, WAN), WIDE_LIMITS, first=DEFAULT)
    draw = np.random.default_rng(seed)
    while (setting := search.next()) is not None:
        found = 1e6 * rate(setting) * float(np.exp(draw.normal(0, noise)))
        search.learn(Sample(setting, found))
    choice = make_choice(
        grid, search.belief, search.samples, default=DEFAULT, reason=search.reason or "budget",
        answer=search.answer,
    )  # fmt: skip
    return choice, search


@pytest.mark.parametrize("knob", [knob for knob in KNOBS if knob != "streams"])
def test_every_knob_is_compared_beside_the_default(knob: Knob) -> None:
    grid = wide_grid((knob,), OFFERS, DEFAULT, LIMITS)
    assert grid.index(DEFAULT) is not None
    assert len(set(grid.settings)) == len(grid.settings) > 1
    assert len(grid.axes) == grid.points.shape[1]
    assert list(grid.settings) == sorted(grid.settings)


def test_another_transport_has_no_congestion_control_of_tcp() -> None:
    grid = wide_grid(("congestion", "transport"), OFFERS, DEFAULT, LIMITS)
    assert not [s for s in grid.settings if s.transport and s.congestion_control]
    assert Setting(2, transport="udt") in grid.settings


def test_a_congestion_control_that_is_twice_as_fast_is_found() -> None:
    choice, search = searched(
        ("streams", "congestion"), lambda s: 200 if s.congestion_control == "bbr" else 90
    )
    assert search.samples[0].setting == DEFAULT
    assert choice.setting.congestion_control == "bbr"
    assert choice.gain_low > 1


def test_a_buffer_that_is_too_small_is_not_taken() -> None:
    choice, _ = searched(("buffers",), lambda s: 20 if s.buffer_bytes == 1 << 20 else 100)
    assert choice.setting == DEFAULT


@settings(max_examples=8)
@given(seed=st.integers(0, 30))
def test_where_nothing_matters_the_default_is_left_for_no_noise(seed: int) -> None:
    """Odds of two to one are asked for: what is taken all the same costs nothing here."""
    knobs: tuple[Knob, ...] = ("congestion", "block", "transport")
    choice, search = searched(knobs, lambda _: 100, 0.05, seed)
    assert len(search.samples) <= WIDE_LIMITS.most_samples
    assert choice.setting == DEFAULT or choice.gain > 1
    assert choice.default == DEFAULT


def test_an_equal_setting_with_a_knob_turned_is_never_preferred() -> None:
    choice, _ = searched(("congestion", "block"), lambda _: 100)
    assert choice.setting == DEFAULT


def test_what_is_doubtful_is_left_unless_it_is_the_default_with_fewer_streams() -> None:
    assert Setting(1).takes_less(Setting(2))
    assert not Setting(1, congestion_control="bbr").takes_less(Setting(2))
    assert not Setting(2).takes_less(Setting(2))


def test_a_size_below_what_windows_carry_is_known_beforehand() -> None:
    now = replace(WAN, rtt_ms=100.0, capacity_bps=1e9)
    grid = wide_grid(("buffers",), OFFERS, DEFAULT, LIMITS)
    shape = wide_prior(grid, now).shape
    small, large = (grid.index(Setting(2, buffer_bytes=size)) for size in (1 << 20, 16 << 20))
    assert small is not None
    assert large is not None
    assert shape[small] < shape[large] - 1


def test_past_transfers_tell_knobs_apart() -> None:
    grid = wide_grid(("congestion",), OFFERS, DEFAULT, LIMITS)
    rows = [
        row(2, mbps, congestion_control=name)
        for name, mbps in (("bbr", 300.0), ("cubic", 100.0), ("bbr", 320.0), ("cubic", 90.0))
    ]
    belief = belief_after(wide_prior(grid, WAN), evidence_for(rows, WAN, grid))
    fast, usual = grid.index(Setting(2, congestion_control="bbr")), grid.index(DEFAULT)
    assert fast is not None
    assert usual is not None
    assert belief.mean[fast] - belief.mean[usual] > 0.3
    assert log_of(1e6) == 0.0
    assert SAMPLE_SD > 0


def test_what_cannot_be_set_is_refused_with_what_can() -> None:
    with pytest.raises(UsageError, match=r"--knobs block: cannot be set here; .* streams, files"):
        checked_knobs(("block",), {"files": KnobValues(())}, "here")
    with pytest.raises(UsageError, match="only one value"):
        checked_knobs(("congestion",), {"congestion": KnobValues((), "cubic")}, "here")
    assert checked_knobs(("transport", "streams"), OFFERS, "") == ("streams", "transport")
    many = {**OFFERS, "buffers": KnobValues(tuple(2**n for n in range(10, 30)), 1024.0)}
    with pytest.raises(UsageError, match="too many to compare"):
        wide_grid(KNOBS, many, DEFAULT, KnobLimits())


def test_a_setting_becomes_options_and_nothing_else() -> None:
    spec = {"tcp": {"mss_bytes": 1400}, "duration_s": 2.0}
    given = spec_with(spec, Setting(4, block_bytes=65536, buffer_bytes=1 << 20))
    assert given == {
        "tcp": {"mss_bytes": 1400, "send_buffer_bytes": 1 << 20, "receive_buffer_bytes": 1 << 20},
        "duration_s": 2.0, "streams": 4, "block_bytes": 65536,
    }  # fmt: skip
    other = spec_with(spec, Setting(1, transport="udt", buffer_bytes=1 << 20))
    assert "tcp" not in other
    assert other["udt"]["send_buffer_bytes"] == 1 << 20
    copy = spec_with({"copy": {}}, Setting(4, 2, 16, block_bytes=1 << 20))
    assert copy["copy"] == {"concurrency": 2, "pipeline": 16, "chunk_bytes": 1 << 20}


def test_streams_of_a_tool_are_those_of_one_file_and_stated_options_stay() -> None:
    spec = {"tool": "gridftp", "copy": {"concurrency": 3}}
    assert tool_spec_with(spec, Setting(16, 4), ("streams",)) == {
        "tool": "gridftp", "streams": 4, "copy": {"concurrency": 3}
    }  # fmt: skip
    assert "streams" not in tool_spec_with({"tool": "rclone"}, Setting(1), ())


def test_settings_read_as_people_say_them() -> None:
    one = Setting(8, 4, 16, 1 << 20, 16 << 20, "bbr")
    assert one.text == (
        "8 streams, 4 files at once, 16 announced, blocks of 1.00 MiB, buffers of 16.0 MiB, bbr"
    )
    assert Setting(1, transport="udt").text == "1 stream, udt"
    assert Setting(8) < Setting(8, congestion_control="bbr") < Setting(16)
