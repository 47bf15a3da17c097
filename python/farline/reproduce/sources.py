"""The campaigns that items stand on: plans of `plans/`, and what the quick scale changes in them.

The quick scale is for a machine that has other work too: fewer settings, shorter runs, lower rates.
Where rates or round-trip times are scaled, what decides the shape stays: payload over rate and
round-trip time, queue in bandwidth-delay products, observation over ramp. Its runs count although
the emulator was late in some; by how much stands in the error budget (`budget`).
"""

from __future__ import annotations

from collections.abc import Mapping

from farline.reproduce.plans import Source

_ONCE = {"campaign.repetitions": 1, "campaign.count_invalid": True}
_TWICE = {"campaign.repetitions": 2, "campaign.count_invalid": True}
_THRICE = {"campaign.repetitions": 3, "campaign.count_invalid": True}
_SHORT_RTTS = ["0.4ms", "1.18ms", "2.26ms", "4.56ms", "9.16ms", "18.3ms", "36.6ms"]
_TPG_FULL = {"fixed.duration_s": "120s"}
_BBR_WORDS = " With farline's congestion control: UDT's own needs seconds to find its rate."
_TPG_SOME = "Runs of 2 s instead of 120, some of the settings, each "
_TPG_WORDS = _TPG_SOME + "twice."

_LANES = {
    "campaign.reference": "none", "path.testbed": "multi-nic", "grid": {"streams": [2]},
    "fixed.rate_bps": "100M", "fixed.udt.congestion_control": "bbr",
    "fixed.pairs": [
        {"source": "10.77.0.1", "destination": "10.77.0.2"},
        {"source": "10.77.0.3", "destination": "10.77.0.4"},
    ],
}  # fmt: skip
NO_LOSS, LOSSY = "550 Mbit/s", "610 Mbit/s, 7 % loss"
"""Points of plans/rbudp-payload.toml."""

