"""The first page: `farline --help`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

PAGES = {
    "": Page(
        options=(Options("Log of any command", "--log-level --log-format --log-file"),),
        examples=(
            ("Check what this host can do on a 10 Gbit/s path of 100 ms", "farline host"),
            ("Copy a folder over ssh", "farline copy data/ host.example.org:data/"),
            (
                "Measure throughput to a host that runs farline serve --anonymous",
                "farline probe 127.0.0.1",
            ),
        ),
        see_also=("farline COMMAND --help", "docs/guide/first-profile.md", "docs/guide/copy.md"),
    ),
}
