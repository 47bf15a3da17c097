"""Snakemake and Rucio themselves, with farline's plugins, against `farline serve`.

They have an environment of their own (`make schedulers`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import FARLINE, Serving, environment, farline, serving

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".venv" / "schedulers" / "bin"
pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(
        not (PROGRAMS / "snakemake").exists(),
        reason="Snakemake and Rucio are not installed: make schedulers",
    ),
]


@dataclass
class Site:
    """A server with a folder, a file of its tickets, and what programs of others see."""

    folder: Path
    root: Path
    server: Serving
    tickets: Path

    def url(self, path: str) -> str:
        """As a workflow names it: without a ticket."""
        return f"farline://{self.server.address}#{path}"

    def environment(self) -> dict[str, str]:
        own = dict(environment(self.folder))
        own["PATH"] = f"{PROGRAMS}:{own['PATH']}"
        own["HOME"] = str(self.folder)
        own["FARLINE"] = shlex.join(FARLINE)
        return own


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One folder for reading and for writing."""
    root = tmp_path / "root"
    root.mkdir()
    with serving(tmp_path, "--read", str(root), "--write", str(root)) as server:
        tickets = tmp_path / "tickets"
        tickets.write_text(f"# of this site\n{server.tickets['read']}\n{server.tickets['write']}\n")
        tickets.chmod(0o600)
        yield Site(tmp_path, root, server, tickets)


