"""The pages of `farline probe`, `app-perf`, `profile`, `fairness` and `host`."""

from __future__ import annotations

from farline.cli.manual.page import NETWORK_EXITS, Options, Page

_TARGET = Options("Server", "-p", "-c --connect-timeout")
_RUN = Options(
    "Run",
    "--transport -t -n -P -R -b -O",
    "--duration --direction --bidir -u --rate --block -l -k -i --seed",
)
TOOL = Options(
    "Other tools",
    "--tool",
    "--tool-server --tool-timeout --tool-stripes --tool-command --tool-server-command"
    " --tool-result",
)
_TCP = Options("Transport", "-C -w -Z", "--skip-rx-copy --gsro")
_NETWORK = Options(
    "Network",
    "-4 -6 -B",
    "--ip-version --pair --client-cpus --server-cpus -A --tos --dscp --flow-label",
)
_LINK = " ".join(
    f"--link-{name}"
    for name in (
        "delay", "jitter", "jitter-shape", "queue-bytes", "queue-packets", "queue-bdp",
        "queue-discipline", "ecn", "ecn-threshold", "corrupt", "corrupt-hidden", "duplicate",
        "reorder", "reorder-delay", "mtu", "framing",
    )
)  # fmt: skip

PAGES = {
    "tools": Page(
        options=(Options("Output", "--json"),),
        examples=(
            ("List them, with what is installed here", "farline tools"),
            ("Show which options GridFTP takes, and its names for them", "farline tools gridftp"),
        ),
        see_also=("farline copy", "farline probe", "farline profile", "docs/guide/tools.md"),
    ),
    "probe": Page(
        options=(
            _TARGET,
            _RUN,
            _TCP,
            TOOL,
            _NETWORK,
            Options("Output", "--json -J -V", "--json-stream -T --extra-data --store --no-store"),
        ),
        examples=(
            ("In another terminal: serve on this machine",
             "farline serve --anonymous --listen 127.0.0.1"),
            ("Measure TCP for ten seconds", "farline probe 127.0.0.1"),
            ("Measure four streams from the server to here", "farline probe 127.0.0.1 -P 4 -R"),
            ("Measure UDT with its own congestion control",
             "farline probe 127.0.0.1 --transport udt --congestion native"),
        ),
        exits=NETWORK_EXITS,
        see_also=("farline serve", "farline profile", "farline show", "docs/guide/probe.md"),
    ),
    "tune": Page(
        options=(
            Options("Search", "--budget --for --knobs --nodes -n", "--search --transport -C"),
            Options("What is known", "--explain --forget --export"),
            Options("Server", "-p -R"),
            Options("Other tools", "--tool", "--tool-server"),
            Options(
                "Copy over ssh", "-e -P -i",
                "-o -F -J --remote-farline --bootstrap --bootstrap-program --start-timeout --tunnel"
                " --connect-back --single-port --data-ports",
            ),
            Options("Output", "--report --json", "--store --no-store"),
        ),
        examples=(
            ("Find how many streams the path to a host needs", "farline tune dtn.example.org"),
            ("Try settings with pieces of a copy", "farline tune data/ dtn.example.org:data/"),
            ("Try congestion controls and buffers, too",
             "farline tune dtn.example.org --knobs streams,congestion,buffers"),
            ("Find how many streams GridFTP needs", "farline tune dtn.example.org --tool gridftp"),
            ("Find how many nodes a testbed's path needs", "farline tune --nodes 4"),
            ("Choose from past transfers, without a sample", "farline tune dtn.example.org -n"),
            ("Show what is known of a path", "farline tune dtn.example.org --explain"),
        ),
        exits=NETWORK_EXITS,
        see_also=("farline copy", "farline profile", "docs/guide/tune.md"),
    ),
    "app-perf": Page(
        options=(
            _TARGET,
            Options("Rounds", "--rounds"),
            _RUN,
            _TCP,
            _NETWORK,
            Options("Output", "--json -V", "-T --extra-data --store --no-store"),
        ),
        examples=(
            ("In another terminal: serve on this machine",
             "farline serve --anonymous --listen 127.0.0.1"),
            ("Measure the bounds of TCP", "farline app-perf 127.0.0.1"),
            ("Measure the bounds of UDP", "farline app-perf 127.0.0.1 -u -b 0"),
        ),
        exits=NETWORK_EXITS,
        see_also=("farline probe", "docs/guide/app-perf.md"),
    ),
    "profile": Page(
        options=(
            _TARGET,
            _RUN,
            Options(
                "Grid",
                "--sweep --repetitions --half-width --dry-run --resume",
                "--min-repetitions --max-repetitions --confidence --reference --pause",
            ),
            Options(
                "Emulated path",
                "--rtt --link-rate --link-loss --testbed",
                f"--client-host --server-host --link --host-cpus --count-invalid {_LINK}",
            ),
            _TCP,
            TOOL,
            _NETWORK,
            Options("Output", "--report --json", "--name -T --extra-data --store"),
        ),
        examples=(
            ("Measure over emulated round-trip times",
             "farline profile --rtt 0,11.8ms,45ms -P 1,4 -t 5"),
            ("Show the runs of a grid without starting them",
             "farline profile 127.0.0.1 -P 1,2,4 --transport tcp,udt --dry-run"),
            ("Measure to a host, and write a report",
             "farline profile 127.0.0.1 -P 1,2,4 -t 5 --report report"),
        ),
        exits=NETWORK_EXITS,
        see_also=(
            "farline report", "farline testbed", "farline runs", "docs/guide/first-profile.md",
        ),
    ),
    "fairness": Page(
        options=(
            _TARGET,
            Options(
                "Sharing",
                "--load --background --repetitions --tool --dry-run --resume",
                "--lead --reference --capacity --tool-timeout --tool-server --tool-command"
                " --tool-server-command --tool-result --tool-stripes",
            ),
            _RUN,
            Options(
                "Emulated line",
                "--rtt --link-rate --testbed",
                f"--background-rtt --link-loss --link --host-cpus --count-invalid {_LINK}",
            ),
            _TCP,
            _NETWORK,
            Options("Output", "--report --json", "--name -T --extra-data --store"),
        ),
        examples=(
            ("Measure UDT beside one CUBIC flow on an emulated line",
             "farline fairness --transport udt --link-rate 100Mbit --rtt 10ms"),
            ("Measure four streams beside other background, at two loads",
             "farline fairness -P 4 --background tcp:reno --load 20%,90% --link-rate 100Mbit"),
            ("Run a plan, and write a report",
             "farline fairness plans/fairness-dumbbell.toml --report report"),
        ),
        exits=(*NETWORK_EXITS, (3, "An expectation of the plan does not hold.")),
        see_also=("farline profile", "farline testbed", "docs/guide/fairness.md"),
    ),
    "host": Page(
        options=(
            Options("Path", "--rate --rtt -P --loss --interface"),
            Options("Output", "--map --sysctl --json --no-measure"),
            Options("Firewall", "--firewall -p --data-ports"),
        ),
        examples=(
            ("Check for a path of 10 Gbit/s and 100 ms", "farline host"),
            ("Check for another path", "farline host --rate 100Gbit --rtt 60ms -P 8"),
            ("Print kernel settings for /etc/sysctl.d", "farline host --rtt 150ms --sysctl"),
            ("Print firewall rules for a server", "farline host --firewall"),
        ),
        see_also=("farline probe", "farline nodes", "docs/guide/host.md"),
    ),
    "nodes": Page(
        options=(
            Options("Output", "--json"),
            Options(
                "Connection over ssh",
                "-P -i -o -e --remote-farline",
                "-F -J -4 -6 --start-timeout",
            ),
        ),
        exits=NETWORK_EXITS,
        examples=(
            ("Show eight nodes that ssh leads to", "farline nodes 'dtn[1-8]:/data'"),
            ("Show four nodes of Slurm's partition xfer", "farline nodes slurm:xfer:4/data"),
            ("Show a pool of pools.toml, for scripts", "farline nodes --json archive:/data"),
        ),
        see_also=("farline copy", "farline host", "docs/guide/nodes.md"),
    ),
}  # fmt: skip
