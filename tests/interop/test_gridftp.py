"""GridFTP's UDT driver as the other end: a server of the Grid Community Toolkit, files both ways.

The control connection is plain FTP (RFC 959), spoken by these tests; the data connection is UDT,
to the server's port for STOR and from the server to ours for RETR, in stream mode.
"""

from __future__ import annotations

import ftplib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from _udt.peers import End, first_line, last_words, listening_port, running
from tests.interop.conditions import MakeEnd

SERVER = "globus-gridftp-server"
DRIVER = "libglobus_xio_udt_driver.so"
BYTES = 3_000_001
TIMEOUT_S = 30


def missing() -> str | None:
    """What this machine lacks."""
    has_driver = any(Path("/usr/lib").glob(f"**/{DRIVER}"))
    if shutil.which(SERVER) is None or not has_driver:
        return f"needs {SERVER} and its UDT driver"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that the server's anonymous user may write to."""
    with tempfile.TemporaryDirectory(prefix="farline-gridftp-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """A server whose data connections are UDT; the port of its control connections."""
    stack = ["-threads", "1", "-allow-udt", "-dc-default", "udt,gsi", "-dc-whitelist", "udt,gsi"]
    here = ["-control-interface", "127.0.0.1", "-data-interface", "127.0.0.1"]
    who = ["-aa", *(["-anonymous-user", "nobody"] if os.geteuid() == 0 else [])]
    # Without the machine's own configuration it takes a port of the kernel's choice and says it.
    command = [
        SERVER,
        "-c",
        "/dev/null",
        *stack,
        *here,
        *who,
        "-l",
        str(folder / "log"),
        "-d",
        "ALL",
    ]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
    )
    with running(server):
        found = re.search(r":(\d+)", first_line(server))
        assert found is not None
        yield int(found[1])


@contextmanager
def session(port: int) -> Iterator[ftplib.FTP]:
    """A control connection, logged in."""
    with ftplib.FTP(timeout=TIMEOUT_S) as control:
        control.connect("127.0.0.1", port)
        control.login("anonymous", "farline")
        control.voidcmd("TYPE I")
        yield control


def stored(end: End, folder: Path, port: int, name: str) -> str:
    """Hash of what an end sent to the server as a new file."""
    with session(port) as control:
        host, data_port = control.makepasv()
        control.putcmd(f"STOR {folder / name}")
        words = ["--host", host, "--port", data_port, "--bytes", BYTES, "--seconds", TIMEOUT_S]
        with running(end.run("cli", *words)) as client:
            said = last_words(client, TIMEOUT_S)
        assert control.getresp().startswith("150")
        assert control.voidresp().startswith("226")
    assert said.error_code == 0, said
    assert (folder / name).stat().st_size == BYTES
    return said.hashes("sent_hash")[0]


def retrieved(end: End, folder: Path, port: int, name: str) -> str:
    """Hash of what an end received of a file."""
    with ExitStack() as stack:
        listener = stack.enter_context(running(end.run("srv", "--bytes", BYTES)))
        control = stack.enter_context(session(port))
        control.sendport("127.0.0.1", listening_port(listener))
        control.putcmd(f"RETR {folder / name}")
        assert control.getresp().startswith("150")
        assert control.voidresp().startswith("226")
        said = last_words(listener, TIMEOUT_S)
    assert said.error_code == 0, said
    return said.hashes("received_hash")[0]


def test_a_file_goes_to_gridftp_and_comes_back(end: MakeEnd, folder: Path, port: int) -> None:
    sent = stored(end("farline"), folder, port, "ours")
    assert retrieved(end("farline"), folder, port, "ours") == sent
    assert retrieved(end("libudt"), folder, port, "ours") == sent, "the file is what it should be"


def test_the_driver_is_what_libudt_is(end: MakeEnd, folder: Path, port: int) -> None:
    """That the server speaks UDT here at all, without farline in between."""
    sent = stored(end("libudt"), folder, port, "theirs")
    assert retrieved(end("libudt"), folder, port, "theirs") == sent
