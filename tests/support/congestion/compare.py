"""What was measured against what is stated: growth between losses, backoffs, cycles, responses."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.support.congestion import reference
from tests.support.congestion.runs import Epoch, Run

STEADY_BETA = 0.8
CHANGED_BETA = 0.5
SHORTEST_EPOCH_ROWS = 20


@dataclass(frozen=True)
class Rules:
    """A congestion control as published: packets per round trip, and what a loss leaves."""

    increase: Callable[[float, float], float]
    """Of the window and the seconds since the last event."""
    keep: Callable[[float], float]


def rules(control: str, rtt_s: float, beta: float = STEADY_BETA) -> Rules:
    """The published rules of a congestion control at a round-trip time."""
    if control == "scalable":
        return Rules(lambda w, _: reference.SCALABLE_INCREASE * w, lambda w: 0.875 * w)
    if control == "highspeed":
        return Rules(
            lambda w, _: reference.hstcp_increase(w),
            lambda w: w * (1 - reference.hstcp_decrease(w)),
        )
    scale_rtt_s = rtt_s if control == "htcp" else None
    return Rules(lambda _, t: reference.htcp_increase(t, beta, scale_rtt_s), lambda w: beta * w)


def growth(control: str, epoch: Epoch, rtt_min_s: float, beta: float) -> tuple[float, float]:
    """Packets by which the window grew within an epoch: stated and measured; `beta` is H-TCP's.

    The stated growth follows the round trips and packets that there were, so that it does not
    depend on how well the path kept its round-trip time.
    """
    measured = float(epoch.window[-1] - epoch.window[0])
    published = rules(control, rtt_min_s, beta)
    if control.startswith("htcp"):
        middles = (epoch.at_s[1:] + epoch.at_s[:-1]) / 2
        round_trips = np.diff(epoch.at_s) / epoch.rtt_s[1:]
    else:
        middles = epoch.at_s[1:]
        round_trips = np.diff(epoch.delivered) / epoch.window[1:]
    rows = zip(epoch.window[1:], middles, round_trips, strict=True)
    stated = sum(published.increase(float(w), float(t)) * float(n) for w, t, n in rows)
    return stated, measured


def whole_epochs(run: Run, skip: int = 1) -> list[Epoch]:
    """Epochs between two events, without the first ones: slow start's end is not one of theirs."""
    return [one for one in run.epochs()[skip:] if len(one.at_s) > SHORTEST_EPOCH_ROWS]


def growths(run: Run, skip: int = 0) -> list[tuple[float, float]]:
    """Stated and measured growth of every epoch.

    H-TCP's first backoff is one half always; there the window before it cannot be seen, because
    slow start doubles it between two looks.
    """
    rtt_min_s = float(run.seen["rtt_us"][run.seen["rtt_us"] > 0].min()) / 1e6
    betas = [CHANGED_BETA, *(one.kept for one in run.epochs()[1:])]
    pairs = list(zip(run.epochs(), betas, strict=True))[skip:]
    return [
        growth(run.control, one, rtt_min_s, beta)
        for one, beta in pairs
        if len(one.at_s) > SHORTEST_EPOCH_ROWS
    ]


def total_growth(run: Run) -> tuple[float, float]:
    """Stated and measured growth over all epochs."""
    stated, measured = zip(*growths(run), strict=True)
    return sum(stated), sum(measured)


def growth_ratio(run: Run, skip: int = 1) -> float:
    """Median over the epochs of measured by stated growth.

    A sender that gets no CPU for a while does not use its window, which then must not grow: one
    such epoch says nothing about the rule.
    """
    return float(np.median([measured / stated for stated, measured in growths(run, skip)]))


def kept(run: Run, skip: int = 1) -> float:
    """Median share of the window that was kept at an event."""
    return float(np.median([one.kept for one in run.epochs()[skip:]]))


def period_s(run: Run, skip: int = 1) -> float:
    """Mean time from one event to the next: each is a whole number of round trips."""
    return float(np.mean(np.diff(run.seen["at_s"][run.events()])[skip:]))


def cycle(control: str, loss: float, rtt_s: float) -> reference.Cycle:
    """The published rules' own cycle, with the round trip that fast recovery takes."""
    published = rules(control, rtt_s)
    return reference.steady_cycle(loss, rtt_s, published.increase, published.keep, 1.0)


def published_window(control: str, loss: float, rtt_s: float) -> float:
    """Mean window at a loss rate: closed form where there is one, else the rules' own cycle."""
    if control == "scalable":
        return reference.scalable_response(loss)
    if control == "highspeed":
        return reference.hstcp_response(loss)
    published = rules(control, rtt_s)
    return reference.steady_cycle(loss, rtt_s, published.increase, published.keep).mean_window


def random_window(control: str, loss: float, rtt_s: float, events: int = 3000) -> float:
    """Mean window of the published rules at independent losses, by following them through many.

    A loss in the round trip after another is part of the same event. H-TCP keeps 0.8 of its window
    if that is within a fifth of the one at the event before, for the queue is empty here, else 0.5.
    """
    draw = random.Random(1)
    window, former, beta = 1.2 / math.sqrt(loss), 0.0, CHANGED_BETA
    packets = round_trips = 0.0
    for _ in range(events):
        between = draw.expovariate(loss)
        while between < window:
            between += draw.expovariate(loss)
        published = rules(control, rtt_s, beta)
        window, cycle = reference.one_cycle(window, between, rtt_s, published.increase, 1.0)
        packets, round_trips = packets + between, round_trips + cycle.round_trips
        beta = STEADY_BETA if abs(window - former) <= 0.2 * former else CHANGED_BETA
        former, window = window, rules(control, rtt_s, beta).keep(window)
    return packets / round_trips
