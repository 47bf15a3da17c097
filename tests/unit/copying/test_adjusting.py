"""Changes of a copy while it runs, with a session that answers as the engine does."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from farline.copying.adjusting import Adjusting, change_text, request_of
from farline.copying.control_socket import MOST_BYTES, ControlSocket, adjust
from farline.errors import FarlineError, ProtocolError, UsageError, from_failure
from farline.tools.events import Adjusted, Stages

RUN = "01K0000000000000000000000A"


class Session:
    """Takes wishes, and has the copy hear at once what came of them."""

    def __init__(self, adjusting: Adjusting, refused: str | None = None) -> None:
        """Allows anything, or nothing with this reason."""
        self.run_id = RUN
        self.wanted: list[Any] = []
        self._adjusting, self._refused = adjusting, refused
        adjusting.begun(self)

    def adjust(self, request: Any) -> None:
        """Answers."""
        self.wanted.append(request)
        names = {"streams": "streams", "concurrency": "concurrency", "total_rate_bps": "total-rate"}
        for name, knob in names.items():
            if name in request:
                change = {"at_us": 1, "knob": knob, "before": 2, "after": request[name] or None}
                told = {**change, "refused": self._refused} if self._refused else change
                self._adjusting.note(Adjusted(told))  # type: ignore[arg-type]


def test_a_change_waits_for_what_came_of_each_thing() -> None:
    adjusting = Adjusting()
    session = Session(adjusting)
    changes = adjusting.change(request_of(streams=8, rate_bps=0), 5.0)
    assert [change_text(one) for one in changes] == ["2 -> 8 streams", "2bit/s -> no limit"]
    assert session.wanted == [{"streams": 8, "total_rate_bps": 0}]


def test_a_refusal_says_why() -> None:
    adjusting = Adjusting()
    Session(adjusting, "the server allows up to 4")
    (change,) = adjusting.change(request_of(streams=8), 5.0)
    assert change_text(change) == "2 -> 8 streams: the server allows up to 4"
    assert adjusting.applied({"streams": 2}) == {"streams": 2}, "it is kept for no later session"


def test_what_is_in_force_and_what_is_wanted_between_sessions_holds_for_the_next() -> None:
    adjusting = Adjusting()
    Session(adjusting)
    adjusting.change(request_of(streams=5), 5.0)
    adjusting.ended()
    assert adjusting.change(request_of(concurrency=3, rate_bps=10), 5.0) == []
    spec = adjusting.applied({"streams": 1, "copy": {"cipher": "none"}})
    assert spec == {
        "streams": 5,
        "copy": {"cipher": "none", "concurrency": 3, "total_rate_bps": 10},
    }


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "nothing to change"),
        ({"streams": 0}, "streams: 0 is out of range; allowed: 1 to 256"),
        ({"streams": 257}, "allowed: 1 to 256"),
        ({"concurrency": 0}, "concurrency: 0 is out of range"),
        ({"rate_bps": -1}, "rate: -1 is out of range"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_allowed(given: Any, line: str) -> None:
    with pytest.raises(UsageError, match=line):
        request_of(**given)


def test_a_copy_that_cannot_be_changed_says_where_or_why() -> None:
    adjusting = Adjusting(most_streams=3)
    with pytest.raises(UsageError, match="there are ports for 3"):
        adjusting.want(request_of(streams=4))
    adjusting.elsewhere = "user@dtn"
    with pytest.raises(UsageError, match="run by user@dtn"):
        adjusting.want(request_of(streams=2))
    over = Adjusting()
    over.over()
    with pytest.raises(UsageError, match="the copy has ended"):
        over.want(request_of(streams=2))


def test_whoever_waits_hears_of_the_end_of_the_copy() -> None:
    adjusting = Adjusting()

    class Silent:
        run_id = RUN

        def adjust(self, _request: Any) -> None:
            threading.Timer(0.05, adjusting.over).start()

    adjusting.begun(Silent())
    with pytest.raises(UsageError, match="the copy ended"):
        adjusting.change(request_of(streams=4), 30.0)


def test_the_latest_stages_are_there_for_a_controller() -> None:
    adjusting = Adjusting()
    Session(adjusting)
    assert adjusting.stages is None
    adjusting.note(Stages({"at_us": 7, "streams": 2, "opening_streams": 0}))  # type: ignore[typeddict-item]
    assert adjusting.stages is not None and adjusting.stages["at_us"] == 7


@pytest.fixture
def listening(tmp_path: Path) -> Any:
    adjusting = Adjusting()
    Session(adjusting)
    control = ControlSocket(RUN, adjusting, tmp_path)
    yield control
    control.close()


def said(path: Path, line: bytes) -> Any:
    """The answer to a line that is no good."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.sendall(line)
        return json.loads(peer.makefile("rb").readline())


def test_a_copy_is_changed_by_its_name_its_end_or_as_the_last(
    listening: ControlSocket, tmp_path: Path
) -> None:
    for name in (RUN, RUN[-4:], RUN[:5], "last"):
        run_id, changes = adjust(name, request_of(streams=8), tmp_path)
        assert run_id == RUN and change_text(changes[0]) == "2 -> 8 streams"


def test_the_socket_is_its_owners_alone_and_goes_with_the_copy(
    listening: ControlSocket, tmp_path: Path
) -> None:
    assert stat.S_IMODE(listening.path.stat().st_mode) == 0o600
    listening.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="none of your copies is running"):
        adjust("last", request_of(streams=8), tmp_path)


def test_a_socket_that_a_killed_copy_left_is_recognised_and_removed(tmp_path: Path) -> None:
    path = tmp_path / f"{RUN}.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(UsageError, match="the copy has ended"):
        adjust(RUN, request_of(streams=8), tmp_path)
    assert not path.exists()


def test_an_unknown_run_and_a_name_that_fits_several_are_refused(
    listening: ControlSocket, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no running copy has this name"):
        adjust("01ZZ", request_of(streams=8), tmp_path)
    other = ControlSocket(f"{RUN[:-1]}B", Adjusting(), tmp_path)
    with pytest.raises(UsageError, match="2 running copies"):
        adjust(RUN[:8], request_of(streams=8), tmp_path)
    other.close()


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b"{}\n", b"[1]\n", b'{"schema": 2, "streams": 1}\n', b'{"schema": 1}\n',
        b'{"schema": 1, "streams": "8"}\n', b'{"schema": 1, "streams": true}\n',
        b'{"schema": 1, "streams": 999}\n', b'{"schema": 1, "delete": 1}\n', b"\xff\xfe\n",
        b"x" * (MOST_BYTES + 4096),
    ],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_answered_with_one_that_says_so(
    listening: ControlSocket, tmp_path: Path, line: bytes
) -> None:
    failure = said(listening.path, line)["error"]
    assert isinstance(from_failure(failure), UsageError | ProtocolError)
    assert adjust("last", request_of(streams=3), tmp_path)[0] == RUN, "it listens still"


def test_a_folder_with_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / ("long" * 40)
    adjusting = Adjusting()
    Session(adjusting)
    control = ControlSocket(RUN, adjusting, place)
    assert len(os.fsencode(control.path)) > 108
    assert adjust("last", request_of(concurrency=4), place)[1][0]["after"] == 4
    control.close()


def test_what_the_copy_refuses_as_a_whole_is_the_callers_error(tmp_path: Path) -> None:
    adjusting = Adjusting()
    Session(adjusting)
    control = ControlSocket(RUN, adjusting, tmp_path)
    adjusting.over()
    with pytest.raises(FarlineError, match="the copy has ended"):
        adjust(RUN, request_of(streams=2), tmp_path)
    control.close()
