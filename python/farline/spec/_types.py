"""Documents that cross a door, as Python sees them.

Made by `cargo xtask gen` from crates/spec; do not edit.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

# What moves the data or measures.
Tool: TypeAlias = Literal[
    "native",
    "gridftp",
    "iperf3",
    "nuttcp",
    "xrdcp",
    "rsync",
    "scp",
    "rclone",
    "globus",
    "fdt",
    "bbcp",
    "uftp",
    "udt",
    "iperf2",
    "command",
]

# Where the other end of a driven tool comes from.
ToolServer: TypeAlias = Literal["auto", "here", "ssh", "standing"]

# Protocol that carries the data.
Transport: TypeAlias = Literal["tcp", "udp", "udt", "rbudp", "quic", "null"]

# Which way the data go, seen from the client.
Direction: TypeAlias = Literal["forward", "reverse", "bidirectional"]

# Which version of IP carries control and data.
IpVersion: TypeAlias = Literal["any", "v4", "v6"]

# How a TCP sender gives bytes to the kernel.
SendMode: TypeAlias = Literal["copy", "zerocopy", "sendfile", "splice"]

# What a TCP receiver does with the bytes that came.
ReceiveMode: TypeAlias = Literal["read", "copy", "discard"]

# What a UDP receiver does with the datagrams that came.
UdpReceiveMode: TypeAlias = Literal["read", "copy"]

# How a UDT sender decides how fast to send.
UdtControl: TypeAlias = Literal["bbr", "native", "reno", "fixed"]

# How an RBUDP receiver puts packets where they belong (He et al. 2002, section 3).
RbudpReceiver: TypeAlias = Literal["naive", "gather", "fake"]

# What to do when the path shows that others use it, or cannot carry the stated rate without queues.
SharedPath: TypeAlias = Literal["warn", "refuse", "allow"]

# How a QUIC sender decides how much may be under way.
QuicControl: TypeAlias = Literal["cubic", "newreno", "bbr"]

# What is done with symbolic links in a source.
SymbolicLinks: TypeAlias = Literal["keep", "follow", "skip"]

# What makes a file at the destination the same as the source's.
SyncLevel: TypeAlias = Literal["exists", "size", "time", "checksum"]

# What is done with a file that is at the destination already.
Overwrite: TypeAlias = Literal["never", "older", "different", "always"]

# How far a file's content is proved.
Verify: TypeAlias = Literal["none", "tree", "read-back"]

# The sum that content is proved with from where it is read to where it is written.
Hash: TypeAlias = Literal["auto", "xxh3", "blake3", "none"]

# What payload is sealed with between the two ends.
Cipher: TypeAlias = Literal["aes128-gcm", "aes256-gcm", "none"]

# How files are read or written.
FileEngine: TypeAlias = Literal[
    "auto",
    "buffered",
    "direct",
    "uring",
    "sendfile",
    "null",
    "memory",
]

# How the emulator waits for the moment at which a packet is due.
EmulatorMode: TypeAlias = Literal["shared", "precise"]

# Shape of the random part of a delay.
JitterShape: TypeAlias = Literal["uniform", "normal"]

# What decides which packets a queue gives up.
QueueDiscipline: TypeAlias = Literal["drop-tail", "codel"]

# Which direction of a link is meant.
LinkDirection: TypeAlias = Literal["forward", "reverse", "both"]

# Which way bytes move.
StorageAction: TypeAlias = Literal["read", "write"]

# When what was written is brought to the device.
StorageSync: TypeAlias = Literal["none", "end", "each"]

# How a run ended.
RunStatus: TypeAlias = Literal["complete", "partial", "failed"]

# Kind of a failure: one exception, one exit code, one retry decision.
FailureKind: TypeAlias = Literal[
    "usage",
    "spec",
    "limit",
    "interrupted",
    "auth",
    "busy",
    "version",
    "protocol",
    "unreachable",
    "timeout",
    "system",
    "internal",
]

# What kind of thing a name is.
FileKind: TypeAlias = Literal["file", "folder", "link", "hard-link", "other"]

# What became of one name.
FileStatus: TypeAlias = Literal[
    "copied",
    "present",
    "updated",
    "would-update",
    "would-copy",
    "would-delete",
    "deleted",
    "skipped",
    "failed",
]

# Something about files that a destination may be unable to keep.
Attribute: TypeAlias = Literal[
    "time",
    "link-time",
    "mode",
    "xattr",
    "hard-link",
    "sync",
    "lock",
    "staging",
]

# What can limit a run.
LimitedBy: TypeAlias = Literal[
    "receive-window",
    "receive-buffer",
    "send-buffer",
    "cwnd",
    "sender-cpu",
    "receiver-cpu",
    "application",
    "path",
    "rate",
    "harness",
    "sender-disk",
    "receiver-disk",
    "file-names",
    "unknown",
]

# How far the destination of a mover was looked at.
Proof: TypeAlias = Literal["hash", "size", "none"]

# What of a copy can change while it runs.
AdjustKnob: TypeAlias = Literal["streams", "concurrency", "total-rate"]

# What an estimate rests on.
EstimateBasis: TypeAlias = Literal["own-path", "probes", "sample", "like-paths", "model"]


class RunSpec(TypedDict, total=False):
    """One run: everything that can be chosen about it."""

    # Version of this document.
    schema: int
    # Measure or copy with this tool instead of farline's own engine: farline tools lists them
    # (default native).
    tool: Tool
    # Start the tool's server here, over ssh, or use one that runs (default auto: on a testbed's
    # host or this one, else one that runs).
    tool_server: ToolServer | None
    # End the tool when it runs longer than this (default: its duration and 20 s; a copy ends when
    # it stalls).
    tool_timeout_s: float | None
    # Spread each file over this many data movers of the tool's server (gridftp; default 1).
    tool_stripes: int | None
    # Add these words to the tool's command line.
    tool_args: list[str]
    # Run this command line as the client, with --tool command; {host}, {port}, {source} and options
    # by name are filled in.
    tool_command: str | None
    # Run this command line as its server.
    tool_server_command: str | None
    # Find its figures by this regular expression with named groups, or by JSON paths
    # (bits_per_second=$.end.rate).
    tool_result: str | None
    # Send the data by this protocol.
    transport: Transport
    # Send data this way, as seen from the client.
    direction: Direction
    # Use this many parallel streams.
    streams: int
    # Pass this many bytes to each send or receive call (default 128 KiB; 64 KiB for UDP).
    block_bytes: int | None
    # Send for this long (default 10 s unless `total_bytes` is given).
    duration_s: float | None
    # Send this many payload bytes instead of for a time.
    total_bytes: int | None
    # Leave this much time at the start out of steady-state figures (default: found from the data by
    # MSER-5).
    omit_s: float | None
    # Take a sample at this interval (default: from the duration, 50 ms to 1 s).
    interval_s: float
    # Limit each stream's payload rate; 0 means no limit (default 1 Mbit/s for UDP, no limit
    # otherwise; RBUDP requires a rate).
    rate_bps: int | None
    # Connect these two NICs; repeat the option to spread streams over several pairs.
    pairs: list[AddressPair]
    # Pin the client's streams to these CPUs in turn (default: not pinned).
    client_cpus: list[int]
    # Pin the server's streams to these CPUs in turn (default: not pinned).
    server_cpus: list[int]
    # Use this version of IP.
    ip_version: IpVersion
    # Set the IPv4 type of service or IPv6 traffic class of data packets.
    tos: int | None
    # Set the IPv6 flow label of data packets.
    flow_label: int | None
    # Give up when setting up the control channel or a stream takes longer than this.
    connect_timeout_ms: int
    # Seed all random values, including the payload.
    seed: int
    # Store this title with the record.
    title: str | None
    # Store this text with the record, for use by programs.
    extra_data: str | None
    # Parameters of TCP; only with `transport` "tcp".
    tcp: TcpOptions | None
    # Parameters of UDP; only with `transport` "udp".
    udp: UdpOptions | None
    # Parameters of UDT; only with `transport` "udt".
    udt: UdtOptions | None
    # Parameters of RBUDP; only with `transport` "rbudp".
    rbudp: RbudpOptions | None
    # Parameters of QUIC; only with `transport` "quic".
    quic: QuicOptions | None
    # Files to move; without it the streams carry a payload made up on the spot.
    copy: CopySpec | None


class AddressPair(TypedDict, total=False):
    """One NIC-to-NIC connection (Yun et al. 2015, section III.B). Streams take the pairs in turn.
    """

    # Address on the client that the stream is bound to; the kernel's choice if absent.
    source: str | None
    # Network device on the client that the stream is bound to (SO_BINDTODEVICE).
    source_device: str | None
    # Address on the server that the stream goes to; the one the control channel uses if absent.
    destination: str | None


class TcpOptions(TypedDict, total=False):
    """Tunable parameters of TCP. What is absent is the kernel's choice, and what the kernel chose
    is in the record.
    """

    # Use this congestion control at the sender, by its kernel name (default: the kernel's).
    congestion_control: str | None
    # Set the send buffer, SO_SNDBUF (default: autotuned).
    send_buffer_bytes: int | None
    # Set the receive buffer, SO_RCVBUF (default: autotuned).
    receive_buffer_bytes: int | None
    # Limit segments to this size, TCP_MAXSEG (default: the kernel's).
    mss_bytes: int | None
    # Send small segments at once (TCP_NODELAY).
    no_delay: bool
    # Pass data to the kernel by this method.
    send_mode: SendMode
    # Read received data, read and copy it, or have the kernel discard it.
    receive_mode: ReceiveMode
    # Use Multipath TCP (RFC 8684).
    mptcp: bool
    # Pace each stream in the kernel, SO_MAX_PACING_RATE (default: not paced).
    pacing_rate_bps: int | None
    # Give up a connection when sent data stay unacknowledged for this long, TCP_USER_TIMEOUT
    # (default: the kernel's).
    user_timeout_ms: int | None


class UdpOptions(TypedDict, total=False):
    """Tunable parameters of UDP."""

    # Send this much payload in each datagram (default: what fits the path's MTU).
    packet_bytes: int | None
    # Send this many datagrams in one call (default: as many as the rate and the kernel allow).
    batch_packets: int | None
    # Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    gso: bool
    # Receive datagrams from the kernel in batches (UDP_GRO).
    gro: bool
    # Set the send buffer, SO_SNDBUF, beyond wmem_max where permitted.
    send_buffer_bytes: int | None
    # Set the receive buffer, SO_RCVBUF, beyond rmem_max where permitted.
    receive_buffer_bytes: int | None
    # Fail on datagrams larger than the path's MTU instead of fragmenting them.
    dont_fragment: bool
    # Read received datagrams, or read and copy them.
    receive_mode: UdpReceiveMode


class UdtOptions(TypedDict, total=False):
    """Tunable parameters of UDT (Yun et al. 2015, section IV.A). The most one connection may send
    (UDT_MAXBW, TPG's -B) is `rate_bps`.
    """

    # Send datagrams of this size, including UDT's 16-byte header (default: what fits the path's
    # MTU).
    packet_bytes: int | None
    # Use this congestion control at the sender.
    congestion_control: UdtControl
    # Set the send buffer, UDT_SNDBUF, which also holds unacknowledged data (default: what the path
    # needs, up to 1 GiB).
    send_buffer_bytes: int | None
    # Set the receive buffer, UDT_RCVBUF (default: what the path needs, up to 1 GiB).
    receive_buffer_bytes: int | None
    # Allow this many packets in flight, UDT_FC (default: what the receive buffer holds).
    flow_window_packets: int | None
    # Set the UDP socket's send buffer, UDP_SNDBUF, beyond wmem_max where permitted.
    udp_send_buffer_bytes: int | None
    # Set the UDP socket's receive buffer, UDP_RCVBUF, beyond rmem_max where permitted.
    udp_receive_buffer_bytes: int | None
    # Wait this long at the end for the receiver to get all data (UDT_LINGER).
    linger_s: float
    # Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    gso: bool
    # Receive datagrams from the kernel in batches (UDP_GRO).
    gro: bool


class RbudpOptions(TypedDict, total=False):
    """Tunable parameters of Reliable Blast UDP (He et al. 2002). The sending rate of the blasts is
    `rate_bps`, which must be stated; for dedicated paths only.
    """

    # Send datagrams of this size, including RBUDP's 16-byte header (default: what fits the path's
    # MTU).
    packet_bytes: int | None
    # Send this much payload per blast; longer payloads take several blasts.
    payload_bytes: int
    # Keep this many blasts in flight (default 64, fewer if they need over 16 GiB).
    in_flight: int | None
    # Request loss reports during a blast and fill its gaps at once.
    early: bool
    # Place received packets in memory by this method.
    receiver: RbudpReceiver
    # Verify every packet where it was placed, and each blast as a whole.
    checksum: bool
    # Reduce the rate while more than this share of packets is lost, then raise it again up to
    # `rate_bps` (default: never).
    loss_bound: float | None
    # Warn, refuse or continue when others use the path or it cannot carry the rate without queues.
    shared_path: SharedPath
    # Send this file of the client, or receive into it (default: memory).
    file: str | None
    # Set the UDP socket's send buffer, SO_SNDBUF, beyond wmem_max where permitted.
    udp_send_buffer_bytes: int | None
    # Set the UDP socket's receive buffer, SO_RCVBUF, beyond rmem_max where permitted.
    udp_receive_buffer_bytes: int | None
    # Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    gso: bool
    # Receive datagrams from the kernel in batches (UDP_GRO).
    gro: bool


class QuicOptions(TypedDict, total=False):
    """Tunable parameters of QUIC (RFC 9000). Each stream has a connection of its own; all of a
    server's use one UDP port.
    """

    # Use this congestion control at the sender.
    congestion_control: QuicControl
    # Send datagrams of at most this size, found by probing from 1200 upwards (default: what fits
    # the MTU of the first hop).
    packet_bytes: int | None
    # Send this much before the first acknowledgement (default: 14,720 bytes with cubic and newreno,
    # 240,000 with bbr).
    initial_window_bytes: int | None
    # Allow this much in flight or waiting to be read on each stream.
    window_bytes: int
    # Send a keep-alive after this much silence, which also keeps NAT mappings open.
    keep_alive_s: float
    # Set the UDP socket's send buffer beyond wmem_max where permitted (default 8 MiB).
    udp_send_buffer_bytes: int | None
    # Set the UDP socket's receive buffer beyond rmem_max where permitted (default 8 MiB).
    udp_receive_buffer_bytes: int | None
    # Let the kernel or the NIC split a batch into datagrams (UDP_SEGMENT).
    gso: bool


class CopySpec(TypedDict, total=False):
    """What to copy and how. `direction` of the run says which end has the sources: forward is a
    push, reverse a pull.
    """

    # Files and folders at the sending end; a folder with a slash at its end means what is in it.
    sources: list[str]
    # File at the client with one name a line, relative to the one source, instead of the whole of
    # it.
    source_list: str | None
    # Where it goes at the receiving end; a slash at its end means a folder.
    destination: str
    # Who copies, a hash of host, user and working folder: what tells copies of the same names from
    # different places apart. Set by the client.
    origin: str | None
    # Of a copy that several sessions carry together, over several nodes: which copy it is, and what
    # this session carries of it. Set by the client.
    share: CopyShare | None
    # Rules for names below a source, the first that fits decides: `+ pattern` takes, `- pattern`
    # leaves out (rsync's patterns).
    filters: list[str]
    # Copy folders with their contents; without it, folders are skipped and reported as failed.
    recursive: bool
    # Preserve permission bits.
    modes: bool
    # Preserve modification times.
    times: bool
    # Preserve hard links between copied files.
    hard_links: bool
    # Preserve extended attributes (`user.*` and access control lists).
    xattrs: bool
    # Preserve owners, by name where the receiver knows it; only root can.
    owner: bool
    # Preserve groups, by name where the receiver knows it; without root, only groups of the user.
    group: bool
    # Match owners and groups by number instead of name.
    numeric_ids: bool
    # Preserve holes in sparse files and do not send them.
    sparse: bool
    # Keep symbolic links, follow them to what they point at, or skip them.
    links: SymbolicLinks
    # Skip a file whose copy exists, has the same size, has the same size and time, or has the same
    # checksum.
    sync_level: SyncLevel
    # Treat modification times this close as equal (default: what the destination can store).
    modify_window_s: float | None
    # Replace a file that differs never, if it is older, or if it is different; always copies every
    # file again.
    overwrite: Overwrite
    # Update only what exists at the destination; create nothing.
    existing: bool
    # Treat a symbolic link to a folder at the destination as that folder; without it, the link is
    # replaced.
    keep_dirlinks: bool
    # Replace a folder by a file or link of the same name even if it is not empty.
    force: bool
    # Delete what the destination has and the sources lack, if it is exactly this many names
    # (default: delete nothing).
    delete: int | None
    # Delete nothing if more names than this would be deleted.
    max_delete: int | None
    # Remove source files and links once the destination has them verified and on disk.
    remove_source_files: bool
    # Show what would be done and change nothing.
    dry_run: bool
    # Verify contents not at all, by checksums, or by checksums after reading files back.
    verify: Verify
    # Verify with this checksum: auto is xxh3 for encrypted data, blake3 for unencrypted data; none
    # verifies nothing.
    hash: Hash
    # Encrypt the data with this cipher; none sends them unencrypted.
    cipher: Cipher
    # Write each file to disk before it gets its name, so that it survives a power failure.
    fsync: bool
    # Send, hash and resume files in chunks of this size, a power of two (default 512 KiB; 2 MiB for
    # direct I/O, 1 MiB for sendfile; less where the rate is limited: what a stream sends in about a
    # second).
    chunk_bytes: int | None
    # Use this many reader threads at the sender; with 0 each stream reads (default: chosen by file
    # system).
    readers: int | None
    # Use this many writer threads at the receiver; with 0 each stream writes (default: chosen by
    # file system).
    writers: int | None
    # Send at most this many files at once (default: enough to fill the streams).
    concurrency: int | None
    # Announce this many files before the receiver answers for the first.
    pipeline: int
    # Read files by this method.
    read_engine: FileEngine
    # Write files by this method.
    write_engine: FileEngine
    # Limit the payload rate over all streams (default: no limit).
    total_rate_bps: int | None
    # Yield to other traffic: slow down as soon as queues on the path grow.
    give_way: bool
    # Drop a session, and resume in a new one, when no byte has moved for this long.
    stall_timeout_s: float


class CopyShare(TypedDict):
    """What one session carries of a copy that several carry together. Sessions with a `part` write
    files and prove them, and leave what they know beside the files; the one without a `part`
    comes last, goes on from what all of them proved, and ends the copy.
    """

    # The copy that it is a share of.
    id: str
    # Number of the part; without it, the session that ends the copy.
    part: NotRequired[int | None]
    # Only so much of each listed file: a multiple of 65536 from its beginning on. Needs `part`,
    # `bytes` and a source list.
    offset: NotRequired[int | None]
    # Length of that, a multiple of 65536; what is behind the end of a file does not count.
    bytes: NotRequired[int | None]


class ServerConfig(TypedDict, total=False):
    """How `farline serve` runs."""

    # Addresses to listen on; every one of the machine if empty.
    listen: list[str]
    # Control port; 0 lets the kernel choose.
    port: int
    # First port for data streams; 0 lets the kernel choose each.
    data_port_first: int
    # Last port for data streams.
    data_port_last: int
    # Folder of the server's record of tickets, and of its keys unless `keys_dir` is given; made at
    # first start, readable by its owner alone.
    state_dir: str
    # Folder of the server's keys alone, `server.pem` and `ticket.key`; `state_dir` if absent.
    keys_dir: str | None
    # Sessions at once; one more is told BUSY.
    max_sessions: int
    # Whether clients without a ticket may profile memory to memory.
    anonymous: bool
    # Bounds on clients without a ticket.
    anonymous_limits: Limits
    # Whether files move only under a cipher; otherwise a client may choose clear text.
    require_cipher: bool
    # Whether clients may have owners and groups kept: told of files they read, set for files they
    # write.
    keep_owners: bool
    # Take data streams in on the control port too, so that a firewall needs one opening only; TCP
    # alone can.
    single_port: bool
    # Stop after this many sessions; never if absent.
    stop_after_sessions: int | None


class Limits(TypedDict, total=False):
    """Bounds on what a client may ask for; what is absent is without bound."""

    # Payload rate over all streams of a session.
    rate_bps: int | None
    # Length of one run.
    duration_s: float | None
    # Payload bytes of one run.
    total_bytes: int | None
    # Data streams of one run at once.
    streams: int | None
    # Sessions in all, over the ticket's life.
    sessions: int | None


class Iperf3Config(TypedDict, total=False):
    """How `farline serve --iperf3` answers iperf3's clients: memory to memory, for whoever asks,
    within limits.
    """

    # Addresses to listen on; every one of the machine if empty.
    listen: list[str]
    # Port for TCP and UDP; 0 lets the kernel choose.
    port: int
    # Sessions at once; one more is told that the server is busy.
    max_sessions: int
    # Sessions at once of one client address (an IPv4 address, an IPv6 network of 64 bits).
    max_sessions_per_address: int
    # Streams of one session.
    max_streams: int
    # Bounds on one client address: the rate over all its sessions, the length and the bytes of each
    # of them, and how many it may have while the server runs.
    limits: Limits
    # File with the RSA key by which clients encrypt who they are; then only users may come.
    private_key: str | None
    # File with those users, one `name,sha256` a line.
    users: str | None
    # Seconds by which a client's clock may differ from the server's, where it says who it is.
    time_skew_s: int
    # Expect the older padding of clients before 3.17.
    pkcs1_padding: bool
    # Stop after this many sessions; never if absent.
    stop_after_sessions: int | None


class TicketClaims(TypedDict):
    """What a ticket says. The server signs it; whoever holds it may use it."""

    # Unique name of the ticket.
    id: str
    # What it allows.
    scope: Scope
    # Bounds.
    limits: NotRequired[Limits]
    # Seconds since 1970 after which it is void.
    expires_at_s: int


class ScopeProfile(TypedDict):
    """Memory-to-memory profiling."""

    may: Literal["profile"]


class ScopeRead(TypedDict):
    """Read files under a root."""

    may: Literal["read"]
    # The root.
    root: str


class ScopeWrite(TypedDict):
    """Write files under a root."""

    may: Literal["write"]
    # The root.
    root: str


class Topology(TypedDict):
    """A whole emulated network."""

    # Version of this document.
    schema: NotRequired[int]
    # Name of the topology.
    name: str
    # What it is for, in a line.
    description: NotRequired[str | None]
    # Seed of every packet's fate: same seed, same packets, same fate.
    seed: NotRequired[int]
    # How the emulator waits.
    mode: NotRequired[EmulatorMode]
    # Seconds between two samples of every link.
    interval_s: NotRequired[float]
    # Hosts.
    hosts: list[HostSpec]
    # Names of points that only forward.
    routers: NotRequired[list[str]]
    # Links.
    links: list[LinkSpec]
    # The link that options such as `--rtt` and `--rate` mean; the first if absent.
    main_link: NotRequired[str | None]


class HostSpec(TypedDict):
    """One host: a kernel's network stack of its own, with a network device for each of its links.
    """

    # Name, also its host name.
    name: str
    # Kernel settings of the host, `net.ipv4.tcp_rmem` and its like.
    sysctls: NotRequired[dict[str, str]]
    # CPUs the host's programs may use; all if empty. Those that no host may use are the emulator's
    # alone.
    cpus: NotRequired[list[int]]
    # CPU time the host's programs get together, in CPUs; without limit if absent.
    cpu_limit: NotRequired[float | None]
    # Bytes per second the host's programs read from disks; without limit if absent.
    disk_read_bytes_per_s: NotRequired[int | None]
    # Bytes per second the host's programs write to disks; without limit if absent.
    disk_write_bytes_per_s: NotRequired[int | None]


class LinkSpec(TypedDict):
    """A link between two points, each a host or a router."""

    # Name of the link.
    name: str
    # One end.
    a: str
    # The other end.
    b: str
    # From `a` to `b`.
    forward: NotRequired[PipeSpec]
    # From `b` to `a`; the same as `forward` if absent.
    reverse: NotRequired[PipeSpec | None]


class PipeSpec(TypedDict, total=False):
    """One direction of a link, in the order a packet meets it: queue, wire, distance."""

    # Limit the rate on the wire, framing included (default: no limit).
    rate_bps: int | None
    # Delay packets by this propagation time, one way.
    delay_s: float
    # Add a random delay of up to this much, at most the delay itself.
    jitter_s: float | None
    # Draw the random delay from this distribution.
    jitter_shape: JitterShape
    # The queue in front of the wire.
    queue: QueueSpec
    # Packets lost on the wire.
    loss: LossSpec
    # Flip one bit of a packet's transport payload with this probability.
    corrupt: float | None
    # Recompute checksums after corruption, so that only an end-to-end check finds it.
    corrupt_hidden: bool
    # Deliver a packet twice with this probability.
    duplicate: float | None
    # Deliver a packet late by `reorder_delay_s`, behind others, with this probability.
    reorder: float | None
    # Deliver reordered packets this much later (default 1 ms).
    reorder_delay_s: float | None
    # Limit IP packets to this size (default 1500 bytes).
    mtu_bytes: int | None
    # Count this many bytes on the wire around each IP packet (default 38: Ethernet with preamble,
    # check sequence and gap).
    framing_bytes: int | None
    # What changes by itself, in the order of time.
    schedule: list[ScheduledChange]
    # The schedule starts again after this time; it runs once if absent.
    schedule_period_s: float | None


class QueueSpec(TypedDict, total=False):
    """The queue in front of a link. Its capacity is the smallest of those stated; if none is, one
    bandwidth-delay product of the link's own round trip, and at least ten milliseconds of its
    rate and 150,000 bytes.
    """

    # Limit the queue to this many bytes on the wire.
    capacity_bytes: int | None
    # Limit the queue to this many packets.
    capacity_packets: int | None
    # Limit the queue to this many bandwidth-delay products of the link.
    capacity_bdp: float | None
    # Drop packets from the queue by this discipline.
    discipline: QueueDiscipline
    # Mark ECN-capable packets where CoDel would drop them (RFC 3168).
    ecn: bool
    # Mark ECN-capable packets when this many bytes are queued (RFC 8257, section 3.1).
    ecn_threshold_bytes: int | None
    # CoDel's acceptable standing delay; 5 ms if absent.
    codel_target_s: float | None
    # CoDel's interval; 100 ms if absent.
    codel_interval_s: float | None


class LossSpec(TypedDict, total=False):
    """Packets lost on the wire, after they left the queue. All causes add up."""

    # Lose each packet with this probability.
    random: float | None
    # Loss in bursts.
    burst: BurstLoss | None
    # Packets lost by their number: the first one that leaves the queue is 1.
    packets: list[int]
    # Every packet whose number is a multiple of this is lost.
    every: int | None


class BurstLoss(TypedDict):
    """Loss in bursts: a chain of two states, stepped once per packet (Gilbert 1960, Elliott 1963).
    """

    # Probability per packet of going from the good state to the bad one.
    enter: float
    # Probability per packet of going back.
    leave: float
    # Probability of loss in the good state.
    loss_good: NotRequired[float]
    # Probability of loss in the bad state.
    loss_bad: NotRequired[float]


class ScheduledChange(TypedDict):
    """A change at a stated time."""

    # Seconds since the emulator started, or since the period did.
    at_s: float
    # What changes.
    change: PipeChange


class PipeChange(TypedDict, total=False):
    """What can change while a link is in use. What is absent stays as it is."""

    # New rate on the wire; 0 is without limit.
    rate_bps: int | None
    # New propagation delay. Packets on the way keep the one they left with; order is kept.
    delay_s: float | None
    # New probability of independent loss.
    loss: float | None
    # New capacity of the queue, in the place of one in bytes or in bandwidth-delay products; what
    # waits already stays.
    capacity_bytes: int | None
    # The same in bandwidth-delay products; beside `capacity_bytes` the smaller one holds.
    capacity_bdp: float | None
    # New probability of corruption.
    corrupt: float | None
    # New probability of duplication.
    duplicate: float | None
    # New probability of reordering.
    reorder: float | None
    # False cuts the link: what is on the wire and what comes is lost, what waits in the queue
    # stays. True restores it.
    up: bool | None


class LinkChange(TypedDict):
    """A change to a link, now."""

    # Name of the link.
    link: str
    # Which direction is meant.
    direction: NotRequired[LinkDirection]
    # What changes.
    change: PipeChange


class AdjustRequest(TypedDict, total=False):
    """A change that is wanted of a copy that runs; what is absent stays as it is."""

    # Data streams from now on.
    streams: int | None
    # Files that are sent at once from now on, at most.
    concurrency: int | None
    # Payload rate over all data streams from now on; 0 is without limit.
    total_rate_bps: int | None


class StorageLoad(TypedDict):
    """What one process does to files in one measurement: a thread for each lane, all begun at one
    time.
    """

    # Read or write.
    action: StorageAction
    # Bytes of each request.
    request_bytes: int
    # Requests that each thread has under way; above 1 by io_uring.
    depth: int
    # Past the page cache (O_DIRECT).
    direct: bool
    # When writes are brought to the device.
    sync: StorageSync
    # Whether the lanes are taken out of the page cache before it begins.
    drop_cache: bool
    # When to begin, nanoseconds of CLOCK_MONOTONIC; at once if that is past.
    begin_at_ns: int
    # No request begins later than this after the begin.
    duration_s: float
    # Most bytes that each lane moves; 0: as many as it can.
    most_lane_bytes: int
    # One for each thread.
    lanes: list[StorageLane]


class StorageLane(TypedDict):
    """A part of a file that one thread goes through, from its start to its end and again from the
    start.
    """

    # The file, which must be there.
    file: str
    # Where the part begins.
    offset_bytes: int
    # How long it is; at least one request.
    span_bytes: int
    # From the start of a request to that of the next: the size of a request in sequence, more with
    # gaps. The next pass goes through what the gaps left out.
    step_bytes: int


class StorageSpec(TypedDict):
    """What a file system of the testbed can do. Reads and writes do not take from each other."""

    # Name that mounts are listed under.
    name: str
    # Rate at which one process reads at most; absent: as fast as all together.
    process_read_bps: NotRequired[int | None]
    # Rate at which one process writes at most; absent: as fast as all together.
    process_write_bps: NotRequired[int | None]
    # Rate at which all processes together read at most.
    total_read_bps: int
    # Rate at which all processes together write at most.
    total_write_bps: int
    # Time from the last byte of a message to its answer.
    latency_s: float
    # Messages that may be on their way at once, as LNet's peer credits; absent: any number.
    credits: NotRequired[int | None]
    # Bytes of a message: larger requests are cut into several.
    message_bytes: int
    # Bytes that it has room for; they are kept in memory.
    capacity_bytes: int


class RunRecord(TypedDict):
    """One run: what was asked, what was granted, what happened."""

    # Version of this document.
    schema: int
    # Unique, and sorts by time (ULID).
    run_id: str
    # How it ended.
    status: RunStatus
    # Why it failed or was stopped.
    error: NotRequired[Failure | None]
    # Start of the run by the client's clock (RFC 3339, UTC, microseconds).
    started_at: str
    # Seconds from the client's first step to its last, set-up and exchange included.
    session_s: float
    # Seconds in which data could flow, by the client's clock.
    run_s: float
    # Server as it was addressed, `host:port`.
    server_address: str
    # Whole spec, resolved.
    spec: RunSpec
    # Limits the server applied to this run that changed the spec, one line each.
    server_notes: list[str]
    # The client's end.
    client: EndReport | None
    # The server's end.
    server: EndReport | None
    # Both ends of every stream.
    streams: list[StreamRecord]
    # What the run comes to.
    summary: NotRequired[Summary | None]
    # What limited it.
    verdict: NotRequired[Verdict | None]
    # The emulated path it went over, where it did.
    path: NotRequired[EmulatedPath | None]
    # What a copy came to.
    copy: NotRequired[CopyReport | None]
    # What is known of the run where another tool did it; such a run has no streams.
    driven: NotRequired[DrivenRun | None]
    # What was changed while it ran, in order.
    adjustments: NotRequired[list[Adjustment]]


class Failure(TypedDict):
    """One thing that went wrong, in one line."""

    # What kind of failure.
    kind: FailureKind
    # One line: what was wrong, where, what is allowed.
    message: str
    # Seconds after which it is worth trying again, when the other side said so.
    retry_after_s: NotRequired[float | None]
    # Whether it is no use to try again, though failures of this kind often pass: the other end did
    # what nobody asked it to do.
    permanent: NotRequired[bool]


class EndReport(TypedDict):
    """What one end says about the run."""

    # The host.
    host: HostFacts
    # Versions of farline there.
    version: VersionInfo
    # CPU time used.
    cpu: CpuUse
    # What this end of a copy did.
    copy: NotRequired[CopyReport | None]


class HostFacts(TypedDict):
    """What a host is."""

    # Name of the host.
    hostname: str
    # Kernel release.
    kernel: str
    # Operating system, as os-release names it.
    operating_system: str
    # Machine architecture.
    architecture: str
    # Processors.
    cpu: CpuFacts
    # Physical memory.
    memory_bytes: int
    # Kernel parameters that matter to transport, by sysctl name; tabs become spaces.
    sysctls: dict[str, str]
    # Congestion controls the kernel has loaded.
    congestion_controls: list[str]
    # Congestion controls that a user without privileges may choose.
    allowed_congestion_controls: list[str]
    # Network interfaces.
    interfaces: list[InterfaceFacts]
    # Clock source of the kernel.
    clock_source: str | None


class CpuFacts(TypedDict):
    """The processors of a host."""

    # Model name as the kernel prints it.
    model: str
    # CPUs that are online.
    online: int
    # Frequency governor of CPU 0, if the kernel has one.
    governor: str | None
    # NUMA nodes.
    numa_nodes: int
    # Whether the kernel says that it runs under a hypervisor.
    virtualised: bool


class InterfaceFacts(TypedDict):
    """One network interface."""

    # Name.
    name: str
    # Addresses.
    addresses: list[str]
    # MTU.
    mtu_bytes: int
    # Whether it is up.
    up: bool
    # Driver, if the kernel names one.
    driver: str | None
    # Link speed, if the driver knows it.
    speed_bps: int | None
    # NUMA node of the device, if it has one.
    numa_node: int | None
    # Queueing discipline.
    qdisc: str | None
    # Length of the transmit queue, in packets.
    tx_queue_packets: int | None
    # Offloads by ethtool's names, on or off.
    offloads: dict[str, bool]


class VersionInfo(TypedDict):
    """Versions behind a record."""

    # Version of farline.
    farline: str
    # Commit it was built from, where known.
    commit: str
    # Build profile (`release` or `debug`): a figure from a debug build is no figure.
    profile: str
    # Version of the control protocol that was agreed on.
    protocol: int


class CpuUse(TypedDict):
    """CPU time used by one end during the run."""

    # User time of the process over the run.
    user_s: float
    # System time of the process over the run.
    system_s: float
    # Wall time over which both were taken.
    wall_s: float
    # Time the hypervisor gave to others, over all CPUs.
    steal_s: float


class CopyReport(TypedDict):
    """What a copy came to."""

    # Names found at the sources.
    found: FileTally
    # Regular files copied now.
    copied: FileTally
    # What was there already.
    present: FileTally
    # Files, folders and links that were there already and whose attributes were set to the
    # source's, or would be.
    updated: NotRequired[FileTally]
    # What failed.
    failed: FileTally
    # Of the names that failed, those that had only disappeared from the sources. Absent in records
    # of older versions.
    vanished: NotRequired[int]
    # What was skipped.
    skipped: FileTally
    # What was deleted, or would be.
    deleted: FileTally
    # Names whose owner was to be set and could not be.
    unset_owners: NotRequired[int]
    # Names whose group was to be set and could not be.
    unset_groups: NotRequired[int]
    # Names removed from the sources because they had been copied.
    removed: NotRequired[int]
    # Folders, links and further names made.
    made: int
    # Bytes that a journal proved and that were not sent again.
    resumed_bytes: int
    # Bytes of holes that were not sent.
    hole_bytes: int
    # Chunks that came spoiled and were sent again.
    repeated_chunks: int
    # Cipher in use.
    cipher: str
    # Transport that encrypts the data with it by itself, below farline's frames; absent where
    # farline seals them.
    encrypted_by: NotRequired[str | None]
    # Sum in use: the word of `hash` that was settled on. Empty in records of versions that knew
    # BLAKE3 alone.
    hash: NotRequired[str]
    # Chunk in use, in bytes.
    chunk_bytes: int
    # A hundred of the names that failed, those that had only disappeared from the sources after all
    # others.
    failures: list[ReceiptLine]
    # Sessions so far of the command that copied, this one included.
    attempts: NotRequired[int]
    # Microseconds in which its sessions ran: from the first byte of each to the last.
    moving_us: NotRequired[int]
    # Microseconds since the command began, with its start over ssh and the pauses between sessions.
    command_us: NotRequired[int]
    # What the destination could not keep, by kind.
    not_kept: NotRequired[list[NotKept]]
    # What went wrong besides names: why nothing was deleted, say; one line each, counted among what
    # failed.
    problems: NotRequired[list[str]]
    # The first hundred names that were skipped.
    skips: NotRequired[list[ReceiptLine]]
    # The end that had the files.
    sender: CopyEnd
    # The end that got them.
    receiver: CopyEnd


class FileTally(TypedDict):
    """Names and bytes that ended alike."""

    # Names.
    files: int
    # Bytes in them.
    bytes: int


class ReceiptLine(TypedDict):
    """One line of a receipt: what became of one name. Lines come in the order in which names were
    settled.
    """

    # Path below the destination.
    path: str
    # What it is.
    kind: FileKind
    # What became of it.
    status: FileStatus
    # Length.
    bytes: int
    # Bytes that did not have to be sent, because a journal proved them.
    resumed_bytes: NotRequired[int]
    # BLAKE3 of the content in hexadecimal, as `b3sum` prints it; absent where it was not made.
    blake3: NotRequired[str | None]
    # XXH3-128 of the content in hexadecimal, over pieces of 64 KiB and then over pairs of sums; of
    # a file of at most 64 KiB what `xxhsum -H128` prints. Absent where it was not made.
    xxh3_tree: NotRequired[str | None]
    # `none` where content was copied without any sum of it; absent where there is one, or nothing
    # was copied.
    hash: NotRequired[str | None]
    # Why it failed or was skipped.
    reason: NotRequired[str | None]
    # Node of the destination on whose own disk it is, or was to be; absent where all of its nodes
    # see the same files.
    node: NotRequired[str | None]


class NotKept(TypedDict):
    """What the destination did not keep of names that were copied."""

    # What.
    attribute: Attribute
    # In which way, or why; one line.
    how: str
    # Of how many names.
    names: int


class CopyEnd(TypedDict):
    """What one end of a copy used and how long its threads were at what. Times are sums over
    threads.
    """

    # How files were read or written, the word of [`FileEngine`] that was chosen.
    engine: str
    # Type of the file system (`ext4`, `tmpfs`).
    file_system: str
    # Threads that read or wrote for the streams; 0: each stream for itself.
    threads: int
    # Microseconds in reading or writing files.
    file_us: int
    # Microseconds in opening, naming and closing them.
    name_us: int
    # Microseconds in hashing.
    hash_us: int
    # Microseconds in sealing or opening frames.
    cipher_us: int
    # Microseconds in sending or receiving.
    stream_us: int
    # Microseconds in bringing data to the device.
    sync_us: int
    # Microseconds in which streams had nothing to send, or nowhere to put what came.
    starved_us: int
    # Largest memory of the process, in bytes.
    peak_memory_bytes: int


class StreamRecord(TypedDict):
    """What one end of one stream did."""

    # Number of the stream, from 0.
    stream: int
    # 0 client, 1 server.
    end: int
    # 0 sends, 1 receives.
    role: int
    # Payload bytes this end sent or received.
    bytes: int
    # Microseconds from the start of the run at this end to this end's last byte.
    elapsed_us: int
    # Calls that moved a block.
    blocks: int
    # Datagrams sent or received.
    packets: int
    # Datagrams that never came.
    lost_packets: int
    # Datagrams that came after a later one.
    reordered_packets: int
    # Datagrams that came twice.
    duplicate_packets: int
    # Jitter at the end of the run (RFC 3550, section 6.4.1).
    jitter_ns: int
    # Segments sent again.
    retransmits: int
    # Bytes sent with MSG_ZEROCOPY that the kernel copied after all.
    zerocopy_copied_bytes: int
    # Bytes sent with MSG_ZEROCOPY that were not copied.
    zerocopy_true_bytes: int
    # Smallest round-trip time the kernel saw, in microseconds.
    min_rtt_us: int
    # CPU time of this end's thread of the stream, in microseconds.
    thread_cpu_us: int
    # Time in which this end's thread of the stream could have run but had no CPU, in microseconds.
    thread_wait_us: int
    # Blasts that ended whole, the first 256 of them; RBUDP only.
    blasts: NotRequired[list[Blast]]
    # All blasts that ended whole.
    whole_blasts: NotRequired[int]
    # What the path carried before the blasts began, where it was measured; RBUDP only.
    path_check: NotRequired[PathCheck | None]
    # What the kernel granted.
    granted: Granted


class Blast(TypedDict):
    """One blast of RBUDP: a payload that is sent until nothing of it is missing (He et al. 2002,
    section 3).
    """

    # Payload bytes.
    bytes: int
    # How often packets of it were sent and a report was waited for: 1 when nothing was missing (He
    # et al. 2002: N_resend + 1).
    passes: int
    # Packets it consists of.
    packets: int
    # Of these, missing after they had been sent once.
    first_pass_lost_packets: int
    # Packets sent in all, repeated ones included; 0 at the receiver.
    sent_packets: int
    # Microseconds from its first packet until this end knew that it was whole.
    elapsed_us: int


class PathCheck(TypedDict):
    """What a path carried of a short train at the stated rate before the blasts began."""

    # Payload rate of the trains, over all streams.
    rate_bps: int
    # Payload rate at which the path let the best train through, losses left out.
    carried_bps: int
    # Smallest round-trip time before the trains.
    min_rtt_us: int
    # Median round-trip time before the trains: what is above the smallest is others' queue.
    idle_rtt_us: int
    # Share of the trains' packets that never came.
    lost_share: float
    # Whether others use the path, or it cannot carry the rate without queues.
    shared: bool


class Granted(TypedDict):
    """What the kernel really granted to one end of a stream."""

    # Local address and port.
    local: str
    # Remote address and port.
    remote: str
    # Congestion control in use.
    congestion_control: str | None
    # MSS in use.
    mss_bytes: int | None
    # Send buffer as the kernel reports it (twice what was asked for, on Linux).
    send_buffer_bytes: int | None
    # Receive buffer as the kernel reports it.
    receive_buffer_bytes: int | None
    # Whether both ends really speak Multipath TCP on this stream.
    mptcp: bool | None
    # UDP payload per datagram in use.
    packet_bytes: int | None
    # Datagrams per call in use.
    batch_packets: int | None
    # Whether segmentation offload is in use.
    gso: bool | None
    # Whether receive offload is in use.
    gro: bool | None
    # CPU the stream's thread is pinned to.
    cpu: int | None
    # Requests the kernel refused or changed, one line each.
    notes: list[str]


class Summary(TypedDict):
    """What a run comes to, computed from its samples."""

    # Client to server, as the receiver saw it.
    forward: Throughput | None
    # Server to client, as the receiver saw it.
    reverse: Throughput | None
    # Segments sent again, over all streams.
    retransmits: int | None
    # Datagrams sent, over all streams.
    sent_packets: int | None
    # Datagrams that never came, over all streams.
    lost_packets: int | None
    # Mean over streams of the jitter at the end of the run.
    jitter_ns: int | None
    # Mean of the round-trip-time samples at the senders.
    mean_rtt_us: float | None
    # Smallest round-trip time the kernel saw.
    min_rtt_us: int | None
    # CPU seconds of both ends per 10^9 payload bytes received.
    cpu_s_per_gb: float | None
    # CPU time of the client over wall time; 1 is one CPU; absent where it is not known.
    client_cpu: float | None
    # CPU time of the server over wall time; 1 is one CPU; absent where it is not known.
    server_cpu: float | None


class Throughput(TypedDict):
    """A throughput with what is needed to judge it."""

    # Payload bits per second over the whole run, ramp included.
    total_bps: float
    # Payload bits per second after the warm-up, if enough samples are left.
    steady_bps: float | None
    # Seconds left out as warm-up.
    omitted_s: float
    # How the warm-up was found: `mser-5`, `stated` or `none`; with `, by the sender` where the
    # receiver gave no samples.
    warmup_rule: str
    # Payload bytes received.
    bytes: int
    # Seconds from the start of the run to the last byte at the receiver.
    elapsed_s: float


class Verdict(TypedDict):
    """What limited a run, with the evidence."""

    # What limited it.
    limit: LimitedBy
    # One line for people.
    line: str
    # Figures the verdict rests on, one line each.
    evidence: list[str]
    # Commands or options that would lift the limit, one line each.
    remedies: list[str]


class EmulatedPath(TypedDict):
    """The emulated path a run went over."""

    # Name of the testbed.
    testbed: str
    # Host the client ran on.
    client_host: str
    # Host the server ran on.
    server_host: str
    # Round-trip time as emulated: propagation only, over the links between the two hosts.
    rtt_s: float
    # Smallest rate on the wire between the two hosts, client to server.
    rate_bps: int | None
    # The whole topology, as it stood at the end of the run.
    topology: Topology | None
    # How far the run can be trusted.
    stamp: ValidityStamp


class ValidityStamp(TypedDict):
    """How far a run over an emulated path can be trusted."""

    # Whether the emulator did what it was asked over the whole interval.
    valid: bool
    # Why not, one line each.
    reasons: list[str]
    # Length of the interval the stamp is about.
    wall_s: float
    # Packets (super-packets) handed to hosts.
    deliveries: int
    # Median of how late packets were handed over.
    lateness_p50_us: float
    # 99th percentile of the same.
    lateness_p99_us: float
    # Largest of the same.
    lateness_max_us: float
    # CPU time the hypervisor gave to others, over all CPUs.
    steal_s: float
    # Packets the kernel dropped between a host and the emulator (transmit ring of a TUN device).
    ring_drops: int
    # Packets the emulator could not hold or hand over.
    emulator_drops: int
    # Datagrams a host dropped because a socket's receive buffer was full: the host's doing, not the
    # path's.
    receive_buffer_drops: int
    # Times a host's kernel came short of memory for TCP or UDP: received data given up, datagrams
    # refused, windows held small.
    memory_prunes: int
    # Packets in minus packets out, dropped and in flight, over all links; 0 if nothing is
    # unexplained.
    unexplained_packets: int


class DrivenRun(TypedDict):
    """A run of a tool of another maker: what it was told, and what it says. What is absent it does
    not say.
    """

    # The tool.
    tool: Tool
    # Version of its client, as it says it.
    version: str | None
    # Options of the spec, by dotted path, that the tool was told; the others say nothing of this
    # run.
    told: list[str]
    # Command line of the client; a secret in it is `***`.
    client_command: list[str]
    # Command line of the server that farline started.
    server_command: list[str]
    # Where the server ran.
    server: str
    # Exit code of the client; 128 + n for signal n.
    exit_code: int | None
    # Seconds from the start of the client to its end.
    wall_s: float
    # Client to server.
    forward: DrivenFlow | None
    # Server to client.
    reverse: DrivenFlow | None
    # Segments or packets sent again.
    retransmits: int | None
    # Datagrams sent.
    sent_packets: int | None
    # Datagrams that never came.
    lost_packets: int | None
    # Jitter.
    jitter_ns: int | None
    # Smallest round-trip time.
    min_rtt_us: int | None
    # Mean round-trip time.
    mean_rtt_us: float | None
    # Congestion control of the sender.
    congestion_control: str | None
    # How far the destination was looked at; only of movers of files.
    proof: Proof | None
    # Files found at the destination.
    files: int | None
    # What is to be known of these figures, one line each.
    notes: list[str]
    # The last lines that the client printed, of a run that failed.
    output: list[str]


class DrivenFlow(TypedDict):
    """What came of one direction of a driven run."""

    # Payload bytes that count: of a mover those found at the destination, of a tester those that it
    # reports.
    bytes: int
    # Seconds that count: of a mover the wall clock of its client, of a tester its own time.
    elapsed_s: float
    # Payload bytes by the tool's own account.
    own_bytes: int | None
    # Seconds by the tool's own account.
    own_elapsed_s: float | None
    # Bits per second by the tool's own account.
    own_rate_bps: float | None


class Adjustment(TypedDict):
    """One change of a copy while it ran, or one that was refused."""

    # Microseconds from the start of the run at the client until the change was in force.
    at_us: int
    # What changed.
    knob: AdjustKnob
    # The value before; absent where farline itself chose it, or where a rate had no limit.
    before: NotRequired[int | None]
    # The value from then on, or the one that was refused; absent for a rate without limit.
    after: NotRequired[int | None]
    # Why it was refused, or not made in full; absent for a change that was made.
    refused: NotRequired[str | None]


class Samples(TypedDict):
    """Interval samples of one end, as columns of equal length."""

    # Which end took the sample: 0 client, 1 server.
    end: list[int]
    # Number of the stream, from 0.
    stream: list[int]
    # What this end does on the stream: 0 sends, 1 receives.
    role: list[int]
    # Start of the interval in microseconds since this end started the run.
    start_us: list[int]
    # End of the interval in microseconds since this end started the run.
    end_us: list[int]
    # Payload bytes sent or received in the interval.
    bytes: list[int]
    # Datagrams sent or received in the interval.
    packets: list[int]
    # Datagrams found missing in the interval; negative where late ones filled gaps counted before.
    lost_packets: list[int]
    # Datagrams that came after a later one.
    reordered_packets: list[int]
    # Datagrams that came twice.
    duplicate_packets: list[int]
    # Jitter at the end of the interval, in nanoseconds (RFC 3550, section 6.4.1).
    jitter_ns: list[int]
    # Segments sent again in the interval.
    retransmits: list[int]
    # Smoothed round-trip time at the end of the interval.
    rtt_us: list[int]
    # Mean deviation of the round-trip time.
    rttvar_us: list[int]
    # Congestion window.
    cwnd_bytes: list[int]
    # Window the receiver offers.
    receive_window_bytes: list[int]
    # Rate the kernel paces at.
    pacing_rate_bps: list[int]
    # Rate the kernel saw delivered.
    delivery_rate_bps: list[int]
    # Time in the interval in which there was data to send.
    busy_us: list[int]
    # Time in the interval held back by the receiver's window.
    receive_window_limited_us: list[int]
    # Time in the interval held back by the send buffer.
    send_buffer_limited_us: list[int]
    # Time in the interval held back by the congestion window: busy and neither of the other two.
    cwnd_limited_us: list[int]
    # Path MTU that the kernel uses.
    path_mtu_bytes: list[int]
    # CPU time of this end's thread of the stream in the interval.
    thread_cpu_us: list[int]
    # Time in the interval in which this end's thread of the stream could have run but had no CPU.
    thread_wait_us: list[int]
    # CPU time of this end's whole process in the interval.
    process_cpu_us: list[int]
    # Bytes sent with MSG_ZEROCOPY whose completion says that the kernel copied them after all.
    zerocopy_copied_bytes: list[int]
    # Times the sender waited for its own pacing or found it was late, in microseconds of wait.
    paced_wait_us: list[int]
    # Acknowledgements sent in the interval, light ones left out (UDT).
    sent_acks: list[int]
    # Acknowledgements received in the interval, light ones left out (UDT).
    received_acks: list[int]
    # Reports of losses sent in the interval (UDT).
    sent_naks: list[int]
    # Reports of losses received in the interval (UDT).
    received_naks: list[int]
    # Time between two packets that the congestion control asks for; 0 is without pacing (UDT).
    send_period_ns: list[int]
    # Packets that the other end's buffer and both ends' flow windows allow under way (UDT).
    flow_window_packets: list[int]
    # Packets under way (UDT).
    flight_packets: list[int]
    # Capacity of the path as the receiver estimates it from packet pairs (UDT).
    link_capacity_bps: list[int]
    # Bytes free in the send buffer (UDT).
    send_buffer_free_bytes: list[int]
    # Bytes free in the receive buffer (UDT).
    receive_buffer_free_bytes: list[int]


class TicketRecord(TypedDict):
    """A ticket as its server's folder remembers it: all but the signature, so that nobody can use
    what is listed.
    """

    # What the ticket says.
    claims: TicketClaims
    # Where its server is reached, `host:port`.
    address: str
    # Seconds since 1970 at which it was made; absent for a ticket that the folder has no record of.
    made_at_s: NotRequired[int | None]
    # Sessions used so far; counted only where their number is limited.
    used_sessions: int
    # Whether it was revoked.
    revoked: bool
    # Whether the server of this folder signed it.
    signed_here: bool


class LinkSamples(TypedDict):
    """Interval samples of the links of an emulated path, as columns of equal length."""

    # Number of the link in its topology, from 0.
    link: list[int]
    # Direction: 0 from `a` to `b`, 1 back.
    direction: list[int]
    # Start of the interval in microseconds since the emulator started.
    start_us: list[int]
    # End of the interval in microseconds since the emulator started.
    end_us: list[int]
    # Packets that came to the link in the interval.
    in_packets: list[int]
    # Bytes on the wire of the packets that came.
    in_bytes: list[int]
    # Packets that arrived at the link's far end in the interval.
    out_packets: list[int]
    # Bytes on the wire of the packets that arrived.
    out_bytes: list[int]
    # Packets dropped because the queue was full.
    tail_drop_packets: list[int]
    # Packets dropped by CoDel.
    codel_drop_packets: list[int]
    # Packets lost on the wire as ordered: random, in bursts or chosen.
    loss_packets: list[int]
    # Packets lost because the link was cut.
    cut_packets: list[int]
    # Packets larger than the link's MTU.
    mtu_drop_packets: list[int]
    # Packets marked with congestion experienced (CE).
    ecn_marked_packets: list[int]
    # Packets with a bit turned over.
    corrupted_packets: list[int]
    # Packets that arrive a second time.
    duplicated_packets: list[int]
    # Packets made late on purpose.
    reordered_packets: list[int]
    # Bytes on the wire waiting in the queue at the end of the interval, the packet being sent
    # included.
    backlog_bytes: list[int]
    # Most of the same within the interval.
    backlog_max_bytes: list[int]
    # Packets waiting, being sent or under way at the end of the interval.
    in_flight_packets: list[int]
    # Rate on the wire at the end of the interval; 0 is without limit.
    rate_bps: list[int]
    # Propagation delay at the end of the interval.
    delay_ns: list[int]


class MoverSamples(TypedDict):
    """Interval samples of the files of a copy at one end, as columns of equal length. Times are
    sums over threads.
    """

    # Which end took the sample: 0 client, 1 server.
    end: list[int]
    # What this end does: 0 sends files, 1 receives them.
    role: list[int]
    # Start of the interval in microseconds since this end started the run.
    start_us: list[int]
    # End of the interval in microseconds since this end started the run.
    end_us: list[int]
    # Bytes read from files in the interval, or written to them.
    file_bytes: list[int]
    # Payload bytes sent or received in the interval.
    moved_bytes: list[int]
    # Names settled in the interval.
    settled_files: list[int]
    # Time in the interval in reading or writing files.
    file_us: list[int]
    # Time in the interval in opening, naming and closing files.
    name_us: list[int]
    # Time in the interval in hashing.
    hash_us: list[int]
    # Time in the interval in sealing or opening frames.
    cipher_us: list[int]
    # Time in the interval in sending or receiving.
    stream_us: list[int]
    # Time in the interval in bringing data to the device.
    sync_us: list[int]
    # Time in the interval in which streams had nothing to send, or nowhere to put what came.
    starved_us: list[int]
    # Frames that wait between files and streams at the end of the interval.
    queued_frames: list[int]
    # Rate that the sender holds itself to at the end of the interval; -1 where it does not.
    held_rate_bps: list[int]


class CopyProgress(TypedDict):
    """How far a copy is, told a few times a second."""

    # Names found so far.
    found_files: int
    # Bytes in them.
    found_bytes: int
    # Whether all have been found: only then are the two above totals.
    all_found: bool
    # Names settled: copied, present, skipped.
    settled_files: int
    # Bytes settled, or on the destination's side of the path: what a bar shows.
    settled_bytes: int
    # Names that failed.
    failed_files: int
    # Payload bytes sent or received by this end.
    moved_bytes: int
    # Bytes that needed no sending.
    spared_bytes: int
    # Streams that moved something since the last time.
    busy_streams: int
    # Microseconds since the copy began.
    elapsed_us: int


class TransferEstimate(TypedDict):
    """What a transfer is expected to take: how long, how fast, how sure, and what to reserve."""

    # Version of this document.
    schema: int
    # Where the data are, as asked.
    source: str
    # Where they are to go, as asked.
    destination: str
    # When the question was asked.
    estimated_at: str
    # Bytes of all files.
    bytes: int
    # Files.
    files: int
    # Streams that are assumed: as asked, else those of the path's last transfer.
    streams: int
    # Rate in the middle: half of such transfers are faster.
    rate_bps: float
    # Duration in the middle: half of such transfers take longer.
    duration_s: float
    # Intervals of half, 80 % and 95 % of such transfers.
    intervals: list[EstimateInterval]
    # Confidence that was asked for.
    confidence: float
    # Rate that is reached with that confidence.
    rate_at_confidence_bps: float
    # Duration that is kept with that confidence.
    duration_at_confidence_s: float
    # What the estimate rests on.
    basis: EstimateBasis
    # Transfers that it rests on.
    transfers: int
    # When the newest of them ended.
    newest_transfer: str | None
    # Whether the path has had no transfer of this kind: the interval is wider then.
    new_kind: bool
    # When the transfer is to begin.
    start: str
    # When it is to be complete.
    deadline: str | None
    # Whether it is complete by then with the confidence that was asked for.
    meets_deadline: bool | None
    # How sure the deadline is, 0.01 to 0.99.
    deadline_confidence: float | None
    # When it has to begin for the deadline to hold with the confidence that was asked for.
    latest_start: str | None
    # What to reserve; null where the deadline does not hold with the confidence that was asked for.
    reservation: NetworkReservation | None


class EstimateInterval(TypedDict):
    """Where the rate and the duration of a share of such transfers lie."""

    # Share of transfers: 0.5, 0.8 or 0.95.
    cover: float
    # Lowest payload rate.
    rate_low_bps: float
    # Highest payload rate.
    rate_high_bps: float
    # Shortest duration.
    duration_low_s: float
    # Longest duration.
    duration_high_s: float


class NetworkReservation(TypedDict):
    """A reservation to ask a network for."""

    # Rate on the wire, headers included, rounded up to three digits.
    rate_bps: int
    # When it begins, RFC 3339 with an offset.
    start: str
    # When it ends, RFC 3339 with an offset.
    end: str


class CopyStages(TypedDict):
    """How far the three stages of a copy (reading, network, writing) are, told once an interval
    while it runs. Counters run from its start, so that a reader takes differences; what the
    other end has not told yet is absent.
    """

    # Microseconds since this end started the run.
    at_us: int
    # Data streams in force.
    streams: int
    # Data streams that are being opened and count already.
    opening_streams: int
    # Bytes read from files by the end that has them.
    read_bytes: int | None
    # Payload bytes that its streams took.
    sent_bytes: int | None
    # Payload bytes that the other end's streams brought.
    received_bytes: int | None
    # Bytes written to files there.
    written_bytes: int | None
    # Frames that wait between reading and the network, and how many fit.
    send_queue_frames: int | None
    # How many fit; 0 where streams read for themselves.
    send_room_frames: int | None
    # Frames that wait between the network and writing.
    receive_queue_frames: int | None
    # How many fit; 0 where streams write for themselves.
    receive_room_frames: int | None
    # Segments or packets sent again by the sending end, over its data streams.
    retransmits: int | None


class StorageLoadReport(TypedDict):
    """What came of a [`StorageLoad`]."""

    # Bytes moved by all lanes.
    bytes: int
    # Requests that were over.
    requests: int
    # When the first request began, nanoseconds of CLOCK_MONOTONIC.
    began_ns: int
    # When the last one was over, a sync at the end included.
    ended_ns: int
    # How much of that the sync at the end took, in the lane in which it took longest.
    sync_ns: int
    # Bytes of the lanes that were in the page cache when it was asked to begin; absent where the
    # kernel does not tell.
    cached_before_bytes: NotRequired[int | None]
    # Bytes of the lanes that were still there when the first request began; absent where the kernel
    # does not tell.
    cached_bytes: NotRequired[int | None]
    # Bytes of all lanes.
    span_bytes: int
    # How many requests took how long: place i counts those from 2^(i/4) to 2^((i+1)/4)
    # microseconds, the first also the shorter ones.
    latency_counts: list[int]
    # The longest, in nanoseconds.
    latency_max_ns: int


class StorageCounters(TypedDict):
    """What a file system of the testbed has done so far."""

    # Bytes that were read.
    read_bytes: int
    # Bytes that were written.
    written_bytes: int
    # Bytes that files take now.
    used_bytes: int
    # Messages that had to wait for a credit.
    waited_for_credit: int


# What the holder of a ticket may do.
Scope: TypeAlias = ScopeProfile | ScopeRead | ScopeWrite

# Columns of samples, in their order, with what each holds.
SAMPLE_COLUMNS: dict[str, str] = {
    "end": "Which end took the sample: 0 client, 1 server.",
    "stream": "Number of the stream, from 0.",
    "role": "What this end does on the stream: 0 sends, 1 receives.",
    "start_us": "Start of the interval in microseconds since this end started the run.",
    "end_us": "End of the interval in microseconds since this end started the run.",
    "bytes": "Payload bytes sent or received in the interval.",
    "packets": "Datagrams sent or received in the interval.",
    "lost_packets": "Datagrams found missing in the interval; negative where late ones filled gaps counted before.",
    "reordered_packets": "Datagrams that came after a later one.",
    "duplicate_packets": "Datagrams that came twice.",
    "jitter_ns": "Jitter at the end of the interval, in nanoseconds (RFC 3550, section 6.4.1).",
    "retransmits": "Segments sent again in the interval.",
    "rtt_us": "Smoothed round-trip time at the end of the interval.",
    "rttvar_us": "Mean deviation of the round-trip time.",
    "cwnd_bytes": "Congestion window.",
    "receive_window_bytes": "Window the receiver offers.",
    "pacing_rate_bps": "Rate the kernel paces at.",
    "delivery_rate_bps": "Rate the kernel saw delivered.",
    "busy_us": "Time in the interval in which there was data to send.",
    "receive_window_limited_us": "Time in the interval held back by the receiver's window.",
    "send_buffer_limited_us": "Time in the interval held back by the send buffer.",
    "cwnd_limited_us": "Time in the interval held back by the congestion window: busy and neither of the other two.",
    "path_mtu_bytes": "Path MTU that the kernel uses.",
    "thread_cpu_us": "CPU time of this end's thread of the stream in the interval.",
    "thread_wait_us": "Time in the interval in which this end's thread of the stream could have run but had no CPU.",
    "process_cpu_us": "CPU time of this end's whole process in the interval.",
    "zerocopy_copied_bytes": "Bytes sent with MSG_ZEROCOPY whose completion says that the kernel copied them after all.",
    "paced_wait_us": "Times the sender waited for its own pacing or found it was late, in microseconds of wait.",
    "sent_acks": "Acknowledgements sent in the interval, light ones left out (UDT).",
    "received_acks": "Acknowledgements received in the interval, light ones left out (UDT).",
    "sent_naks": "Reports of losses sent in the interval (UDT).",
    "received_naks": "Reports of losses received in the interval (UDT).",
    "send_period_ns": "Time between two packets that the congestion control asks for; 0 is without pacing (UDT).",
    "flow_window_packets": "Packets that the other end's buffer and both ends' flow windows allow under way (UDT).",
    "flight_packets": "Packets under way (UDT).",
    "link_capacity_bps": "Capacity of the path as the receiver estimates it from packet pairs (UDT).",
    "send_buffer_free_bytes": "Bytes free in the send buffer (UDT).",
    "receive_buffer_free_bytes": "Bytes free in the receive buffer (UDT).",
}

# Columns of samples of links, in their order, with what each holds.
LINK_SAMPLE_COLUMNS: dict[str, str] = {
    "link": "Number of the link in its topology, from 0.",
    "direction": "Direction: 0 from `a` to `b`, 1 back.",
    "start_us": "Start of the interval in microseconds since the emulator started.",
    "end_us": "End of the interval in microseconds since the emulator started.",
    "in_packets": "Packets that came to the link in the interval.",
    "in_bytes": "Bytes on the wire of the packets that came.",
    "out_packets": "Packets that arrived at the link's far end in the interval.",
    "out_bytes": "Bytes on the wire of the packets that arrived.",
    "tail_drop_packets": "Packets dropped because the queue was full.",
    "codel_drop_packets": "Packets dropped by CoDel.",
    "loss_packets": "Packets lost on the wire as ordered: random, in bursts or chosen.",
    "cut_packets": "Packets lost because the link was cut.",
    "mtu_drop_packets": "Packets larger than the link's MTU.",
    "ecn_marked_packets": "Packets marked with congestion experienced (CE).",
    "corrupted_packets": "Packets with a bit turned over.",
    "duplicated_packets": "Packets that arrive a second time.",
    "reordered_packets": "Packets made late on purpose.",
    "backlog_bytes": "Bytes on the wire waiting in the queue at the end of the interval, the packet being sent included.",
    "backlog_max_bytes": "Most of the same within the interval.",
    "in_flight_packets": "Packets waiting, being sent or under way at the end of the interval.",
    "rate_bps": "Rate on the wire at the end of the interval; 0 is without limit.",
    "delay_ns": "Propagation delay at the end of the interval.",
}

# Columns of samples of files, in their order, with what each holds.
MOVER_SAMPLE_COLUMNS: dict[str, str] = {
    "end": "Which end took the sample: 0 client, 1 server.",
    "role": "What this end does: 0 sends files, 1 receives them.",
    "start_us": "Start of the interval in microseconds since this end started the run.",
    "end_us": "End of the interval in microseconds since this end started the run.",
    "file_bytes": "Bytes read from files in the interval, or written to them.",
    "moved_bytes": "Payload bytes sent or received in the interval.",
    "settled_files": "Names settled in the interval.",
    "file_us": "Time in the interval in reading or writing files.",
    "name_us": "Time in the interval in opening, naming and closing files.",
    "hash_us": "Time in the interval in hashing.",
    "cipher_us": "Time in the interval in sealing or opening frames.",
    "stream_us": "Time in the interval in sending or receiving.",
    "sync_us": "Time in the interval in bringing data to the device.",
    "starved_us": "Time in the interval in which streams had nothing to send, or nowhere to put what came.",
    "queued_frames": "Frames that wait between files and streams at the end of the interval.",
    "held_rate_bps": "Rate that the sender holds itself to at the end of the interval; -1 where it does not.",
}
