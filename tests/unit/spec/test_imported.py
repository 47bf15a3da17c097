"""Other tools' configurations, as the tools write them, damaged, and as commands take them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.cli.group import run
from farline.errors import SpecError
from farline.spec.imported import MOST_PAIRS, from_globus, from_perfsonar, from_rclone
from farline.spec.infrastructure_text import load_infrastructure

RCLONE = """\
[archive]
type = sftp
host = archive.example.org
user = ada
port = 2222
key_file = ~/.ssh/id_archive
shell_type = unix
md5sum_command = md5sum

[old]
type = sftp
host = old.example.org
pass = aGVsbG8

[photos]
type = s3
provider = AWS

[raw]
type = alias
remote = archive:/raw

[two words]
type = sftp
host = x.example.org

[bad]
type = sftp
host = x.example.org; rm -rf /
"""

MESH: dict[str, Any] = {
    "_meta": {"display-name": "Example"},
    "addresses": {
        "a": {"address": "ps-a.example.org", "_meta": {"display-name": "Site A"}},
        "b": {"address": "2001:db8::7"},
        "c": {"address": "ps-c.example.org"},
        "broken": {"address": 7},
    },
    "groups": {
        "all": {"type": "mesh", "addresses": [{"name": "a"}, {"name": "b"}, {"name": "gone"}]},
        "star": {"type": "disjoint", "a-addresses": [{"name": "a"}],
                 "b-addresses": [{"name": "c"}]},
    },
    "tests": {
        "tcp": {"type": "throughput",
                "spec": {"source": "{% address[0] %}", "dest": "{% address[1] %}",
                         "duration": "PT1M30S", "parallel": 4, "congestion": "bbr"}},
        "udp": {"type": "throughput", "spec": {"udp": True, "duration": "PT10S", "reverse": True}},
        "owd": {"type": "latencybg", "spec": {}},
    },
    "schedules": {"six": {"repeat": "PT6H"}},
    "tasks": {
        "t1": {"group": "all", "test": "tcp", "schedule": "six"},
        "t2": {"group": "star", "test": "udp"},
        "t3": {"group": "all", "test": "owd"},
    },
}  # fmt: skip


def test_remotes_over_sftp_become_hosts_of_ssh_and_the_rest_is_named() -> None:
    found = from_rclone(RCLONE)
    assert found.text == (
        "Host archive\n    HostName archive.example.org\n    User ada\n    Port 2222\n"
        "    IdentityFile ~/.ssh/id_archive\n\nHost old\n    HostName old.example.org\n"
    )
    assert [line.partition(":")[0] for line in found.left_out] == [
        "old", "photos", "raw", "two words", "bad",
    ]  # fmt: skip
    assert "rm -rf" not in found.text


def test_ssh_takes_what_rclone_wrote(tmp_path: Path) -> None:
    if not shutil.which("rclone") or not shutil.which("ssh"):
        pytest.skip("rclone or ssh not found: apt install rclone openssh-client")
    config = tmp_path / "rclone.conf"
    words = ["rclone", "--config", str(config), "config", "create", "dtn", "sftp",
             "host=dtn.example.org", "user=ada", "port=2022", "--non-interactive"]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    (tmp_path / "ssh").write_text(from_rclone(config.read_text()).text)
    asked = ["ssh", "-G", "-F", str(tmp_path / "ssh"), "dtn"]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert {"hostname dtn.example.org", "user ada", "port 2022"} <= set(said)


def test_a_mesh_becomes_sites_that_farline_reads_and_the_commands_of_its_pairs(
    tmp_path: Path,
) -> None:
    found = from_perfsonar(json.dumps(MESH))
    (tmp_path / "sites.toml").write_text(found.text)
    sites = load_infrastructure(tmp_path / "sites.toml")
    assert sites.site_names == ("a", "b", "c")
    assert sites.site_of("2001:db8::7") == "b"
    commands = [line[2:] for line in found.text.splitlines() if "farline probe" in line]
    assert commands == [
        "ps-a.example.org: farline probe 2001:db8::7 -t 90 -P 4 -C bbr  # each PT6H",
        "2001:db8::7: farline probe ps-a.example.org -t 90 -P 4 -C bbr  # each PT6H",
        "ps-a.example.org: farline probe ps-c.example.org -t 10 -R -u",
        "ps-c.example.org: farline probe ps-a.example.org -t 10 -R -u",
    ]
    assert found.left_out == ("address broken: 7", "task t3: a test of latencybg")


def test_a_mesh_of_too_many_pairs_is_refused() -> None:
    count = int(MOST_PAIRS**0.5) + 3
    names = [f"h{number}" for number in range(count)]
    mesh = {**MESH, "addresses": {name: {"address": name} for name in names},
            "groups": {"all": {"type": "mesh", "addresses": [{"name": one} for one in names]}},
            "tasks": {"t": {"group": "all", "test": "tcp"}}}  # fmt: skip
    with pytest.raises(SpecError, match="more than 1000 pairs"):
        from_perfsonar(json.dumps(mesh))


def test_folders_of_globus_become_tickets() -> None:
    found = from_globus("~/,0,1\n/data/with space,0,0\n\n/a,b,1,1\n", "/home/ada")
    assert found.text.splitlines() == [
        "farline ticket make HOST --write /home/ada/",
        "farline ticket make HOST --read '/data/with space'",
        "farline ticket make HOST --write '/a,b'",
    ]


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (from_rclone, "no section\n", "not a configuration of rclone"),
        (from_rclone, "# Encrypted rclone configuration File\n\nRCLONE_ENCRYPT_V0:\na", "decrypt"),
        (from_globus_home := (lambda text: from_globus(text, "/h")), "/a\n", "line 1"),
        (from_globus_home, "/a,0,2\n", "line 1"),
        (from_perfsonar, "{", "not a JSON document"),
        (from_perfsonar, "[" * 100_000, "not a JSON document"),
        (from_perfsonar, '{"addresses": []}', "is it a pSConfig template"),
    ],
)  # fmt: skip
def test_what_is_no_such_configuration_is_refused_in_words(read: Any, text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(text)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (from_rclone, from_perfsonar, lambda one: from_globus(one, "/h")):
        try:
            found = read(text)
        except SpecError:
            continue
        assert all(line.isprintable() for line in found.left_out)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8), st.fixed_dictionaries({"address": st.text(max_size=12)}), min_size=1
    )
)
def test_whatever_a_mesh_calls_its_hosts_the_sites_are_a_document(addresses: Any) -> None:
    found = from_perfsonar(json.dumps({"addresses": addresses}))
    assert tomllib.loads(found.text)["name"] == "imported mesh"


def test_the_command_prints_it_and_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rclone.conf"
    path.write_text(RCLONE)
    assert run(["import-config", "rclone", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"# from {path}; for ~/.ssh/config\nHost archive\n")
    assert "left out: photos: of the type s3, not sftp: use rclone for it" in said.err
    path.write_text("[photos]\ntype = s3\n")
    assert run(["import-config", "rclone", str(path)]) == 1
    assert "it contains nothing that farline can use" in capsys.readouterr().err
    assert run(["import-config", "rclone", str(tmp_path / "gone")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert run(["import-config", "perfsonar"]) == 1
    assert "needs a file" in capsys.readouterr().err
