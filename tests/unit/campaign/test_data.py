"""Plans of copies: which files they move, and that nothing else is ever touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.campaign import data_set as module
from farline.campaign.data_set import DataSet, data_set
from farline.campaign.data_table import DataTable, read_data_table
from farline.campaign.journal import new_journal, read_journal, write_journal
from farline.campaign.plan import plan_from_document
from farline.campaign.settings import make_campaign
from farline.errors import SpecError, SystemFailure
from farline.store import Store
from farline.tools.native import resolve_spec

DATA = {"files": ["2x3KiB", "1x2MiB"], "source": "/dev/shm"}


def plan(**parts: Any) -> Any:
    return plan_from_document({"campaign": {"seed": 1}, "data": DATA, **parts})


def test_a_table_says_which_files() -> None:
    data = plan().data
    assert data == DataTable(((2, 3072), (1, 2 << 20)), "/dev/shm", "/dev/shm")
    assert (data.count, data.size_bytes) == (3, 6144 + (2 << 20))


@pytest.mark.parametrize(("change", "line"), [
    ({"files": []}, "files"),
    ({"files": ["many"]}, "COUNTxSIZE"),
    ({"files": ["0x1K"]}, "1 to 1000000 files"),
    ({"files": ["2000000x1"]}, "1 to 1000000 files"),
    ({"files": ["9x1000TiB"]}, "allowed:"),
    ({"files": ["1xhuge"]}, "huge"),
    ({"source": "here"}, "is not a folder"),
    ({"destination": 7}, "is not a folder"),
    ({"moon": 1}, "unknown; allowed: files, source, destination"),
])  # fmt: skip
def test_a_table_that_makes_no_sense_is_refused(change: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line) as refusal:
        read_data_table({**DATA, **change})
    assert refusal.value.message.startswith("[data]")


def test_a_plan_varies_options_of_copies() -> None:
    grid = {"streams": [1, 2], "copy": {"concurrency": [1, 4], "verify": ["none", "tree"]}}
    campaign = make_campaign(
        plan(grid=grid, fixed={"copy": {"cipher": "none"}}), lambda spec: dict(resolve_spec(spec))
    )
    assert len(campaign.settings) == 8
    specs = [setting.spec["copy"] for setting in campaign.settings]
    assert {spec["cipher"] for spec in specs} == {"none"}
    assert {spec["verify"] for spec in specs} == {"none", "tree"}
    assert {(tuple(spec["sources"]), spec["destination"]) for spec in specs} == {
        (("data/",), "copy")
    }
    assert all(setting.spec.get("duration_s") is None for setting in campaign.settings)


@pytest.mark.parametrize(("document", "line"), [
    ({"fixed": {"copy": {"cipher": "none"}}}, r"copy.cipher: .* needs a table \[data\]"),
    ({"grid": {"copy": {"readers": [0, 1]}}}, r"copy.readers: .* needs a table \[data\]"),
    ({"data": DATA, "fixed": {"direction": "reverse"}}, "go forward"),
    ({"data": DATA, "grid": {"direction": ["forward", "reverse"]}}, "go forward"),
    ({"data": DATA, "grid": {"copy": {"overwrite": ["never"]}}}, "cannot be varied"),
    ({"data": DATA, "fixed": {"copy": {"moon": 1}}}, "unknown; allowed:"),
])  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(document: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError, match=line):
        plan_from_document(document)


def test_a_copy_over_what_loses_is_refused() -> None:
    with pytest.raises(SpecError, match="files are copied over tcp, udt, rbudp"):
        make_campaign(plan(fixed={"transport": "udp"}), lambda spec: dict(resolve_spec(spec)))


def test_a_plan_comes_back_from_the_journal(tmp_path: Path) -> None:
    store = Store(tmp_path)
    campaign = make_campaign(
        plan(grid={"copy": {"readers": [0, 2]}}), lambda spec: dict(resolve_spec(spec))
    )
    write_journal(store, new_journal(campaign, "h:1"))
    assert read_journal(store, campaign.id).campaign == campaign


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 2**40)), min_size=1, max_size=4))
def test_any_table_comes_back_from_its_document(files: list[tuple[int, int]]) -> None:
    data = DataTable(tuple(files), "/a", "/b")
    if data.size_bytes <= 1 << 42:
        assert read_data_table(data.document()) == data


@pytest.fixture
def data(tmp_path: Path) -> DataTable:
    """Three files under two folders of their own."""
    for name in ("near", "far"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("stays")
    return DataTable(((2, 3000), (1, 2 << 20)), str(tmp_path / "near"), str(tmp_path / "far"))


def names(data: DataTable) -> set[str]:
    return {path.name for base in (data.source, data.destination) for path in Path(base).iterdir()}


def test_files_are_made_and_removed(data: DataTable) -> None:
    with data_set(data, "c-1") as files:
        assert files is not None
        spec = files.spec({"streams": 2, "copy": {"cipher": "none", "sources": ["data/"]}})
        (source,) = spec["copy"]["sources"]
        made = sorted(path for path in Path(source).rglob("*") if path.is_file())
        assert [path.stat().st_size for path in made] == [3000, 3000, 2 << 20]
        assert len({path.read_bytes() for path in made}) == 3
        assert source.endswith("/") and source.startswith(data.source)
        assert spec["copy"]["destination"] == "farline-copies-c-1/copy"
        assert (Path(data.destination) / "farline-copies-c-1").is_dir()
        assert spec["streams"] == 2 and spec["copy"]["cipher"] == "none"
    assert names(data) == {"precious"}


def test_each_run_finds_the_destination_empty(data: DataTable) -> None:
    with data_set(data, "c-1") as files:
        assert files is not None
        copied = Path(data.destination) / "farline-copies-c-1" / "copy"
        for _ in range(2):
            files.clear()
            assert not copied.exists()
            (copied / "deep").mkdir(parents=True)
            (copied / "deep" / "file").write_text("x")
    assert names(data) == {"precious"}


def test_a_campaign_without_data_has_none() -> None:
    with data_set(None, "c") as files:
        assert files is None


def test_what_an_interrupted_run_left_is_taken_up(data: DataTable) -> None:
    DataSet(data, "c-1").make()
    with data_set(data, "c-1") as files:
        assert files is not None
    assert names(data) == {"precious"}


@pytest.mark.parametrize("mark", [None, "another"])
def test_a_folder_that_is_somebody_elses_stays(data: DataTable, mark: str | None) -> None:
    theirs = Path(data.destination) / "farline-copies-c-1"
    (theirs / "copy").mkdir(parents=True)
    (theirs / "copy" / "file").write_text("theirs")
    if mark is not None:
        (theirs / ".farline-campaign").write_text(mark)
    with (
        pytest.raises(SystemFailure, match="does not belong to this campaign"),
        data_set(data, "c-1"),
    ):
        pass
    assert (theirs / "copy" / "file").read_text() == "theirs"


def test_a_link_in_place_of_the_folder_is_not_followed(data: DataTable, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "copy").mkdir(parents=True)
    (other / ".farline-campaign").write_text("c-1")
    (Path(data.destination) / "farline-copies-c-1").symlink_to(other)
    with (
        pytest.raises(SystemFailure, match="does not belong to this campaign"),
        data_set(data, "c-1"),
    ):
        pass
    assert (other / "copy").is_dir()


def test_no_room_is_said_before_anything_is_made(data: DataTable) -> None:
    huge = DataTable(((1000, 1 << 42),), data.source, data.destination)
    with pytest.raises(SystemFailure, match="are needed there"), data_set(huge, "c-1"):
        pass
    assert names(data) == {"precious"}


def test_a_folder_that_is_not_there_is_named(data: DataTable, tmp_path: Path) -> None:
    gone = DataTable(((1, 1),), str(tmp_path / "gone"), data.destination)
    with pytest.raises(SystemFailure, match=r"\[data\] .*gone: No such file"), data_set(gone, "c"):
        pass


def test_a_disk_that_refuses_leaves_nothing(
    data: DataTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write", refuse)
    with pytest.raises(SystemFailure, match="No space left"), data_set(data, "c-1"):
        pass
    assert names(data) == {"precious"}
