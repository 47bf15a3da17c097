"""`farline serve`: what it prints, whom it lets in, how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loopback.conftest import Start
from tests.support.serving import FARLINE, environment, farline, serving


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as server:
        server.process.send_signal(number)
        assert server.process.wait(20) == 0


@pytest.mark.parametrize("only", [(), ("--iperf3-only", "--iperf3", "0")])
def test_a_reload_without_a_log_file_leaves_it_as_it_was(
    tmp_path: Path, start: Start, only: tuple[str, ...]
) -> None:
    """systemd's `reload` sends it, and so does whatever rotates logs: nothing may end by it."""
    place = () if only else ("-p", "0")
    process = start(tmp_path, "serve", "-B", "127.0.0.1", *place, *only, "--json")
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    for _ in range(3):
        process.send_signal(signal.SIGUSR1)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    host, _, port = ready["addresses"][0].rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
    process.terminate()
    assert process.wait(20) == 0


def test_it_makes_no_second_key_for_tickets_whose_key_is_elsewhere(tmp_path: Path) -> None:
    state, keys = tmp_path / "state", tmp_path / "keys"
    folders = "--state-dir", str(state), "--keys", str(keys)
    assert farline(tmp_path, "ticket", "make", "localhost", *folders).returncode == 0
    words = "serve", "-B", "127.0.0.1", "-p", "0", "--state-dir", str(state)
    refused = farline(tmp_path, *words)
    assert refused.returncode == 1
    assert f"{state} has no ticket.key, but {state} has tickets" in refused.stderr
    assert "name the folder of the keys with --keys" in refused.stderr
    assert not (state / "ticket.key").exists()


def test_a_signal_in_the_middle_of_a_run_ends_both_ends(tmp_path: Path, start: Start) -> None:
    with serving(tmp_path) as server:
        client = start(tmp_path, "probe", server.ticket, "--json", "-t", "60", "--no-store")
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(2)
        assert server.stop() == 0
        out, _ = client.communicate(timeout=40)
        assert json.loads(out)["status"] in ("partial", "failed")
        assert client.returncode != 0


def test_its_lines_can_be_pasted(tmp_path: Path, start: Start) -> None:
    state = str(tmp_path / "state")
    process = start(tmp_path, "serve", "-B", "127.0.0.1", "-p", "0", "--state-dir", state)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    command = lines[3].partition(":  ")[2]
    assert command.startswith("farline probe 'farline://127.0.0.1:")
    ticket = command.split("'")[1]
    assert farline(tmp_path, "probe", ticket, "-t", "0.2", "--no-store").returncode == 0
    process.terminate()
    assert process.wait(20) == 0


