"""Rules of nftables for a server: nft takes them, and they name the ports that were asked for."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from farline.cli.group import run
from farline.findings.firewall import CHAIN, firewall_lines


def test_nft_takes_the_rules() -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed: install nftables")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    family, table, chain = CHAIN.split()
    hook = "{ type filter hook input priority filter; policy drop; }"
    text = "\n".join(
        [f"table {family} {table} {{\nchain {chain} {hook}\n}}", *firewall_lines(5470, 5471, 5500)]
    )
    said = subprocess.run(["nft", "-c", "-f", "-"], input=text, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


def test_the_command_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["host", "--firewall", "--port", "6000", "--data-ports", "6001-6010"]) == 0
    said = capsys.readouterr().out
    assert "tcp dport { 6000, 6001-6010 } accept" in said and "udp dport 6001-6010 accept" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--firewall", "--json"], "cannot be combined"),
        (["--port", "6000"], "need --firewall"),
        (["--firewall", "--data-ports", "5470-5480"], "is one of --data-ports"),
        (["--firewall", "--data-ports", "9-1"], "not FIRST-LAST"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["host", *words]) == 1
    assert why in capsys.readouterr().err
