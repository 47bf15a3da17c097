"""The pages of `farline copy`, `farline adjust` and `farline check`."""

from __future__ import annotations

from farline.cli.manual.measure import TOOL
from farline.cli.manual.page import NETWORK_EXITS, Options, Page

PAGES = {
    "copy": Page(
        options=(
            Options(
                "What to copy",
                "-n --include --exclude --files-from --delete --overwrite --links",
                "-r --include-from --exclude-from --filter --from0 --max-delete"
                " --remove-source-files --existing -K --force",
            ),
            Options(
                "What is the same",
                "-u -c",
                "--sync-level --size-only --ignore-existing -I --modify-window",
            ),
            Options(
                "What to preserve",
                "-H -X --owner",
                "--modes --times --group --numeric-ids --sparse -L",
            ),
            Options(
                "How to send",
                "--transport --streams --nodes --own-disks --tune --bwlimit --yield --max-harm"
                " --cipher --verify --hash",
                "--no-encrypt --fsync --rate --bitrate --interval --chunk --concurrency --pipeline"
                " --readers --writers --read-engine --write-engine --place-streams",
            ),
            TOOL,
            Options(
                "Failures",
                "--retry-for",
                "--retries --stall-timeout --connect-timeout",
            ),
            Options(
                "Connection over ssh",
                "-P -i -o -e --tunnel --remote-farline --bootstrap",
                "-F -J --bootstrap-program --start-timeout --connect-back --single-port"
                " --data-ports",
            ),
            Options(
                "Network",
                "-4 -6",
                "--ip-version --pair --bind --affinity --client-cpus --server-cpus --tos --dscp"
                " --flow-label --window",
            ),
            Options(
                "Output",
                "-v -q --progress --stats --json --receipt",
                "--json-stream --label --store --no-store",
            ),
            Options(
                "For users of rsync",
                more="-a -p -t --perms --no-perms -S -z",
            ),
        ),
        examples=(
            ("Copy a folder to another host over ssh", "farline copy data/ host.example.org:data/"),
            ("Copy a folder from another host", "farline copy host.example.org:data/ data/"),
            ("Show what would be copied", "farline copy -n data/ host.example.org:data/"),
            (
                "Replace changed files, and delete those that the source no longer has",
                "farline copy --overwrite different --delete data/ host.example.org:data/",
            ),
            (
                "Copy between two other hosts; the data do not pass through this one",
                "farline copy one.example.org:data/ two.example.org:data/",
            ),
        ),
        exits=(
            *NETWORK_EXITS,
            (23, "Some files were not copied; the output names each with the reason."),
            (24, "Some source files vanished during the copy; nothing else failed."),
        ),
        see_also=(
            "farline adjust",
            "farline check",
            "farline serve",
            "farline ticket",
            "docs/guide/copy.md",
            "docs/guide/rsync.md",
        ),
    ),
    "adjust": Page(
        options=(
            Options("What to change", "--streams --concurrency --rate"),
            Options("Output", "--json"),
        ),
        examples=(
            ("Use eight streams for the newest running copy", "farline adjust last --streams 8"),
            (
                "Leave part of the link to others",
                "farline adjust last --streams 2 --rate 200Mbit/s",
            ),
        ),
        exits=(
            (4, "The copy belongs to another user."),
            (8, "The change exceeds the limits of the server, or the copy refused it."),
        ),
        see_also=("farline copy", "farline show", "docs/guide/copy.md"),
    ),
    "bootstrap": Page(
        options=(
            Options("Actions", "--remove --program"),
            Options("Connection over ssh", "-P -i -o -e", "-F -J --start-timeout"),
            Options("Output", "--json"),
        ),
        examples=(
            ("Send the program ahead of the first copy", "farline bootstrap dtn.example.org"),
            ("Copy to a host that has no farline",
             "farline copy --bootstrap data/ dtn.example.org:data/"),
            ("Remove what was sent", "farline bootstrap --remove dtn.example.org"),
        ),
        see_also=("farline copy", "docs/guide/copy.md"),
    ),
    "check": Page(
        options=(Options("Output", "-q --json"),),
        examples=(
            ("Keep a receipt of a copy", "farline copy --receipt receipt.jsonl data/ archive/"),
            ("Check later that the files are still the same",
             "farline check receipt.jsonl archive/"),
        ),
        exits=((23, "Some files differ or are missing; the output names each."),),
        see_also=("farline copy", "docs/guide/copy.md"),
    ),
}  # fmt: skip
