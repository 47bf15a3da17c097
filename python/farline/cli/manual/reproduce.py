"""The page of `farline reproduce`."""

from __future__ import annotations

from farline.cli.manual.page import Options, Page

PAGES = {
    "reproduce": Page(
        options=(
            Options("Items", "--list --all --computed --paper"),
            Options("Measurements", "--scale --resume", "--plans"),
            Options("Output", "-o --json"),
        ),
        examples=(
            ("List the items", "farline reproduce --list"),
            ("Reproduce one", "farline reproduce rbudp-equations"),
            ("Reproduce all, and continue where that was interrupted",
             "farline reproduce --all --resume"),
        ),
        exits=((3, "An item differs from its paper, or could not be measured."),),
        see_also=("farline profile", "farline fairness", "docs/reproduce.md"),
    ),
}  # fmt: skip
