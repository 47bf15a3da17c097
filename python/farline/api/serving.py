"""`farline.serve`: a server in this process, for as long as a block runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from farline.errors import FarlineError, UsageError
from farline.spec.user_folders import expanded
from farline.tools.native import Server as NativeServer
from farline.tools.native import mint_ticket
from farline.tools.reachable import reachable_address
from farline.tools.temporary_state import temporary_state
from farline.tools.tickets import TICKET_LIFETIME_S, file_scope, made_state_dir

if TYPE_CHECKING:
    from farline.spec._types import Limits, Scope, ServerConfig

_POLL_S = 0.2


class ServerEvent(NamedTuple):
    """What happened at a server: `session_started`, `session_ended`, `refused` ..."""

    kind: str
    document: Mapping[str, Any]


class Server:
    """A server that takes sessions until the block ends, or `stop`.

    Iterating gives its events until it has stopped.
    """

    def __init__(self, config: ServerConfig, cleanup: ExitStack) -> None:
        """Listens from now on; see `serve`. `cleanup` is what follows its end."""
        self._native = NativeServer(config)
        self._state, self._keys = config["state_dir"], config.get("keys_dir")
        self._cleanup = cleanup.pop_all()
        self._events: SimpleQueue[ServerEvent | None] = SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="farline server", daemon=True)
        self._thread.start()

    @property
    def addresses(self) -> list[str]:
        """`address:port` of everything that it listens on."""
        return self._native.addresses()

    @property
    def address(self) -> str:
        """`host:port` to reach it by: the first address that others can reach."""
        return reachable_address(self.addresses, None)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of its key."""
        return self._native.fingerprint()

    def ticket(
        self,
        *,
        write: str | Path | None = None,
        read: str | Path | None = None,
        lifetime_s: float = TICKET_LIFETIME_S,
        limits: Limits | None = None,
        host: str | None = None,
    ) -> str:
        """A ticket: to probe; with `write` or `read` to copy files to or from that folder.

        `host` is the name or address it is for, if not `address`.

        Raises:
            UsageError: when both folders are given, or one that is not there.
        """
        address = reachable_address(self.addresses, host)
        scope = _scope(write, read)
        return mint_ticket(self._state, address, scope, limits or {}, lifetime_s, self._keys)

    def __iter__(self) -> Iterator[ServerEvent]:
        """What happens, to its end."""
        while True:
            event = self._events.get()
            if event is None:
                self._events.put(None)
                return
            yield event

    def _follow(self) -> None:
        try:
            while True:
                event = self._native.poll(_POLL_S)
                if event is not None:
                    self._events.put(ServerEvent(*event))
                    if event[0] == "stopped":
                        return
                elif self._ended.is_set():
                    return
        except FarlineError:
            return
        finally:
            self._events.put(None)

    def stop(self) -> None:
        """Takes no more sessions and ends those that run; returns when it has."""
        with self._cleanup:
            self._native.stop()
            try:
                self._native.join()
            finally:
                self._ended.set()
                self._thread.join()

    def __enter__(self) -> Server:
        """Itself."""
        return self

    def __exit__(self, *_about: object) -> None:
        """Stops."""
        self.stop()

    def __repr__(self) -> str:
        """One line."""
        return f"<farline.Server at {', '.join(self.addresses)}>"


def serve(
    listen: str | list[str] = "127.0.0.1",
    port: int = 0,
    *,
    state_dir: str | Path | None = None,
    keys_dir: str | Path | None = None,
    **config: Any,
) -> Server:
    """Serves probes and copies in this process: `with farline.serve() as server: ...`.

    Without more it listens on loopback alone, on a port that the kernel chooses, with a key of its
    own that is forgotten at the end. `state_dir` keeps the keys and what is known of tickets,
    `keys_dir` the keys alone. `config` has the other settings of
    a server (docs/reference/records.md): `max_sessions=16`, `anonymous=True`.

    Raises:
        SpecError: when a setting is not allowed.
        SystemFailure: when the port is taken.
    """
    with ExitStack() as stack:
        if state_dir is None:
            state = stack.enter_context(temporary_state())
        else:
            state = made_state_dir(expanded(state_dir))
        document: Any = {
            "listen": [listen] if isinstance(listen, str) else list(listen),
            "port": port,
            "state_dir": str(state),
            **config,
        }
        if keys_dir is not None:
            document["keys_dir"] = str(made_state_dir(expanded(keys_dir)))
        return Server(document, stack)


def _scope(write: str | Path | None, read: str | Path | None) -> Scope:
    if write is not None and read is not None:
        raise UsageError("a ticket is to write or to read: ask for two")
    root = write if write is not None else read
    if root is None:
        return {"may": "profile"}
    folder = expanded(root).resolve()
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; a ticket is for one that is there")
    return file_scope("write" if write is not None else "read", folder)
