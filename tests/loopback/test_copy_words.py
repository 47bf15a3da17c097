"""What a failed copy says: which end, which path, why, and what is kept, whatever the way."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.serving import FARLINE, farline, serving

SSH = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
    -T) shift ;;
    -G) echo "hostname 127.0.0.1"; exit 0 ;;
    *) break ;;
    esac
done
shift
cd; exec sh -c "$*"
"""


@pytest.fixture
def ssh(tmp_path: Path) -> list[str]:
    """Options by which an ssh of the test's own is called."""
    path = tmp_path / "ssh"
    path.write_text(SSH)
    path.chmod(0o700)
    return ["-e", str(path), "--remote-farline", shlex.join(FARLINE)]


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A folder with a file, a folder of files, and a link to itself."""
    ground = tmp_path / "ground"
    (ground / "data").mkdir(parents=True)
    (ground / "data/a").write_text("a")
    (ground / "file").write_text("f")
    (ground / "loop").symlink_to("loop")
    return ground


UNMADE = {
    "data/ /sys/farline-test": "destination /sys/farline-test: ",
    "data/ {}/file": "destination {}/file: it is a file; a folder can only be copied into a folder",
    "file {}/no/such/x": "destination {}/no/such/x: its parent folder does not exist;",
    "file {}/file/x": "destination {}/file/x: its parent is a file, not a folder",
    "file {}/loop/x": "destination {}/loop/x: symbolic links form a loop",
    f"file {{}}/{'n' * 300}": "the file system does not accept this name",
}


@pytest.mark.parametrize(("places", "said"), UNMADE.items(), ids=[*"abcdef"])
@pytest.mark.parametrize("way", ["local", "push", "pull"])
def test_a_destination_that_cannot_be_is_named_with_its_host(
    tmp_path: Path, ground: Path, ssh: list[str], way: str, places: str, said: str
) -> None:
    source, destination = (f"{ground}/{places}".replace("{}", str(ground))).split()
    ends = {
        "local": [source, destination],
        "push": [source, f"u@dtn:{destination}", *ssh],
        "pull": [f"u@dtn:{source}", destination, *ssh],
    }[way]
    done = farline(tmp_path, "copy", *ends, "--no-store", "--no-progress")
    assert done.returncode == 2, done.stderr
    host = "u@dtn: " if way == "push" else ""
    line = done.stderr.strip().splitlines()[-1]
    told = said.replace("{}", str(ground))
    assert line.startswith(f"farline: {host}destination ") and told in line, line
    everything = done.stdout + done.stderr
    for wrong in ("the other end", "stream ", "os error", "kept", "parts"):
        assert wrong not in everything, everything


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("none", "no such file or folder"),
        ("no*such", "no such file or folder"),
        ("file/x", "is not a folder"),
        ("loop/x", "is reached through a link"),
        ("n" * 300, "cannot be read: File name too long"),
    ],
)
@pytest.mark.parametrize("way", ["local", "pull", "third"])
def test_a_source_that_is_not_there_is_named_with_its_host(
    tmp_path: Path, ground: Path, ssh: list[str], way: str, source: str, why: str
) -> None:
    ends = {
        "local": [f"{ground}/{source}", f"{tmp_path}/x"],
        "pull": [f"u@dtn:{ground}/{source}", f"{tmp_path}/x", *ssh],
        "third": [f"u@dtn:{ground}/{source}", f"b:{tmp_path}/x", *ssh],
    }[way]
    done = farline(tmp_path, "copy", *ends, "--no-store", "--no-progress")
    # Who names what is not there has to act; else it is the host that does not let it be read.
    is_absent = why.startswith("no such")
    assert done.returncode == (1 if is_absent else 2), done.stderr
    host = "" if way == "local" else "u@dtn: "
    more = ", and no name matches it as a pattern" if "*" in source and way == "pull" else ""
    assert done.stderr == f"farline: {host}source {ground}/{source}: {why}{more}\n"
    assert "kept" not in done.stdout and "missing" not in done.stdout


def test_the_one_of_two_other_hosts_that_refuses_is_named(
    tmp_path: Path, ground: Path, ssh: list[str]
) -> None:
    ends = [f"a:{ground}/data/", f"b:{ground}/file"]
    done = farline(tmp_path, "copy", *ends, *ssh, "--no-store", "-q")
    assert (done.returncode, done.stdout) == (2, "")
    why = "it is a file; a folder can only be copied into a folder"
    assert done.stderr == f"farline: b: destination {ground}/file: {why}\n"


def test_a_path_out_of_a_ticket_s_folder_is_said_to_be_one(tmp_path: Path, ground: Path) -> None:
    (ground / "data/out").symlink_to("/etc")
    places = ["--write", str(ground / "data"), "--read", str(ground / "data")]
    with serving(tmp_path, *places) as files:
        for path in ("../x", "out/x", "out"):
            url = f"{files.tickets['write']}#{path}"
            up = farline(tmp_path, "copy", str(ground / "file"), url, "--no-store", "-q")
            down = farline(
                tmp_path, "copy", f"{files.tickets['read']}#{path}/hosts", str(tmp_path), "-q",
                "--no-store",
            )  # fmt: skip
            for done in (up, down):
                assert done.returncode == 2
                assert "leads outside the folder of the ticket" in done.stderr
                assert f"farline: farline://{files.address}: " in done.stderr
                assert "cross-device" not in done.stderr


def test_a_copy_says_how_long_it_moved_and_how_long_it_took(
    tmp_path: Path, ground: Path, ssh: list[str]
) -> None:
    slow = tmp_path / "ssh"
    slow.write_text(slow.read_text().replace("cd; exec", "sleep 1; cd; exec"))
    ends = [f"{ground}/data/", f"u@dtn:{tmp_path}/x", *ssh, "--no-store", "--no-progress"]
    record = json.loads(farline(tmp_path, "copy", *ends, "--json").stdout)
    report = record["copy"]
    assert report["attempts"] == 1
    assert report["moving_us"] == round(1e6 * record["run_s"])
    assert report["command_us"] >= report["moving_us"] + 1_000_000
    ends[1] = f"u@dtn:{tmp_path}/y"
    done = farline(tmp_path, "copy", *ends)
    told = re.search(r"^time +([\d.]+) s copying, ([\d.]+) s in total$", done.stdout, re.M)
    assert told is not None, done.stdout
    assert float(told[2]) >= float(told[1]) + 1
