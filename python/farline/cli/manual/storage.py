"""The page of `farline storage`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

PAGES = {
    "storage": Page(
        options=(
            Options("Limits", "--budget --size --read"),
            Options(
                "Settings to try",
                "--only --processes --request --depth --io",
                "--threads --access --files --fsync --repeats --warm",
            ),
            Options("Output", "--report --json", "--store --no-store"),
        ),
        examples=(
            ("Measure the file system of a folder", "farline storage /data"),
            ("Try two request sizes with direct I/O, as XDD does",
             "farline storage /data --request 1M,8M --depth 1,4,8 --io direct"),
            ("Measure reads of an existing file", "farline storage --read /data/large.dat"),
            ("Draw a page", "farline storage /data --report storage.html"),
        ),
        see_also=("farline testbed storage", "farline host", "docs/guide/storage.md"),
    ),
}  # fmt: skip
