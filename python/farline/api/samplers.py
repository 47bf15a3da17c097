"""Those who try settings on a path for `farline.tuning`: measurements, or pieces of a copy."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farline.api.knob_offers import own_offers
from farline.api.path_here import path_watch
from farline.campaign.probe import ProbeJob
from farline.campaign.settings import sampled_spec
from farline.copying import network_limits
from farline.copying.record_keeper import RecordKeeper
from farline.copying.request import CopyRequest
from farline.copying.session import DirectSessions
from farline.copying.source_survey import glance
from farline.copying.stream_choice import StreamChoice, stated_buffers
from farline.errors import InternalError, SystemFailure, TimeoutFailure, UsageError
from farline.models.stream_need import stream_need
from farline.store.paths.past_transfer import PathEnds, bare_host
from farline.tools import Stop
from farline.tools.events import Notice, NoticeKind, SessionBegun
from farline.tools.kernel_limits import own_buffers
from farline.tools.known_servers import KnownServers
from farline.tools.native import find_right, make_contact, parse_target
from farline.tuning.grids import STREAM_COUNTS
from farline.tuning.sampling import Surroundings, Taken, sample_of, spec_with
from farline.tuning.situation import Setting, Situation

if TYPE_CHECKING:
    from pathlib import Path

    from farline.copying.connector import Connector
    from farline.store import Store
    from farline.tools import SteppedTool, StopQuestion
    from farline.tools.events import Steps
    from farline.tools.native import Contact, Target

LABEL = "tune"
"""Runs that are samples have the name of their search under this label."""
CONNECT_S = 10.0
_MEASURED, _COPIED = "in measurements; files need SRC and DST", "in these copies"
ANNOUNCED = 16_384
"""Files that a copy announces ahead, if nobody says otherwise (`copy.pipeline`)."""


class ProbeSampler:
    """Tries settings by measurements: what is sent is thrown away at the other end."""

    is_own_data = False

    def __init__(self, target: str, spec: Mapping[str, Any], store: Store | None = None) -> None:
        """`spec` has what all samples have in common, and no number of streams.

        Raises:
            UsageError: when `target` is no target, or `spec` states streams.
        """
        if "streams" in spec:
            raise UsageError("streams: the search tries several numbers; leave it out")
        self._address = parse_target(target)
        self._target, self._spec, self._store = target, dict(spec), store
        self._name = new_name()

    @property
    def far(self) -> str:
        """The other host, as it is addressed."""
        return bare_host(self._address.host)

    @property
    def pushes(self) -> bool:
        """Whether this host sends."""
        return bool(self._spec.get("direction", "forward") == "forward")

    def look(self, should_stop: StopQuestion) -> Steps[Surroundings]:
        """Connects once for the round-trip time.

        Raises:
            FarlineError: when it does not come about.
        """
        yield from ()
        right = find_right(self._address, KnownServers())
        contact = make_contact(right, self._spec.get("ip_version") or "any", CONNECT_S)
        buffers, nic_bps = (
            stated_buffers(self._spec, own_buffers(), own_buffers()),
            _nic_bps(contact),
        )
        rate_bps = nic_bps if contact.rtt_s > NEAR_S else None
        need = stream_need(contact.rtt_s, *buffers, rate_bps, network_limits.own_cores())
        transport = self._spec.get("transport", "tcp")
        default = need.streams if transport == "tcp" else 1
        now = _situation(self.far, self.pushes, transport, contact)
        now = replace(
            now, modality="T", files=1, concurrency=1, pipelining=1, window_bytes=min(buffers)
        )
        offers = own_offers(self._spec, self.pushes)
        return Surroundings(now, Setting(default), _most(default, None), offers, _MEASURED)

    def sample(self, setting: Setting, seconds: float, should_stop: StopQuestion) -> Steps[Taken]:
        """One measurement, kept in the store.

        Raises:
            FarlineError: when it failed or moved nothing.
        """
        spec = sampled_spec(spec_with({**self._spec, "duration_s": round(seconds, 3)}, setting))
        return (
            yield from probed(self._target, spec, setting, self._store, self._name, should_stop)
        )

    def close(self) -> None:
        """Nothing was started."""


class CopySampler:
    """Tries settings by pieces of a copy: what moves stays, and need not move again."""

    is_own_data = True

    def __init__(self, request: CopyRequest, store: Store | None = None) -> None:
        """`request` is the copy, without a number of streams.

        Raises:
            UsageError: when neither end is on this host, streams are stated, or it is no copy.
        """
        from farline.copying.job import sessions_for

        request.check()
        if request.is_remote:
            raise UsageError(
                "tune: neither end is on this host; run it on one of the two, or measure with "
                "farline tune HOST there"
            )
        if "streams" in request.spec:
            raise UsageError("streams: the search tries several numbers; leave it out")
        sessions = sessions_for(request)
        assert isinstance(sessions, DirectSessions)  # of requests with an end here
        self._request, self._sessions = request, sessions
        self._store_path = None if store is None else store.path
        labels = {LABEL: new_name()}
        folder: Path | None = None if store is None else store.path
        self._keeper = RecordKeeper(folder, keeps=store is not None, labels=labels)
        self._target: Target | None = None

    @property
    def far(self) -> str:
        """The other host, as copies address it; known once it was looked at."""
        return bare_host(self._target.host) if self._target is not None else ""

    @property
    def pushes(self) -> bool:
        """Whether this host sends."""
        return self._sessions.pushes

    def look(self, should_stop: StopQuestion) -> Steps[Surroundings]:
        """Reaches the other end, and asks what a copy would take.

        Raises:
            FarlineError: when it does not come about.
        """
        sessions, document = self._sessions, self._request.document()
        self._target = yield from sessions.connector.open(should_stop)
        choice = StreamChoice(
            sessions.connector, sessions.sources, sessions.pushes, sessions.on_loopback,
            sessions.most_streams,
        )  # fmt: skip
        contact = choice.contact(document, self._target)
        spec = dict(document)
        choice.settle(spec, contact)
        copy = document.get("copy") or {}
        found = glance(sessions.sources) if sessions.pushes else None
        now = _situation(
            self.far, sessions.pushes, document.get("transport", "tcp"), contact,
            _names(sessions.connector),
        )  # fmt: skip
        now = replace(
            now, modality="E", files=found.files if found else None,
            file_bytes=found.file_bytes if found else None,
            concurrency=copy.get("concurrency"), pipelining=copy.get("pipeline") or ANNOUNCED,
            **self._disks(),
        )  # fmt: skip
        default = int(spec.get("streams", 1))
        offers = own_offers(document, sessions.pushes)
        most = _most(default, sessions.most_streams)
        return Surroundings(now, Setting(default), most, offers, _COPIED)

    def _disks(self) -> dict[str, Any]:
        """What profiles of file systems say of the ends' disks."""
        from farline.copying.storage_limits import limits_of
        from farline.store.default_folder import usual_path

        store = self._store_path or usual_path()
        limits = [] if store is None else limits_of(self._request.endpoints, store)
        rates = [one.rate_bps for one in limits]
        return {
            "disk_bps": min(rates, default=None),
            "disk_texts": tuple(one.text for one in limits),
        }

    def sample(self, setting: Setting, seconds: float, should_stop: StopQuestion) -> Steps[Taken]:
        """One session, stopped after `seconds` of data; what it moved is there for good.

        Raises:
            FarlineError: when it failed or moved nothing.
        """
        document = spec_with(self._request.document(), setting)
        stop = _Alarm(seconds, should_stop)
        began = time.monotonic()
        steps = self._sessions.attempt(document, None, stop)
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                attempt = end.value
                break
            if isinstance(event, SessionBegun):
                stop.begin()
                self._keeper.prepare()
            keep = isinstance(event, Notice) and event.kind is NoticeKind.WAITING
            yield event if keep else None
        if attempt.record is None or (attempt.error is not None and not stop.rang):
            raise attempt.error or InternalError("a session of the copy left no record")
        self._keeper.keep(attempt)
        record = self._keeper.last
        taken = None if record is None else sample_of(record, setting, time.monotonic() - began)
        if taken is None and record is not None and record["status"] == "complete":
            raise UsageError(
                "tune: all files are copied already, so nothing is left to try settings with; "
                "measure with farline tune HOST"
            )
        return _checked(taken)

    def close(self) -> None:
        """Ends the connection and what was started for it."""
        self._sessions.close()
        self._keeper.close()


