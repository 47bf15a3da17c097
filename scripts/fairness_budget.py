"""The error of harm that is estimated without asking, from a measurement in a store.

    python -m scripts.fairness_budget [NAME] [--few tcp] [--many tcp-4]

prints a row per load and repetition: the rates of the transfer with few and with many streams, how
many others follow from them, harm as estimated from that and as measured. It is the table of
docs/design/fairness-budget.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise

from farline.campaign.contention.journal import read_journal
from farline.campaign.contention.trials import kept_in_store, read_trials
from farline.fairness.budget import Probe, competing_flows, estimated_harm
from farline.fairness.contest import BACKGROUND, SUBJECT, Trial
from farline.store import Store

HEADS = ("load", "few", "many", "others", "harm of few", "measured", "harm of many", "measured")


def rows(trials: list[Trial], few: tuple[str, int], many: tuple[str, int]) -> Iterator[list[str]]:
    """A row per load and repetition in which both transfers and the background alone were run."""
    at = {(one.subject, one.load_bps, one.repetition): one for one in trials}
    for _subject, load, repetition in sorted(
        (key for key in at if key[0] == few[0] and key[1] is not None), key=lambda key: key[1:]
    ):
        both = [at.get((name, load, repetition)) for name, _ in (few, many)]
        quiet = at.get((None, load, repetition))
        if load is None or quiet is None or None in both:
            continue
        alone = quiet.seen[BACKGROUND].rate_bps
        found = [one for one in both if one is not None]
        rates = [one.seen[SUBJECT].rate_bps for one in found]
        harms = [max(0.0, 1 - one.seen[BACKGROUND].rate_bps / alone) for one in found]
        probes = [Probe(n, rate) for (_, n), rate in zip((few, many), rates, strict=True)]
        (others,) = (competing_flows(a, b) for a, b in pairwise(probes))
        guess = [
            "-" if others is None else f"{estimated_harm(p.streams, others):.2f}" for p in probes
        ]
        yield [
            f"{load / 1e6:.0f}", *(f"{rate / 1e6:.1f}" for rate in rates),
            "-" if others is None else f"{others:.2f}",
            guess[0], f"{harms[0]:.2f}", guess[1], f"{harms[1]:.2f}",
        ]  # fmt: skip


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="last")
    parser.add_argument("--few", default="tcp")
    parser.add_argument("--many", default="tcp-4")
    asked = parser.parse_args()
    store = Store.to_read()
    journal = read_journal(store, asked.name)
    read = read_trials(kept_in_store(store, journal.name), journal.plan.count_invalid)
    named = [(name, journal.plan.subject(name).streams) for name in (asked.few, asked.many)]
    print("| " + " | ".join(HEADS) + " |")
    print("|" + "---|" * len(HEADS))
    for row in rows(list(read.trials), named[0], named[1]):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
