"""Text of `farline tune`: samples as they come, the choice with its reasons, what is known."""

from __future__ import annotations

import json
import shlex
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farline.cli.shown import shown
from farline.errors import SystemFailure
from farline.spec.units import counted, rate_human, size_human
from farline.tools.events import Notice, PathKnown, SampleBegun, SampleFailed, SampleTaken
from farline.tuning.history import knob_streams, reached_bps
from farline.tuning.search import REASON_TEXT

if TYPE_CHECKING:
    from farline.api.tuning import KnownPath
    from farline.store.paths.choices import StoredChoice
    from farline.tools.events import Event
    from farline.tuning.choice import Choice, Cost, Expectation
    from farline.tuning.job import TuneResult
    from farline.tuning.situation import Setting

_BAR = 40
"""Widest bar, in letters."""


@dataclass(eq=False, repr=False)
class View:
    """Shows events as they come; nothing where one document at the end is all that is wanted."""

    quiet: bool
    _in_line: bool = field(default=False, init=False)
    """Whether the line of a sample waits for its result."""

    def show(self, event: Event) -> None:
        """Shows one event, if it is one of those that are shown."""
        if self.quiet:
            return
        if isinstance(event, PathKnown):
            self.end_line()
            for line in _known_lines(event):
                click.echo(line)
        elif isinstance(event, SampleBegun):
            begun = f"sample {event.number}: {event.setting}, {event.seconds:.1f} s ..."
            click.echo(begun, nl=False)
            self._in_line = True
        elif isinstance(event, SampleTaken):
            click.echo(f" {rate_human(event.rate_bps)}{_limit_text(event.limit)}")
            self._in_line = False
        elif isinstance(event, SampleFailed):
            click.echo(f" failed: {shown(event.text)}")
            self._in_line = False
        elif isinstance(event, Notice):
            self.end_line()
            click.echo(f"farline: {shown(event.text)}", err=True)

    def end_line(self) -> None:
        """Ends the line of a sample that has no result, before something else is said."""
        if self._in_line:
            click.echo()
        self._in_line = False


def _limit_text(limit: str | None) -> str:
    """What a sample's verdict names, in the words of tables and pages."""
    from farline.plots.labels import LIMIT_TEXT

    if limit in (None, "unknown"):
        return ""
    return f", limited by {LIMIT_TEXT.get(limit, limit.replace('-', ' '))}"


def _known_lines(event: PathKnown) -> Iterator[str]:
    rtt = "RTT not known" if event.rtt_ms is None else f"RTT {event.rtt_ms:.3g} ms"
    yield f"path: {rtt}; {event.basis}; default {event.default}"
    yield from (f"  {limit}" for limit in event.limits)
    for change in event.changes:
        yield f"  changed: {change}; what was measured before counts as another path"


def print_result(
    result: TuneResult, choice: Choice, places: Sequence[str], far: str, options: Mapping[str, Any]
) -> None:
    """The choice, or its document."""
    if options["as_json"]:
        click.echo(json.dumps(document(result, choice, far), indent=2))
        return
    more = option_words(options)
    for line in [*chart_lines(choice), *choice_lines(result, choice, places, far, more)]:
        click.echo(line)


def chart_lines(choice: Choice) -> Iterator[str]:
    """A bar for each setting that was sampled, its mean; with the fitted curve's value beside."""
    rates: dict[tuple[int, str], list[float]] = defaultdict(list)
    for sample in choice.samples:
        rates[sample.setting.streams, sample.setting.text].append(sample.rate_bps)
    if len(rates) < 2:
        return
    means = {key: statistics.fmean(found) for key, found in sorted(rates.items())}
    width = max(len(text) for _, text in means)
    for (streams, text), mean in means.items():
        bar = "#" * max(1, round(_BAR * mean / max(means.values())))
        fitted = ""
        if choice.fit is not None:
            fitted = f"  fitted {rate_human(float(choice.fit.rate(streams)))}"
        yield f"  {text:>{width}} |{bar:<{_BAR}}| {rate_human(mean)}{fitted}"


