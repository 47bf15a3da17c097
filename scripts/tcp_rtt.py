"""TCP's throughput profiles of `plans/tcp-rtt.toml`, beside the shapes of Rao et al. 2018.

    .venv/bin/python -m scripts.tcp_rtt STORE [clean]

reads every run over an emulated path in the store, prints the profiles of each congestion control
and number of streams, their coefficients, and how well five round-trip times stand for all
(Rao et al. 2018, Fig. 8), and puts them into docs/design/tcp-rtt.md between its marks: those of
the plan as it is, or those of the same plan without loss.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from farline.models.model_choice import best_subset
from farline.profiles.calculus import subset_error
from farline.profiles.cells import Cell, cells_from_table
from farline.profiles.throughput_profile import ThroughputProfile
from farline.store import RunFilter, Store
from farline.store.transfers import Selection, open_transfers
from scripts.page_tables import markdown, put_in

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "tcp-rtt.md"
MARKS = {(): "tcp-rtt", ("clean",): "tcp-rtt-clean"}
BY = ("congestion_control", "streams")
CAPACITY_BPS = 300e6
FEW = 5

Profiles = Mapping[tuple[str, int], ThroughputProfile]


def profiles_of(store: Path) -> dict[tuple[str, int], ThroughputProfile]:
    """A profile for each congestion control and number of streams."""
    own = Store(store, create=False)
    with open_transfers(store=own, runs=RunFilter(), logs=False) as transfers:
        table = transfers.cells(Selection(modality="T"), BY)
    groups: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells_from_table(table, BY):
        key = (str(cell.keys[BY[0]]), int(str(cell.keys[BY[1]])))
        groups.setdefault(key, []).append(cell)
    return {
        key: ThroughputProfile.from_cells(
            groups[key], capacity_bps=CAPACITY_BPS, label=f"{key[0]} {key[1]}"
        )
        for key in sorted(groups)
    }


def rates_table(profiles: Profiles) -> str:
    """Round-trip times down, profiles across: mean Mbit/s."""
    rtts = sorted({float(rtt) for profile in profiles.values() for rtt in profile.rtt_ms})
    head = ["RTT ms", *(f"{name} {streams}" for name, streams in profiles)]
    rows = []
    for rtt in rtts:
        cells = [f"{float(profile(rtt)) / 1e6:.0f}" for profile in profiles.values()]
        rows.append([f"{rtt:g}", *cells])
    return markdown(head, rows)


def shape_table(profiles: Profiles) -> str:
    """What Rao et al. 2018 says of a profile: its fall, its coefficients, five RTTs beside all."""
    head = ["profile", "n", "fall to the last RTT", "C_U", "C_CC", "C_UC", "best five RTTs", "miss"]
    rows = []
    for (name, streams), profile in profiles.items():
        found = profile.coefficients()
        few = best_subset(profile.rtt_ms, profile.mean_bps, FEW).rtt_ms
        miss = subset_error(profile, few)
        fall = 1 - float(profile.mean_bps[-1]) / float(profile.mean_bps[0])
        values = (found.c_u.value, found.c_cc.value, found.c_uc.value)
        rows.append(
            [
                f"{name}, {streams} streams",
                f"{int(min(profile.n))} to {int(max(profile.n))}",
                f"{100 * fall:.1f} %",
                *(f"{value:.3f}" for value in values),
                ", ".join(f"{float(rtt):g}" for rtt in few),
                f"{100 * miss:.1f} %",
            ]
        )
    return markdown(head, rows)


def main(arguments: list[str]) -> int | str:
    """Prints the tables and puts them into the page."""
    mark = MARKS.get(tuple(arguments[2:]))
    if len(arguments) < 2 or mark is None:
        return f"usage: {arguments[0]} STORE [clean]"
    profiles = profiles_of(Path(arguments[1]))
    text = f"{rates_table(profiles)}\n\n{shape_table(profiles)}"
    print(text)
    PAGE.write_text(put_in(PAGE.read_text("utf-8"), mark, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
