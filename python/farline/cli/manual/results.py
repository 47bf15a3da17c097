"""The pages of `farline runs`, `show`, `report` and `export`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

_SELECT = Options("Selection", "--campaign --transport --status --since --where")

PAGES = {
    "runs": Page(
        options=(
            _SELECT,
            Options("List", "-n --all --campaigns"),
            Options("Output", "--json --compact --store"),
        ),
        examples=(
            ("List the newest runs", "farline runs"),
            ("List failed runs of the last day", "farline runs --status failed --since 24h"),
        ),
        see_also=("farline show", "farline export"),
    ),
    "show": Page(
        options=(
            Options("Details", "--all --samples --files --failed --blasts --perfmon"),
            Options("Output", "--json --store"),
        ),
        examples=(
            ("Show the newest run", "farline show last"),
            ("Show its samples", "farline show last --samples"),
        ),
        see_also=("farline runs", "docs/reference/records.md"),
    ),
    "store migrate": Page(
        options=(Options("Store", "--store"), Options("Check", "--check --json")),
        examples=(
            ("Say what is there, of which versions, and what cannot be read",
             "farline store migrate --check"),
            ("Write what older versions wrote as this one does", "farline store migrate"),
        ),
        see_also=("farline runs", "farline export"),
    ),
    "report": Page(
        options=(
            Options("Report", "-o --png --svg --count-invalid"),
            Options("Store", "--store"),
        ),
        examples=(
            ("Draw the newest campaign", "farline report"),
            ("Choose the folder", "farline report last -o page"),
        ),
        see_also=("farline profile", "farline runs --campaigns", "docs/guide/report.md"),
    ),
    "export": Page(
        options=(
            Options("File", "-o --format"),
            Options("Table", "--samples --links --perfmon --files"),
            _SELECT,
            Options("Store", "--store"),
        ),
        examples=(
            ("Write all runs as CSV", "farline export -o runs.csv"),
            ("Write the samples of a campaign as Parquet",
             "farline export --campaign last --samples -o samples.parquet"),
            ("Print runs of the last week as JSON",
             "farline export --since 7d --format json -o -"),
        ),
        see_also=("farline runs", "farline show", "docs/reference/records.md"),
    ),
    "import-config": Page(
        examples=(
            ("Write rclone's SFTP remotes as hosts, for Include in ~/.ssh/config",
             "farline import-config rclone > ~/.ssh/rclone-hosts"),
            ("Make sites of a perfSONAR mesh",
             "farline import-config perfsonar mesh.json > sites.toml"),
        ),
        see_also=("farline copy", "farline portal", "docs/guide/from/index.md"),
    ),
    "completion": Page(
        examples=(
            ("Write the script of bash", "farline completion bash > ~/.farline-completion"),
            ("In fish", "farline completion fish > ~/.config/fish/completions/farline.fish"),
        ),
        see_also=("farline man", "docs/guide/shell.md"),
    ),
    "man": Page(
        options=(Options("Output", "--output"),),
        examples=(
            ("Show the page of a command", "farline man testbed up"),
            ("Write all pages where man looks", "farline man --output ~/.local/share/man"),
        ),
        see_also=("farline completion", "docs/guide/shell.md"),
    ),
}  # fmt: skip
