"""`farline copy` over a real OpenSSH: a server of its own on a port of this host."""

from __future__ import annotations

import getpass
import json
import secrets
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farline.tools.usual_folders import FOLDERS
from tests.support.serving import FARLINE, farline
from tests.support.trees import make_tree, shape

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
pytestmark = pytest.mark.skipif(
    not (Path(SSHD).exists() and shutil.which("ssh-keygen")),
    reason="no OpenSSH server: apt install openssh-server",
)


def make_key(path: Path) -> None:
    """A pair of keys without a passphrase, at `path` and beside it."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)


@dataclass
class Sshd:
    """A running sshd, and the options by which `farline copy` gets in."""

    port: int
    folder: Path
    user: str

    @property
    def options(self) -> list[str]:
        """Options of `farline copy` that lead there."""
        return [
            "-P", str(self.port), "-i", str(self.folder / "user"),
            "-o", f"UserKnownHostsFile={self.folder}/known", "-o", "BatchMode=yes",
            "-F", "/dev/null", "--remote-farline", f"{self.environment} {shlex.join(FARLINE)}",
        ]  # fmt: skip

    def forced(self, command: str) -> list[str]:
        """The same where sshd runs `command` in the place of the user's shell."""
        name = self.folder / f"user-{secrets.token_hex(4)}"
        make_key(name)
        quoted = command.replace('"', '\\"')
        with (self.folder / "user.pub").open("a") as file:
            file.write(f'command="{quoted}" {Path(f"{name}.pub").read_text()}')
        options = [
            str(name) if word == str(self.folder / "user") else word for word in self.options
        ]
        return [*options, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none"]

    @property
    def environment(self) -> str:
        """sshd gives its sessions none of ours: what farline remembers there stays here too."""
        return f"env XDG_STATE_HOME={self.folder}/state XDG_CONFIG_HOME={self.folder}/config"

    @property
    def host(self) -> str:
        """As it is named on the command line."""
        return f"{self.user}@127.0.0.1"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("sshd")
    folder.chmod(0o700)
    for name in ("host", "user"):
        make_key(folder / name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPidFile none\n"
        "PasswordAuthentication no\nPermitRootLogin yes\n"
    )
    host_key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}")
    Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log)
        try:
            _wait_for(port, process)
            yield Sshd(port, folder, getpass.getuser())
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < until, "sshd does not listen"
            time.sleep(0.02)


def test_a_tree_goes_there_and_comes_back(tmp_path: Path, sshd: Sshd) -> None:
    tree = make_tree(tmp_path / "tree")
    up = farline(tmp_path, "copy", f"{tree}/", f"{sshd.host}:{tmp_path}/up", *sshd.options)
    assert up.returncode == 0, up.stderr
    assert shape(tmp_path / "up") == shape(tree)
    back = [f"{sshd.host}:{tmp_path}/up/", str(tmp_path / "back")]
    done = farline(tmp_path, "copy", *back, *sshd.options, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shape(tmp_path / "back") == shape(tree)


def test_names_that_a_shell_would_read_are_names(tmp_path: Path, sshd: Sshd) -> None:
    (tmp_path / "$(touch owned) `x`; 'q\" *").write_text("x")
    there = f"{sshd.host}:{tmp_path}/to $HOME; *"
    source = str(tmp_path / "$(touch owned) `x`; 'q\" *")
    done = farline(tmp_path, "copy", source, there, *sshd.options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "to $HOME; *").read_text() == "x"


def test_the_data_go_through_ssh_where_nothing_else_gets_by(tmp_path: Path, sshd: Sshd) -> None:
    tree = make_tree(tmp_path / "tree")
    words = ["copy", f"{tree}/", f"{sshd.host}:{tmp_path}/up", "--tunnel", "--json"]
    done = farline(tmp_path, *words, *sshd.options)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)
    addresses = [one["granted"]["remote"] for one in json.loads(done.stdout)["streams"]]
    assert all(address.startswith("127.0.0.1:") for address in addresses)


def test_a_host_that_only_ssh_reaches_connects_back(tmp_path: Path, sshd: Sshd) -> None:
    tree = make_tree(tmp_path / "tree")
    ends = [f"{sshd.host}:{tree}/", str(tmp_path / "down")]
    done = farline(tmp_path, "copy", *ends, "--connect-back", "0", *sshd.options)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "down") == shape(tree)


