"""Endpoints: nobody leaves them, and nobody sees what stands behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import FarlineError, SpecError, UsageError
from farline.portal.database import Database
from farline.portal.endpoints import Endpoints, checked_path, list_folder
from farline.spec.path_text import from_path_text
from tests.support.portals import Clock

TICKET = "farline://dtn.example.org:5470/SECRETTICKET?key=sha256-" + "A" * 43 + "#data"


@pytest.fixture
def endpoints(tmp_path: Path) -> Endpoints:
    """A folder here, a host over ssh, a server by a ticket."""
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root" / "in" / "a.bin").write_bytes(b"12345")
    (tmp_path / "secret").mkdir()
    (tmp_path / "root" / "way-out").symlink_to(tmp_path / "secret")
    made = Endpoints(Database(tmp_path / "state" / "portal.sqlite"), Clock())
    made.add("here", str(tmp_path / "root"))
    made.add("there", "user@dtn.example.org:/archive")
    made.add("server", TICKET)
    return made


def test_paths_stand_below_their_endpoint(endpoints: Endpoints, tmp_path: Path) -> None:
    assert endpoints.get("here").below("in/x") == str(tmp_path / "root" / "in" / "x")
    assert endpoints.get("there").below("in/x") == "user@dtn.example.org:/archive/in/x"
    assert endpoints.get("server").below("in") == f"{TICKET}/in"
    assert endpoints.get("there").source("") == "user@dtn.example.org:/archive/"
    assert endpoints.get("there").source("in/") == "user@dtn.example.org:/archive/in/"
    assert endpoints.get("there").source("in") == "user@dtn.example.org:/archive/in"


@pytest.mark.parametrize("path", [
    "..", "../secret", "in/../../secret", "/etc", "in//x", ".", "in/./x", r"\x2e\x2e/secret",
    r"in/\x2e\x2e/\x2e\x2e/secret", r"a\x2f..\x2f..", "a\0b", "a\nb", r"\q", "x" * 5000, r"\x00",
])  # fmt: skip
@pytest.mark.parametrize("name", ["here", "there", "server"])
def test_a_path_that_would_leave_is_refused(endpoints: Endpoints, name: str, path: str) -> None:
    with pytest.raises(SpecError):
        endpoints.get(name).below(path)


@pytest.mark.parametrize("path", ["way-out", "way-out/x"])
def test_a_link_that_leads_out_is_refused(endpoints: Endpoints, path: str) -> None:
    with pytest.raises(SpecError, match="leads out"):
        endpoints.get("here").below(path)
    with pytest.raises(SpecError, match="leads out"):
        list_folder(endpoints.get("here"), path)


@given(st.text(max_size=40))
def test_what_is_allowed_stays_below(path: str) -> None:
    try:
        kept = checked_path(path)
    except FarlineError:
        return
    parts = from_path_text(kept).split(b"/")
    assert kept == "" or all(part not in (b"", b".", b"..") for part in parts)


def test_a_folder_is_listed_folders_first(endpoints: Endpoints) -> None:
    names = [(one.name, one.kind, one.bytes) for one in list_folder(endpoints.get("here"), "")]
    assert names == [("in", "folder", None), ("way-out", "other", None)]
    (file,) = list_folder(endpoints.get("here"), "in")
    assert (file.name, file.kind, file.bytes) == ("a.bin", "file", 5)
    with pytest.raises(SpecError, match="only endpoints that are folders"):
        list_folder(endpoints.get("there"), "")


def test_a_ticket_is_in_no_text_of_an_endpoint(endpoints: Endpoints) -> None:
    found = endpoints.get("server")
    shown = f"{found.name} {found.kind} {found.host} {found.location}"
    assert "SECRETTICKET" not in shown and found.host == "dtn.example.org"


@pytest.mark.parametrize("name, location", [
    ("Big", "/tmp"), ("", "/tmp"), ("a b", "/tmp"), ("x", "/no/such/folder"), ("x", "h::module"),
    ("x", "farline://dtn.example.org/TICKET?key=nonsense#data"),
])  # fmt: skip
def test_what_cannot_be_registered_is_refused(
    endpoints: Endpoints, name: str, location: str
) -> None:
    with pytest.raises(UsageError):
        endpoints.add(name, location)


def test_an_unknown_endpoint_is_refused_with_those_that_there_are(endpoints: Endpoints) -> None:
    with pytest.raises(SpecError, match="endpoints: here, server, there"):
        endpoints.get("nowhere")
    endpoints.remove("here")
    assert [one.name for one in endpoints.all()] == ["server", "there"]
