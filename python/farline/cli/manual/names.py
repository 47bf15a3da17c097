"""The pages of the verbs about names on another host."""

from __future__ import annotations

from farline.cli.manual.page import NETWORK_EXITS, Options, Page

_SSH = Options(
    "Connection over ssh",
    "-P -i -o -e --tunnel --remote-farline",
    "-F -J -4 -6 --start-timeout",
)
_GUIDE = "docs/guide/names.md"
_TICKET = "'farline://dtn.example.org/TICKET?key=KEY#runs/'"

PAGES = {
    "ls": Page(
        options=(Options("Output", "-R -d -1 -b --json"), _SSH),
        exits=NETWORK_EXITS,
        examples=(
            ("List a folder by its ticket", f"farline ls {_TICKET}"),
            ("List all names below a folder over ssh", "farline ls -R -1 dtn:/data/runs"),
        ),
        see_also=("farline stat", "farline copy -n", _GUIDE),
    ),
    "stat": Page(
        options=(Options("Output", "--sum -L --json"), _SSH),
        exits=NETWORK_EXITS,
        examples=(
            ("Show size, time and two checksums",
             "farline stat --sum md5,adler32 dtn:/data/run7.tar"),
        ),
        see_also=("farline ls", "farline check", _GUIDE),
    ),
    "cat": Page(
        options=(Options("What to print", "--offset --count"), _SSH),
        exits=NETWORK_EXITS,
        examples=(
            ("Print the first kilobyte of a file", "farline cat --count 1KiB dtn:/data/run7.log"),
        ),
        see_also=("farline copy", _GUIDE),
    ),
    "mkdir": Page(
        options=(Options("What to make", "-p"), _SSH),
        exits=NETWORK_EXITS,
        examples=(("Make a folder and those above it", "farline mkdir -p dtn:/archive/2026/11"),),
        see_also=("farline rm", _GUIDE),
    ),
    "rename": Page(
        options=(Options("What makes way", "-f -p"), _SSH),
        exits=NETWORK_EXITS,
        examples=(("Rename a folder", "farline rename dtn:/archive/incoming /archive/run7"),),
        see_also=("farline ls", _GUIDE),
    ),
    "rm": Page(
        options=(Options("What to remove", "-r -f -v"), _SSH),
        exits=NETWORK_EXITS,
        examples=(("Remove a folder with everything in it", "farline rm -r dtn:/archive/run6"),),
        see_also=("farline copy --delete", _GUIDE),
    ),
}  # fmt: skip