_SOURCES = (
    Source(
        "tpg-table1", "tpg-table1.toml",
        {**_TWICE, "fixed.duration_s": "2s"}, "Runs of 2 s instead of 120, each twice.",
        _TPG_FULL, "Runs of 120 s, as in the paper.",
    ),
    Source(
        "tpg-packet-size", "tpg-packet-size.toml",
        {**_TWICE, "fixed.duration_s": "2s", "campaign.reference": "none",
         "fixed.udt.congestion_control": "bbr", "grid.udt.packet_bytes": [1472, 4472, 8972],
         "together.buffers_bytes.values": ["1M", "4M"]},
        _TPG_WORDS + _BBR_WORDS,
        _TPG_FULL, "Runs of 120 s, as in the paper.",
    ),
    Source(
        "tpg-block-size", "tpg-block-size.toml",
        {**_THRICE, "fixed.duration_s": "2s", "campaign.reference": "none",
         "fixed.udt.congestion_control": "bbr", "grid.block_bytes": [8955, 35823, 107471, 179119],
         "together.buffers_bytes.values": ["128K", "1M", "4M", "64M"]},
        _TPG_SOME + "three times." + _BBR_WORDS,
        _TPG_FULL, "Runs of 120 s, as in the paper.",
    ),
    Source(
        "tpg-tiny-blocks", "tpg-block-size.toml",
        {**_TWICE, "fixed.duration_s": "2s", "campaign.reference": "none", "together": None,
         "fixed.udt.congestion_control": "bbr", "fixed.udt.packet_bytes": 1472,
         "grid.block_bytes": [64, 256, 1455, 8955, 89559]},
        "Blocks down to 64 bytes, runs of 2 s, each twice.",
        {"campaign.reference": "none", "together": None,
         "fixed.udt.packet_bytes": 1472, "grid.block_bytes": [64, 256, 1455, 8955, 89559]},
        "Blocks down to 64 bytes.",
    ),
    Source(
        "tpg-buffers", "tpg-buffers.toml",
        {**_TWICE, "fixed.duration_s": "2s", "campaign.reference": "none",
         "fixed.udt.congestion_control": "bbr",
         "together.send_buffers_bytes.values": ["128K", "1M", "64M"],
         "together.receive_buffers_bytes.values": ["128K", "1M", "64M"]},
        _TPG_WORDS + _BBR_WORDS,
        _TPG_FULL, "Runs of 120 s, as in the paper.",
    ),
    Source(
        "tpg-lanes", "tpg-streams.toml",
        {**_ONCE, **_LANES, "fixed.duration_s": "2s"}, "100 Mb/s in each stream, 2 s, once.",
        {**_LANES, "campaign.repetitions": 1}, "100 Mb/s in each stream, once.",
    ),
    Source(
        "tpg-streams", "tpg-streams.toml",
        {**_TWICE, "fixed.duration_s": "2s", "grid.streams": [1, 2, 4, 8]}, _TPG_WORDS,
        _TPG_FULL, "Runs of 120 s, as in the paper.",
    ),
    Source(
        "end-to-end-streams", "end-to-end-streams.toml",
        {**_ONCE, "grid.total_bytes": ["17MB", "33MB", "67MB", "133MB"]},
        "Samples of a quarter of the plan's size, once.",
    ),
    Source(
        "fairness-dumbbell", "fairness-dumbbell.toml",
        {"fairness.loads": "20%,40%,60%,80%,100%", "fairness.repetitions": 2,
         "fairness.duration_s": "6s", "fairness.omit_s": "2s", "fairness.lead_s": "1s",
         "fairness.count_invalid": True},
        "Five loads, 6 s, each twice.", verb="fairness",
    ),
    Source(
        "tools-flows", "tools-flows.toml",
        {**_ONCE, "fixed.total_bytes": "150MB", "path.rate_bps": "200Mbit"},
        "200 Mb/s instead of 10 Gb/s, once.",
    ),
    Source(
        "copy-flows-jumbo", "copy-flows-jumbo.toml",
        {**_TWICE, "data.files": ["1x256MiB"],
         "point": ["disk, TCP", "disk, UDT", "memory, UDT", "memory, TCP, 1 flow",
                   "memory, TCP, 4 flows"]},
        "Files of 256 MiB, five of the settings, twice.",
    ),
    Source(
        "copy-flows-standard", "copy-flows-standard.toml",
        {**_TWICE, "data.files": ["1x256MiB"],
         "point": ["disk, TCP", "disk, UDT", "memory, UDT", "memory, TCP, 1 flow",
                   "memory, TCP, 4 flows"]},
        "Files of 256 MiB, five of the settings, twice.",
    ),
    Source(
        "rbudp-rates-receiver", "rbudp-rates-receiver.toml",
        {**_THRICE, "grid.rate_bps": ["1G", "3G", "5G", "5.76G", "6.1G"]},
        "Five of the rates, each three times.",
    ),
    Source(
        "rbudp-rates-network", "rbudp-rates-network.toml",
        {**_TWICE, "fixed.total_bytes": "6MB", "fixed.rbudp.payload_bytes": "6MB",
         "grid.rate_bps": ["10M", "20M", "30M", "40M", "50M", "55M", "58M", "61M"],
         "path.rate_bps": "62.2Mbit", "path.rtt_s": "11ms"},
        "A tenth of the rates over a tenth of the round-trip time, a hundredth of the payload.",
    ),
    Source(
        "rbudp-payload", "rbudp-payload.toml",
        {**_ONCE, "point": [NO_LOSS, LOSSY], f"point.{NO_LOSS}.rate_bps": "55M",
         f"point.{LOSSY}.rate_bps": "61M",
         "together.payload_bytes.values":
             ["100K", "500K", "1MB", "5MB", "10MB", "20MB", "40MB"]},
        "A tenth of the rates and of the payloads, up to 40 MB, once.",
    ),
    Source(
        "rbudp-parallel-tcp", "rbudp-parallel-tcp.toml",
        {**_ONCE, "fixed.duration_s": "8s"}, "Runs of 8 s, once.",
    ),
    Source(
        "tcp-rtt", "tcp-rtt.toml",
        {**_ONCE, "fixed.duration_s": "6s", "grid.streams": [1, 10], "path.rate_bps": "100Mbit",
         "path.rtt_s": _SHORT_RTTS, "path.loss": "0.1%"},
        "A tenth of the round-trip times at 100 Mb/s, runs of 6 s (as many ramps as 60 s at the"
        " paper's times), and 0.1 % loss, so that one stream of CUBIC meets as many losses in a"
        " round trip.",
        {"campaign.repetitions": 10}, "Ten repetitions, as in the paper.",
        before=(("testbed", "cc", "load", "htcp"),),
    ),
    Source(
        "tcp-rtt-clean", "tcp-rtt.toml",
        {**_TWICE, "fixed.duration_s": "4s", "grid.streams": [10],
         "grid.tcp.congestion_control": ["htcp"], "path.rate_bps": "100Mbit", "path.loss": None,
         "path.rtt_s": ["0.4ms", "1.18ms", "2.26ms", "4.56ms", "7ms", "9.16ms", "13ms", "18.3ms",
                        "24ms", "30ms", "36.6ms"]},
        "A tenth of the round-trip times at 100 Mb/s without loss, runs of 4 s, each twice.",
        {"campaign.repetitions": 10, "path.loss": None, "fixed.duration_s": "30s",
         "grid.streams": [10], "grid.tcp.congestion_control": ["htcp"]},
        "Without loss, ten repetitions, as in the paper.",
        before=(("testbed", "cc", "load", "htcp"),),
    ),
    Source(
        "tcp-window", "tcp-window.toml",
        {**_ONCE, "fixed.duration_s": "4s"}, "Runs of 4 s, once.",
    ),
    Source(
        "copy-xdd", "copy-xdd.toml",
        {**_THRICE, "data.files": ["1x16MiB"], "path.rate_bps": "200Mbit",
         "path.rtt_s": _SHORT_RTTS},
        "A tenth of the round-trip times at 200 Mb/s, files of 16 MiB (three times what the plan"
        " has over rate and round-trip time), each three times.",
    ),
    Source(
        "xdd-memory", "tcp-rtt.toml",
        {**_TWICE, "fixed.duration_s": None, "fixed.total_bytes": "16MiB",
         "grid.streams": [1, 4, 8],
         "grid.tcp.congestion_control": None, "path.loss": None, "path.rate_bps": "200Mbit",
         "path.rtt_s": _SHORT_RTTS},
        "The copies of copy-xdd from memory to memory: 16 MiB at 200 Mb/s, each twice.",
        {"campaign.repetitions": 3, "fixed.duration_s": None, "fixed.total_bytes": "256MiB",
         "grid.streams": [1, 4, 8], "grid.tcp.congestion_control": None, "path.loss": None,
         "path.rate_bps": "1Gbit",
         "path.rtt_s": ["0.4ms", "11.8ms", "22.6ms", "45.6ms", "91.6ms", "183ms", "366ms"]},
        "The copies of copy-xdd from memory to memory: 256 MiB at 1 Gb/s.",
    ),
    Source(
        "copy-gridftp", "copy-gridftp.toml",
        {**_ONCE, "fixed.tool": "gridftp", "grid.streams": [1, 16],
         "grid.copy.concurrency": [1, 16], "data.files": ["64x256KiB"], "path.rate_bps": "200Mbit",
         "path.rtt_s": ["0.4ms", "22.6ms", "45.6ms", "91.6ms", "150ms"]},
        "GridFTP in place of farline, the four corners of the grid, 200 Mb/s, files of 256 KiB,"
        " once.",
        {"fixed.tool": "gridftp"}, "GridFTP in place of farline.",
    ),
)  # fmt: skip

SOURCES: Mapping[str, Source] = {source.name: source for source in _SOURCES}
