"""Python's door to the Rust rooms: JSON in, JSON and columns out.

Every function that can fail raises `NativeError` with one argument, the failure
document as JSON text. Only `farline.tools.native`, `farline.testbeds`, `farline.spec` and
`farline.logs` import this.
"""

from os import PathLike
from typing import final

__all__ = [
    "Columns",
    "ConnectionKeeper",
    "Contact",
    "Emulator",
    "FileSum",
    "Iperf3Server",
    "NameSession",
    "NativeError",
    "Run",
    "Server",
    "StorageMount",
    "enter_namespaces",
    "host_facts",
    "inspect_ticket",
    "list_tickets",
    "looks_into",
    "make_contact",
    "make_user_namespace",
    "memory_copy_bps",
    "mint_ticket",
    "parse_target",
    "reopen_log",
    "revoke_ticket",
    "run_storage_load",
    "start_emulator",
    "start_iperf3_server",
    "start_log",
    "start_run",
    "start_server",
    "start_storage",
    "validate",
    "validate_run_spec",
    "version_info",
    "write_log",
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
class FileSum:
    """The sum of one file, a piece at a time."""

    def __new__(cls, path: str | bytes | PathLike[str], kind: str) -> FileSum:
        """Opens the regular file at `path`; `kind` is `blake3` or `xxh3`."""

    def advance(self, bytes: int) -> str | None:
        """Reads about `bytes` more; the sum in hexadecimal once the end of the file was seen."""

@final
class NameSession:
    """A session with a server about names; dropping it closes it."""

    def __new__(cls, target_json: str, ip_version: str, timeout_s: float) -> NameSession:
        """Connects to the target of a ticket over IP of this version (`any`, `v4`, `v6`)."""

    def ask(self, request_json: str) -> None:
        """Asks for one thing, as JSON; then `poll`."""

    def poll(self, timeout_s: float) -> tuple[str, bytes | None] | None:
        """The answer as JSON and bytes of a file, or None after `timeout_s`."""

    def close(self) -> None:
        """Ends the session."""

@final
class Run:
    """A run that goes on by itself; dropping it aborts it."""

    def poll(self, timeout_s: float) -> tuple[str, str, Columns | None] | None:
        """Next event as (kind, JSON, columns of rows), or None after `timeout_s`.

        Kinds: `stage`, `server_key`, `notice`, `samples` and `mover_samples` (with columns),
        `progress` (a copy-progress document, ten times a second), `stages` (a copy-stages document,
        once an interval), `adjusted` (an adjustment), `listening` (where the server is waited for),
        and last `done` with the record.
        """

    @property
    def run_id(self) -> str:
        """Name of the run, as in its record."""

    def adjust(self, request_json: str) -> None:
        """Wants a copy to go on in another way; `adjusted` events tell what comes of it."""

    def stop(self) -> None:
        """Ends the run gracefully: senders stop, and a partial record still comes."""

    def abort(self) -> None:
        """Ends the run now."""

@final
class StorageMount:
    """A file system of the testbed; dropping it unmounts it."""

    def counters(self) -> str:
        """What it has done so far, as JSON."""

    def is_mounted(self) -> bool:
        """Whether it still serves."""

    def stop(self) -> None:
        """Unmounts it."""

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

@final
class Iperf3Server:
    """A server for iperf3's clients; dropping it stops it."""

    def addresses(self) -> list[str]:
        """Addresses it listens on, `host:port`."""

    def poll(self, timeout_s: float) -> tuple[str, str] | None:
        """Next event as (kind, JSON), or None after `timeout_s` or when the server has ended."""

    def stop(self) -> None:
        """Takes no more clients and ends the tests that run."""

    def join(self) -> None:
        """Waits until the server has ended."""

def validate_run_spec(json: str) -> str:
    """A run spec, checked and resolved: what farline itself decides is filled in."""

def validate(kind: str, json: str) -> str:
    """A document of the named kind (`run-spec`, `server-config`, `limits`, ...), checked."""

def parse_target(text: str) -> str:
    """A target as JSON from `farline://...` or `host[:port]`."""

def mint_ticket(
    state_dir: str,
    address: str,
    scope_json: str,
    limits_json: str,
    lifetime_s: float,
    keys_dir: str | None = None,
) -> str:
    """A ticket of the server whose state is in `state_dir`; its keys may be in `keys_dir`."""

def list_tickets(state_dir: str, keys_dir: str | None = None) -> str:
    """Tickets that the server whose state is in `state_dir` remembers, as JSON."""

def inspect_ticket(state_dir: str, ticket: str, keys_dir: str | None = None) -> str:
    """What a ticket says, as JSON; with what that server knows of it."""

def revoke_ticket(state_dir: str, claims_json: str, keys_dir: str | None = None) -> None:
    """Has the servers whose state is in `state_dir` refuse a ticket from now on."""

def host_facts() -> str:
    """What this host is, as JSON."""

def version_info() -> str:
    """Versions behind this build, as JSON."""

def memory_copy_bps(threads: int, seconds: float) -> int:
    """Bits per second that `threads` threads copy in memory, measured over `seconds`."""

def start_log(
    level: str,
    rooms: list[tuple[str, str]],
    format: str,
    file: str | PathLike[str] | None = None,
) -> None:
    """Begins to write log lines of both languages; may be called again.

    Levels are `off`, `error`, `warn`, `info`, `debug`, `trace`: `rooms` names those of
    single rooms, `level` is that of all others. `format` is `text` or `json`. Lines go to the end
    of `file`, or to standard error.
    """

def write_log(level: str, room: str, message: str, fields: str) -> None:
    """Writes a line of a Python room, with `fields` as a JSON object; none in a forked child."""

def reopen_log() -> None:
    """Opens the log's file anew by its name; standard error stays as it is."""

def start_run(
    target_json: str,
    spec_json: str,
    receipt: str | PathLike[str] | None = None,
    listen: str | None = None,
    contact: Contact | None = None,
    keeper: ConnectionKeeper | None = None,
) -> Run:
    """Starts a run towards a target; the receipt of a copy goes to the file `receipt`.

    With `listen` (`address:port`) the server is waited for there instead of being connected to;
    with `contact` that connection is the run's, if no run has had it. With `keeper` the connection
    is the one that it keeps for this target, and is kept for the next run.
    """

@final
class ConnectionKeeper:
    """Keeps the control connection of one run for the next towards the same server.

    Its end closes it.
    """

    def __new__(cls) -> ConnectionKeeper: ...

@final
class Contact:
    """A connection to a server that a run can begin with, and what making it told of the path."""

    @property
    def rtt_s(self) -> float:
        """Round-trip time of the path, seconds."""

    @property
    def address(self) -> str | None:
        """Address of this end."""

def looks_into(rules: list[str], path: bytes) -> bool:
    """Whether a copy with these rules looks into the folder at `path` below its destination."""

def make_contact(target_json: str, ip_version: str, timeout_s: float) -> Contact:
    """Connects to a target over IP of this version (`any`, `v4`, `v6`) and says nothing."""

def start_server(
    config_json: str, connect_to: str | None = None, sockets: list[int] = ...
) -> Server:
    """Starts a server.

    With `sockets` it listens on these descriptors, which stay the caller's.

    With `connect_to` (`address:port`) it listens nowhere, connects to a client that waits there,
    and ends after that session.
    """

def run_storage_load(load_json: str) -> str:
    """Does a storage load and waits until it is over; takes and gives JSON."""

def start_storage(spec_json: str, place: str | bytes | PathLike[str]) -> StorageMount:
    """Mounts a file system of the testbed over the folder `place`."""

def start_iperf3_server(config_json: str) -> Iperf3Server:
    """Starts a server for iperf3's clients."""

@final
class Emulator:
    """Hosts joined by emulated links; dropping it removes them."""

    def layout(self) -> str:
        """Hosts, ports and pipes as JSON.

        `hosts`: name, ports (numbers), nearest (by name of a host, the port that its name means
        here; null out of reach). `ports`: host, link, device, address, address6, mtu_bytes.
        `pipes`: link, direction (0 from `a` to `b`, 1 back), from, to (names of points).
        """

    def namespaces(self, host: str) -> str:
        """Paths of the host's namespaces as JSON, `net`, `mount`, `uts`: for `enter_namespaces`."""

    def change(self, change_json: str) -> None:
        """Changes a link now; takes a link change."""

    def topology(self) -> str:
        """The topology as it stands now, as JSON."""

    def path(self, client: str, server: str) -> str:
        """`rtt_s` and `rate_bps` (null without limit) to a host, or to one address of it, now.

        As JSON. `server` is a name as in the client's `/etc/hosts`, or an address.
        """

    def mark(self) -> int:
        """Starts an interval for `stamp`."""

    def stamp(self, mark: int) -> str:
        """Validity stamp of the time since the mark, as JSON."""

    def poll_samples(self) -> Columns:
        """Link samples that came since the last call."""

    def capture(self, link: str, direction: str, path: str, snap_bytes: int) -> None:
        """Writes what a link carries into a pcap file; `direction` is forward, reverse or both."""

    def stop_capture(self, link: str) -> str:
        """Ends the captures of a link; packets written and missed, as JSON."""

    def counters(self) -> str:
        """Counters of every link and direction since the start, and the relay's own, as JSON."""

    def failure(self) -> str | None:
        """The failure that ended the emulation, as JSON, or None."""

    def stop(self) -> None:
        """Ends the emulation and removes the hosts."""

def start_emulator(topology_json: str, hosts_file: str) -> Emulator:
    """Starts a topology; `hosts_file.HOST` is written for every host, and is its `/etc/hosts`."""

def enter_namespaces(paths: list[str]) -> None:
    """Moves the calling thread into the namespaces behind the paths: net, mount, uts, in order."""

def make_user_namespace() -> None:
    """Moves this process, of one thread, into a user namespace of its own as its root."""
