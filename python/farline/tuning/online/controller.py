"""The controller of one count, of streams for instance, while a copy runs.

Pure: ticks in, decisions out. Levels are ln bit/s and differences of them, so every threshold is a
share. It *holds* a setting and tries others for a few seconds each: after the start, when an alarm
says that the path has changed, and now and then by a small step, since an optimum that has moved up
cannot be seen in the rate of the setting that holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from farline.tuning.online.account import ProbeAccount, likely_share, lost_share
from farline.tuning.online.alarm import BLOCK_S, ChangeAlarm
from farline.tuning.online.window import Tick, Window

Reason = Literal["probe", "small", "keep", "confirm", "back", "alarm"]
Phase = Literal["warm", "probe", "base", "hold", "after"]

_DOUBLE, _HALF_STEP, _SMALL = 2.0, math.sqrt(2), 1.25
_LEAST_FACTOR = 1.19
"""A search ends before a smaller step: noise says more than that."""
_FIRST_GAP_S = {True: 10.0, False: 30.0}
"""From the end of a search to the first small probe, up and down."""
_MOST_GAP_S = 120.0
_MOST_FACTOR = 3.0
"""Of the first gaps, after a search that changed nothing: probes stay rare, but do come."""
_TAX = 0.01
"""Share of the time between small probes that one may cost."""
_KNEE = 0.65
"""A last gain of less than this of a linear one: the knee may lie below."""
_LINEAR = 0.8
"""Of a linear gain: who gains less while losses rise takes it from others."""
_SLACK_S = 0.01
_RAMP_S = (0.25, 15.0)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """What is known when a copy begins."""

    first: int
    most: int
    ramp_s: float
    """Time in which a new stream gets to 63 % of its rate."""
    is_known: bool = False
    """Whether `first` comes from experience: then nothing is searched at the start."""
    is_polite: bool = False
    """Whether growth that others pay for is refused."""


@dataclass(frozen=True, slots=True)
class Decision:
    """From now on `setting`, and why; `difference` is the one of logs that decided it."""

    at_s: float
    setting: int
    reason: Reason
    difference: float | None = None


@dataclass(slots=True)
class _Probe:
    """One setting that is tried against the one before."""

    old: int
    new: int
    factor: float
    is_small: bool
    began_s: float
    fails_after_s: float
    base_loss: float
    difference: float = 0.0
    level: float = 0.0
    is_impolite: bool = False
    """Others pay for what it gains."""

    @property
    def is_up(self) -> bool:
        return self.new > self.old

    @property
    def linear(self) -> float:
        """The gain if every stream brought as much as the ones before."""
        return abs(math.log(self.new / self.old))


@dataclass(slots=True)
class _Search:
    """Steps from one setting to the best around it."""

    from_: int
    of_alarm: bool = False
    has_won: bool = False
    last_gain: float = 0.0


@dataclass(slots=True)
class OnlineController:
    """Finds and follows the best count of one knob; see `tick`."""

    settings: OnlineSettings
    setting: int = 0
    """In force since the last decision."""
    _phase: Phase = "warm"
    _since_s: float = 0.0
    _now_s: float = 0.0
    _left_s: float = math.inf
    _reference: float = 0.0
    _is_bound: bool = False
    """The reference is an upper bound of what the setting gives, not a measurement."""
    _probe: _Probe | None = None
    _search: _Search | None = None
    _window: Window = field(default_factory=Window)
    _alarm: ChangeAlarm = field(default_factory=ChangeAlarm)
    _account: ProbeAccount = field(default_factory=ProbeAccount)
    _out: list[Decision] = field(default_factory=list)
    _gaps: dict[bool, float] = field(default_factory=lambda: dict(_FIRST_GAP_S))
    _is_up_next: bool = True
    _rested_s: float = 0.0
    """When the time to the next small probe began."""
    _watch_s: float = 0.0
    """From when on blocks are looked at: what went back needs time to climb."""
    _block_s: float = 0.0
    _rose: bool = False

    def __post_init__(self) -> None:
        """Begins with the first setting, within its bounds."""
        self.setting = min(max(1, self.settings.first), self.settings.most)

    @property
    def _ramp_s(self) -> float:
        low, high = _RAMP_S
        return min(high, max(low, self.settings.ramp_s))

    @property
    def _measure_s(self) -> float:
        return min(4.0, max(2.0, 0.5 * self._ramp_s))

    @property
    def _settle_up_s(self) -> float:
        return max(1.5, 2 * self._ramp_s)

    @property
    def _climb_s(self) -> float:
        """After a loss of rate the network must climb back."""
        return max(1.5, 1.5 * self._ramp_s)

    def tick(self, tick: Tick) -> list[Decision]:
        """Takes what was seen, every half second; what changes now, the last one in force."""
        self._out = []
        self._window.add(tick)
        self._now_s = tick.at_s
        self._left_s = math.inf
        if tick.left_bytes is not None:
            self._left_s = 8 * tick.left_bytes / math.exp(self._window.level(4.0))
        steps = {
            "warm": self._warm, "probe": self._probing, "base": self._basing,
            "hold": self._holding, "after": self._settling,
        }  # fmt: skip
        steps[self._phase]()
        return self._out

    def look(self, tick: Tick) -> None:
        """Takes what was seen before the first decision is wanted."""
        self._window.add(tick)

    def restart(self, setting: int, most: int | None = None) -> None:
        """The count is `setting` for another reason: it is held once it has settled.

        A new session has begun, or no more than `most` are to be had.
        """
        if most is not None:
            self.settings = replace(self.settings, most=most)
        self.settings = replace(self.settings, is_known=True)
        self.setting = min(max(1, setting), self.settings.most)
        self._probe = self._search = None
        self._is_bound = False
        self._alarm.rest()
        self._go("warm")

    @property
    def is_settled(self) -> bool:
        """Whether it holds a setting and tries nothing now."""
        return self._phase == "hold" and not self._is_bound

    @property
    def noise(self) -> float:
        """Standard deviation of what a setting gives, of logs."""
        return self._alarm.noise

    @property
    def held_level(self) -> float:
        """ln bit/s that the setting gives."""
        return self._reference

    def _age_s(self) -> float:
        return self._now_s - self._since_s + _SLACK_S

    def _go(self, phase: Phase) -> None:
        self._phase, self._since_s = phase, self._now_s

    def _say(self, reason: Reason, setting: int, difference: float | None = None) -> None:
        self.setting = setting
        self._out.append(Decision(self._now_s, setting, reason, difference))

    # The start, and what follows a change of the path.

    def _warm(self) -> None:
        if self.settings.is_known:
            if self._age_s() >= 2 * self._ramp_s + 1 + self._measure_s:
                self._reference = self._window.level(self._measure_s)
                self._rest()
            return
        if self._age_s() >= max(1.5, self._ramp_s) + 1:
            middle_s = self._now_s - self._since_s - 0.5
            still = math.log(-math.expm1(-middle_s / self._ramp_s))
            self._reference, self._is_bound = self._window.level(1.0) - still, True
            self._begin(_Search(self.setting), _DOUBLE)

    def _settling(self) -> None:
        wait_s = 1.0 + (self._ramp_s if self._rose else 0.0)
        if self._age_s() >= wait_s + self._measure_s:
            self._reference, self._is_bound = self._window.level(self._measure_s), False
            self._begin(_Search(self.setting, of_alarm=True), _DOUBLE)

    def _changed(self, difference: float) -> None:
        """The path is not what it was."""
        self._account.changed(difference)
        self._rose = difference > 0
        self._probe = self._search = None
        self._go("after")

    # Searching.

    def _begin(self, search: _Search, factor: float, is_up: bool = True) -> None:
        self._search = search
        if is_up and not search.has_won and self.setting == self.settings.most:
            # There is nothing above: what the path has now can only lie below.
            factor, is_up = _DOUBLE if search.of_alarm else _HALF_STEP, False
        if not self._try(factor, is_up):
            self._finish()

    def _try(self, factor: float, is_up: bool, is_small: bool = False) -> bool:
        """Begins a probe; False where there is no such setting, or it may not cost so much."""
        old = self.setting
        new = stepped(old, factor, is_up, self.settings.most)
        length_s = (self._settle_up_s if is_up else 1.5) + self._measure_s
        share = likely_share(factor, is_up)
        age_s = self._now_s
        if new == old or not self._account.allows(length_s, share, age_s, self._left_s):
            return False
        after_base = self._phase == "base"
        self._probe = _Probe(
            old, new, factor, is_small, self._now_s, 1.5 if after_base else 1.0,
            self._window.loss(self._measure_s),
        )  # fmt: skip
        self._go("probe")
        self._say("small" if is_small else "probe", new)
        return True

    def _probing(self) -> None:
        probe = self._probe
        assert probe is not None
        age_s, noise = self._age_s(), self._alarm.noise
        early = self._window.level(BLOCK_S) - self._reference
        if self._is_path(probe, age_s, early):
            self._say("back", probe.old, early)
            self._changed(early)
        elif probe.is_up and not probe.is_small and self._is_early_yes(probe, age_s, early):
            self._keep_early(probe, early)
        elif self._is_early_no(probe, age_s, early, noise):
            self._judge(probe, early)
        elif age_s >= (self._settle_up_s if probe.is_up else 1.5) + self._measure_s:
            self._judge(probe, self._window.level(self._measure_s) - self._reference)

    def _is_path(self, probe: _Probe, age_s: float, difference: float) -> bool:
        """Whether more is lost than the setting can be blamed for."""
        if age_s < max(1.5, self._ramp_s) or difference >= -(probe.linear + 0.2):
            return False
        return not self._window.is_rising(probe.began_s, self._slack())

    def _slack(self) -> float:
        return max(0.03, self._alarm.noise)

    def _is_early_yes(self, probe: _Probe, age_s: float, difference: float) -> bool:
        gain = max(0.6 * probe.linear, 3 * self._alarm.noise)
        return age_s >= 1 and difference > gain and not self._takes(probe, difference)

    def _is_early_no(self, probe: _Probe, age_s: float, difference: float, noise: float) -> bool:
        if not probe.is_up:
            return age_s >= probe.fails_after_s and difference < -max(0.12, 2 * noise)
        if probe.is_small or age_s < max(1.5, self._ramp_s):
            return False
        is_lost = difference < -max(0.1, 2 * noise)
        return is_lost and not self._window.is_rising(probe.began_s, self._slack())

    def _takes(self, probe: _Probe, difference: float) -> bool:
        """Whether growth is paid for by others: losses rise, and it gains far less than linear."""
        if not (self.settings.is_polite and probe.is_up):
            return False
        loss = self._window.loss(min(self._measure_s, self._now_s - probe.began_s))
        more = max(5e-5, 0.05 * probe.base_loss)
        return difference < _LINEAR * probe.linear and loss - probe.base_loss > more

    def _threshold(self, probe: _Probe) -> float:
        if not probe.is_up:
            return max(0.02, 0.4 * self._alarm.noise)
        return max(0.03 if probe.factor < 1.4 else 0.05, 0.6 * self._alarm.noise)

    def _judge(self, probe: _Probe, difference: float) -> None:
        """The probe is over: kept, measured against the old setting once more, or given up."""
        probe.difference, probe.level = difference, self._reference + difference
        probe.is_impolite = self._takes(probe, difference)
        least = self._threshold(probe)
        if difference <= least or probe.is_impolite:
            self._say("back", probe.old, difference)
            if self._is_bound and not probe.is_small:
                self._go("base")
            else:
                self._fail(probe)
        elif difference < least + 1.5 * self._alarm.noise and not self._is_bound:
            self._say("confirm", probe.old, difference)
            self._go("base")
        else:
            self._keep(probe)

    def _basing(self) -> None:
        """Measures the old setting once more: to confirm, or instead of an upper bound."""
        probe = self._probe
        assert probe is not None
        climbs = not probe.is_up or probe.difference < -0.1
        if self._age_s() < (self._climb_s if climbs else 1.5) + self._measure_s:
            return
        level = self._window.level(self._measure_s)
        self._reference = level if self._is_bound else (self._reference + level) / 2
        self._is_bound = False
        probe.difference = probe.level - self._reference
        # One old value may have been an accident: the new one must be above the other, too.
        is_better = probe.difference > self._threshold(probe) and probe.level > level
        if is_better and not probe.is_impolite:
            self._keep(probe)
        else:
            self._fail(probe)

    def _keep_early(self, probe: _Probe, difference: float) -> None:
        """It gains so much that nobody needs to wait: its level is only known not to be higher."""
        self._reference += probe.linear
        self._is_bound = True
        self._go_on(probe, difference)

    def _keep(self, probe: _Probe) -> None:
        self._reference, self._is_bound = probe.level, False
        self._go_on(probe, probe.difference)

    def _go_on(self, probe: _Probe, difference: float) -> None:
        """The probe's setting is kept; the next step in its direction."""
        self._say("keep", probe.new, difference)
        self._account.gain(difference, probe.is_up)
        search = self._search or _Search(probe.old)
        search.has_won, search.last_gain = True, difference
        factor = _HALF_STEP if probe.is_small else probe.factor
        self._begin(search, factor, probe.is_up)

    def _fail(self, probe: _Probe) -> None:
        """The old setting stays."""
        length_s = self._now_s - probe.began_s if self._phase == "probe" else self._measure_s
        self._account.add(probe.difference, length_s)
        if probe.is_small:
            self._widen(probe, length_s)
            self._rest(probe)
            return
        search = self._search
        assert search is not None
        if not self._try_after(search, probe):
            self._finish()

    def _try_after(self, search: _Search, probe: _Probe) -> bool:
        """The next step after one that failed."""
        finer = math.sqrt(probe.factor)
        is_up = probe.is_up
        # Of a step that was cut to the most there can be, less of a loss says as much.
        lost = -probe.difference / min(1.0, probe.linear / math.log(probe.factor))
        if is_up and not search.has_won and lost > 0.2:
            return self._try(_DOUBLE if lost > 0.3 else _HALF_STEP, False)
        if finer < _LEAST_FACTOR:
            return False
        if is_up and search.has_won and search.last_gain < _KNEE * math.log(probe.factor):
            is_up = False
        if is_up and stepped(self.setting, finer, is_up, self.settings.most) == probe.new:
            # The step before was cut to the most there can be: that is not tried twice.
            return False
        return self._try(finer, is_up)

    def _finish(self) -> None:
        search, probe = self._search, self._probe
        assert search is not None
        if search.of_alarm:
            self._alarm.judged(search.from_ != self.setting)
        most = 1.0 if search.from_ != self.setting else _MOST_FACTOR
        self._gaps = {up: min(gap, most * _FIRST_GAP_S[up]) for up, gap in self._gaps.items()}
        # Where a small step began it, the next one goes the same way.
        self._is_up_next = self._is_up_next if probe is not None and search.has_won else True
        self._rest(probe)

    # Holding.

    def _rest(self, after: _Probe | None = None) -> None:
        """Holds from now on."""
        wait_s = self._settle_up_s + self._measure_s if self._is_bound else 0.0
        if after is not None and after.new != self.setting:
            wait_s = 1.0 if after.is_up else self._ramp_s
        self._probe = self._search = None
        self._alarm.rest()
        self._rested_s, self._watch_s = self._now_s, self._now_s + wait_s
        self._block_s = self._watch_s
        self._go("hold")

    def _widen(self, probe: _Probe, length_s: float) -> None:
        """The next small probe that way comes the later the more this one has cost."""
        is_up = probe.is_up
        paid_s = lost_share(probe.difference) * length_s / _TAX
        gap_s = max(_FIRST_GAP_S[True], 1.5 * self._gaps[is_up], paid_s)
        self._gaps[is_up] = min(_MOST_GAP_S, gap_s)
        self._is_up_next = not is_up

    def _holding(self) -> None:
        if self._is_bound and self._now_s + _SLACK_S >= self._watch_s:
            self._reference, self._is_bound = self._window.level(self._measure_s), False
        elif self._now_s + _SLACK_S >= self._block_s + BLOCK_S and self._has_changed():
            return
        if self._now_s + _SLACK_S < self._rested_s + self._gaps[self._is_up_next]:
            return
        if not self._try(_SMALL, self._is_up_next, is_small=True):
            self._is_up_next = not self._is_up_next
            self._rested_s = self._now_s

    def _has_changed(self) -> bool:
        """Looks at the block that has ended."""
        span_s, self._block_s = self._now_s - self._block_s, self._now_s
        self._reference, off = self._alarm.add(self._window.level(span_s), self._reference)
        if off is None:
            return False
        self._say("alarm", self.setting, off)
        self._changed(off)
        return True


def stepped(count: int, factor: float, is_up: bool, most: int) -> int:
    """The count a step away: at least one more or less, within 1 and `most`."""
    if is_up:
        return min(most, max(count + 1, round(count * factor)))
    return max(1, min(count - 1, round(count / factor)))