NEAR_S = 0.001
VALID_TRIES = 3
"""Runs that a sample may take on a testbed until one is valid."""


class _Alarm:
    """Asks for a session's end so long after its data begin to flow."""

    def __init__(self, seconds: float, should_stop: StopQuestion) -> None:
        self._seconds, self._asked = seconds, should_stop
        self._until_s: float | None = None
        self.rang = False
        """Whether it was this that ended the session."""

    def begin(self) -> None:
        """Data flow from now on."""
        self._until_s = time.monotonic() + self._seconds

    def __call__(self) -> Stop:
        asked = self._asked()
        if asked is Stop.GO_ON and self._until_s is not None and time.monotonic() > self._until_s:
            self.rang = True
        return max(asked, Stop.GRACEFULLY if self.rang else Stop.GO_ON)


def probed(
    target: str,
    spec: Mapping[str, Any],
    setting: Setting,
    store: Store | None,
    name: str,
    should_stop: StopQuestion,
    tool: SteppedTool | None = None,
) -> Steps[Taken]:
    """One run as a sample, kept in the store; on an emulator that was late, up to three.

    Streams that do not end in time are a bad setting, not a failure: what they moved until then is
    the sample.

    Raises:
        FarlineError: when it failed, moved nothing, or none was valid.
    """
    began = time.monotonic()
    for _ in range(VALID_TRIES):
        job = ProbeJob(
            target, spec, store, labels={LABEL: name}, path=path_watch(), tool=tool,
            should_stop=should_stop,
        )  # fmt: skip
        for _event in job:
            yield None
        result = job.wait()
        measured = result.measured
        if measured is None or not isinstance(result.error, TimeoutFailure):
            measured = result.checked()
        record: Mapping[str, Any] = {**measured.record}
        taken = sample_of(record, setting, time.monotonic() - began)
        if taken is None:
            result.checked()
        reasons = late_reasons(record)
        if not reasons:
            return _checked(taken)
    raise SystemFailure(
        f"a sample failed: the testbed was not accurate in {VALID_TRIES} runs: {reasons[0]}; give "
        "the machine fewer tasks, or the link a lower rate"
    )


