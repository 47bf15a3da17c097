"""Streams, then stripes, then nodes: the end-to-end procedure of Yildirim and Kosar 2011.

```text
1  one node, one stripe: streams 1, 4, 16, 64 while each step gains; a full interface ends it, and
   half the streams are tried; where four times as many lost, the step between; a peak that the
   fitted curve promises between samples is sampled
2  interface not full: stripes times 2 while they gain, first with half the streams in each
3  nodes times 2 while they gain; once more with half the streams where they stop gaining
4  the fewest nodes, stripes and streams among what was measured within 3 % of the best
```

At most ten samples. Pure: `next` names a setting, `learn` takes its throughput.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from farline.errors import SpecError
from farline.models.end_to_end import NodeSetting
from farline.models.stream_curves import FullSecondOrder
from farline.tuning.search import Reason

GAIN = 0.05
"""A step that gains less is none."""
PROMISE = 0.04
"""What a peak of the fitted curve must promise over the best sample to be worth one."""
NIC_FULL = 0.95
DOUBLED = 1.8
"""Twice the nodes that give less than this have met the network."""
WITHIN = 0.03
MOST_SAMPLES = 10
STREAM_STEPS = (1, 4, 16, 64)

_Steps = Generator[NodeSetting, float, None]


@dataclass(frozen=True, slots=True)
class NodeSample:
    """A setting and its throughput."""

    setting: NodeSetting
    rate: float


@dataclass(eq=False, repr=False)
class NodeSearch:
    """The procedure for up to `most_nodes` a side with interfaces of `nic`, in any unit of rate."""

    most_nodes: int
    nic: float | None = None
    most_stripes: int = 64
    most_samples: int = MOST_SAMPLES
    samples: list[NodeSample] = field(default_factory=list)
    reasons: dict[str, Reason] = field(default_factory=dict)
    """Why each phase ended: `streams`, `stripes`, `nodes`."""

    def __post_init__(self) -> None:
        """Begins."""
        if min(self.most_nodes, self.most_stripes, self.most_samples) < 1:
            raise SpecError("most_nodes, most_stripes, most_samples: allowed: 1 or more")
        self._steps = self._work()
        self._wanted: NodeSetting | None = None
        self._is_begun = False

    def next(self) -> NodeSetting | None:
        """The setting to sample; None at the end."""
        if not self._is_begun:
            self._is_begun = True
            self._wanted = next(self._steps)
        return self._wanted

    def learn(self, rate: float) -> None:
        """What the setting gave that `next` named.

        Raises:
            SpecError: for a rate that is not positive, or when nothing was to be sampled.
        """
        if self._wanted is None or not rate > 0:
            raise SpecError(f"rate: {rate:g} is out of range; allowed: more than 0")
        self.samples.append(NodeSample(self._wanted, rate))
        try:
            self._wanted = self._steps.send(rate)
        except StopIteration:
            self._wanted = None

    @property
    def answer(self) -> NodeSetting:
        """The fewest nodes, stripes and streams within 3 % of the best that was measured.

        Raises:
            SpecError: before any sample.
        """
        if not self.samples:
            raise SpecError("nothing was sampled yet")
        best = max(sample.rate for sample in self.samples)
        return min(s.setting for s in self.samples if s.rate >= (1 - WITHIN) * best)

    @property
    def _left(self) -> int:
        return self.most_samples - len(self.samples)

    @property
    def _best(self) -> NodeSample:
        return max(self.samples, key=lambda sample: sample.rate)

    def _is_full(self, rate: float) -> bool:
        return self.nic is not None and rate >= NIC_FULL * self.nic

    def _work(self) -> _Steps:
        yield from self._streams()
        if not self._is_full(self._best.rate):
            yield from self._stripes()
        yield from self._nodes()

    def _streams(self) -> _Steps:
        """On one node with one stripe."""
        before = 0.0
        for count in STREAM_STEPS:
            if not self._left:
                break
            rate = yield NodeSetting(1, 1, count)
            if self._is_full(rate):
                self.reasons["streams"] = "cap:nic"
                if count > 1 and self._left:
                    yield NodeSetting(1, 1, count // 2)
                return
            if rate <= (1 + GAIN) * before:
                self.reasons["streams"] = "decline" if rate < before else "noise"
                if rate < before and count > 1 and self._left:
                    yield NodeSetting(1, 1, count // 2)
                break
            before = rate
        self.reasons.setdefault("streams", "budget")
        promised = self._promised()
        if promised is not None and self._left:
            yield promised

    def _promised(self) -> NodeSetting | None:
        """The peak of the curve through the first three samples, if it is worth a sample."""
        first = {sample.setting.streams: sample.rate for sample in self.samples}
        counts = [count for count in STREAM_STEPS[:3] if count in first]
        if len(counts) < 3:
            return None
        try:
            curve = FullSecondOrder.through(counts, [first[count] for count in counts])
        except SpecError:
            return None
        peak = round(curve.peak_streams)
        is_new = peak not in first and 1 < peak < STREAM_STEPS[-1]
        pays = curve.peak > (1 + PROMISE) * self._best.rate
        return NodeSetting(1, 1, peak) if is_new and pays else None

    def _stripes(self) -> _Steps:
        """More stripes on the node, where its interface is not what binds."""
        streams, stripes, before = max(1, self.answer.streams // 2), 1, self._best.rate
        while self._left and stripes * 2 <= self.most_stripes:
            stripes *= 2
            rate = yield NodeSetting(1, stripes, streams)
            if self._is_full(rate):
                self.reasons["stripes"] = "cap:nic"
                return
            if rate <= (1 + GAIN) * before:
                self.reasons["stripes"] = "decline" if rate < before else "noise"
                # Doublings of nodes, and a last try with half the streams, come first.
                is_spare = self._left > (self.most_nodes - 1).bit_length() + (self.most_nodes > 1)
                if rate < (1 - GAIN) * before and streams > 1 and is_spare:
                    # So many stripes have too many streams in all: fewer in those that were good.
                    yield NodeSetting(1, stripes // 2, streams // 2)
                return
            before = rate
        self.reasons["stripes"] = "budget"

    def _nodes(self) -> _Steps:
        """More nodes, each as the one that was found."""
        base, before = self.answer, self._rate(self.answer)
        nodes = 1
        while self._left and nodes < self.most_nodes:
            nodes = self._next_nodes(nodes)
            rate = yield NodeSetting(nodes, base.stripes, base.streams)
            if rate <= (1 + GAIN) * before:
                self.reasons["nodes"] = "decline" if rate < before else "noise"
                yield from self._halved(nodes, base)
                return
            gained, before = rate / before, rate
            if nodes == self.most_nodes and gained < DOUBLED:
                self.reasons["nodes"] = "noise"
                yield from self._halved(nodes, base)
                return
        self.reasons.setdefault("nodes", "budget")

    def _halved(self, nodes: int, base: NodeSetting) -> _Steps:
        if self._left and base.streams > 1:
            yield NodeSetting(nodes, base.stripes, base.streams // 2)

    def _next_nodes(self, nodes: int) -> int:
        """Twice as many; all of them at once where samples would not last for the doublings."""
        steps = (-(-self.most_nodes // nodes) - 1).bit_length()
        return self.most_nodes if steps > self._left else min(2 * nodes, self.most_nodes)

    def _rate(self, setting: NodeSetting) -> float:
        return max(s.rate for s in self.samples if s.setting == setting)