def snakemake(site: Site, snakefile: str, *more: str, code: int = 0) -> str:
    """What Snakemake says of a workflow."""
    work = site.folder / "work"
    work.mkdir(exist_ok=True)
    (work / "Snakefile").write_text(snakefile)
    own = site.environment()
    own["PYTHONPATH"] = str(ROOT / "integrations" / "snakemake")
    own["SNAKEMAKE_STORAGE_FARLINE_TICKETS"] = str(site.tickets)
    own["SNAKEMAKE_STORAGE_FARLINE_COMMAND"] = own["FARLINE"]
    own["XDG_CACHE_HOME"] = str(site.folder / "cache")
    done = subprocess.run(
        [PROGRAMS / "snakemake", "--cores", "2", "--nocolor", *more], cwd=work, env=own,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    assert "v1." not in done.stdout, "a ticket is a secret"
    return done.stdout


SUMS = """
storage: provider="farline"
(SAMPLES,) = glob_wildcards(storage.farline("URL#runs/{sample}.csv"))
rule all:
    input: storage.farline("URL#results/deep/sums.txt")
rule one:
    input: storage.farline("URL#runs/{sample}.csv")
    output: storage.farline("URL#sums/{sample}.md5")
    shell: "md5sum < {input:q} > {output:q}"
rule together:
    input: storage.farline(expand("URL#sums/{sample}.md5", sample=SAMPLES))
    output: storage.farline("URL#results/deep/sums.txt")
    shell: "cat {input:q} > {output:q}"
"""


def test_a_workflow_of_snakemake_reads_and_writes_behind_tickets(site: Site) -> None:
    (site.root / "runs").mkdir()
    for name in ("a", "c d"):
        (site.root / f"runs/{name}.csv").write_text(f"content of {name}\n" * 1000)
    text = SUMS.replace("URL", f"farline://{site.server.address}")
    snakemake(site, text)
    sums = (site.root / "results/deep/sums.txt").read_text()
    for name in ("a", "c d"):
        content = (f"content of {name}\n" * 1000).encode()
        assert hashlib.md5(content).hexdigest() in sums
    assert not list(site.root.rglob("*.farline*")), "nothing of a copy is left"
    again = snakemake(site, text)
    assert "Nothing to be done" in again, "times and names are seen there"


FOLDERS = """
storage: provider="farline"
rule all:
    input: storage.farline("URL#made")
rule one:
    input: storage.farline("URL#given")
    output: storage.farline(directory("URL#made"))
    shell: "mkdir -p {output}/below; cp {input}/x/file {output}/below/; ls {input} > {output}/list"
"""


def test_folders_are_inputs_and_outputs_of_snakemake(site: Site) -> None:
    (site.root / "given/x").mkdir(parents=True)
    (site.root / "given/x/file").write_text("in a folder")
    snakemake(site, FOLDERS.replace("URL", f"farline://{site.server.address}"))
    assert (site.root / "made/below/file").read_text() == "in a folder"
    assert (site.root / "made/list").read_text() == "x\n"


def test_snakemake_says_what_is_missing_and_what_may_not_be(site: Site) -> None:
    text = 'storage: provider="farline"\nrule one:\n    input: storage.farline("QUERY")\n'
    missing = snakemake(site, text.replace("QUERY", site.url("none.csv")), code=1)
    assert "none.csv" in missing and "Missing input" in missing
    without = snakemake(site, text.replace("QUERY", "farline://127.0.0.1:1"), code=1)
    assert "the path behind # is missing" in without
    # A ticket in a query works, and is not printed.
    ticket = site.server.tickets["read"].partition("#")[0]
    secret = snakemake(site, text.replace("QUERY", f"{ticket}#none.csv"), code=1)
    assert "none.csv" in secret


SCRIPT = """
import json, sys
from rucio.rse import rsemanager
from rucio.common import exception

settings, calls = json.loads(sys.argv[1]), json.loads(sys.argv[2])
found = []
for operation, name, arguments in calls:
    protocol = rsemanager.create_protocol(settings, operation, scheme="farline", domain="wan")
    protocol.connect()
    try:
        found.append(getattr(protocol, name)(*arguments))
    except exception.RucioException as error:
        found.append([type(error).__name__, str(error)])
    protocol.close()
print(json.dumps(found))
"""


class Rucio:
    """Rucio's client with one RSE, without a server of Rucio's."""

    def __init__(self, site: Site) -> None:
        self.site = site
        host, port = site.server.address.rsplit(":", 1)
        every = dict.fromkeys(("read", "write", "delete", "third_party_copy_read"), 1)
        every["third_party_copy_write"] = 0
        self.settings = {
            "rse": "SITE", "id": "1", "deterministic": True, "lfn2pfn_algorithm": "hash",
            "domain": ["lan", "wan"], "rse_type": "DISK", "volatile": False,
            "verify_checksum": True,
            "protocols": [{
                "hostname": host, "port": int(port), "scheme": "farline", "prefix": "/rucio/",
                "impl": "farline_rucio.Default", "domains": {"lan": every, "wan": every},
                "extended_attributes": {"tickets": str(site.tickets)},
            }],
        }  # fmt: skip
        home = site.folder / "rucio"
        (home / "etc").mkdir(parents=True)
        (home / "etc/rucio.cfg").write_text(
            "[client]\nrucio_host=http://127.0.0.1:1\nauth_host=http://127.0.0.1:1\n"
            "account=root\nauth_type=userpass\n"
        )

    def pfn(self, path: str) -> str:
        """A physical file name."""
        return f"farline://{self.site.server.address}/rucio/{path}"

    def call(self, *calls: tuple[str, str, list[Any]]) -> list[Any]:
        """What each call gives, or the name and text of its exception."""
        own = self.site.environment()
        own["PYTHONPATH"] = str(ROOT / "integrations" / "rucio")
        own["RUCIO_HOME"] = str(self.site.folder / "rucio")
        done = subprocess.run(
            [PROGRAMS / "python", "-c", SCRIPT, json.dumps(self.settings), json.dumps(calls)],
            env=own, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def test_rucio_puts_looks_renames_gets_and_deletes(site: Site) -> None:
    rucio, content = Rucio(site), os.urandom(2_000_000)
    (site.folder / "local").mkdir()
    (site.folder / "local/file").write_bytes(content)
    pfn, upload = rucio.pfn(r"data/aa/bb/a\file"), rucio.pfn(r"data/aa/bb/a\file.upload")
    target = str(site.folder / "got")
    found = rucio.call(
        ("write", "put", ["file", upload, str(site.folder / "local")]),
        ("read", "stat", [upload]),
        ("write", "rename", [upload, pfn]),
        ("read", "exists", [pfn]),
        ("read", "exists", [upload]),
        ("read", "get", [pfn, target]),
        ("delete", "delete", [pfn]),
        ("read", "exists", [pfn]),
    )
    sums = {"filesize": 2_000_000, "adler32": f"{zlib.adler32(content):08x}"}
    assert found == [None, sums, None, True, False, None, None, False]
    assert Path(target).read_bytes() == content


def test_rucio_hears_what_went_wrong_in_its_own_words(site: Site) -> None:
    rucio = Rucio(site)
    (site.root / "rucio").mkdir()
    (site.root / "rucio/there").write_text("there")
    (site.root / "rucio/other").write_text("other")
    none, there = rucio.pfn("none"), rucio.pfn("there")
    found = rucio.call(
        ("read", "get", [none, str(site.folder / "x")]),
        ("read", "stat", [none]),
        ("delete", "delete", [none]),
        ("write", "put", ["none", none, str(site.folder)]),
        ("write", "rename", [there, rucio.pfn("other")]),
        ("read", "get", [there, str(site.folder / "no/folder/x")]),
    )
    names = [one[0] for one in found]
    assert names[:5] == [
        "SourceNotFound", "SourceNotFound", "SourceNotFound", "SourceNotFound",
        "FileReplicaAlreadyExists",
    ], found  # fmt: skip
    assert names[5] == "DestinationNotAccessible", found[5]
    assert (site.root / "rucio/other").read_text() == "other"
    # With the ticket to read alone nothing is changed.
    site.tickets.write_text(site.server.tickets["read"])
    done = farline(site.folder, "trust", site.server.tickets["read"].partition("#")[0])
    assert done.returncode == 0, done.stderr
    (refused,) = rucio.call(("delete", "delete", [there]))
    assert refused[0] == "RSEAccessDenied" and (site.root / "rucio/there").exists()
    site.server.stop()
    (gone,) = rucio.call(("read", "stat", [there]))
    assert gone[0] == "ServiceUnavailable"
