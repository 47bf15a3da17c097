"""What is lost by a chosen number of streams: farline's searches beside rules and constants.

On sweeps and grids with the noise of production (`_tuning/sweeps.py`,
`knob_grids.py`) and on 60 paths of a modelled wide area
(`_tuning/wan.py`), both seeded. `ours` is farline's mean latent regret in percent, `peer` what it
may be, or what another policy loses on the same runs; a ratio of 1 is as good. Needs no network,
and some minutes. `--seed N` draws others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _contract import Row, finish
from _program import program
from _tuning import knob_grids, policies
from _tuning.sweeps import COUNTS, KINDS, Load, Sweep, make_sweeps, past_transfers
from _tuning.wan import COUNTS as WAN_COUNTS
from _tuning.wan import NOISE_SD, Wan, make_wans
from farline.store.paths import PastTransfer, PathEnds
from farline.tuning.grids import stream_grid
from farline.tuning.situation import Setting, Situation

NOW_S = 1_790_000_000.0
PATHS, OTHER_PATHS, ROUNDS = 40, 12, 3
WANS = 60
KNOB_PATHS = 20

Policy = Callable[[Sweep, policies.Sampler, list[PastTransfer], Situation], policies.Answer]


def situation(sweep: Sweep) -> Situation:
    """What is known of a sweep before."""
    return Situation(
        ends=PathEnds.between("near", f"site{sweep.path}"), tool="gridftp", modality="E",
        file_bytes=2.0 ** KINDS[sweep.kind], files=64, concurrency=4, pipelining=4,
        rtt_ms=sweep.rtt_ms, capacity_bps=1e10, window_bytes=32 << 20, now_s=NOW_S,
    )  # fmt: skip


def histories(sweeps: list[Sweep], of: Sweep, seed: int) -> dict[str, list[PastTransfer]]:
    """What may be known before: nothing, other paths, this path's other data, this very kind."""
    others = [s for s in sweeps if s.path != of.path and s.path % (PATHS // OTHER_PATHS) == 0]
    far = [row for n, s in enumerate(others) for row in past_transfers(s, NOW_S, seed + n)]
    same = [s for s in sweeps if s.path == of.path and s.kind != of.kind]
    path = far + [r for n, s in enumerate(same) for r in past_transfers(s, NOW_S, seed + 500 + n)]
    return {
        "none": [], "other": far, "path": path,
        "kind": path + past_transfers(of, NOW_S, seed + 900),
    }  # fmt: skip


POLICIES: dict[str, tuple[str, Policy]] = {
    "constant 8": ("none", lambda s, sample, h, now: (8, 0)),
    "constant 16": ("none", lambda s, sample, h, now: (16, 0)),
    "constant 32": ("none", lambda s, sample, h, now: (32, 0)),
    "textbook rule": (
        "none",
        lambda s, sample, h, now: (
            policies.textbook(1e10, s.rtt_ms, 2.0 ** KINDS[s.kind], 32 << 20), 0
        ),
    ),
    "first decrease": ("none", lambda s, sample, h, now: policies.first_decrease(sample, COUNTS)),
    "patient doubling": (
        "none", lambda s, sample, h, now: policies.patient_doubling(sample, COUNTS)
    ),
    "full grid": ("none", lambda s, sample, h, now: policies.full_grid(sample, COUNTS)),
    "full grid, 3 runs": ("none", lambda s, sample, h, now: policies.full_grid(sample, COUNTS, 3)),
    "bracket": ("none", lambda s, sample, h, now: policies.bracket(sample)),
    "farline, no history": ("none", lambda s, sample, h, now: policies.believing(sample, now, h)),
    "farline, other paths": ("other", lambda s, sample, h, now: policies.believing(sample, now, h)),
    "farline, same path": ("path", lambda s, sample, h, now: policies.believing(sample, now, h)),
    "farline, same kind": ("kind", lambda s, sample, h, now: policies.believing(sample, now, h)),
    "farline, same kind, stored": (
        "kind", lambda s, sample, h, now: policies.believing(sample, now, h, samples=0)
    ),
    "farline tune (default 8)": (
        "other", lambda s, sample, h, now: policies.believing(sample, now, h, default=8)
    ),
}  # fmt: skip


def swept(seed: int) -> dict[str, tuple[float, float, float]]:
    """Of each policy: mean samples, mean latent regret and its 90th percentile, in percent."""
    sweeps = make_sweeps(PATHS, seed)
    regrets: dict[str, list[float]] = {name: [] for name in POLICIES}
    samples: dict[str, list[int]] = {name: [] for name in POLICIES}
    for number, sweep in enumerate(sweeps):
        known = histories(sweeps, sweep, seed + 10_000 * (number + 1))
        for round_ in range(ROUNDS):
            for name, (wanted, policy) in POLICIES.items():
                load = Load(seed + 100 * number + round_)

                def sample(streams: int, load: Load = load, sweep: Sweep = sweep) -> float:
                    return 1e6 * float(np.exp(load.log_rate(sweep, streams)))

                streams, taken = policy(sweep, sample, known[wanted], situation(sweep))
                regrets[name].append(100 * sweep.regret(streams))
                samples[name].append(taken)
    return {name: _figures(samples[name], regrets[name]) for name in POLICIES}


def _figures(samples: list[int], regrets: list[float]) -> tuple[float, float, float]:
    return float(np.mean(samples)), float(np.mean(regrets)), float(np.quantile(regrets, 0.9))


def over_wans(seed: int) -> dict[str, tuple[float, float, float]]:
    """The same on the modelled wide area; `warm` has three earlier searches of the same path."""
    rng = np.random.default_rng(seed)
    grid = stream_grid(WAN_COUNTS[-1])
    found: dict[str, list[tuple[int, float]]] = {}
    for wan in make_wans(WANS, seed):
        sample = _noisy(wan, rng)
        answers = {
            "constant 8": (8, 0), "constant 16": (16, 0), "constant 32": (32, 0),
            "textbook rule": (
                policies.textbook(wan.capacity_bps, wan.rtt_ms, 1e9, wan.buffer_bytes), 0
            ),
            "first decrease": policies.first_decrease(sample, WAN_COUNTS),
            "bracket": policies.bracket(sample),
            "farline": policies.believing(sample, wan.situation, grid=grid),
            "farline tune (default 8)": policies.believing(
                sample, wan.situation, grid=grid, default=8
            ),
        }  # fmt: skip
        for name, (streams, taken) in answers.items():
            found.setdefault(name, []).append((taken, 100 * wan.regret(streams)))
    return {
        name: _figures([taken for taken, _ in rows], [lost for _, lost in rows])
        for name, rows in found.items()
    }


def over_knobs(seed: int) -> dict[str, tuple[float, float, float]]:
    """Concurrency, streams a file and pipelining together."""
    grids = knob_grids.make_grids(KNOB_PATHS, seed)
    found: dict[str, list[tuple[int, float]]] = {}
    for number, one in enumerate(grids):
        others = [o for o in grids if o.path != one.path][::2][:10]
        far = [r for n, o in enumerate(others) for r in knob_grids.past_transfers(o, seed + n, 60)]
        beside = [o for o in grids if o.path == one.path and o.kind != one.kind]
        path = far + [r for o in beside for r in knob_grids.past_transfers(o, seed + 999 + number)]
        kind = path + knob_grids.past_transfers(one, seed + 5000 + number)
        found.setdefault("constant 32, 32, 1", []).append((0, one.regret(Setting(32, 32, 32))))
        found.setdefault("textbook rule", []).append((0, one.regret(knob_grids.by_the_book(one))))
        for name, rows in (("no history", []), ("other paths", far), ("same path", path),
                           ("same kind", kind)):  # fmt: skip
            setting, taken = knob_grids.searched(one, rows, seed + number)
            found.setdefault(f"farline, {name}", []).append((taken, one.regret(setting)))
    return {
        name: _figures([taken for taken, _ in rows], [100 * lost for _, lost in rows])
        for name, rows in found.items()
    }


def _noisy(wan: Wan, rng: np.random.Generator) -> policies.Sampler:
    return lambda streams: wan.rate_bps(streams) * float(np.exp(rng.normal(0, NOISE_SD)))


def print_policies(title: str, figures: dict[str, tuple[float, float, float]]) -> None:
    """The table of all policies."""
    print(f"\n{title}\n{'policy':28} {'samples':>8} {'regret %':>9} {'90th pct':>9}")
    for name, (samples, mean, high) in figures.items():
        print(f"{name:28} {samples:8.1f} {mean:9.1f} {high:9.1f}")


def bound(case: str, ours: float, allowed: float) -> Row:
    """A figure that may be at most so much."""
    ratio = allowed / max(ours, 1e-9)
    return Row(case, ours, allowed, "%", ratio, ratio, ratio)


def main() -> int:
    """Prints both tables and holds the figures against what they may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=28)
    seed = parser.parse_args().seed
    sweeps, wans, knobs = swept(seed), over_wans(seed), over_knobs(seed)
    print_policies("recorded sweeps", sweeps)
    print_policies("modelled wide area", wans)
    print_policies("three knobs", knobs)
    cold, warm = sweeps["farline, other paths"], sweeps["farline, same kind"]
    rows = [
        bound("sweeps: no history of the path", cold[1], 5.0),
        bound("sweeps: its samples (of 3.5)", cold[0], 3.5),
        bound("sweeps: history of path and kind", warm[1], 3.5),
        bound("sweeps: its samples (of 1.5)", warm[0], 1.5),
        bound("sweeps: against constant 32", cold[1], sweeps["constant 32"][1]),
        bound("three knobs: no history of the path", knobs["farline, other paths"][1], 9.0),
        bound("three knobs: history of the kind", knobs["farline, same kind"][1], 5.0),
        bound("wide area: mean", wans["farline"][1], 5.0),
        bound("wide area: 90th percentile", wans["farline"][2], 12.0),
        bound("wide area: samples", wans["farline"][0], 5.0),
        bound("wide area: against constant 8", wans["farline"][1], wans["constant 8"][1]),
    ]
    return finish("tune-regret", rows)


if __name__ == "__main__":
    # No speed is measured, so a debug build of the extension does as well.
    program(main, any_build=True)