def test_between_two_hosts_by_ssh(tmp_path: Path, sshd: Sshd) -> None:
    tree = make_tree(tmp_path / "tree")
    ends = [f"{sshd.host}:{tree}/", f"{sshd.user}@localhost:{tmp_path}/up"]
    known = (sshd.folder / "known").read_text()
    (sshd.folder / "known").write_text(known + known.replace("127.0.0.1", "localhost"))
    done = farline(tmp_path, "copy", *ends, *sshd.options)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)


def test_a_configuration_of_ssh_for_people_does_not_matter(tmp_path: Path, sshd: Sshd) -> None:
    tree, config = make_tree(tmp_path / "tree"), tmp_path / "ssh-config"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config.write_text(
            "Host *\n  RemoteCommand exec tmux attach\n  RequestTTY force\n"
            f"  LocalForward {taken.getsockname()[1]} 127.0.0.1:1\n  ExitOnForwardFailure yes\n"
        )
        options = [str(config) if word == "/dev/null" else word for word in sshd.options]
        done = farline(tmp_path, "copy", f"{tree}/", f"{sshd.host}:{tmp_path}/up", *options)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)


def test_who_is_not_let_in_is_told_by_ssh(tmp_path: Path, sshd: Sshd) -> None:
    other = tmp_path / "other"
    make_key(other)
    options = [str(other) if word.endswith("/user") else word for word in sshd.options]
    (tmp_path / "a").write_text("x")
    done = farline(
        tmp_path, "copy", str(tmp_path / "a"), f"{sshd.host}:{tmp_path}/b", *options,
        "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
    )  # fmt: skip
    assert done.returncode == 4 and "Permission denied" in done.stderr


def test_a_farline_that_is_not_there_is_said_so(tmp_path: Path, sshd: Sshd) -> None:
    (tmp_path / "a").write_text("x")
    options = [*sshd.options[:-1], "/no/such/farline"]
    done = farline(tmp_path, "copy", str(tmp_path / "a"), f"{sshd.host}:/tmp/b", *options)
    assert done.returncode == 1 and "--remote-farline" in done.stderr


@dataclass
class Account:
    """An account whose shell has no farline in its PATH."""

    sshd: Sshd
    home: Path

    def install(self, folder: str) -> None:
        """Puts a farline there."""
        path = self.home / folder / "farline"
        path.parent.mkdir(parents=True)
        path.write_text(f'#!/bin/sh\nexec {self.sshd.environment} {shlex.join(FARLINE)} "$@"\n')
        path.chmod(0o700)

    def options(self, shell: str) -> list[str]:
        """Options of `farline copy` that lead to that shell, without the path of farline."""
        home = shlex.quote(str(self.home))
        options = self.sshd.forced(f"export HOME={home} PATH=/usr/bin:/bin; {shell}")
        at = options.index("--remote-farline")
        return [*options[:at], *options[at + 2 :]]


@pytest.fixture
def account(tmp_path: Path, sshd: Sshd) -> Account:
    (tmp_path / "home of u").mkdir()
    return Account(sshd, tmp_path / "home of u")


ASKED = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'
NOISES = {
    "a window's title": rf"printf '\033]0;dtn1\007'; {ASKED}",
    "a prompt": f"printf 'hello: '; {ASKED}",
    "objects": f"echo '{{}}'; echo '{{\"event\": \"hello\"}}'; printf '{{}}'; {ASKED}",
    "an echo of the command": f'printf "%s" "$SSH_ORIGINAL_COMMAND"; {ASKED}',
    "3 MB": f"head -c 3000000 /dev/zero; {ASKED}",
    "text between and behind": f"(for i in $(seq 200); do echo noise; sleep 0.01; done) & {ASKED}",
    "a file that reads": f"timeout 1 head -n 1 >/dev/null; {ASKED}",
}


