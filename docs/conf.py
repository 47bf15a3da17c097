"""How `make docs` turns the Markdown pages into a site that needs no network."""

from __future__ import annotations

project = "farline"
copyright = "the farline authors"
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "farline"
exclude_patterns = ["site"]