def late_reasons(record: Mapping[str, Any]) -> list[str]:
    """Why a run over an emulated path is not valid; none of one that is, or over a real path."""
    stamp = (record.get("path") or {}).get("stamp")
    return list(stamp["reasons"]) if stamp is not None and not stamp["valid"] else []


def new_name() -> str:
    """A name for a search, under which its samples are found again."""
    return f"tune-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


def _checked(taken: Taken | None) -> Taken:
    if taken is None:
        raise TimeoutFailure(
            "a sample moved nothing: the path may be too slow for it; allow more time with --budget"
        )
    return taken


def _nic_bps(contact: Contact | None) -> int | None:
    if contact is None or contact.address is None:
        return None
    return network_limits.interface_bps(contact.address)


def _most(default: int, ports: int | None) -> int:
    """The largest number of streams that is tried."""
    wanted = max(STREAM_COUNTS[-1], default)
    return wanted if ports is None else max(1, min(wanted, ports))


def _names(connector: Connector) -> tuple[str, ...]:
    return tuple(name for name in (connector.names().other,) if name)


def _situation(
    far: str, pushes: bool, transport: str, contact: Contact | None, more: tuple[str, ...] = ()
) -> Situation:
    here, there = (socket.gethostname(),), (far, *more)
    nic_bps = _nic_bps(contact)
    return Situation(
        ends=PathEnds.between(here, there) if pushes else PathEnds.between(there, here),
        transport=transport,
        rtt_ms=None if contact is None else 1000 * contact.rtt_s,
        capacity_bps=nic_bps, nic_bps=nic_bps,
        here_kernel=os.uname().release, pushes=pushes, now_s=time.time(),
    )  # fmt: skip
