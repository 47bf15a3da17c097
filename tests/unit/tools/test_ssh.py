"""Hosts over ssh: what is started, what ssh and the shell there may answer instead."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from farline.errors import (
    AuthError,
    FarlineError,
    InterruptedRun,
    ProtocolError,
    SystemFailure,
    UnreachableError,
    UsageError,
    VersionError,
)
from farline.tools import Stop, never_stop
from farline.tools.ssh import RemoteServer, SshCommand, Tunnel, read_ready, why_ended

PIN = f"sha256-{'A' * 43}"
READY = {
    "event": "ready", "schema": 1, "version": "0.1.0", "port": 40000, "home": "/home/u",
    "ticket": f"farline://127.0.0.1:40000/v1.YQ.Yg?key={PIN}",
    "tcp_send_bytes": 4 << 20, "tcp_receive_bytes": 6 << 20,
}  # fmt: skip
Fake = Callable[[str], SshCommand]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """An ssh that runs a shell script in the place of what it was told to."""

    def make(script: str) -> SshCommand:
        path = tmp_path / "ssh"
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n{script}\n')
        path.chmod(0o700)
        return SshCommand((str(path),))

    return make


def test_a_server_is_started_with_the_words_of_a_shell_and_ends_with_its_input(
    fake: Fake, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    ssh = fake(f"echo hello, this is a banner\necho '{json.dumps(READY)}'\ncat\ntouch {ended}")
    server = RemoteServer(ssh, "u@host", ["write", "--data-ports", "1-2 3"], never_stop)
    assert server.is_alive and not ended.exists()
    target = server.ready.target("far.example")
    assert (target.host, target.port, target.pin) == ("far.example", 40000, PIN)
    assert target.ticket == "v1.YQ.Yg"
    server.close()
    assert ended.exists() and not server.is_alive
    words = (tmp_path / "words").read_text().splitlines()
    assert words == [
        "-T", "u@host", "farline serve --copy-session write --data-ports '1-2 3'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("echo 'sh: farline: not found' >&2; exit 127", UsageError, "--remote-farline"),
        (
            "echo 'ssh: connect to host h port 22: Connection refused' >&2; exit 255",
            UnreachableError, "ssh u@host: ssh: connect to host h port 22: Connection refused",
        ),
        ("echo 'u@h: Permission denied (publickey).' >&2; exit 255", AuthError, "Permission"),
        ("echo 'Host key verification failed.' >&2; exit 255", AuthError, "Host key"),
        ("exit 255", UnreachableError, "no reason given"),
        (
            "echo 'farline: No such option: --copy-session (see' >&2; exit 1",
            VersionError, "too old",
        ),
        ("echo 'farline: port taken' >&2; exit 2", ProtocolError, "ended with 2: farline: port"),
        (
            f"echo '{json.dumps({**READY, 'schema': 2, 'version': '9.0'})}'",
            VersionError, "farline 9.0",
        ),
        (f"echo '{json.dumps({**READY, 'port': 0})}'", ProtocolError, "no port"),
        (f"echo '{json.dumps({**READY, 'home': 'x'})}'", ProtocolError, "no home"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_named(
    fake: Fake, script: str, kind: type[FarlineError], said: str
) -> None:
    with pytest.raises(kind) as failed:
        RemoteServer(fake(script), "u@host", ["write"], never_stop)
    assert said in failed.value.message and "u@host" in failed.value.message


def test_without_an_ssh_it_says_what_to_do() -> None:
    with pytest.raises(SystemFailure, match="install an ssh client"):
        RemoteServer(SshCommand(("/no/such/ssh",)), "host", ["write"], never_stop)


def test_whoever_does_not_want_to_wait_need_not(fake: Fake) -> None:
    began = time.monotonic()
    with pytest.raises(InterruptedRun):
        RemoteServer(fake("exec cat >/dev/null"), "host", ["write"], lambda: Stop.GRACEFULLY)
    assert time.monotonic() - began < 10


def test_an_endless_line_is_refused(fake: Fake) -> None:
    with pytest.raises(ProtocolError, match="too much in one line"):
        RemoteServer(fake("exec tr '\\0' x </dev/zero"), "host", ["write"], never_stop)


def test_the_name_behind_an_alias(fake: Fake) -> None:
    assert fake("echo user u; echo hostname real.example").host_name("alias", "alias") == (
        "real.example"
    )
    assert fake("exit 1").host_name("alias", "alias") == "alias"
    assert SshCommand(("/no/such/ssh",)).host_name("alias", "alias") == "alias"


def test_buffers_that_are_not_told_are_not_guessed() -> None:
    ready = read_ready("h", {**READY, "tcp_send_bytes": None})
    assert (ready.send_buffer_bytes, ready.receive_buffer_bytes) == (None, 6 << 20)


def test_it_may_say_where_it_was_called_from() -> None:
    assert read_ready("h", READY).client is None
    assert read_ready("h", {**READY, "client": "2001:db8::1"}).client == "2001:db8::1"
    assert read_ready("h", {**READY, "client": 7}).client is None


def test_a_command_that_hangs_is_told_of() -> None:
    assert "does not answer" in why_ended("h", "farline", None, []).message


def test_a_tunnel_that_says_much_goes_on(fake: Fake) -> None:
    # ssh says something for each channel: nobody must have to read it for the data to flow.
    listen = "import socket,sys; s=socket.create_server(('127.0.0.1', int(sys.argv[1])))"
    script = f"""
        for word; do case $word in 127.0.0.1:*) port=${{word#*:}}; port=${{port%%:*}};; esac; done
        head -c 300000 /dev/zero | tr '\\0' 'x\\n' >&2
        exec python3 -c "{listen}; sys.stdin.read(); s.accept(); s.accept()" $port"""
    tunnel = Tunnel(fake(script), "u@host", 22, never_stop)
    try:
        assert tunnel.is_alive
    finally:
        tunnel.close()
