"""What may be asked of a copy, and the spec that follows from it."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from farline.copying import CopyJob, CopyRequest, DataPath, NameList
from farline.copying.request import SAMPLING_S, listed
from farline.errors import UsageError
from farline.tools.ssh_command import SshCommand

TICKET = "farline://far.example:5470/v1.YQ.Yg#x"


def request(*locations: str, **settings: Any) -> CopyRequest:
    return CopyRequest.between(*(locations or ("a", "dtn:b")), **settings)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request("a", "b", ssh=SshCommand()), "ssh: neither end is reached over ssh"),
        (request("a", TICKET, data_path=DataPath(single_port=True)), "--single-port: neither"),
        (request(data_path=DataPath(tunnel=True, connect_back=0)), "so --tunnel has no effect"),
        (
            request(data_path=DataPath(connect_back=0), spec={"transport": "udt"}),
            "--connect-back: works only with TCP",
        ),
        (request("g:a", "h:b", data_path=DataPath(tunnel=True)), "--tunnel: works only with TCP"),
        (
            request(data_path=DataPath(data_ports=(5000, 5002)), spec={"streams": 2}),
            "--data-ports 5000-5002: 3 ports, but 2 streams need 4",
        ),
        (request("dtn:a", "b", name_list=NameList(Path("n"))), "--files-from: works only with"),
        (
            request("dtn:a", "b", spec={"copy": {"remove_source_files": True}}),
            "--remove-source-files: a server does not remove files",
        ),
        (request(TICKET, "farline://b#y"), "neither can start the copy"),
        (request(receipt="/no/such/folder/r"), "no such folder"),
        (request(own_disks="target"), "--own-disks target: unknown; allowed: source, destination"),
        (request(own_disks="destination"), "--own-disks destination: the destination is one host"),
        (request("n[1-2]:/a", "b", own_disks="both"), "--own-disks both: the destination is one"),
        (request(place_streams="on"), "--place-streams on: unknown; allowed: auto, off"),
        (request(place_streams="off"), "--place-streams: neither end has several nodes"),
        (
            request("a", "n[1-2]:/b", place_streams="auto", spec={"server_cpus": [1]}),
            "--place-streams auto and --server-cpus cannot be combined",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_begun(asked: CopyRequest, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        CopyJob(asked)
    assert said in refused.value.message


def test_an_archive_keeps_owners_except_by_a_ticket() -> None:
    kept = request(archive=True).document()["copy"]
    assert (kept["owner"], kept["group"]) == (True, True)
    stated = request(archive=True, spec={"copy": {"group": False}}).document()["copy"]
    assert (stated["owner"], stated["group"]) == (True, False)
    assert "owner" not in request("a", TICKET, archive=True).document()["copy"]


def test_only_between_two_folders_of_this_host_nothing_is_sealed() -> None:
    assert request("a", "b").document()["copy"]["cipher"] == "none"
    assert "cipher" not in request().document()["copy"]
    assert "hash" not in request().document()["copy"]
    asked = {"copy": {"cipher": "aes256-gcm"}}
    assert request("a", "b", spec=asked).document()["copy"]["cipher"] == "aes256-gcm"
    assert "cipher" not in request("a", "b", spec={"transport": "quic"}).document()["copy"]


@pytest.mark.parametrize(
    ("asked", "used"),
    [({}, "xxh3"), ({"hash": "auto"}, "xxh3"), ({"hash": "blake3"}, "blake3"),
     ({"verify": "none"}, None), ({"sync_level": "checksum"}, None)],
)  # fmt: skip
def test_what_stays_on_this_host_needs_no_sum_that_holds_against_others(
    asked: dict[str, str], used: str | None
) -> None:
    assert request("a", "b", spec={"copy": asked}).document()["copy"].get("hash") == used


def test_samples_come_twice_a_second_unless_stated() -> None:
    assert request().document()["interval_s"] == SAMPLING_S
    assert request(spec={"interval_s": 2.0}).document()["interval_s"] == 2.0


@pytest.mark.parametrize(
    ("zeros", "text", "kept"), [(False, b"x\ny\n", b"x\ny\n"), (True, b"x\0y", b"x\0y\0")]
)
def test_names_that_can_be_read_but_once_are_kept_meanwhile(
    zeros: bool, text: bytes, kept: bytes
) -> None:
    with listed(NameList(io.BytesIO(text), zeros), {"copy": {"times": True}}) as document:
        path = Path(document["copy"]["source_list"])
        assert path.read_bytes() == kept and document["copy"]["times"]
    assert not path.exists()


@pytest.mark.parametrize("place", [b"list\xff", b"folder\xff/list"])
def test_a_list_whose_name_is_no_text_is_kept_under_another(tmp_path: Path, place: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + place))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x\ny\n")
    with listed(NameList(path), {}) as document:
        assert Path(document["copy"]["source_list"].encode().decode()).read_bytes() == b"x\ny\n"


def test_a_folder_is_no_list_of_names(tmp_path: Path) -> None:
    for zero in (False, True):
        names = NameList(tmp_path, zero_terminated=zero)
        with pytest.raises(UsageError, match="is a folder; name a file"), listed(names, {}):
            pass


@pytest.mark.parametrize("zero", [False, True])
def test_a_list_whose_name_is_too_long_is_refused_by_whoever_opens_it(zero: bool) -> None:
    names = NameList(Path("x" * 300), zero_terminated=zero)
    with suppress(UsageError), listed(names, {}) as document:
        assert document["copy"]["source_list"].endswith("x" * 300)


def test_a_list_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    names = NameList(tmp_path / "missing", zero_terminated=True)
    with pytest.raises(UsageError, match="missing: No such file"), listed(names, {}):
        pass
