"""What a user can rely on where nodes have disks of their own: a file is whole on one of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from _copy import trees
from farline.cluster.placement import ranked
from farline.testbeds import Testbed
from farline.testbeds.fixture import MakeBed
from tests.netns.conftest import FARLINE
from tests.netns.test_nodes import processes_of, wait_for_data
from tests.support.slurm import slurm_cluster

pytestmark = [pytest.mark.netns, pytest.mark.timeout(300)]

MIB = 1 << 20
LIMIT_S = 180
BACKUP = "2020-01-02 03:04:05"


@dataclass(frozen=True)
class Site:
    """Hosts of a testbed, each with a folder of its own at `path`."""

    bed: Testbed
    folder: Path

    @property
    def path(self) -> Path:
        """Where each node sees its own disk."""
        return self.folder / "data"

    def disk(self, node: str) -> Path:
        """What is on the disk of a node, seen from outside."""
        return self.folder / "disks" / node

    def down(self, node: str, is_down: bool = True) -> None:
        """Nothing starts on a node that is down."""
        flag = self.folder / f"down-{node}"
        if is_down:
            flag.touch()
        else:
            flag.unlink()

    def name(self, pool: str, *nodes: str) -> None:
        """Makes these nodes a pool."""
        script = self.folder / "on-node"
        script.write_text(
            "#!/bin/sh\nhost=$1; shift 2\n"
            f'if [ -e {self.folder}/down-$host ]; then echo "no route to host" >&2; exit 255; fi\n'
            f'exec {FARLINE} testbed exec {self.bed.name} "$host" -- unshare -m sh -c \''
            f"mount --bind {self.folder}/disks/$0 {self.path}; "
            f'exec {FARLINE} "$@"\' "$host" "$@"\n'
        )
        script.chmod(0o755)
        for node in nodes:
            self.disk(node).mkdir(parents=True, exist_ok=True)
        listed = ", ".join(f'"{node}%{node}"' for node in nodes)
        pools = Path(os.environ["XDG_CONFIG_HOME"]) / "farline" / "pools.toml"
        pools.parent.mkdir(parents=True, exist_ok=True)
        pools.write_text(f'[{pool}]\nnodes = [{listed}]\ncommand = "{script} {{node}} {{argv}}"\n')

    def files(self, *nodes: str) -> dict[str, str]:
        """Names that are no folders, with the node that has each."""
        found: dict[str, str] = {}
        for node in nodes:
            for path in sorted(self.disk(node).rglob("*")):
                if path.is_symlink() or path.is_file():
                    name = str(path.relative_to(self.disk(node)))
                    assert name not in found, (name, node, found[name])
                    found[name] = node
        return found


SINKS = ("sink-1", "sink-2", "sink-3")


@pytest.fixture
def site(testbed: MakeBed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Three sinks with disks of their own, two of which are in the pool `site`."""
    bed = testbed("nodes", k=3, rtt_s="4ms", rate_bps="400Mbit")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = Site(bed, tmp_path)
    found.path.mkdir()
    found.name("site", *SINKS[:2])
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """40 small files in 3 folders, an empty folder, a link, and a large file."""
    source = tmp_path / "source"
    trees.small_files(source, 40, 5000, folders=3)
    (source / "large").write_bytes(os.urandom(12 * MIB))
    (source / "empty").mkdir()
    (source / "link").symlink_to("large")
    for path in (*source.rglob("*"), source):
        subprocess.run(["touch", "-h", "-d", BACKUP, path], check=True)
    return source


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """A copy, whatever it comes to."""
    return subprocess.run(
        [FARLINE, "copy", "--no-store", "--json", *words], capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip


def copied(*words: str | Path) -> dict[str, Any]:
    """The report of a copy that must succeed."""
    done = run(*words)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)["copy"]
    assert report["failed"]["files"] == 0
    return report