@pytest.mark.parametrize("command", NOISES.values(), ids=NOISES)
def test_what_the_shell_there_prints_does_not_matter(
    tmp_path: Path, sshd: Sshd, command: str
) -> None:
    (tmp_path / "a").write_text("x")
    ends = [str(tmp_path / "a"), f"{sshd.host}:{tmp_path}/b"]
    done = farline(tmp_path, "copy", *ends, *sshd.forced(command))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b").read_text() == "x"


SHELLS = {
    "bash -x": 'exec bash -x -c "$SSH_ORIGINAL_COMMAND"',
    "bash -v -l": 'exec bash -v -l -c "$SSH_ORIGINAL_COMMAND"',
    "tcsh": 'exec tcsh -c "$SSH_ORIGINAL_COMMAND"',
    "tcsh -v -x": 'exec tcsh -v -x -c "$SSH_ORIGINAL_COMMAND"',
    "fish": 'exec fish -c "$SSH_ORIGINAL_COMMAND"',
    "a terminal": 'exec script -q -c "$SSH_ORIGINAL_COMMAND" /dev/null',
}


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_any_shell_starts_farline(tmp_path: Path, sshd: Sshd, shell: str) -> None:
    if not shutil.which(shell.split()[1]):
        pytest.skip(f"no {shell.split()[1]}")
    (tmp_path / "a").write_text("x")
    ends = [f"{sshd.host}:{tmp_path}/a", str(tmp_path / "b")]
    done = farline(tmp_path, "copy", *ends, *sshd.forced(shell))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b").read_text() == "x"


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_any_shell_finds_a_farline_outside_the_path(
    tmp_path: Path, account: Account, shell: str
) -> None:
    if not shutil.which(shell.split()[1]):
        pytest.skip(f"no {shell.split()[1]}")
    account.install(".local/bin")
    (tmp_path / "a").write_text("x")
    ends = [f"{account.sshd.host}:{tmp_path}/a", str(tmp_path / "it's $here;")]
    done = farline(tmp_path, "copy", *ends, *account.options(shell))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "it's $here;").read_text() == "x"


def test_a_farline_outside_the_path_is_found_for_both_hosts_of_a_copy(
    tmp_path: Path, account: Account
) -> None:
    account.install("farline/.venv/bin")
    tree = make_tree(tmp_path / "tree")
    host = account.sshd.host
    ends = [f"{host}:{tree}/", f"{host}:{tmp_path}/up"]
    done = farline(tmp_path, "copy", *ends, *account.options(ASKED))
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)
    assert f"farline is not in the PATH on {host}: ssh logs in again" in done.stderr


@pytest.mark.parametrize("shell", [ASKED, SHELLS["a terminal"], "exec $SSH_ORIGINAL_COMMAND"])
def test_a_farline_that_is_nowhere_is_said_with_what_to_do(
    tmp_path: Path, account: Account, shell: str
) -> None:
    installed = [path for path in FOLDERS if path[0] == "/" and Path(path, "farline").exists()]
    if installed or shutil.which("farline", path="/usr/bin:/bin"):
        pytest.skip("farline is installed on this machine for all users")
    (tmp_path / "a").write_text("x")
    host = account.sshd.host
    done = farline(
        tmp_path, "copy", str(tmp_path / "a"), f"{host}:{tmp_path}/b", *account.options(shell)
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and not (tmp_path / "b").exists()
    assert f"{host}: farline was not found on that host: it is n" in last
    assert "`make setup`" in last and "--remote-farline PATH" in last
    assert ("~/.local/bin, ~/bin" in last) == ('"$SSH' in shell)


def test_a_forced_command_that_is_farline_itself_serves(tmp_path: Path, sshd: Sshd) -> None:
    (tmp_path / "a").write_text("x")
    command = f"exec {sshd.environment} {shlex.join(FARLINE)} serve --copy-session read"
    ends = [f"{sshd.host}:{tmp_path}/a", str(tmp_path / "b")]
    done = farline(tmp_path, "copy", *ends, *sshd.forced(command))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b").read_text() == "x"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("printf 'hello: '; exec cat >/dev/null", 30, "the remote shell printed: hello:; check"),
        ("exec cat >/dev/null", 30, "neither ssh nor the remote shell printed anything; check"),
        ("echo not for you; exit 1", 7, "farline on that host ended with 1: not for you"),
        ("exec rbash -c /opt/x/farline", 1, "cannot be run on that host"),
        ("exec tcsh -c farline-of-nobody", 1, "--remote-farline"),
        ("exec fish -c farline-of-nobody", 1, "--remote-farline"),
        ("kill -9 $$", 5, "no reason given"),
        ("echo 'Traceback:' >&2; echo 'ImportError: x' >&2; exit 1", 7, "1: ImportError: x"),
    ],
)
def test_what_comes_instead_of_farline_is_named(
    tmp_path: Path, sshd: Sshd, command: str, code: int, said: str
) -> None:
    (tmp_path / "a").write_text("x")
    # What says nothing is waited for, as long as was said; the others may take their time to start.
    options = [*sshd.forced(command), "--start-timeout", "3s" if code == 30 else "30s"]
    if "farline" in command:
        options[options.index("--remote-farline") + 1] = command.split()[-1]
    done = farline(tmp_path, "copy", str(tmp_path / "a"), f"{sshd.host}:{tmp_path}/b", *options)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.strip().isprintable()


