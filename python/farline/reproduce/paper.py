"""A report of all results as Markdown: method, accuracy of the emulation, results, what differs.

Every number in it comes from the results that are kept, or from the code that judged them; the
words are the same for any results. What was not measured is listed as such.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from farline.errors import SystemFailure
from farline.plots.gallery_figures import picture_svg
from farline.plots.whole_file import write_whole
from farline.reproduce.budget import EMULATOR_RATE, UNREPEATED
from farline.reproduce.item import Item
from farline.reproduce.results import Result

NAME = "paper.md"
_FIGURES = "figures"
_VERDICTS = ("agrees", "differs", "not measured", "not possible here")
_HOST = ("Host", "Kernel")
_PARTS = {"emulator": "emulator", "host": "other work of the host", "repetition": "repetition"}
_MARKS = str.maketrans({char: "\\" + char for char in "\\`*_{}[]<>#|~$"})


def write_paper(items: Sequence[Item], results: Iterable[Result], folder: Path) -> Path:
    """Writes `paper.md` and its figures into `folder`; the path of the text.

    Raises:
        SystemFailure: when there is no result, or the folder cannot be written.
    """
    kept = {result.item: result for result in results}
    shown = [(item, kept[item.id]) for item in items if item.id in kept]
    if not shown:
        raise SystemFailure(
            "there are no results of this scale to write a paper of; run 'farline reproduce --all'"
            " first, or choose the other --scale"
        )
    missing = [item.id for item in items if item.id not in kept]
    try:
        (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
        for item, result in shown:
            for number, picture in enumerate(result.pictures):
                write_whole(folder / _figure(item, number), picture_svg(picture))
        path = folder / NAME
        write_whole(path, "\n".join(paper_lines(shown, missing)) + "\n")
    except OSError as error:
        raise SystemFailure(f"{folder}: cannot write the paper: {error.strerror}") from error
    return path


def paper_lines(shown: Sequence[tuple[Item, Result]], missing: Sequence[str]) -> Iterator[str]:
    """The text, line by line: results in the order of their items."""
    yield "# farline: measurement, models and movement of bulk data, compared with five papers"
    yield from ("", *_abstract(shown, missing))
    yield from ("", "## 1. Method", "", *_method(shown))
    yield from ("", "## 2. Accuracy of the emulated paths", "", *_accuracy(shown))
    yield from ("", "## 3. Results", "")
    for paper in dict.fromkeys(item.paper for item, _ in shown):
        yield from _results([(item, one) for item, one in shown if item.paper == paper], paper)
    yield from ("## 4. What differs, and why", "", *_differs(shown))
    yield from ("", "## 5. What farline does instead", "", *_instead(shown))
    yield from ("", "## 6. What was not measured", "", *_absent(shown, missing))
    yield from ("", "## 7. How to repeat it", "", *_repeat(shown))


def _abstract(shown: Sequence[tuple[Item, Result]], missing: Sequence[str]) -> Iterator[str]:
    count = Counter(result.verdict for _, result in shown)
    figures = [result for item, result in shown if item.kind == "figure"]
    agreeing = sum(result.verdict == "agrees" for result in figures)
    checks = [check for _, result in shown for check in result.checks]
    said = ", ".join(f"{name} {count[name]}" for name in _VERDICTS if count[name])
    yield (
        f"farline {version('farline')} was compared with {len(shown) + len(missing)} figures,"
        f" tables and sentences of five papers. {len(shown)} have a result; verdicts: {said}."
        f" Of {len(figures)} figures and tables {agreeing} agree. Of {len(checks)} checks"
        f" {sum(check.holds for check in checks)} hold."
    )


def _method(shown: Sequence[tuple[Item, Result]]) -> Iterator[str]:
    scales = " and ".join(sorted({result.scale for _, result in shown}))
    days = sorted({result.made_at[:10] for _, result in shown})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    measured = sum(bool(item.sources) for item, _ in shown)
    campaigns = {name for item, _ in shown for name in item.sources}
    yield (
        f"{measured} entries rest on {len(campaigns)} measurements over emulated paths,"
        f" {len(shown) - measured} are computed. All results are of {span}, at {scales} scale."
    )
    for name in _HOST:
        found = list(dict.fromkeys(text for _, one in shown for key, text in one.facts
                                   if key == name))  # fmt: skip
        if found:
            yield f"{name}: {'; '.join(_text(text) for text in found)}."
    yield ""
    yield (
        "Two figures are called the same where they differ by less than an error budget: what the"
        f" emulation was late in shares of a round trip (at least {100 * EMULATOR_RATE:g} % for"
        " its rate), what the hypervisor took from the host, and half of the 95 % interval of"
        f" repeated runs ({100 * UNREPEATED:g} % for runs without repetition), added in squares."
    )
    widths = {part: [one.budget[part] for _, one in shown if one.budget.get("whole")]
              for part in (*_PARTS, "whole")}  # fmt: skip
    if widths["whole"]:
        yield from ("", "| part of the budget | median of entries | largest |", "|---|---|---|")
        for part, values in widths.items():
            name = _PARTS.get(part, "all together")
            yield f"| {name} | {_percent(_median(values))} | {_percent(max(values))} |"


def _accuracy(shown: Sequence[tuple[Item, Result]]) -> Iterator[str]:
    facts = dict.fromkeys(
        (name, text)
        for _, result in shown
        for name, text in result.facts
        if name.startswith(("Runs of ", "Emulator in "))
    )
    if not facts:
        yield "No entry with a result rests on an emulated path."
        return
    yield from ("| what | how it was |", "|---|---|")
    for name, text in facts:
        yield f"| {_text(name)} | {_text(text)} |"


def _results(shown: Sequence[tuple[Item, Result]], paper: str) -> Iterator[str]:
    yield from (f"### {_text(paper)}", "")
    yield from ("| entry | where | verdict | checks that hold |", "|---|---|---|---|")
    for item, result in shown:
        held = f"{sum(check.holds for check in result.checks)} of {len(result.checks)}"
        checks = held if result.checks else ""
        yield f"| `{item.id}` | {_text(item.place)} | {result.verdict} | {checks} |"
    yield ""
    for item, result in shown:
        if not result.checks and not result.pictures:
            continue
        yield from (f"#### {_text(item.place)}: {_text(item.title)}", "", _text(item.claim), "")
        if item.scaling:
            yield from (f"Scaling: {_text(item.scaling)}", "")
        for number, picture in enumerate(result.pictures):
            yield from (f"![{_text(picture.caption)}]({_figure(item, number)})", "")
        if result.checks:
            yield from ("| check | paper | here | holds |", "|---|---|---|---|")
        for check in result.checks:
            cells = (_text(check.text), _text(check.paper), _text(check.ours))
            yield f"| {' | '.join(cells)} | {'yes' if check.holds else 'no'} |"
        yield ""


def _differs(shown: Sequence[tuple[Item, Result]]) -> Iterator[str]:
    found = [(item, result) for item, result in shown if result.verdict == "differs"]
    if not found:
        yield "Nothing differs."
    for item, result in found:
        yield f"- `{item.id}` ({_text(item.paper)}, {_text(item.place)}): {_text(result.reason)}"
        for check in result.checks:
            if not check.holds:
                paper = f"; paper: {_text(check.paper)}" if check.paper else ""
                yield f"    - {_text(check.text)}: {_text(check.ours)}{paper}"


def _instead(shown: Sequence[tuple[Item, Result]]) -> Iterator[str]:
    found = [(item, result) for item, result in shown if result.instead]
    if not found:
        yield "No entry with a result names what farline does instead."
    for item, result in found:
        yield f"- `{item.id}`: {_text(result.instead)}"


def _absent(shown: Sequence[tuple[Item, Result]], missing: Sequence[str]) -> Iterator[str]:
    found = [(item, one) for item, one in shown if one.verdict not in ("agrees", "differs")]
    if not found and not missing:
        yield "Everything was measured or computed."
    for item, result in found:
        yield f"- `{item.id}`: {result.verdict}. {_text(result.reason or item.impossible)}"
    if missing:
        yield f"- No result yet: {', '.join(f'`{name}`' for name in missing)}."


def _repeat(shown: Sequence[tuple[Item, Result]]) -> Iterator[str]:
    yield "In a checkout of farline, as root, on a machine that has nothing else to do:"
    yield from ("", "```console")
    for scale in sorted({result.scale for _, result in shown}):
        yield f"$ farline reproduce --all --scale {scale}"
        yield f"$ farline reproduce --paper --scale {scale}"
    yield from ("```", "")
    yield "The page of each entry in `index.html` has the exact commands and the plans as they ran."


def _figure(item: Item, number: int) -> str:
    return f"{_FIGURES}/{item.id}-{number + 1}.svg"


def _text(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"\s+", " ", text).strip().translate(_MARKS)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
