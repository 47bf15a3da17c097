"""Hosts over ssh: what is started, what ssh and the shell there may answer instead."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from farline.errors import (
    AuthError,
    FarlineError,
    InterruptedRun,
    ProtocolError,
    SystemFailure,
    TimeoutFailure,
    UnreachableError,
    UsageError,
    VersionError,
)
from farline.tools import Stop, StopQuestion, never_stop
from farline.tools.events import Event, Notice, NoticeKind
from farline.tools.ssh import RemoteCommand, RemoteServer, Tunnel, read_ready
from farline.tools.ssh_command import SshCommand
from farline.tools.ssh_failure import why_ended
from tests.support.steps import finished

PIN = f"sha256-{'A' * 43}"
READY = {
    "event": "ready", "schema": 2, "version": "0.1.0", "port": 40000, "home": "/home/u",
    "ticket": f"farline://127.0.0.1:40000/v1.YQ.Yg?key={PIN}",
    "tcp_send_bytes": 4 << 20, "tcp_receive_bytes": 6 << 20,
}  # fmt: skip
Fake = Callable[..., SshCommand]

REVERSED = r"sed '/\n/!G;s/\(.\)\(.*\n\)/&\2\1/;//D;s/.//'"
PROLOGUE = f"""
for last; do :; done
mark="farline-$(printf '%s\\n' "${{last##* }}" | {REVERSED}):"
ready() {{ printf '%s%s\\n' "$mark" '{json.dumps(READY)}'; }}
"""
"""In the place of the other host: `$mark` begins its lines, `ready` prints the one that is due."""


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """An ssh that runs a shell script in the place of what it was told to."""

    def make(script: str, start_s: float | None = 30.0) -> SshCommand:
        path = tmp_path / "ssh"
        words = f'printf "%s\\n" "$@" > {tmp_path}/words'
        path.write_text(f"#!/bin/sh\n{words}\n{PROLOGUE}\n{script}\n")
        path.chmod(0o700)
        return SshCommand((str(path),), start_s=start_s)

    return make


def started(
    ssh: SshCommand,
    target: str = "u@host",
    words: Sequence[str] = ("write",),
    should_stop: StopQuestion = never_stop,
    told: list[Event] | None = None,
) -> RemoteServer:
    """A server that has said that it is ready."""
    server = RemoteServer(ssh, target, words)
    finished(server.start(should_stop), told)
    return server


def test_a_server_is_started_with_the_words_of_a_shell_and_ends_with_its_input(
    fake: Fake, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    ssh = fake(f"echo hello, this is a banner\nready\ncat\ntouch {ended}")
    server = started(ssh, words=["write", "--data-ports", "1-2 3"])
    assert server.is_alive and not ended.exists()
    target = server.ready.target("far.example")
    assert (target.host, target.port, target.pin) == ("far.example", 40000, PIN)
    assert target.ticket == "v1.YQ.Yg"
    server.close()
    assert ended.exists() and not server.is_alive
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:2] == ["-T", "u@host"]
    command, _, nonce = words[2].rpartition(" ")
    assert command == "farline serve --copy-session write --data-ports '1-2 3' --mark"
    assert len(nonce) == 32


@pytest.mark.parametrize(
    ("failure", "option"),
    [
        ("Cannot execute command-line and remote command.", "RemoteCommand=none"),
        (
            "bind [127.0.0.1]:80: Address already in use\nCould not request local forwarding.",
            "ClearAllForwardings=yes",
        ),
        ("Error: remote port forwarding failed for listen port 80", "ClearAllForwardings=yes"),
    ],
)
def test_what_the_configuration_of_ssh_asks_for_beside_a_login_is_taken_back(
    fake: Fake, tmp_path: Path, failure: str, option: str
) -> None:
    fails = f"printf '%s\\n' {shlex.quote(failure)} >&2; exit 255"
    ssh = fake(f'case "$*" in *{option}*) ready; exec cat ;; esac\n{fails}')
    server = started(ssh)
    assert server.is_alive and server.ssh.options == (option,)
    server.close()
    assert f"-o\n{option}\n" in (tmp_path / "words").read_text()


def test_what_cannot_be_taken_back_is_said_once(fake: Fake) -> None:
    ssh = fake("echo 'Cannot execute command-line and remote command.' >&2; exit 255")
    with pytest.raises(UnreachableError, match=r"^ssh u@host: Cannot execute"):
        started(ssh)


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
        (
            "echo 'farline: No such option: --mark (see farline serve --help)' >&2; exit 1",
            VersionError, "install the same version on both hosts",
        ),
        ("echo 'farline: Command not found.' >&2; exit 1", UsageError, "--remote-farline"),
        ("echo hello; echo 'sh: farline: not found'", UsageError, "was not found on that host"),
        (
            "echo 'fish: Unknown command: farline' >&2; exit 127",
            UsageError, "was not found on that host",
        ),
        (
            "echo 'rbash: /opt/farline: restricted: cannot specify' >&2; exit 1",
            UsageError, "cannot be run on that host",
        ),
        ("echo 'sh: 1: farline: Permission denied' >&2; exit 126", UsageError, "cannot be run"),
        (
            "echo 'This account is currently not available.'; exit 1",
            ProtocolError, "ended with 1: This account is currently not available.",
        ),
        (
            "printf 'Traceback (most recent call last):\\n  x\\nImportError: no _native\\n' >&2;"
            " exit 1",
            ProtocolError, "ended with 1: ImportError: no _native",
        ),
        ("kill -9 $$", ProtocolError, "u@host: farline on that host was killed by signal 9"),
        (
            "printf 'ssh: connect to host j port 22: No route to host\\n"
            "Connection closed by UNKNOWN port 65535\\n' >&2; exit 255",
            UnreachableError, "No route to host; Connection closed by UNKNOWN",
        ),
        (
            "printf 'kex: error\\n** WARNING: not quantum-safe **\\n** See https **\\n' >&2;"
            " exit 255",
            UnreachableError, "ssh u@host: kex: error",
        ),
        (
            r"printf '\033[31mfarline: \033]0;x\007bad\033[0m\n' >&2; exit 2",
            ProtocolError, "ended with 2: farline: bad",
        ),
        ("echo 'farline: port taken' >&2; exit 2", ProtocolError, "ended with 2: farline: port"),
        (
            f"echo $mark'{json.dumps({**READY, 'schema': 3, 'version': '9.0'})}'",
            VersionError, "farline 9.0",
        ),
        (f"echo $mark'{json.dumps({**READY, 'port': 0})}'", ProtocolError, "no port"),
        (f"echo $mark'{json.dumps({**READY, 'home': 'x'})}'", ProtocolError, "no home"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_named(
    fake: Fake, script: str, kind: type[FarlineError], said: str
) -> None:
    with pytest.raises(kind) as failed:
        started(fake(script))
    assert said in failed.value.message and "u@host" in failed.value.message
    assert "u@host: u@host" not in failed.value.message


@dataclass
class Account:
    """An account on another host whose shell does not find farline in its PATH."""

    fake: Fake
    home: Path

    def install(self, folder: str, script: str) -> Path:
        """Puts a farline there that runs `script`; its `$mark` is right."""
        path = self.home / folder / "farline"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{PROLOGUE}\n{script}\n")
        path.chmod(0o700)
        return path

    def ssh(self, remote_shell: str = 'sh -c "$last"') -> SshCommand:
        """An ssh that logs in there; each login is a line of `logins`."""
        return self.fake(
            f"echo login >> {self.home}/logins\n"
            f"HOME={shlex.quote(str(self.home))} PATH=/usr/bin:/bin exec {remote_shell}"
        )

    @property
    def logins(self) -> int:
        """How often ssh was called."""
        return len((self.home / "logins").read_text().splitlines())


@pytest.fixture
def account(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    folders = ("~/.local/bin", "~/bin", "~/farline/.venv/bin")
    for module in ("usual_folders", "ssh_failure"):
        monkeypatch.setattr(f"farline.tools.{module}.FOLDERS", folders)
    (tmp_path / "home").mkdir()
    return Account(fake, tmp_path / "home")


SHELLS = ['sh -c "$last"', 'bash -x -c "$last"', 'tcsh -v -x -c "$last"', 'fish -c "$last"']


@pytest.mark.parametrize("shell", SHELLS)
def test_a_farline_outside_the_path_is_found_in_the_usual_folders(
    account: Account, tmp_path: Path, shell: str
) -> None:
    if not shutil.which(shell.split()[0]):
        pytest.skip(f"no {shell.split()[0]}")
    account.install(
        "farline/.venv/bin", f"printf '%s\\n' \"$@\" > {tmp_path}/arguments; ready; exec cat"
    )
    (account.home / "bin" / "farline").mkdir(parents=True)
    told: list[Event] = []
    server = started(account.ssh(shell), words=["read", "--data-ports", "1 $d; 2"], told=told)
    try:
        assert server.ready.port == 40000 and server.is_alive
    finally:
        server.close()
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:-1] == [
        "serve", "--copy-session", "read", "--data-ports", "1 $d; 2", "--mark",
    ]  # fmt: skip
    assert [type(one) for one in told] == [Notice] and "not in the PATH on u@host" in str(told[0])
    assert account.logins == 2


def test_where_farline_was_looked_for_once_it_is_looked_for_at_once(account: Account) -> None:
    account.install("bin", "ready; exec cat")
    first = started(account.ssh())
    first.close()
    started(first.ssh).close()
    assert account.logins == 3


def test_the_first_of_the_usual_folders_is_used(account: Account) -> None:
    account.install(".local/bin", "ready; exec cat")
    account.install("bin", "exit 9")
    started(account.ssh()).close()


def test_a_farline_that_is_nowhere_is_said_with_the_folders_and_what_to_do(
    account: Account,
) -> None:
    with pytest.raises(UsageError) as failed:
        started(account.ssh())
    assert failed.value.message == (
        "u@host: farline was not found on that host: it is neither in the PATH of the shell nor in "
        "~/.local/bin, ~/bin, ~/farline/.venv/bin; install it there (`make setup` in a clone of "
        "farline in ~/farline), give its path with --remote-farline PATH, or have a program for "
        "this copy sent with --bootstrap"
    )


@pytest.mark.parametrize("named", ["farline", "/opt/x/farline", "env A=b farline"])
def test_a_farline_that_its_user_names_is_not_looked_for(account: Account, named: str) -> None:
    account.install(".local/bin", "ready; exec cat")
    with pytest.raises(UsageError, match=f"u@host: {named} was not found on that host; install"):
        started(replace(account.ssh(), remote_farline=named))
    assert account.logins == 1


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("echo 'ImportError: no _native' >&2; exit 1", ProtocolError, "1: ImportError"),
        ("echo 'farline: No such option: --mark' >&2; exit 1", VersionError, "too old"),
        ("kill -9 $$", ProtocolError, "ended with 137"),
        ("echo farline found: nowhere; exit 3", ProtocolError, "ended with 3"),
        ("exec /no/such/python", UsageError, "bin/farline cannot be run on that host: "),
    ],
)
def test_what_a_farline_fails_with_that_was_looked_for_is_named(
    account: Account, script: str, kind: type[FarlineError], said: str
) -> None:
    account.install("bin", script)
    with pytest.raises(kind) as failed:
        started(account.ssh('sh -c "$last; exit \\$?"'))
    assert said in failed.value.message and failed.value.message.startswith("u@host: ")


@pytest.mark.parametrize(
    ("shell", "kind", "said"),
    [
        ("sh -c 'exec $*' sh $last", UsageError, "does not run the search of other folders either"),
        ("sh -c 'echo sh: not found >&2; exit 127'", UsageError, "on that host: sh: not found)"),
        (
            "sh -c '[ -e once ] && echo Permission denied >&2 && exit 255; exit 127'",
            AuthError, "ssh u@host: Permission denied",
        ),
    ],
)  # fmt: skip
def test_a_search_that_does_not_run_is_said(
    account: Account, shell: str, kind: type[FarlineError], said: str
) -> None:
    account.install("bin", "ready; exec cat")
    ssh = account.ssh(f"sh -c 'cd {account.home}; \"$@\"; c=$?; touch once; exit $c' sh {shell}")
    with pytest.raises(kind) as failed:
        started(ssh)
    assert said in failed.value.message and account.logins == 2


def test_a_search_is_waited_for_no_longer_than_the_limit(account: Account) -> None:
    account.install("bin", "exec sleep 60")
    with pytest.raises(TimeoutFailure, match="u@host: farline did not start on that host within"):
        started(replace(account.ssh(), start_s=2.0))
    assert account.logins == 2


def test_without_an_ssh_it_says_what_to_do() -> None:
    with pytest.raises(SystemFailure, match="install an ssh client"):
        started(SshCommand(("/no/such/ssh",)))


def test_whoever_does_not_want_to_wait_need_not(fake: Fake) -> None:
    began = time.monotonic()
    with pytest.raises(InterruptedRun):
        started(fake("exec cat >/dev/null"), should_stop=lambda: Stop.GRACEFULLY)
    assert time.monotonic() - began < 10


def test_a_shell_that_prints_without_an_end_is_refused(fake: Fake) -> None:
    with pytest.raises(ProtocolError, match="u@host: the remote shell printed more than 64 MiB"):
        started(fake("exec tr '\\0' x </dev/zero"))


NOISES = {
    "a window's title": r"printf '\033]0;dtn1\007'",
    "a prompt": "printf 'hello: '",
    "an empty object": "printf '{}'; echo; echo '{}'",
    "an object of somebody else's": """echo '{"event": "hello"}'; printf '{"event": "ready"}'""",
    "a ready line without the mark": f"echo '{json.dumps(READY)}'",
    "an echo of the command": """echo "$last"; printf '%s' "$last" """,
    "3 MB without a newline": "head -c 3000000 /dev/zero | tr '\\0' x",
    "3 MB of lines": "yes 'message of the day' | head -c 3000000",
    "bytes of every value": "head -c 100000 /dev/urandom",
    "zero bytes": "head -c 70000 /dev/zero",
    "the beginning of a mark": "printf 'farline-'; printf 'farline-0123'; echo farline-:",
    "carriage returns": r"printf 'a\r\nb\r'",
    "complaints": "echo 'stty: standard input: Inappropriate ioctl for device' >&2",
    "a nested object": "head -c 200000 /dev/zero | tr '\\0' '['; echo",
    "text on both": "head -c 300000 /dev/zero | tr '\\0' 'x\\n' >&2; printf x",
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_whatever_the_shell_prints_before_it_farline_is_found(fake: Fake, noise: str) -> None:
    server = started(fake(f"{noise}\nready\ncat"))
    try:
        assert server.ready.port == 40000
    finally:
        server.close()


def test_what_is_printed_behind_the_ready_line_holds_nobody_up(fake: Fake, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    script = f"ready; head -c 3000000 /dev/zero; echo; cat; touch {ended}"
    server = started(fake(script))
    server.close()
    assert ended.exists()


def test_text_between_the_lines_of_an_order_is_skipped(fake: Fake) -> None:
    script = """printf 'bash: '; echo "$mark"'{"event": 1}'; printf 'a job has ended: '
        echo "$mark"'{"event": 2}'; echo '{"event": 3}'; exit 3"""
    command = RemoteCommand(fake(script), "h", ["copy", "--order"])
    try:
        assert command.line(30) == {"event": 1}
        assert command.line(30) == {"event": 2}
        with pytest.raises(ProtocolError, match="ended with 3"):
            command.line(30)
    finally:
        command.close()


@pytest.mark.parametrize("line", ["no JSON", "[]", "[" * 100_000, '{"a": NaN}', "", '{"a": 1'])
def test_a_marked_line_that_makes_no_sense_is_said_so(fake: Fake, line: str) -> None:
    command = RemoteCommand(fake("printf '%s' \"$mark\"; cat; echo"), "h", ["copy"])
    try:
        command._process.send(line.encode())
        command.end_input()
        with pytest.raises(ProtocolError, match="h: farline on that host sent no JSON"):
            command.line(30)
    finally:
        command.close()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (r"printf '\033]0;dtn\007\033[31mhello: '; exec sleep 60", "shell printed: hello:;"),
        ("exec sleep 60", "neither ssh nor the remote shell printed anything;"),
        ("printf '\\000\\001'; exec sleep 60", "printed anything that can be shown;"),
        ("echo 'Password for u:' >&2; exec sleep 60", "ssh printed: Password for u:;"),
        (f"echo '{json.dumps(READY)}'; exec sleep 60", "let the forced command"),
        ("trap '' TERM; read x; while :; do sleep 1; done", "--start-timeout"),
    ],
)  # fmt: skip
def test_a_farline_that_does_not_start_is_waited_for_no_longer_than_the_limit(
    fake: Fake, script: str, said: str
) -> None:
    with pytest.raises(TimeoutFailure) as failed:
        started(fake(script, 0.3))
    message = failed.value.message
    assert message.startswith("u@host: farline did not start on that host within 0.3 s: ")
    assert said in message and message.isprintable() and "v1.YQ" not in message


def test_a_long_start_is_told_of_once(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farline.tools.ssh.NOTICE_S", 0.0)
    told: list[Event] = []
    with pytest.raises(TimeoutFailure):
        started(fake("exec sleep 60", 0.3), "dtn", told=told)
    assert told == [Notice(NoticeKind.WAITING, "waiting for farline to start on dtn")]


def test_a_connect_timeout_of_ssh_is_waited_for(fake: Fake) -> None:
    assert fake("echo connecttimeout 90", None).start_limit_s("host") == 150.0
    assert fake("echo connecttimeout none", None).start_limit_s("host") == 60.0
    assert fake("echo connecttimeout 90", 5.0).start_limit_s("host") == 5.0


def test_a_program_left_behind_with_the_pipes_open_holds_nobody_up(fake: Fake) -> None:
    # As an ssh that has become the master of a shared connection does.
    script = "echo 'u@host: Permission denied (publickey).' >&2; sleep 20 & exit 255"
    began = time.monotonic()
    with pytest.raises(AuthError, match="Permission denied"):
        started(fake(script))
    assert time.monotonic() - began < 15


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
    tunnel = Tunnel(fake(script), "u@host", 22)
    finished(tunnel.start(never_stop))
    try:
        assert tunnel.is_alive
    finally:
        tunnel.close()
