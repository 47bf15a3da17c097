"""One damaged file costs what is in it and nothing else: it is named, counted, and seen in the exit
code, whatever the damage and whichever verb reads the store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from farline.cli.group import run
from farline.errors import VersionError
from farline.store import Store, left_out
from farline.store.entry import RunBundle
from farline.store.upgrade import FORMAT_VERSION
from tests.support.records import make_record, make_samples

Damage = Callable[[Path], None]


def cut(share: float) -> Damage:
    """Only the beginning is left."""

    def shorten(path: Path) -> None:
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    return shorten


def flipped(share: float, count: int = 8) -> Damage:
    """Some bytes are other ones."""

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        at = min(int(share * len(content)), len(content) - 1)
        for place in range(at, min(at + count, len(content))):
            content[place] ^= 0x5A
        path.write_bytes(content)

    return flip


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def text(content: str | bytes) -> Damage:
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content

    def write(path: Path) -> None:
        path.write_bytes(raw)

    return write


def spooled(**changes: object) -> Damage:
    """A spooled run whose entry is of another shape."""
    entry = {"record": make_record(7), "campaign": None, "labels": {}, **changes}
    head = {"format": FORMAT_VERSION, "entry": entry, "kinds": {}}
    return text(json.dumps(head) + "\n")


ANY: dict[str, Damage] = {
    "empty": cut(0),
    "nothing but its begin": cut(0.1),
    "half": cut(0.5),
    "all but its end": cut(0.98),
    "a folder": folder,
    "zeros": text(bytes(5000)),
    "a text": text("hello\n"),
    "its begin spoiled": flipped(0),
    "spoiled at a quarter": flipped(0.25),
    "its middle spoiled": flipped(0.5, 100),
    "spoiled at three quarters": flipped(0.75),
    "its end spoiled": flipped(0.97),
}
SPOOLED: dict[str, Damage] = {
    "deep": text('{"format": 3, "entry": ' + "[" * 100_000 + "\n"),
    "deep and whole": text('{"a": ' * 500 + "1" + "}" * 500 + "\n"),
    "not a number": text('{"format": NaN}\n'),
    "a list": text("[]\n"),
    "a number of a million digits": text('{"format": ' + "9" * 1_000_000 + "}\n"),
    "no UTF-8": text(b'{"format": "\xff"}\n'),
    "a newer version": text('{"format": 99, "entry": {}, "kinds": {}}\n'),
    "half of a letter": spooled(record={**make_record(7), "title": "\ud800"}),
    "a record of lists": spooled(record={name: [] for name in make_record(7)} | {"run_id": "x7"}),
    "a record of texts": spooled(record={name: "x" for name in make_record(7)}),
    "a record of null": spooled(record={name: None for name in make_record(7)} | {"run_id": "x"}),
    "a bad name": spooled(record={**make_record(7), "run_id": "../x"}),
    "labels that are none": spooled(labels=[1]),
    "a campaign that is none": spooled(campaign={}),
    "huge": spooled(record={**make_record(7), "bytes_received": 10**400}),
}
FEW = ("empty", "half", "a folder", "its middle spoiled", "its end spoiled")
CASES = [
    *[("fresh", name, damage) for name, damage in ANY.items()],
    *[(where, name, ANY[name]) for where in ("spool", "runs", "samples") for name in FEW],
    *[("spool", name, damage) for name, damage in SPOOLED.items()],
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of each kind, and a segment of two."""
    store = Store(tmp_path_factory.mktemp("whole") / "store")
    for number in (0, 1):
        store.append(RunBundle(make_record(number), make_samples(200), campaign="night"))
    store.compact()
    for number in (2, 3):
        store.append(RunBundle(make_record(number), make_samples(200), campaign="night"))
    for number in (4, 5):
        store.spool(RunBundle(make_record(number), make_samples(20), campaign="night"))
    return store.path


@pytest.mark.parametrize(
    ("where", "damage"),
    [(where, damage) for where, _, damage in CASES],
    ids=[f"{where}: {name}" for where, name, _ in CASES],
)
def test_a_damaged_file_of_the_store_costs_no_more_than_itself(
    tmp_path: Path, whole: Path, where: str, damage: Damage
) -> None:
    store = Store(shutil.copytree(whole, tmp_path / "store"))
    victim = sorted((store.path / where).glob("*.*"))[0]
    damage(victim)
    left_out.forget()
    with store.read() as reader:
        found = set(reader.runs(names=["run_id"])["run_id"].to_pylist())
        sampled = set(reader.samples()["run_id"].to_pylist())
    mine = {"runs": {0, 1}, "fresh": {2}, "spool": {4}, "samples": {0, 1}}[where]
    others = {make_record(n)["run_id"] for n in range(6) if n not in mine}
    assert others <= found and others <= sampled
    assert all(victim.name in line for line in left_out.noted())
    # A file that has lost nothing that can be seen need not be named.
    assert left_out.noted() or len(sampled if where == "samples" else found) >= 6


def test_every_verb_goes_on_and_says_what_was_left_out(
    tmp_path: Path, whole: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = shutil.copytree(whole, tmp_path / "store")
    for where, damage in (("fresh", cut(0.5)), ("spool", SPOOLED["deep"]), ("samples", cut(0))):
        damage(sorted((store / where).glob("*.*"))[0])
    other = str(make_record(3)["run_id"])
    for words in (["runs"], ["show", other, "--samples"]):
        left_out.forget()
        code = run([*words, "--store", str(store)])
        told = capfd.readouterr()
        count = 3 if "--samples" in words else 2
        assert code == 2 and f"{count} files left out" in told.err, (words, told.err)
        assert len(told.err.splitlines()) == count + 1
        assert other[-6:] in told.out


def test_a_newer_segment_is_left_out_and_nothing_is_merged_over_it(whole: Path) -> None:
    newer = whole.parent / "newer"
    shutil.copytree(whole, newer)
    store = Store(newer)
    head = {"format": FORMAT_VERSION + 1, "entry": {}, "kinds": {}}
    (store.layout.spool / "newer.jsonl").write_text(json.dumps(head))
    assert store.runs().num_rows == 6
    (line,) = store.damaged()
    assert "use a newer version" in line
    with pytest.raises(VersionError, match="use a newer version"):
        store.compact()


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, '{"plan": NaN}', "\ufffe"])
def test_a_damaged_plan_of_a_campaign_does_not_keep_its_report_back(
    tmp_path: Path, whole: Path, capfd: pytest.CaptureFixture[str], content: str
) -> None:
    from farline.plots.data import load_campaign

    store = shutil.copytree(whole, tmp_path / "store")
    (store / "campaigns/night.json").write_text(content)
    left_out.forget()
    assert len(load_campaign(store, "night").rows) == 6
    (line,) = left_out.noted()
    assert "night.json: damaged" in line