def names_of(folder: Path) -> set[str]:
    """Names below a folder that are no folders."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(folder)) for path in found}


def receipt_of(path: Path) -> list[dict[str, Any]]:
    """Lines of a receipt."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_same(first: Path, second: Path) -> None:
    done = subprocess.run(["diff", "-r", "--no-dereference", first, second], capture_output=True)
    assert done.returncode == 0, done.stdout
    assert not (second / ".farline-partial").exists()


def test_files_are_placed_and_updated_where_they_are(
    site: Site, source: Path, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt.jsonl"
    ends = (f"testbed:{site.bed.name}:source-[1-2]{source}/", f"site:{site.path}")
    there = ("--own-disks", "destination")
    report = copied(*there, "--receipt", receipt, *ends)
    assert report["copied"]["files"] == 41
    before = site.files(*SINKS[:2])
    assert set(before) == names_of(source)
    assert set(before.values()) == set(SINKS[:2])
    assert {
        line["path"]: line["node"] for line in receipt_of(receipt) if line["kind"] != "folder"
    } == before
    # Nothing has changed: nothing is sent.
    assert copied(*there, *ends)["copied"]["files"] == 0
    # With a node more, in another order: what has changed is updated where it is.
    site.name("site", "sink-3", "sink-2", "sink-1")
    changed = next(path for path in sorted(source.rglob("*")) if path.is_file())
    changed.write_bytes(os.urandom(7000))
    for number in range(20):
        (source / f"new-{number}").write_text(str(number))
    report = copied(*there, "--overwrite", "different", "--receipt", receipt, *ends)
    assert report["copied"]["files"] == 21
    after = site.files(*SINKS)
    assert set(after) == names_of(source)
    assert {name: after[name] for name in before} == before
    assert "sink-3" in after.values()
    # The same without what was kept of the copies: nodes say themselves what they have.
    subprocess.run(["rm", "-r", tmp_path / "state" / "farline" / "placements"], check=True)
    assert copied(*there, *ends)["copied"]["files"] == 0


def test_what_was_placed_is_gathered_with_times_modes_and_folders(
    site: Site, source: Path, tmp_path: Path
) -> None:
    bed, back = f"testbed:{site.bed.name}", tmp_path / "back"
    copied("--own-disks", "destination", f"{bed}:source-1{source}/", f"site:{site.path}")
    report = copied("--own-disks", "source", f"site:{site.path}/", f"{bed}:source-1{back}")
    assert report["copied"]["files"] == 41
    assert_same(source, back)
    for path in source.rglob("*"):
        copy = back / path.relative_to(source)
        assert path.lstat().st_mtime_ns == copy.lstat().st_mtime_ns, path
        assert path.lstat().st_mode == copy.lstat().st_mode


def test_a_node_that_is_down_costs_its_own_files_which_are_named(
    site: Site, source: Path, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt.jsonl"
    words = ("--own-disks", "destination", "--receipt", receipt)
    ends = (f"testbed:{site.bed.name}:source-1{source}/", f"site:{site.path}")
    site.down("sink-2")
    done = run(*words, *ends)
    assert done.returncode == 23, done.stderr
    there = site.files(*SINKS[:2])
    assert set(there.values()) == {"sink-1"}
    failed = {line["path"] for line in receipt_of(receipt) if line["status"] == "failed"}
    assert failed - {"empty"} == names_of(source) - set(there)
    assert all(
        "no route to host" in line["reason"] and line["node"] == "sink-2"
        for line in receipt_of(receipt) if line["status"] == "failed"
    )  # fmt: skip
    assert json.loads(done.stdout)["copy"]["failed"]["files"] == len(failed)
    site.down("sink-2", is_down=False)
    copied(*words, *ends)
    files = site.files(*SINKS[:2])
    assert set(files) == names_of(source)
    # What a node has that is down is not sent to another one, and is named when it is gathered.
    site.down("sink-2")
    assert run(*words, *ends).returncode == 23
    assert site.files(*SINKS[:2]) == files
    words = ("--own-disks", "source", "--receipt", receipt)
    back = tmp_path / "back"
    done = run(*words, f"site:{site.path}/", f"testbed:{site.bed.name}:source-1{back}")
    assert done.returncode == 23, done.stderr
    lines = receipt_of(receipt)
    missing = {line["path"] for line in lines if line["status"] == "failed"}
    assert missing - {"empty"} == {name for name, node in files.items() if node == "sink-2"}
    assert all("is on sink-2" in line["reason"] for line in lines if line["path"] in missing)
    assert names_of(back) == {name for name, node in files.items() if node == "sink-1"}


def test_a_node_that_is_killed_costs_its_own_files_and_they_are_resumed(
    site: Site, source: Path, tmp_path: Path
) -> None:
    hurt = SINKS[0]
    name = next(
        f"large-{number}" for number in range(99)
        if ranked(f"large-{number}", SINKS[:2])[0] == hurt
    )  # fmt: skip
    (source / name).write_bytes(os.urandom(32 * MIB))
    words = ["--own-disks", "destination", "--stall-timeout", "5s"]
    ends = [f"testbed:{site.bed.name}:source-[1-2]{source}/", f"site:{site.path}"]
    command = [str(FARLINE), "copy", "--no-store", "--json", "--bwlimit", "64Mbit/s"]
    with subprocess.Popen(
        [*command, *words, *ends], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as copy:
        wait_for_data(site.disk(hurt))
        site.down(hurt)
        for process in processes_of(site.bed, hurt):
            os.kill(process, signal.SIGKILL)
        out, said = copy.communicate(timeout=LIMIT_S)
    assert copy.returncode == 23, said
    report = json.loads(out)["copy"]
    assert 0 < report["failed"]["files"] < len(names_of(source))
    assert all("sink-1" in line["reason"] for line in report["failures"]), report["failures"]
    on_other = set(site.files("sink-2"))
    assert on_other
    for name in on_other:
        assert trees.same(source / name, site.disk("sink-2") / name)
    site.down(hurt, is_down=False)
    report = copied(*words, *ends)
    assert report["resumed_bytes"] > 0
    assert set(site.files(*SINKS[:2])) == names_of(source)
    assert set(site.files("sink-2")) == on_other


@dataclass(frozen=True)
class Surplus:
    """A copy after which the sources have lost two names, and a node has got a foreign folder."""

    site: Site
    receipt: Path
    ends: tuple[str, str]
    before: dict[str, str]
    gone: set[str]

    @property
    def lost(self) -> set[str]:
        """What `--delete` takes."""
        return {*self.gone, "foreign", "foreign/deep", "foreign/deep/file"}

    def run(self, *words: str | Path) -> tuple[int, dict[str, Any]]:
        """Exit code and record of the copy once more."""
        done = run("--own-disks", "destination", "--receipt", self.receipt, *words, *self.ends)
        return done.returncode, json.loads(done.stdout)

    def deleted(self) -> dict[str, str]:
        """Names that the receipt tells as deleted, and their nodes."""
        gone = ("deleted", "would-delete")
        lines = receipt_of(self.receipt)
        return {one["path"]: one["node"] for one in lines if one["status"] in gone}

    def refused(self, why: str, *words: str) -> None:
        """Nothing is deleted, and the reason is told."""
        code, record = self.run(*words)
        assert code == 23
        assert why in str(record["copy"]["problems"])
        files = set(self.site.files(*SINKS[:2]))
        assert {*self.before, "foreign/deep/file"} <= files


@pytest.fixture
def surplus(site: Site, source: Path, tmp_path: Path) -> Surplus:
    """Both nodes have names that the sources do not."""
    ends = (f"testbed:{site.bed.name}:source-[1-2]{source}/", f"site:{site.path}")
    copied("--own-disks", "destination", *ends)
    before = site.files(*SINKS[:2])
    gone = {sorted(name for name in before if before[name] == node)[0] for node in SINKS[:2]}
    for name in gone:
        (source / name).unlink()
    foreign = site.disk("sink-2") / "foreign" / "deep"
    foreign.mkdir(parents=True)
    (foreign / "file").write_text("?")
    return Surplus(site, tmp_path / "receipt.jsonl", ends, before, gone)


def test_nothing_is_deleted_unless_all_nodes_answer_and_it_is_as_many_as_was_said(
    site: Site, source: Path, surplus: Surplus
) -> None:
    code, record = surplus.run("-n", "--delete")
    assert (code, record["copy"]["deleted"]["files"]) == (0, 5)
    assert set(surplus.deleted()) == surplus.lost
    surplus.refused("5 names to delete, but 4 confirmed", "--delete=4")
    surplus.refused("--max-delete allows 4", "--delete", "--max-delete=4")
    site.down("sink-1")
    surplus.refused("sink-1 did not answer", "--delete=5")
    site.down("sink-1", is_down=False)
    # A file that differs fails by name: what is to be deleted may be all that is left of it.
    differs = min(name for name in names_of(source) if name != "link")
    there = site.disk(surplus.before[differs]) / differs
    there.write_bytes(bytes(there.stat().st_size))
    surplus.refused("nothing was deleted: 1 name failed", "--delete=5")


def test_what_the_source_does_not_have_is_deleted_on_the_nodes_that_have_it(
    site: Site, source: Path, tmp_path: Path, surplus: Surplus
) -> None:
    (source / "new").write_text("new")
    changed = min(name for name in names_of(source) if name != "link")
    (source / changed).write_bytes(b"changed")
    code, record = surplus.run("--overwrite", "different", "--delete", "--max-delete=5")
    report = record["copy"]
    assert (code, report["failed"]["files"]) == (0, 0), report
    assert (report["deleted"]["files"], report["copied"]["files"]) == (5, 2)
    assert "skips" not in report
    told = record["spec"]["copy"]
    assert (told["delete"], told["max_delete"], told["overwrite"]) == (5, 5, "different")
    assert "existing" not in told
    on, before, gone = surplus.deleted(), surplus.before, surplus.gone
    assert set(on) == surplus.lost
    assert {name: on[name] for name in gone} == {name: before[name] for name in gone}
    assert set(site.files(*SINKS[:2])) == {*before, "new"} - gone
    assert not (site.disk("sink-2") / "foreign").exists()
    kept = tmp_path / "state" / "farline" / "placements"
    noted = {json.loads(text)["path"] for file in kept.rglob("*.jsonl")
             for text in file.read_text().splitlines()[1:]}  # fmt: skip
    assert "new" in noted
    assert not noted & gone
    code, record = surplus.run("--delete=0")
    assert (code, record["copy"]["copied"]["files"]) == (0, 0)
    back = tmp_path / "back"
    copied("--own-disks", "source", f"site:{site.path}/", f"testbed:{site.bed.name}:source-1{back}")
    assert_same(source, back)


def test_a_folder_that_makes_way_is_told_beside_the_file_that_is_copied(
    site: Site, tmp_path: Path
) -> None:
    receipt, source = tmp_path / "receipt.jsonl", tmp_path / "source"
    source.mkdir()
    (source / "name").write_text("now a file")
    way = site.disk("sink-1") / "name"
    way.mkdir(parents=True)
    (way / "old").write_text("old")
    words = ("--own-disks", "destination", "--receipt", receipt)
    ends = (f"testbed:{site.bed.name}:source-1{source}/", f"site:{site.path}")
    done = run(*words, "--delete", "--max-delete=2", *ends)
    assert done.returncode == 23, done.stderr
    assert (way / "old").exists()
    force = ("--force", "--overwrite", "different", "--delete")
    assert json.loads(run(*words, *force, "-n", *ends).stdout)["copy"]["deleted"]["files"] == 2
    report = copied(*words, *force, "--max-delete=2", *ends)
    assert (report["copied"]["files"], report["deleted"]["files"]) == (1, 2)
    assert way.read_text() == "now a file"
    lines = {(one["path"], one["status"]) for one in receipt_of(receipt)}
    assert lines == {("name", "copied"), ("name", "deleted"), ("name/old", "deleted")}


def test_both_ends_may_have_disks_of_their_own(site: Site, source: Path, tmp_path: Path) -> None:
    copied("--own-disks", "destination", f"testbed:{site.bed.name}:source-1{source}/",
           f"site:{site.path}")  # fmt: skip
    pools = Path(os.environ["XDG_CONFIG_HOME"]) / "farline" / "pools.toml"
    first = pools.read_text()
    site.name("other", "source-1", "source-2", "source-3")
    pools.write_text(first + pools.read_text())
    report = copied("--own-disks", "both", f"site:{site.path}/", f"other:{site.path}")
    assert report["copied"]["files"] == 41
    assert set(site.files("source-1", "source-2", "source-3")) == names_of(source)
    back = tmp_path / "back"
    copied("--own-disks", "source", f"other:{site.path}/", f"testbed:{site.bed.name}:sink-1{back}")
    assert_same(source, back)


def test_nodes_that_slurm_gives_have_disks_of_their_own(
    testbed: MakeBed, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = testbed("nodes", k=2, rtt_s="4ms", rate_bps="400Mbit")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disks, back = tmp_path / "disks", tmp_path / "back"
    for name in ("here", *SINKS[:2]):
        (disks / name).mkdir(parents=True)
    with slurm_cluster("own", [bed.hosts[name] for name in SINKS[:2]], disks=disks) as cluster:
        pools = tmp_path / "config" / "farline" / "pools.toml"
        pools.parent.mkdir(parents=True)
        pools.write_text(
            f'[site]\nslurm = "xfer"\ncount = 2\nvia = {json.dumps(cluster.via)}\n'
            f'farline = "{FARLINE}"\n'
        )
        away = (f"testbed:{bed.name}:source-[1-2]{source}/", f"site:{disks}/here/data")
        assert copied("--own-disks", "destination", *away)["copied"]["files"] == 41
        assert not any((disks / "here").iterdir()), "a node wrote where all see it"
        on = {name: names_of(disks / name / "data") for name in SINKS[:2]}
        assert on[SINKS[0]] and on[SINKS[1]] and not on[SINKS[0]] & on[SINKS[1]]
        assert on[SINKS[0]] | on[SINKS[1]] == names_of(source)
        # Whichever nodes Slurm gives, in whichever order.
        assert copied("--own-disks", "destination", *away)["copied"]["files"] == 0
        home = (f"site:{disks}/here/data/", f"testbed:{bed.name}:source-1{back}")
        assert copied("--own-disks", "source", *home)["copied"]["files"] == 41
        assert_same(source, back)
        cluster.wait_until_free(2)


def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_copied(
    site: Site, source: Path, tmp_path: Path
) -> None:
    bed = f"testbed:{site.bed.name}"
    target = tmp_path / "target"

    def refused(what: str, *words: str) -> None:
        done = subprocess.run(
            [FARLINE, "copy", "--no-store", *words], capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 1, done.stderr
        assert what in done.stderr.splitlines()[-1], done.stderr
        assert not any(site.disk("sink-1").iterdir())

    ends = (f"{bed}:source-1{source}/", f"{bed}:sink-[1-2]{target}")
    refused("share a file system there; leave --own-disks out", "--own-disks", "destination", *ends)
    local = ("--own-disks", "both", f"{source}/", f"site:{site.path}")
    refused("--own-disks both: the source is one host", *local)
    placed = ("--own-disks", "destination", f"{bed}:source-1{source}/", f"site:{site.path}")
    refused("--hard-links: cannot be combined with --own-disks", "-H", *placed)
    refused("--nodes: cannot be combined with --own-disks", "--nodes", "2", *placed)
    same = ("--own-disks", "destination", "--delete=1", f"site:{site.path}/x", f"site:{site.path}")
    refused("on sink-1 of both ends, and would be deleted", *same)
    refused("use --own-disks destination"[4:], f"{bed}:source-1{source}/", f"site:{site.path}")
    refused(
        "on several nodes: ", "--own-disks", "source", f"{bed}:source-[1-2]{source}/",
        f"{bed}:sink-1{target}",
    )  # fmt: skip
    assert not target.exists()
