"""How `make docs` turns the Markdown pages into a site that needs no network."""

from __future__ import annotations

project = "farline"
copyright = "the farline authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_member_order = "bysource"
smartquotes = False  # Quotes in docstrings are code.
html_theme = "furo"
html_title = "farline"
exclude_patterns = ["site"]
