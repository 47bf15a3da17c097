"""What Prometheus is told of a server: counts, and no names."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SystemFailure, UsageError
from farline.tools.metrics import CONTENT_TYPE, Figures, MetricsServer

LINE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? \S+$')


def started(session: str = "a", transport: str = "tcp") -> dict[str, Any]:
    return {"session": session, "peer": "192.0.2.9:4711", "ticket": "secret-name",
            "transport": transport, "direction": "forward", "streams": 2}  # fmt: skip


def ended(session: str = "a", **more: Any) -> dict[str, Any]:
    event = {"session": session, "peer": "192.0.2.9:4711", "status": "complete", "error": None,
             "session_s": 2.0, "bytes_sent": 10, "bytes_received": 1000, "copy": None}  # fmt: skip
    return {**event, **more}


def tally(files: int, size_bytes: int) -> dict[str, int]:
    return {"files": files, "bytes": size_bytes}


COPY = {"copied": tally(3, 900), "present": tally(1, 50), "failed": tally(2, 7)}


def told(figures: Figures) -> dict[str, float]:
    values = {}
    for line in figures.text().splitlines():
        if not line.startswith("#"):
            assert LINE.match(line), line
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    return values


def test_a_server_that_did_nothing_says_so() -> None:
    assert told(Figures()) == {
        "farline_sessions_active": 0, "farline_troubles_total": 0, "farline_events_lost_total": 0,
    }  # fmt: skip


def test_sessions_count_by_kind_and_end() -> None:
    figures = Figures()
    figures.take("session_started", started("a"))
    figures.take("session_started", started("b", "udt"))
    assert told(figures)["farline_sessions_active"] == 2
    figures.take("session_ended", ended("a", copy=COPY))
    figures.take("session_ended", ended("b", status="failed"))
    values = told(figures)
    assert values["farline_sessions_active"] == 0
    assert values['farline_sessions_total{kind="copy",status="complete",transport="tcp"}'] == 1
    assert values['farline_sessions_total{kind="profile",status="failed",transport="udt"}'] == 1
    assert values['farline_received_bytes_total{kind="copy"}'] == 1000
    assert values['farline_last_session_bits_per_second{kind="copy",way="received"}'] == 4000
    assert values['farline_files_total{outcome="copied"}'] == 3
    assert values['farline_files_total{outcome="failed"}'] == 2
    assert values['farline_file_bytes_total{outcome="present"}'] == 50


def test_refusals_count_by_their_reason() -> None:
    figures = Figures()
    for kind in ("busy", "busy", "auth"):
        figures.take("refused", {"peer": "x", "error": {"kind": kind, "message": "no"}})
    figures.take("trouble", {"error": {"kind": "system", "message": "no"}})
    figures.take("events_lost", {"count": 5})
    figures.take("stopped", {"sessions": 3})
    values = told(figures)
    assert values['farline_refusals_total{reason="busy"}'] == 2
    assert values['farline_refusals_total{reason="auth"}'] == 1
    assert values["farline_troubles_total"] == 1
    assert values["farline_events_lost_total"] == 5


def test_nobody_is_named() -> None:
    figures = Figures()
    figures.take("session_started", started())
    figures.take("session_ended", ended(copy=COPY))
    figures.take("refused", {"peer": "192.0.2.9:1", "error": {"kind": "auth", "message": "joe"}})
    for name in ("192.0.2.9", "secret-name", "joe"):
        assert name not in figures.text()


def test_an_end_whose_beginning_was_lost_counts() -> None:
    figures = Figures()
    figures.take("session_ended", ended("never-begun"))
    assert told(figures)["farline_sessions_active"] == 0
    assert any(name.startswith("farline_sessions_total") for name in told(figures))


@given(st.text())
def test_any_word_makes_one_line(word: str) -> None:
    figures = Figures()
    figures.take("refused", {"error": {"kind": word}})
    lines = [one for one in figures.text().split("\n") if one.startswith("farline_refusals_total{")]
    assert len(lines) == 1


def test_it_answers_over_http() -> None:
    with MetricsServer("127.0.0.1:0") as metrics:
        metrics.take("session_ended", ended(copy=COPY))
        with urllib.request.urlopen(f"http://{metrics.address}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert 'farline_files_total{outcome="copied"} 3' in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{metrics.address}/", timeout=10)
    with pytest.raises(OSError):
        socket.create_connection(tuple(metrics.address.split(":")), timeout=1)  # type: ignore[arg-type]


def test_a_reader_that_hangs_up_harms_nobody() -> None:
    with MetricsServer("127.0.0.1:0") as metrics:
        host, port = metrics.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as rude:
            rude.sendall(b"GET /metrics HTTP/1.0\r\n")
        with urllib.request.urlopen(f"http://{metrics.address}/metrics", timeout=20) as answer:
            assert answer.status == 200


def test_silent_readers_keep_nobody_out() -> None:
    with MetricsServer("127.0.0.1:0") as metrics, ExitStack() as silent:
        host, port = metrics.address.split(":")
        for number in range(60):
            source = (f"127.0.0.{2 + number % 2}", 0)
            silent.enter_context(socket.create_connection((host, int(port)), 10, source))
        # One after the other they would take two minutes.
        with urllib.request.urlopen(f"http://{metrics.address}/metrics", timeout=20) as answer:
            assert answer.status == 200


def test_refusals_that_were_summed_up_count_each() -> None:
    figures = Figures()
    figures.take("refused_many", {"connections": 7, "reasons": {"busy": 5, "timeout": 2}})
    values = told(figures)
    assert values['farline_refusals_total{reason="busy"}'] == 5
    assert values['farline_refusals_total{reason="timeout"}'] == 2


@pytest.mark.parametrize(
    "text", ["", "9470", ":9470", "host:", "host:x", "host:70000", "::1:9470", "a:-1"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write HOST:PORT"):
        MetricsServer(text)


def test_ipv6_has_brackets() -> None:
    with MetricsServer("[::1]:0") as metrics:
        assert metrics.address.startswith("[::1]:")


def test_a_port_that_is_taken_is_one_line() -> None:
    with MetricsServer("127.0.0.1:0") as metrics, pytest.raises(SystemFailure, match="--metrics"):
        MetricsServer(metrics.address)
