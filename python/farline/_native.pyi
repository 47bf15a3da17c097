"""Python's door to the Rust rooms: JSON in, JSON and columns out.

Every function that can fail raises `NativeError` with one argument, the failure
document as JSON text. Only `farline.tools.native` and `farline.spec` import this.
"""

from typing import final

__all__ = [
    "Columns",
    "NativeError",
    "Run",
    "Server",
    "host_facts",
    "memory_copy_bps",
    "mint_ticket",
    "parse_target",
    "start_run",
    "start_server",
    "validate",
    "validate_run_spec",
    "version_info",
]

class NativeError(Exception):
    """A failure; its one argument is the failure document as JSON text."""

@final
class Columns:
    """Sample rows as columns of 64-bit integers."""

    def names(self) -> list[str]:
        """Names of the columns, in order."""

    def __len__(self) -> int: ...
    def column(self, name: str) -> bytes:
        """One column as little-endian 64-bit integers."""

@final
class Run:
    """A run that goes on by itself; dropping it aborts it."""

    def poll(self, timeout_s: float) -> tuple[str, str, Columns | None] | None:
        """Next event as (kind, JSON, columns of a `samples` event), or None after `timeout_s`.

        Kinds: `stage`, `server_key`, `notice`, `samples`, and last `done` with the record.
        """

    def stop(self) -> None:
        """Ends the run gracefully: senders stop, and a partial record still comes."""

    def abort(self) -> None:
        """Ends the run now."""

@final
class Server:
    """A server that serves by itself; dropping it stops it."""

    def addresses(self) -> list[str]:
        """Addresses it listens on, `host:port`."""

    def fingerprint(self) -> str:
        """Fingerprint of its key, which clients pin."""

    def poll(self, timeout_s: float) -> tuple[str, str] | None:
        """Next event as (kind, JSON), or None after `timeout_s` or when the server has ended."""

    def stop(self) -> None:
        """Takes no more sessions and ends those that run."""

    def join(self) -> None:
        """Waits until the server has ended."""

def validate_run_spec(json: str) -> str:
    """A run spec, checked and resolved: what farline itself decides is filled in."""

def validate(kind: str, json: str) -> str:
    """A document of the named kind (`run-spec`, `server-config`, `limits`, ...), checked."""

def parse_target(text: str) -> str:
    """A target as JSON from `farline://...` or `host[:port]`."""

def mint_ticket(
    state_dir: str, address: str, scope_json: str, limits_json: str, lifetime_s: float
) -> str:
    """A ticket signed by the server whose state is in `state_dir`."""

def host_facts() -> str:
    """What this host is, as JSON."""

def version_info() -> str:
    """Versions behind this build, as JSON."""

def memory_copy_bps(threads: int, seconds: float) -> int:
    """Bits per second that `threads` threads copy in memory, measured over `seconds`."""

def start_run(target_json: str, spec_json: str) -> Run:
    """Starts a run towards a target."""

def start_server(config_json: str) -> Server:
    """Starts a server."""