@pytest.fixture
def opened() -> Iterator[socket.socket]:
    """A socket that somebody else opened."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


@contextmanager
def handed_down(home: Path, one: socket.socket, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`farline serve` as a service manager starts it that has opened a socket for it."""
    # The name of the process and the number of the descriptor are part of the contract.
    script = 'exec 3<&"$0"; export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
    number = one.fileno()
    command = ["bash", "-c", script, str(number), *FARLINE, "serve", *words]
    with subprocess.Popen(
        command, pass_fds=(number,), env=environment(home), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_it_listens_on_a_socket_that_was_opened_for_it(
    tmp_path: Path, opened: socket.socket
) -> None:
    at = f"127.0.0.1:{opened.getsockname()[1]}"
    with handed_down(tmp_path, opened, "--json", "--state-dir", str(tmp_path / "state")) as server:
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        assert ready["addresses"] == [at]
        assert (
            farline(tmp_path, "probe", ready["ticket"], "-t", "0.2", "--no-store").returncode == 0
        )
        server.terminate()
        assert server.wait(20) == 0
    # Whoever opened it still has it: the next server finds its clients waiting.
    socket.create_connection(opened.getsockname(), 5).close()


@pytest.mark.parametrize("words", [("-p", "0"), ("-B", "127.0.0.1"), ("--iperf3-only",)])
def test_where_to_listen_is_said_once(
    tmp_path: Path, opened: socket.socket, words: tuple[str, ...]
) -> None:
    with handed_down(tmp_path, opened, *words) as server:
        _, said = server.communicate(timeout=20)
    assert server.returncode == 1
    assert "the service manager has opened the sockets to listen on" in said


def test_what_is_no_socket_to_listen_on_is_one_line(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        handed_down(tmp_path, datagrams, "--state-dir", str(tmp_path / "state")) as server,
    ):
        _, said = server.communicate(timeout=20)
    assert server.returncode == 2
    assert said.count("\n") == 1
    why = "file descriptor 3 from the service manager: it is not a listening TCP socket"
    assert f"cannot listen on {why}" in said


def test_keys_may_have_a_folder_of_their_own(tmp_path: Path) -> None:
    """Made there at first; a server writes nothing there afterwards."""
    keys, folders = tmp_path / "keys", ["--keys", str(tmp_path / "keys")]
    made = farline(tmp_path, "ticket", "make", "127.0.0.1", *folders)
    assert made.returncode == 0, made.stderr
    assert {path.name for path in keys.iterdir()} == {"server.pem", "ticket.key"}
    made_at = {path.name: path.stat().st_mtime_ns for path in (keys, *keys.iterdir())}
    pin = made.stdout.strip().rpartition("?key=")[2]
    with serving(tmp_path, *folders) as server:
        assert server.ticket.endswith(pin)
        assert farline(tmp_path, "probe", server.ticket, "-t", "0.2", "--no-store").returncode == 0
        assert not list((tmp_path / "state").glob("*.key"))
        assert made_at == {path.name: path.stat().st_mtime_ns for path in (keys, *keys.iterdir())}
        shown = farline(tmp_path, "ticket", "show", server.ticket, *folders, "--json",
                        "--state-dir", str(tmp_path / "state"))  # fmt: skip
        assert json.loads(shown.stdout)["ticket"]["signed_here"]


def test_its_lines_for_files_can_be_pasted(tmp_path: Path, start: Start) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "file").write_text("x")
    state, root = str(tmp_path / "state"), str(tmp_path / "root")
    words = ["serve", "-B", "127.0.0.1", "-p", "0", "--state-dir", state]
    process = start(tmp_path, *words, "--write", root, "--read", root)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(6)]
    assert lines[4].startswith(f"to {root}:  farline copy FILES... 'farline://127.0.0.1:")
    there, back = (line.split("'")[1] for line in lines[4:])
    assert farline(tmp_path, "copy", str(tmp_path / "file"), there).returncode == 0
    assert (tmp_path / "root" / "file").read_text() == "x"
    source = back.replace("#FILE", "#file")
    assert farline(tmp_path, "copy", source, str(tmp_path / "again")).returncode == 0
    # A ticket made without the server, by its key.
    port = there.split("/")[2].rpartition(":")[2]
    words = ["ticket", "127.0.0.1", "-p", port, "--state-dir", state, "--read", root]
    ticket = farline(tmp_path, *words).stdout.strip()
    assert farline(tmp_path, "copy", f"{ticket}#file", str(tmp_path / "third")).returncode == 0
    both = farline(tmp_path, *words, "--write", root)
    assert both.returncode == 1 and "two tickets" in both.stderr
    process.terminate()
    assert process.wait(20) == 0


def test_anonymous_clients_get_in_only_if_they_may_and_within_limits(tmp_path: Path) -> None:
    with serving(tmp_path, "--anonymous", "--anonymous-rate", "100M") as server:
        done = farline(tmp_path, "probe", server.address, "--json", "-t", "1", "--no-store")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["summary"]["forward"]["total_bps"] < 120e6


def test_a_server_with_another_key_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with serving(tmp_path / "a", "--anonymous") as first:
        port = first.address.rpartition(":")[2]
        assert farline(tmp_path, "probe", first.address, "-t", "0.2", "--no-store").returncode == 0
        assert first.stop() == 0
    with serving(tmp_path / "b", "--anonymous", "-p", port) as second:
        refused = farline(tmp_path, "probe", second.address, "-t", "0.2", "--no-store")
        assert refused.returncode == 4
        assert f"farline trust --forget {second.address}" in refused.stderr
        assert farline(tmp_path, "trust", "--forget", second.address).returncode == 0
        assert farline(tmp_path, "probe", second.address, "-t", "0.2", "--no-store").returncode == 0


def test_one_off_ends_after_one_session(tmp_path: Path) -> None:
    with serving(tmp_path, "-1") as server:
        assert farline(tmp_path, "probe", server.ticket, "-t", "0.2", "--no-store").returncode == 0
        assert server.process.wait(20) == 0


def test_one_more_than_allowed_is_told_busy(tmp_path: Path, start: Start) -> None:
    with serving(tmp_path, "--max-sessions", "1") as server:
        first = start(tmp_path, "probe", server.ticket, "-t", "20", "--no-store")
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(2)
        second = farline(tmp_path, "probe", server.ticket, "-t", "0.2", "--json", "--no-store")
        assert (second.returncode, json.loads(second.stdout)["error"]["kind"]) == (5, "busy")


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        port = server.address.rpartition(":")[2]
        done = farline(
            tmp_path, "serve", "-B", "127.0.0.1", "-p", port, "--state-dir", str(tmp_path)
        )
        assert done.returncode == 2
        assert done.stderr.startswith("farline: ") and done.stderr.count("\n") == 1