def test_between_two_hosts_whatever_their_shells_print(tmp_path: Path, sshd: Sshd) -> None:
    tree = make_tree(tmp_path / "tree")
    options = sshd.forced(f"printf '{{}}\\033]0;x\\007hello: '; head -n 0; {ASKED}")
    ends = [f"{sshd.host}:{tree}/", f"{sshd.user}@127.0.0.1:{tmp_path}/up"]
    done = farline(tmp_path, "copy", *ends, *options)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)


@pytest.fixture
def two_nodes(sshd: Sshd) -> str:
    """The host under two names, as nodes of one end."""
    key = (sshd.folder / "host.pub").read_text()
    with (sshd.folder / "known").open("a") as known:
        known.write(f"[localhost]:{sshd.port} {key}")
    return f"{sshd.user}@127.0.0.1,localhost%127.0.0.1"


@pytest.mark.parametrize("sources", ["this host", "two nodes"])
def test_several_nodes_over_ssh_make_one_copy(
    tmp_path: Path, sshd: Sshd, two_nodes: str, sources: str
) -> None:
    tree = make_tree(tmp_path / "tree")
    (tree / "large").write_bytes(secrets.token_bytes(50 << 20))
    source = f"{tree}/" if sources == "this host" else f"{two_nodes}:{tree}/"
    receipt = tmp_path / "receipt"
    words = ["--json", "--no-store", "-H", "--receipt", str(receipt), *sshd.options]
    done = farline(tmp_path, "copy", *words, source, f"{two_nodes}:{tmp_path}/up")
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "up") == shape(tree)
    record = json.loads(done.stdout)
    evidence = record["verdict"]["evidence"]
    for node in ("127.0.0.1", "localhost"):
        assert any(f"to {sshd.user}@{node}: " in line for line in evidence), evidence
    assert record["copy"]["failed"]["files"] == record["copy"]["present"]["files"] == 0
    again = farline(tmp_path, "copy", *words, source, f"{two_nodes}:{tmp_path}/up")
    assert again.returncode == 0, again.stderr
    second = json.loads(again.stdout)["copy"]
    assert second["copied"]["files"] == 0
    assert not list((tmp_path / "up").glob(".farline*"))


def test_a_node_that_cannot_be_reached_is_said_and_the_others_do_the_work(
    tmp_path: Path, sshd: Sshd
) -> None:
    tree = make_tree(tmp_path / "tree")
    nodes = f"{sshd.user}@127.0.0.1,nowhere.invalid"
    words = ["--no-store", *sshd.options]
    done = farline(tmp_path, "copy", *words, f"{tree}/", f"{nodes}:{tmp_path}/up")
    assert done.returncode == 0, done.stderr
    assert "nowhere.invalid is not used yet: " in done.stderr
    assert shape(tmp_path / "up") == shape(tree)
    nobody = f"{sshd.user}@nowhere.invalid,nobody.invalid"
    none = farline(tmp_path, "copy", *words, f"{tree}/", f"{nobody}:{tmp_path}/no")
    assert none.returncode not in (0, 1), none.stderr
    assert len(none.stderr.strip().splitlines()[-1]) < 200
