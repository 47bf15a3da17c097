"""The page of `farline estimate`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

PAGES = {
    "estimate": Page(
        options=(
            Options("What is copied", "--size --files"),
            Options("When", "--deadline --start --confidence"),
            Options("How it is copied", "--streams --sample --link --rtt", "--concurrency"),
            Options("Output", "--json --store"),
        ),
        examples=(
            ("Estimate a copy of a folder", "farline estimate data/ host.example.org:data/"),
            ("Estimate before the data exist",
             "farline estimate data/ host.example.org:data/ --size 12TiB --files 40000"),
            ("Ask when to start, and what to reserve",
             "farline estimate data/ host.example.org:data/ --deadline 36h --confidence 95%"),
        ),
        see_also=("farline copy", "docs/guide/estimate.md", "docs/design/estimating.md"),
    ),
}  # fmt: skip
