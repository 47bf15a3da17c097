"""HTCondor's plugin for farline://, called as condor_starter does and read by its own ClassAds."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.serving import FARLINE, Serving, environment, serving

PLUGIN = Path(__file__).parents[2] / "integrations" / "htcondor" / "farline_plugin.py"
OUT_BYTES = 64 * 1204 // 64 * 16
"""condor_starter makes the outfile before, full of blanks."""


def load() -> ModuleType:
    """The plugin as a module."""
    spec = importlib.util.spec_from_file_location("farline_plugin", PLUGIN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["farline_plugin"] = module
    spec.loader.exec_module(module)
    return module


@dataclass
class Starter:
    """Calls the plugin as condor_starter 25 does (file_transfer.cpp)."""

    folder: Path
    server: Serving

    def __post_init__(self) -> None:
        """The job's folder, and that of its credentials."""
        self.iwd.mkdir()
        self.credentials.mkdir()

    @property
    def iwd(self) -> Path:
        return self.folder / "job"

    @property
    def credentials(self) -> Path:
        return self.folder / "credentials"

    def url(self, path: str) -> str:
        """As a job names it: without a ticket."""
        return f"farline://{self.server.address}/#{path}"

    def give(self, may: str) -> None:
        """Puts a ticket into the credential folder."""
        (self.credentials / "farline.use").write_text(self.server.tickets[may] + "\n")

    def run(
        self, pairs: list[tuple[str, str]], *more: str, before: str = ""
    ) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, ads of the outfile, and what was printed."""
        into, out = self.iwd / ".plugin.in", self.iwd / ".plugin.out"
        ads = [classad2.ClassAd({"LocalFileName": local, "Url": url}) for url, local in pairs]
        into.write_text(before + "".join(map(str, ads)))
        out.write_text(" " * OUT_BYTES)
        done = subprocess.run(
            [sys.executable, PLUGIN, "-infile", into, "-outfile", out, *more],
            capture_output=True, text=True, cwd="/",
            env=environment(
                self.folder, _CONDOR_CREDS=str(self.credentials), FARLINE=shlex.join(FARLINE)
            ),
        )  # fmt: skip
        text = out.read_text()
        assert len(text) >= OUT_BYTES, "the outfile became shorter"
        found = [dict(ad) for ad in classad2.parseAds(text)]
        return done.returncode, found, done.stdout + done.stderr


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    """A server with a folder to read from and one to write to."""
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
    roots = ("--read", str(tmp_path / "read"), "--write", str(tmp_path / "write"))
    with serving(tmp_path, *roots) as server:
        yield Starter(tmp_path, server)


def test_it_says_what_it_can_do_in_an_ad_that_condor_reads() -> None:
    done = subprocess.run([sys.executable, PLUGIN, "-classad"], capture_output=True, text=True)
    assert done.returncode == 0
    ad = classad2.parseOne(done.stdout)
    assert ad["SupportedMethods"] == "farline"
    assert ad["ProtocolVersion"] == 4
    assert ad["MultipleFileSupport"] is True


def test_files_come_under_the_names_that_the_job_has_for_them(starter: Starter) -> None:
    for name in ("one.bin", "two.bin", "sub/one.bin"):
        file = starter.folder / "read" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(name.encode() * 1000)
    starter.give("read")
    names = {"one.bin": "one.bin", "two.bin": "other name.bin", "sub/one.bin": "three.bin"}
    pairs = [(starter.url(path), str(starter.iwd / local)) for path, local in names.items()]
    code, ads, said = starter.run(pairs, before="[ farline_PluginData = [ streams = 2 ] ]")
    assert code == 0, (ads, said)
    for (path, local), ad in zip(names.items(), ads, strict=True):
        assert (starter.iwd / local).read_bytes() == path.encode() * 1000
        assert ad["TransferSuccess"] is True
        assert ad["TransferFileName"] == str(starter.iwd / local)
        assert ad["TransferTotalBytes"] == len(path) * 1000
        assert ad["TransferProtocol"] == "farline"


def test_results_go_into_a_folder_that_is_made(starter: Starter) -> None:
    starter.give("write")
    pairs = []
    for name in ("one.bin", "two.bin"):
        (starter.iwd / name).write_bytes(name.encode())
        # HTCondor joins output_destination and name by a slash.
        pairs.append((starter.url(f"run//{name}"), str(starter.iwd / name)))
    code, ads, said = starter.run(pairs, "-upload")
    assert code == 0, (ads, said)
    for name in ("one.bin", "two.bin"):
        assert (starter.folder / "write" / "run" / name).read_bytes() == name.encode()


def test_a_file_that_is_missing_fails_alone_with_its_kind(starter: Starter) -> None:
    (starter.folder / "read" / "here").write_text("x")
    starter.give("read")
    pairs = [(starter.url(name), str(starter.iwd / name)) for name in ("here", "missing")]
    code, ads, _ = starter.run(pairs)
    assert code != 0
    assert [ad["TransferSuccess"] for ad in ads] == [True, False]
    (data,) = ads[1]["TransferErrorData"]
    assert data["ErrorType"] == "Specification"
    assert data["Retryable"] == -1
    assert "missing" in ads[1]["TransferError"]


def test_no_ticket_and_no_server_are_told_from_each_other_and_no_ticket_is_printed(
    starter: Starter,
) -> None:
    code, ads, said = starter.run([(starter.url("here"), str(starter.iwd / "here"))])
    assert code == 4, (ads, said)
    (data,) = ads[0]["TransferErrorData"]
    assert data["ErrorType"] == "Authorization" and data["ShouldRefresh"] is True
    starter.give("read")
    starter.server.stop()
    code, ads, said = starter.run([(starter.url("here"), str(starter.iwd / "here"))])
    assert code == 5
    (data,) = ads[0]["TransferErrorData"]
    assert data["ErrorType"] == "Contact" and data["Retryable"] > 0
    with_ticket = f"{starter.server.tickets['read']}#here"
    code, ads, said = starter.run([(with_ticket, str(starter.iwd / "here"))])
    secret = starter.server.tickets["read"].partition("?")[2]
    assert code == 5
    assert secret not in said + ads[0]["TransferError"]


def test_what_is_no_input_is_refused_in_one_line(starter: Starter) -> None:
    for before in ("[ Url = ", "Url", '[ Url = "x" ]', "[ Url = { 1, "):
        code, _, said = starter.run([], before=before)
        assert code == 1
        assert len(said.strip().splitlines()) == 1, said


@given(st.dictionaries(st.sampled_from(["Url", "LocalFileName", "Other"]), st.text(max_size=40)))
def test_ads_of_condor_are_read_and_ours_are_read_by_condor(facts: dict[str, str]) -> None:
    plugin = load()
    plain = {name: text.replace("\0", "") for name, text in facts.items()}
    ours = classad2.parseOne(plugin.ad_text(plain))
    assert {name: ours[name] for name in ours} == plain
    (read,) = plugin.parse_ads(str(classad2.ClassAd(plain)))
    assert read == {name.lower(): text for name, text in plain.items()}