def choice_lines(
    result: TuneResult,
    choice: Choice,
    places: Sequence[str],
    far: str,
    more: Sequence[str] = (),
) -> Iterator[str]:
    """The choice in a line, a command to paste, the default beside it, why, and what it cost."""
    yield f"choice: {choice.setting.text}{_expected(choice.expected)}"
    yield f"  use: {command_line(choice, places, more)}"
    yield f"  default: {choice.default.text}{_expected(choice.default_expected)}{_gain(choice)}"
    yield f"  why: {REASON_TEXT[choice.reason]}; {choice.basis}"
    if result.cost is not None and choice.samples:
        yield f"  cost: {cost_text(result.cost, choice.within_noise)}"
    if result.kept is not None:
        tool = "" if result.situation is None else _tool_words(result.situation.tool)
        yield f"  kept: copies {_way(result)} {far}{tool} without --streams use it"
    elif choice.setting.transport is not None:
        yield "  not kept: a copy changes its transport only with --transport"


def _tool_words(tool: str) -> str:
    return "" if tool == "farline" else f" with --tool {tool}"


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Options that all samples had, as a copy or a probe takes them."""
    flags = (("tool", "native"), ("tool_server", None), ("transport", "tcp"), ("congestion", None))
    words: list[str] = []
    for name, usual in flags:
        if options.get(name) not in (None, usual):
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    return words


def command_line(choice: Choice, places: Sequence[str], more: Sequence[str] = ()) -> str:
    """What to type to use the choice; `more` are options beside it."""
    has_files = len(places) > 1
    words = [*more, *setting_words(choice.setting, has_files, "--tool" in more)]
    if has_files:
        return shlex.join(["farline", "copy", *words, *places])
    if _is_of_probes(choice.setting, more):
        return shlex.join(["farline", "probe", *words, *(places or ("HOST",))])
    return f"{shlex.join(['farline', 'copy', *words])} SRC... DST"


def _is_of_probes(setting: Setting, more: Sequence[str]) -> bool:
    """Whether it is for measurements alone: copies have no blocks, and testers move no files."""
    from farline.drivers.catalogue import find_driver

    tool = more[more.index("--tool") + 1] if "--tool" in more else None
    is_tester = tool is not None and find_driver(tool).abilities.kind == "tester"
    return is_tester or setting.block_bytes is not None


def setting_words(setting: Setting, has_files: bool, is_tool: bool) -> list[str]:
    """A setting as options; streams of a tool are those of one file."""
    at_once = (setting.concurrency or 1) if is_tool else 1
    block = "--chunk" if has_files else "--block"
    flags = {
        "--streams": max(1, setting.streams // at_once),
        "--concurrency": setting.concurrency,
        "--pipeline": setting.pipelining,
        block: setting.block_bytes,
        "--window": setting.buffer_bytes,
        "--transport": setting.transport,
        "--congestion": setting.congestion_control,
    }
    return [
        word for flag, value in flags.items() if value is not None for word in (flag, str(value))
    ]


def cost_text(cost: Cost, within_noise: bool = False) -> str:
    """What the samples took, and from when on that pays; a gain within the noise may be none."""
    moved = size_human(cost.size_bytes)
    what = f"{moved} of the copy moved" if cost.is_own_data else f"{moved} of test data"
    line = f"{cost.seconds:.0f} s, {what}"
    if cost.pays_from_bytes is None:
        return f"{line}; no gain over the default"
    if within_noise:
        return f"{line}; the gain over the default is within the noise"
    if cost.pays_from_bytes == 0:
        return f"{line}; it has already paid off"
    return f"{line}; pays off from {size_human(cost.pays_from_bytes)} on"


def _expected(expected: Expectation | None) -> str:
    if expected is None:
        return ""
    low, high = rate_human(expected.low_bps), rate_human(expected.high_bps)
    return f": {rate_human(expected.rate_bps)} expected, 80 % interval {low} to {high}"


def _gain(choice: Choice) -> str:
    if choice.setting == choice.default:
        if choice.within_noise:
            return "; another setting is better only within the noise"
        return ""
    span = f"{choice.gain_low:.2f} to {choice.gain_high:.2f}"
    noise = ", within the noise" if choice.within_noise else ""
    return f"; the choice reaches {choice.gain:.2f} times as much ({span}{noise})"


def _way(result: TuneResult) -> str:
    return "to" if result.situation is None or result.situation.pushes else "from"


def document(result: TuneResult, choice: Choice, far: str) -> dict[str, Any]:
    """The choice for `--json`."""
    return {
        "schema": 1,
        "host": far,
        "streams": choice.setting.streams,
        "concurrency": choice.setting.concurrency,
        "pipelining": choice.setting.pipelining,
        "block_bytes": choice.setting.block_bytes,
        "buffer_bytes": choice.setting.buffer_bytes,
        "congestion_control": choice.setting.congestion_control,
        "transport": choice.setting.transport,
        "goal": choice.goal,
        "expected": _rates(choice.expected),
        "default": {"streams": choice.default.streams, "expected": _rates(choice.default_expected)},
        "tool": "farline" if result.situation is None else result.situation.tool,
        "gain": {"ratio": choice.gain, "low": choice.gain_low, "high": choice.gain_high},
        "within_noise": choice.within_noise,
        "reason": choice.reason,
        "basis": choice.basis,
        "changes": list(result.evidence.changed),
        "cost": None if result.cost is None else asdict(result.cost),
        "samples": [asdict(sample) for sample in choice.samples],
        "kept": None if result.kept is None else str(result.kept),
    }


def _rates(expected: Expectation | None) -> dict[str, float] | None:
    return None if expected is None else asdict(expected)


def print_known(known: KnownPath, as_json: bool) -> None:
    """What a store knows of a path."""
    if as_json:
        click.echo(json.dumps(known.document(), indent=2))
        return
    for line in known_lines(known):
        click.echo(line)


def known_lines(known: KnownPath) -> Iterator[str]:
    """Past transfers by setting, and the choice that copies use."""
    way = "to" if known.pushes else "from"
    if not known.transfers and known.choice is None and not known.of_tools:
        yield f"nothing is known about the path {way} {known.far}"
        return
    yield f"path {way} {known.far}: {counted(len(known.transfers), 'past transfer')}"
    yield from _transfer_lines(known)
    yield from _choice_lines(known)
    for choice in known.of_tools:
        yield from _one_choice(known, choice)


def _transfer_lines(known: KnownPath) -> Iterator[str]:
    """A row for each kind, tool, transport and number of streams: what they reach is not alike."""
    rows: dict[tuple[str, str, str, int], list[Any]] = defaultdict(list)
    for row in known.transfers:
        tool = "" if row.tool == "farline" else f" {row.tool}"
        rows[row.kind, tool, row.transport or "unknown", knob_streams(row) or 0].append(row)
    for (kind, tool, transport, streams), found in sorted(rows.items()):
        rates = [reached_bps(row) for row in found]
        newest = age_text(max((row.ended_s or 0.0) for row in found))
        yield (
            f"  {kind:<8}{tool} {transport:<7} {counted(streams, 'stream'):>10}:"
            f" {rate_human(statistics.median(rates))} median of {len(found)}, newest {newest}"
        )


def _choice_lines(known: KnownPath) -> Iterator[str]:
    if known.choice is None:
        yield "choice: none kept; farline tune makes one"
        return
    yield from _one_choice(known, known.choice)


def _one_choice(known: KnownPath, choice: StoredChoice) -> Iterator[str]:
    """A kept choice with its reasons, and why it is not used if it is not."""
    from farline.store.paths.choices import HostsNow
    from farline.tuning.choice import setting_of

    rates = [rate_human(rate) for rate in (choice.rate_bps, choice.low_bps, choice.high_bps)]
    tool = _tool_words(choice.tool)
    yield (
        f"choice{tool}: {setting_of(choice).text} for {choice.goal}: {rates[0]}"
        f" ({rates[1]} to {rates[2]}), made {age_text(choice.made_s)}"
    )
    yield f"  why: {choice.reason}; {choice.basis}"
    now = known.transfers[-1] if known.transfers else None
    ends = (None, None) if now is None else (now.from_kernel, now.to_kernel)
    here, there = ends if known.pushes else ends[::-1]
    facts = HostsNow(None if now is None else now.rtt_ms, here, there, now.nic_bps if now else None)
    for change in choice.changes(facts):
        yield f"  not used: {change}"


def write_export(text: str, name: str) -> None:
    """Writes a document into a file; - is standard output.

    Raises:
        SystemFailure: when it cannot be written.
    """
    if name == "-":
        click.echo(text)
        return
    try:
        Path(name).write_text(text + "\n", "utf-8")
    except OSError as error:
        raise SystemFailure(f"--export {name}: {error.strerror}") from None


def print_forgotten(place: str, transfers: int, there: bool) -> None:
    """What was forgotten."""
    count = counted(transfers, "past transfer")
    choice = "its choice is deleted" if there else "it had no choice"
    click.echo(
        f"{shown(place)}: {count} ignored from now on (the runs stay in the store); {choice}"
    )


def age_text(at_s: float) -> str:
    """How long ago, in the largest unit that fits."""
    if at_s <= 0:
        return "at an unknown time"
    age_s = max(0.0, time.time() - at_s)
    for size_s, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if age_s >= size_s:
            return f"{counted(int(age_s // size_s), unit)} ago"
    return "less than a minute ago"
