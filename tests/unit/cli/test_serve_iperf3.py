"""The options of `farline serve` for clients of iperf3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from farline.cli import group
from farline.cli.serve_iperf3 import iperf3_config

NOTHING: dict[str, Any] = {
    "iperf3_port": None, "iperf3_only": False, "iperf3_sessions": None, "iperf3_per_address": None,
    "iperf3_streams": None, "iperf3_rate": None, "iperf3_time": None, "iperf3_bytes": None,
    "iperf3_key": None, "iperf3_users": None, "iperf3_skew": None, "iperf3_pkcs1": False,
    "port": None, "data_ports": None, "write_root": None, "read_root": None, "anonymous": False,
    "single_port": False,
}  # fmt: skip


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert iperf3_config(NOTHING, []) is None


def test_an_open_port_has_limits_unless_they_are_lifted() -> None:
    config = iperf3_config(NOTHING | {"iperf3_port": 5201}, ["127.0.0.1"])
    assert config == {
        "listen": ["127.0.0.1"], "port": 5201,
        "limits": {"rate_bps": 10_000_000_000, "duration_s": 60.0},
    }  # fmt: skip
    lifted = iperf3_config(NOTHING | {"iperf3_only": True, "iperf3_rate": 0.0}, [])
    assert lifted is not None and lifted["port"] == 5201
    assert lifted["limits"]["rate_bps"] == 0


def test_every_limit_has_its_field() -> None:
    asked = {
        "iperf3_port": 0, "iperf3_sessions": 9, "iperf3_per_address": 3, "iperf3_streams": 7,
        "iperf3_time": 5.0, "iperf3_bytes": 1e9, "iperf3_key": Path("k"), "iperf3_users": Path("u"),
        "iperf3_skew": 60.0, "iperf3_pkcs1": True,
    }  # fmt: skip
    assert iperf3_config(NOTHING | asked, []) == {
        "listen": [], "port": 0, "max_sessions": 9, "max_sessions_per_address": 3, "max_streams": 7,
        "limits": {"rate_bps": 10_000_000_000, "duration_s": 5.0, "total_bytes": 1_000_000_000},
        "private_key": "k", "users": "u", "pkcs1_padding": True, "time_skew_s": 60,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"iperf3_rate": 1e6}, "--iperf3-rate needs --iperf3"),
        ({"iperf3_pkcs1": True}, "--iperf3-pkcs1 needs --iperf3"),
        ({"iperf3_port": 1, "iperf3_key": Path("k")}, "must be set together"),
        ({"iperf3_port": 1, "iperf3_skew": 3.0}, "--iperf3-skew needs --iperf3-key"),
        ({"iperf3_only": True, "write_root": Path("/")}, "--write and --iperf3-only exclude"),
        ({"iperf3_only": True, "port": 7}, "--port and --iperf3-only exclude"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        iperf3_config(NOTHING | asked, [])


def test_a_key_that_is_none_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("no key\n")
    (tmp_path / "users").write_text("mario,abc\n")
    words = ["serve", "--iperf3-only", "--iperf3", "0", "--listen", "127.0.0.1"]
    files = ["--iperf3-key", str(tmp_path / "key"), "--iperf3-users", str(tmp_path / "users")]
    assert group.run([*words, *files]) == 1
    error = capsys.readouterr().err
    assert "no RSA private key" in error and error.count("\n") == 1
