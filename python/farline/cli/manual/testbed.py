"""The pages of `farline testbed`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

_GUIDE = "docs/guide/testbed.md"
_UP = ("Bring up two sites with a bottleneck of 10 Gbit/s and 100 ms",
       "farline testbed up dumbbell --rate 10Gbit --rtt 100ms")  # fmt: skip
_LINK = Options(
    "Link",
    "--rtt --rate --loss --queue-bdp",
    "--delay --jitter --jitter-shape --queue-bytes --queue-packets --queue-discipline --ecn"
    " --ecn-threshold --corrupt --corrupt-hidden --duplicate --reorder --reorder-delay --mtu"
    " --framing --direction",
)
_EMULATOR = Options("Emulator", "--set --seed", "--precise --host-cpus")
_WHICH = Options("Link", "--direction")

PAGES = {
    "testbed": Page(
        examples=(
            _UP,
            ("Run a program on one of its hosts",
             "farline testbed exec source -- ping -c 3 sink"),
            ("Take it down", "farline testbed down"),
        ),
        see_also=("farline profile --rtt 0,11.8ms,366ms", _GUIDE),
    ),
    "testbed up": Page(
        options=(_LINK, _EMULATOR, Options("Output", "--name --json")),
        examples=(
            _UP,
            ("Bring up two hosts back to back", "farline testbed up back-to-back --rtt 20ms"),
        ),
        see_also=("farline testbed presets", "farline testbed exec", _GUIDE),
    ),
    "testbed exec": Page(
        options=(Options("Emulation", "--stamp"),),
        examples=(
            ("Run a program on a host", "farline testbed exec source -- ping -c 3 sink"),
            ("Open a shell on a host", "farline testbed exec source"),
        ),
        see_also=("farline testbed status", _GUIDE),
    ),
    "testbed status": Page(
        options=(Options("Output", "--watch --json"),),
        examples=(("Watch the counters", "farline testbed status --watch"),),
        see_also=("farline testbed list", _GUIDE),
    ),
    "testbed list": Page(options=(Options("Output", "--json"),), see_also=(_GUIDE,)),
    "testbed change": Page(
        options=(_LINK,),
        examples=(("Lose one packet in a thousand from now on",
                   "farline testbed change --loss 0.001"),),
        see_also=("farline testbed cut", _GUIDE),
    ),
    "testbed cut": Page(
        options=(_WHICH,),
        examples=(("Cut the main link", "farline testbed cut"),),
        see_also=("farline testbed restore", _GUIDE),
    ),
    "testbed restore": Page(
        options=(_WHICH,),
        examples=(("Restore the main link", "farline testbed restore"),),
        see_also=("farline testbed cut", _GUIDE),
    ),
    "testbed capture": Page(
        options=(Options("Capture", "--seconds --snap --direction"),),
        examples=(("Capture the main link for ten seconds",
                   "farline testbed capture link.pcap --seconds 10"),),
        see_also=(_GUIDE,),
    ),
    "testbed down": Page(
        options=(Options("Testbeds", "--all"),),
        examples=(("Take down all testbeds", "farline testbed down --all"),),
        see_also=("farline testbed up", _GUIDE),
    ),
    "testbed presets": Page(
        options=(Options("Output", "--json"),), see_also=("farline testbed show", _GUIDE)
    ),
    "testbed show": Page(
        options=(_LINK, _EMULATOR, Options("Output", "--json")),
        examples=(("Write a topology to start from",
                   "farline testbed show dumbbell --rtt 100ms > mine.toml"),),
        see_also=("farline testbed up", _GUIDE),
    ),
    "testbed storage": Page(
        options=(
            Options("File system", "--process-rate --total-rate --latency --credits --capacity"),
            Options("Time", "--for"),
        ),
        examples=(
            ("Measure a file system that holds each process to a rate",
             "farline testbed storage lustre-like /mnt/slow -- farline storage /mnt/slow"),
            ("Mount one whose messages take 100 ms, for ten minutes",
             "farline testbed storage --latency 100ms --for 10m lnet-like /mnt/far"),
        ),
        see_also=("farline storage", "docs/guide/storage.md"),
    ),
    "testbed cc": Page(
        examples=(("List congestion controls", "farline testbed cc list"),),
        see_also=("docs/guide/congestion-controls.md",),
    ),
    "testbed cc list": Page(options=(Options("Output", "--json"),)),
    "testbed cc load": Page(
        examples=(("Load H-TCP", "farline testbed cc load htcp"),),
        see_also=("farline testbed cc list", "docs/guide/congestion-controls.md"),
    ),
    "testbed cc unload": Page(see_also=("farline testbed cc list",)),
}  # fmt: skip
