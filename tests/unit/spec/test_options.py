"""Command-line options of a run: iperf3's letters, sections, sweeps, refusals."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from farline.spec.letters import DSCP_NAMES, dscp_value
from farline.spec.options import Grid, grid_from_options, run_options, spec_from_options
from farline.spec.table import OPTIONS
from farline.spec.values import option_at, read_value


def parse(*arguments: str) -> dict[str, Any]:
    """The spec document of a command line."""
    document: dict[str, Any] = _parse(arguments, sweep=False)
    return document


def sweep(*arguments: str) -> Grid:
    """The grid of a command line."""
    grid: Grid = _parse(arguments, sweep=True)
    return grid


def _parse(arguments: tuple[str, ...], sweep: bool) -> Any:
    parsed: list[Any] = []

    @click.command()
    @run_options(sweep=sweep)
    def command(**values: Any) -> None:
        parsed.append(grid_from_options(values) if sweep else spec_from_options(values))

    result = CliRunner().invoke(command, list(arguments))
    if result.exit_code:
        raise click.UsageError(result.output.strip().splitlines()[-1])
    return parsed[0]


def test_nothing_given_is_an_empty_document() -> None:
    assert parse() == {}
    assert sweep() == Grid({}, {})


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (["-P", "4"], {"streams": 4}),
        (["--parallel", "4"], {"streams": 4}),
        (["-l", "64K"], {"block_bytes": 65536}),
        (["-u", "-l", "1400"], {"transport": "udp", "udp": {"packet_bytes": 1400}}),
        (["-u", "--block", "64K"], {"transport": "udp", "block_bytes": 65536}),
        (["-t", "2"], {"duration_s": 2.0}),
        (["-n", "1G"], {"total_bytes": 1 << 30}),
        (["-k", "10", "-l", "1K"], {"block_bytes": 1024, "total_bytes": 10240}),
        (["-b", "10G"], {"rate_bps": 10**10}),
        (["-b", "1GiB/s"], {"rate_bps": 8 << 30}),
        (
            ["-u", "-b", "1G/32"],
            {"transport": "udp", "rate_bps": 10**9, "udp": {"batch_packets": 32}},
        ),
        (["-w", "1M"], {"tcp": {"send_buffer_bytes": 1 << 20, "receive_buffer_bytes": 1 << 20}}),
        (
            ["-u", "--send-buffer", "1M"],
            {"transport": "udp", "udp": {"send_buffer_bytes": 1 << 20}},
        ),
        (["-R"], {"direction": "reverse"}),
        (["--bidir"], {"direction": "bidirectional"}),
        (["-C", "bbr", "-M", "1400"], {"tcp": {"congestion_control": "bbr", "mss_bytes": 1400}}),
        (["-N"], {"tcp": {"no_delay": True}}),
        (["-Z"], {"tcp": {"send_mode": "sendfile"}}),
        (["--skip-rx-copy"], {"tcp": {"receive_mode": "discard"}}),
        (["-A", "2"], {"client_cpus": [2]}),
        (["-A", "2,3"], {"client_cpus": [2], "server_cpus": [3]}),
        (["--client-cpus", "0-2,5"], {"client_cpus": [0, 1, 2, 5]}),
        (["-B", "10.0.0.1%eth0"], {"pairs": [{"source": "10.0.0.1", "source_device": "eth0"}]}),
        (
            ["--pair", "10.0.0.1=10.0.1.1", "--pair", "10.0.0.2=::1"],
            {
                "pairs": [
                    {"source": "10.0.0.1", "destination": "10.0.1.1"},
                    {"source": "10.0.0.2", "destination": "::1"},
                ]
            },
        ),
        (["-4"], {"ip_version": "v4"}),
        (["-6"], {"ip_version": "v6"}),
        (["-S", "0x10"], {"tos": 16}),
        (["--dscp", "EF"], {"tos": 184}),
        (["-u", "--no-gso"], {"transport": "udp", "udp": {"gso": False}}),
        (["--connect-timeout", "250ms"], {"connect_timeout_ms": 250}),
        (["--user-timeout", "5s"], {"tcp": {"user_timeout_ms": 5000}}),
        (["--transport", "udt", "-l", "1456"], {"transport": "udt", "block_bytes": 1456}),
        (
            ["--transport", "udt", "-w", "10M", "-C", "native", "--packet", "1472"],
            {
                "transport": "udt",
                "udt": {
                    "send_buffer_bytes": 10 << 20,
                    "receive_buffer_bytes": 10 << 20,
                    "congestion_control": "native",
                    "packet_bytes": 1472,
                },
            },
        ),
        (
            ["--transport", "udt", "--flow-window", "25600", "--linger", "3s", "--gsro"],
            {
                "transport": "udt",
                "udt": {"flow_window_packets": 25600, "linger_s": 3.0, "gso": True, "gro": True},
            },
        ),
        (["-u", "--gsro"], {"transport": "udp", "udp": {"gso": True, "gro": True}}),
        # The spec refuses what belongs to another transport; nothing is dropped in silence.
        (["--packet", "1472"], {"udp": {"packet_bytes": 1472}}),
        (["-u", "-C", "reno"], {"transport": "udp", "tcp": {"congestion_control": "reno"}}),
    ],
)  # fmt: skip
def test_letters_mean_what_they_mean_in_iperf3(
    arguments: list[str], document: dict[str, Any]
) -> None:
    assert parse(*arguments) == document


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-M", "7"], "allowed: 88 to 32767 bytes"),
        (["--user-timeout", "50ms"], "50 is out of range; allowed: 100 to 86400000 ms"),
        (["--user-timeout", "2d"], "allowed: 100 to 86400000 ms"),
        (["--transport", "sctp"], "allowed: tcp, udp, udt, rbudp, quic, null"),
        (["-R", "--bidir"], "both set direction: use one"),
        (["-u", "--transport", "tcp"], "both set transport: use one"),
        (["-w", "1M", "--send-buffer", "2M"], "both set tcp.send_buffer_bytes"),
        (["-4", "-6"], "both set ip_version"),
        (["-k", "10"], "set the block size with -l"),
        (["-k", "x", "-l", "1K"], "not a whole number above 0"),
        (["-b", "1G/32"], "it needs -u"),
        (["-B", "nowhere"], "is not an IP address"),
        (["-B", "10.0.0.1=10.0.0.2"], "use --pair"),
        (["--pair", "="], "is not a pair"),
        (["-A", "x"], "not a whole number"),
        (["--client-cpus", "5-2"], "not a range"),
        (["--dscp", "99"], "is not a DSCP"),
        (["--get-server-output"], "No such option"),
        (["-C", "a-name-that-is-too-long"], "23 characters; allowed: 1 to 15"),
        (["--transport", "udt", "-C", "cubic"], "-C: 'cubic' is not allowed; allowed: bbr,"),
        (["--transport", "udt", "--packet", "40"], "--packet: 40 is out of range; allowed: 64"),
        (["-u", "--packet", "20"], "--packet: 20 is out of range; allowed: 32"),
        (["--transport", "udt", "-b", "1G/32"], "it needs -u"),
        (["--transport", "udt", "--flow-window", "31"], "allowed: 32 to 16777216 packets"),
    ],
)
def test_refusals_say_what_is_allowed(arguments: list[str], reason: str) -> None:
    with pytest.raises(click.UsageError, match=reason.replace("(", r"\(")):
        parse(*arguments)


def test_lists_and_ranges_become_axes() -> None:
    grid = sweep("-l", "64K..256K*2", "-P", "1,2", "-C", "reno,bbr", "-t", "2", "-w", "1M")
    assert grid.axes == {
        "block_bytes": (65536, 131072, 262144),
        "streams": (1, 2),
        "tcp.congestion_control": ("reno", "bbr"),
    }
    assert grid.fixed == {
        "duration_s": 2.0,
        "tcp": {"send_buffer_bytes": 1 << 20, "receive_buffer_bytes": 1 << 20},
    }


def test_any_option_sweeps_by_its_path() -> None:
    grid = sweep("--sweep", "tcp.no_delay=on,off", "--sweep", "client_cpus=0;0,1")
    assert grid.axes == {"tcp.no_delay": (True, False), "client_cpus": ([0], [0, 1])}
    with pytest.raises(click.UsageError, match="cannot vary within a campaign"):
        sweep("--sweep", "seed=1,2")
    with pytest.raises(click.UsageError, match=r"is not an option; did you mean streams\?"):
        sweep("--sweep", "strems=1,2")


def test_a_shared_flag_goes_to_every_transport_compared() -> None:
    grid = sweep("--transport", "tcp,udp", "--send-buffer", "1M,2M")
    assert grid.axes["tcp.send_buffer_bytes"] == grid.axes["udp.send_buffer_bytes"]
    with pytest.raises(click.UsageError, match="use --block and --packet"):
        sweep("--transport", "tcp,udp", "-l", "1K")
    grid = sweep("--transport", "tcp,udt", "-C", "bbr,reno", "-l", "64K", "-w", "1M,2M")
    assert grid.axes["tcp.congestion_control"] == grid.axes["udt.congestion_control"]
    assert grid.axes["udt.send_buffer_bytes"] == (1 << 20, 2 << 20)
    assert grid.fixed["block_bytes"] == 65536
    with pytest.raises(click.UsageError, match="'cubic' is not allowed"):
        sweep("--transport", "tcp,udt", "-C", "bbr,cubic")


def test_every_option_of_the_table_has_a_spelling_or_is_the_schema() -> None:
    assert {option.path for option in OPTIONS if not option.flags} <= {"schema"}


def test_plain_json_is_held_to_kind_and_range() -> None:
    assert read_value(option_at("streams"), 4) == 4
    assert read_value(option_at("rate_bps"), "10G") == 10**10
    for path, raw in (("streams", 0), ("streams", True), ("streams", 1.5), ("tcp.no_delay", 1)):
        with pytest.raises(ValueError, match=r"out of range|not a"):
            read_value(option_at(path), raw)


def test_dscp_names_follow_their_rfcs() -> None:
    assert (dscp_value("af41"), dscp_value("cs1"), dscp_value("ef")) == (34, 8, 46)
    assert all(0 <= value <= 63 for value in DSCP_NAMES.values())
