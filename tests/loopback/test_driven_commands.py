"""`--tool` of `farline probe`, `copy` and `profile`, and `farline tools`, as people type them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.loopback.conftest import rows_of
from tests.support.serving import farline


def test_probe_by_another_tool_is_kept_and_shown(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    done = farline(
        tmp_path, "probe", "--tool", "nuttcp", "127.0.0.1", "-t", "0.5", "--store", store
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nuttcp, tcp to 127.0.0.1, ")
    (row,) = rows_of(tmp_path / "store")
    assert (row["tool"], row["status"]) == ("nuttcp", "complete")
    assert row["total_bps"] > 0 and row["steady_bps"] is None
    shown = farline(tmp_path, "show", "last", "--store", store)
    assert "nuttcp 6" in shown.stdout, shown.stderr


def test_nobody_there_is_exit_5(tmp_path: Path) -> None:
    done = farline(tmp_path, "probe", "--tool", "iperf3", "127.0.0.1:1", "-t", "1", "--no-store")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and "iperf3 failed" in done.stderr


def test_copy_by_another_tool_is_proved(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "one").write_bytes(b"1" * 100_000)
    words = ("copy", "--tool", "rsync", f"{source}/", f"{target}/", "--json")
    done = farline(tmp_path, *words, "--store", str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["driven"]["proof"], record["driven"]["files"]) == ("hash", 1)
    assert (target / "one").read_bytes() == (source / "one").read_bytes()
    (row,) = rows_of(tmp_path / "store")
    assert (row["copied_files"], row["copied_bytes"]) == (1, 100_000)
    # farline's own pipeline says nothing of rsync.
    assert row["copy.pipeline"] is None and row["copy.cipher"] == "none"


def test_an_option_that_the_tool_lacks_is_refused(tmp_path: Path) -> None:
    words = ("copy", "--tool", "scp", "--receipt", "r", "a", "b")
    done = farline(tmp_path, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--receipt: scp does not take it" in done.stderr
    for flag, value in (("--nodes", "2"), ("--own-disks", "source"), ("--place-streams", "off")):
        done = farline(tmp_path, "copy", "--tool", "scp", flag, value, "a", "b")
        assert f"{flag}: scp does not take it" in done.stderr
    done = farline(tmp_path, "copy", "--tool", "scp", "--streams", "2", "a", "b")
    assert "streams: scp does not take it" in done.stderr


def test_the_tool_varies_in_a_campaign(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[campaign]\nname = "tools"\nrepetitions = 1\nreference = "none"\n'
        '[fixed]\nduration_s = "1s"\nrate_bps = "20M"\n[grid]\ntool = ["iperf3", "nuttcp"]\n'
    )
    store = str(tmp_path / "store")
    done = farline(tmp_path, "profile", "127.0.0.1", str(plan), "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout[: done.stdout.rindex("}") + 1])
    assert results["stopped"] == "finished"
    rows = rows_of(tmp_path / "store")
    assert {row["tool"] for row in rows} == {"iperf3", "nuttcp"}
    assert all(15e6 < row["total_bps"] < 25e6 for row in rows)
    report = farline(tmp_path, "report", "last", "--store", store, "-o", str(tmp_path / "report"))
    assert report.returncode == 0, report.stderr


def test_a_combination_that_no_tool_has_is_named_before_anything_runs(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[campaign]\nname = "tools"\n[fixed]\nduration_s = "1s"\n[fixed.tcp]\n'
        'congestion_control = "reno"\n[grid]\ntool = ["native", "nuttcp"]\n'
    )
    done = farline(tmp_path, "profile", "127.0.0.1", str(plan))
    assert done.returncode == 1
    assert "tool=nuttcp: tcp.congestion_control: nuttcp does not take it" in done.stderr


def test_the_list_of_tools_says_what_is_here(tmp_path: Path) -> None:
    done = farline(tmp_path, "tools", "--json")
    assert done.returncode == 0, done.stderr
    tools = {one["name"]: one for one in json.loads(done.stdout)["tools"]}
    assert tools["iperf3"]["installed"] and tools["iperf3"]["version"]
    assert tools["iperf3"]["takes"]["streams"] == "-P"
    assert len(tools) >= 13
    one = farline(tmp_path, "tools", "gridftp")
    assert "tcp.send_buffer_bytes" in one.stdout and "-tcp-bs" in one.stdout
