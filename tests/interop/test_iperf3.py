"""iperf3's own client against our server of its protocol: every option that reaches the server."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import _iperf3_sets as sets
from farline.tools.native import Iperf3Server

LOOPBACK = "127.0.0.1"
PROGRAM = sets.client()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="iperf3 is missing: apt-get install iperf3")


class Serving:
    """A server and what it told of each client's port."""

    def __init__(self, **config: Any) -> None:
        config = {
            "listen": [LOOPBACK],
            "port": 0,
            "max_sessions": 64,
            "max_sessions_per_address": 64,
            **config,
        }
        self.server = Iperf3Server(config)  # type: ignore[arg-type]
        self.port = int(self.server.addresses()[0].rpartition(":")[2])
        self._events: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        kind = ""
        while kind != "stopped":
            if (event := self.server.poll(0.2)) is None:
                continue
            kind = event[0]
            with self._changed:
                self._events.append(event)
                self._changed.notify_all()

    def event(self, kind: str, port: int | None = None) -> dict[str, Any]:
        """The first event of the kind that concerns a client's port; waits for it."""

        def found() -> dict[str, Any] | None:
            for word, document in self._events:
                if word == kind and (port is None or document["peer"].endswith(f":{port}")):
                    return document
            return None

        with self._changed:
            assert self._changed.wait_for(lambda: found() is not None, timeout=15), self._events
            event = found()
        assert event is not None
        return event

    def close(self) -> None:
        self.server.stop()
        self.server.join()
        self._thread.join()


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    one = Serving(limits={})
    yield one
    one.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def run(port: int, options: str, host: str = LOOPBACK) -> dict[str, Any]:
    assert PROGRAM is not None
    return sets.run(PROGRAM, host, port, sets.words(options, 1, free_port()))


@pytest.mark.parametrize("name", sorted(sets.SETS))
def test_a_client_and_the_server_agree_on_what_was_moved(name: str) -> None:
    serving = Serving(limits={})
    try:
        document = run(serving.port, sets.SETS[name])
        ended = serving.event("session_ended")
    finally:
        serving.close()
    assert ended["status"] == "complete" and ended["error"] is None, ended
    sums = sets.totals(document)
    assert sums and all(one["bytes"] > 0 for one in sums), sums
    agree(name, document, ended)


def agree(name: str, document: dict[str, Any], ended: dict[str, Any]) -> None:
    """What the client prints of the server's end is what the server tells its owner."""
    sums, test = sets.totals(document), document["start"]["test_start"]
    if "omit" in name:
        assert ended["bytes_received"] + ended["bytes_sent"] > 0
    elif test["reverse"]:
        assert ended["bytes_sent"] == sums[0]["bytes"]
    else:
        assert ended["bytes_received"] == sums[1]["bytes"]
        assert len(sums) < 3 or ended["bytes_sent"] == sums[2]["bytes"]


@pytest.mark.parametrize("options", ["-n 20M", "-k 100", "-n 20M -P 3", "-l 1K -n 2M", "-Z -n 20M"])
def test_all_that_was_sent_has_been_received(options: str, serving: Serving) -> None:
    sent, received = sets.totals(run(serving.port, options))
    assert sent["bytes"] == received["bytes"]


@pytest.mark.parametrize("options", ["-n 10M -R", "-k 80 -R", "-n 10M -R -P 2", "-n 10M --bidir"])
def test_a_server_sends_what_was_asked_for_and_no_more(options: str, serving: Serving) -> None:
    """Clients of 3.20 and later end such a test with the interval in which they have it all.

    Older ones end it in both directions as soon as one of them has its bytes, and count each read
    as a block: iperf3's own server has sent less by then, too.
    """
    sums = totals_of_way_back(run(serving.port, options))
    least = 10 << 20 if options.startswith("-n") and "-R" in options else 1
    assert least <= sums <= (10 << 20) + 2 * (128 << 10)


def totals_of_way_back(document: dict[str, Any]) -> int:
    end = document["end"]
    return int((end.get("sum_sent_bidir_reverse") or end["sum_sent"])["bytes"])


def test_datagrams_are_counted_lost_and_late_as_iperf3_does(serving: Serving) -> None:
    document = run(serving.port, "-u -b 20M -n 2M")
    total = document["end"]["sum"]
    assert total["packets"] > 0 and 0 <= total["lost_percent"] < 100
    assert 0 <= total["jitter_ms"] < 1000


def test_text_of_the_server_comes_with_its_rows(serving: Serving) -> None:
    document = run(serving.port, "--get-server-output -t 1")
    text = document["server_output_text"]
    assert "Accepted connection from 127.0.0.1" in text
    assert text.rstrip().endswith("receiver")
    # What a receiver does not have, no heading promises.
    assert "Retr" not in text


def test_text_of_the_server_tells_directions_apart_and_adds_streams_up(serving: Serving) -> None:
    text = run(serving.port, "--get-server-output --bidir -P 2 -t 1")["server_output_text"]
    rows = [line.split("  ")[0].replace(" ", "") for line in text.splitlines() if "/sec" in line]
    assert "[SUM][RX-S]" in rows and "[SUM][TX-S]" in rows
    assert "[ID][Role]" in text.replace(" ", "")


