"""The pages of `farline analyze`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

_GUIDE = "docs/guide/analyze.md"
_SOURCE = Options(
    "Sources",
    "--infrastructure --store",
    "--runs --logs --format --map --set --engine --table",
)
_SELECT = Options(
    "Selection",
    "--modality --sites --since --where",
    "--at-site --until --min-rate --min-bytes",
)
_SHAPE = Options("Profiles", "--capacity", "--merge --confidence")
_OUTPUT = Options("Output", "--figure --json")

PAGES = {
    "analyze": Page(
        examples=(
            ("Import a log into the store", "farline analyze ingest gridftp-transfer.log"),
            ("Compute profiles of file transfers",
             "farline analyze profile --modality E --infrastructure sites.toml"),
            ("Find what limits throughput", "farline analyze explain --infrastructure sites.toml"),
        ),
        see_also=(_GUIDE, "docs/guide/ingest.md", "docs/guide/infrastructure.md"),
    ),
    "analyze ingest": Page(
        options=(
            Options("Logs", "--format --map --set --malformed"),
            Options("Store", "--list --forget --store"),
            Options("Output", "--json"),
        ),
        examples=(
            ("Import logs of GridFTP", "farline analyze ingest gridftp-transfer.log"),
            ("Import a table, and say what its columns are",
             "farline analyze ingest transfers.csv --map rate_bps=mbps:Mbit/s,rtt_ms=rtt"),
        ),
        exits=((23, "Some logs were refused, or some records could not be read."),),
        see_also=("farline analyze profile", "docs/guide/ingest.md"),
    ),
    "analyze profile": Page(
        options=(
            _SOURCE,
            _SELECT,
            Options(
                "Profiles",
                "--by --capacity --at",
                "--model --merge --confidence --extrapolate --running",
            ),
            _OUTPUT,
        ),
        examples=(
            ("Compute profiles from a log",
             "farline analyze profile gridftp-transfer.log --infrastructure sites.toml"),
            ("Compute a profile for each number of streams",
             "farline analyze profile --modality T --by streams --capacity 10Gbit"),
        ),
        see_also=("farline analyze compare", _GUIDE),
    ),
    "analyze compare": Page(
        options=(
            Options("What to compare", "--a --b --method", "--host-limit --file-limit"),
            _SOURCE, _SELECT, _SHAPE, _OUTPUT,
        ),
        examples=(
            ("Compare file transfers with memory-to-memory transfers",
             "farline analyze compare --a modality=E --b modality=T --capacity 10Gbit"),
            ("Profile the file transfer method",
             "farline analyze compare --method strict --infrastructure sites.toml"),
        ),
        see_also=("farline analyze profile", _GUIDE),
    ),
    "analyze sites": Page(
        options=(_SOURCE, _SELECT, _SHAPE, Options("Output", "--json")),
        examples=(
            ("Compare sites by their file transfers",
             "farline analyze sites --modality E --infrastructure sites.toml"),
        ),
        see_also=("farline analyze explain", "docs/guide/infrastructure.md"),
    ),
    "analyze explain": Page(
        options=(_SOURCE, _SELECT, _SHAPE, Options("Findings", "--period"),
                 Options("Output", "--json")),
        examples=(
            ("Find what limits throughput", "farline analyze explain --infrastructure sites.toml"),
            ("Look for drift from week to week",
             "farline analyze explain gridftp.log --infrastructure sites.toml --period 7d"),
        ),
        see_also=("farline analyze report", _GUIDE),
    ),
    "analyze report": Page(
        options=(
            _SOURCE, _SELECT, _SHAPE, Options("Findings", "--period"),
            Options("Page", "-o --title --png --svg", "--log-rtt"),
            Options("Output", "--json"),
        ),
        examples=(
            ("Write the page", "farline analyze report --infrastructure sites.toml -o page"),
        ),
        see_also=("farline analyze explain", _GUIDE),
    ),
    "analyze check": Page(
        options=(Options("Output", "--json"),),
        examples=(("Check a description of sites", "farline analyze check sites.toml"),),
        see_also=("docs/guide/infrastructure.md",),
    ),
}  # fmt: skip