def test_people_see_what_they_are_used_to(serving: Serving) -> None:
    assert PROGRAM is not None
    done = subprocess.run(
        [PROGRAM.path, "-c", LOOPBACK, "-p", str(serving.port), "-n", "5M", "-V"],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "receiver" in done.stdout and done.stdout.rstrip().endswith("iperf Done.")


def test_several_clients_are_served_at_once(serving: Serving) -> None:
    commands = [
        "-t 1 -b 20M",
        "-t 1 -b 20M -R",
        "-u -b 5M -t 1",
        "-u -b 5M -t 1 -R",
        "-u -b 5M -t 1 -P 2",
    ]
    began = time.monotonic()
    with ThreadPoolExecutor(len(commands)) as pool:
        documents = list(pool.map(lambda options: run(serving.port, options), commands))
    assert time.monotonic() - began < 4 * len(commands)
    spans = [document["start"]["timestamp"]["timesecs"] for document in documents]
    assert max(spans) - min(spans) <= 2, "they ran side by side"


def refused(port: int, options: str) -> str:
    assert PROGRAM is not None
    done = subprocess.run(
        [PROGRAM.path, "-c", LOOPBACK, "-p", str(port), "-J", *options.split()],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    return str(json.loads(done.stdout)["error"])


def test_more_than_the_server_allows_is_refused_in_iperf3s_words() -> None:
    limits = {"rate_bps": 100_000_000, "duration_s": 2.0, "total_bytes": 50_000_000}
    serving = Serving(limits=limits, max_streams=2, max_sessions_per_address=1)
    try:
        assert "bandwidth" in refused(serving.port, "-b 200M -t 1")
        assert "duration" in refused(serving.port, "-t 9")
        assert "parallel streams" in refused(serving.port, "-P 3 -t 1")
        document = run(serving.port, "-t 1")
        assert document["end"]["sum_received"]["bits_per_second"] < 130_000_000
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, serving.port, "-t 2 -b 1M")
            serving.event("session_started")
            time.sleep(0.5)
            assert "busy" in refused(serving.port, "-t 1")
            assert running.result()["end"]
        kinds = {serving.event("refused")["error"]["kind"]}
        assert kinds <= {"limit", "busy"}
    finally:
        serving.close()


def test_silent_and_strange_connections_keep_nobody_out(serving: Serving) -> None:
    silent = [socket.create_connection((LOOPBACK, serving.port)) for _ in range(40)]
    strange = socket.create_connection((LOOPBACK, serving.port))
    strange.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
    half = socket.create_connection((LOOPBACK, serving.port))
    half.sendall(b"a" * 36 + b"\0" + b"\0\0\xff\xff")
    try:
        assert run(serving.port, "-n 1M")["end"]
        assert strange.recv(1) == b""
    finally:
        for one in [*silent, strange, half]:
            one.close()


def test_a_client_that_is_killed_leaves_its_place(serving: Serving) -> None:
    assert PROGRAM is not None
    one = Serving(limits={}, max_sessions=1)
    try:
        client = subprocess.Popen(
            [PROGRAM.path, "-c", LOOPBACK, "-p", str(one.port), "-t", "30", "-b", "1M"],
            stdout=subprocess.DEVNULL,
        )
        one.event("session_started")
        client.kill()
        client.wait()
        assert one.event("session_ended")["status"] == "failed"
        assert run(one.port, "-n 1M")["end"]
    finally:
        one.close()


def test_a_server_that_stops_tells_its_clients() -> None:
    assert PROGRAM is not None
    one = Serving(limits={})
    client = subprocess.Popen(
        [PROGRAM.path, "-c", LOOPBACK, "-p", str(one.port), "-t", "30", "-b", "1M"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    one.event("session_started")
    one.close()
    said, _ = client.communicate(timeout=10)
    assert "the server has terminated" in said


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key, its public half and a file of one user."""
    folder = tmp_path_factory.mktemp("keys")
    make = [
        "ssh-keygen",
        "-q",
        "-t",
        "rsa",
        "-b",
        "2048",
        "-m",
        "PEM",
        "-N",
        "",
        "-f",
        str(folder / "key"),
    ]
    subprocess.run(make, check=True, timeout=60)
    public = ["ssh-keygen", "-e", "-m", "PKCS8", "-f", str(folder / "key")]
    text = subprocess.run(public, check=True, capture_output=True, timeout=60).stdout
    (folder / "public.pem").write_bytes(text)
    secret = hashlib.sha256(b"{mario}rossi").hexdigest()
    (folder / "users").write_text(f"# name,hash\nmario,{secret}\n")
    return folder


@pytest.mark.parametrize(
    ("user", "password", "is_let_in"),
    [
        ("mario", "rossi", True),
        ("mario", "verdi", False),
        ("luigi", "rossi", False),
        (None, "", False),
    ],
)
def test_users_are_known_by_their_password(
    user: str | None, password: str, is_let_in: bool, keys: Path
) -> None:
    assert PROGRAM is not None
    before_oaep = tuple(int(part) for part in PROGRAM.version.split(".")[:2]) < (3, 17)
    one = Serving(
        limits={},
        private_key=str(keys / "key"),
        users=str(keys / "users"),
        pkcs1_padding=before_oaep,
    )
    who = ["--username", user, "--rsa-public-key-path", str(keys / "public.pem")] if user else []
    try:
        done = subprocess.run(
            [PROGRAM.path, "-c", LOOPBACK, "-p", str(one.port), "-J", "-n", "1M", *who],
            capture_output=True, text=True, timeout=30,
            env={**os.environ, "IPERF3_PASSWORD": password},
        )  # fmt: skip
        document = json.loads(done.stdout)
        assert ("error" not in document) == is_let_in, document.get("error")
        if is_let_in:
            assert one.event("session_started")["ticket"] == user
        else:
            assert one.event("refused")["error"]["kind"] == "auth"
            assert "authorization failed" in document["error"]
    finally:
        one.close()
