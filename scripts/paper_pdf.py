"""Makes HTML and PDF of the paper that `farline reproduce --paper` wrote.

    .venv/bin/python -m scripts.paper_pdf farline-reproduce/paper

Writes paper.html and paper.pdf beside paper.md. The PDF is printed by Chromium, without a network.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

_STYLE = """
@page { size: A4; margin: 22mm 18mm; }
body { font: 10.5pt/1.45 "Liberation Serif", "DejaVu Serif", serif; max-width: 46em; margin: auto; }
h1 { font-size: 20pt; line-height: 1.2; } h2 { font-size: 14pt; margin-top: 1.6em; }
h3 { font-size: 12pt; } h4 { font-size: 10.5pt; margin-bottom: .2em; }
h2, h3, h4 { break-after: avoid; }
table { border-collapse: collapse; width: 100%; font-size: 8.5pt; margin: .6em 0; }
th, td { border-bottom: .4pt solid #999; padding: .2em .5em; text-align: left; }
th, td { vertical-align: top; }
thead { display: table-header-group; } tr { break-inside: avoid; }
img { width: 100%; break-inside: avoid; } pre { background: #f3f3f3; padding: .6em; }
code { font-size: 90%; overflow-wrap: anywhere; }
"""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WAIT_S = 120


def page(text: str) -> str:
    """A page of Markdown `text`."""
    title = html.escape(text.splitlines()[0].lstrip("# ")) if text else "farline"
    body = MarkdownIt("commonmark").enable("table").render(text)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )


def print_pdf(source: Path, target: Path) -> None:
    """Prints an HTML file; ends the program with a line where that cannot be."""
    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("paper: Chromium is missing; the PDF needs it: apt install chromium")
    with tempfile.TemporaryDirectory() as profile:
        words = [browser, "--headless", "--disable-gpu", "--no-pdf-header-footer",
                 f"--user-data-dir={profile}", f"--print-to-pdf={target}"]  # fmt: skip
        # Its sandbox refuses root.
        words += ["--no-sandbox"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*words, source.absolute().as_uri()],
            capture_output=True, text=True, timeout=_WAIT_S, check=False,
        )  # fmt: skip
    if done.returncode or not target.is_file():
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise SystemExit(f"paper: {browser} printed no PDF: {last[0]}")


def main() -> None:
    """Of the folder that is named."""
    if len(sys.argv) != 2:
        raise SystemExit("paper: name the folder that has paper.md")
    folder = Path(sys.argv[1])
    try:
        text = (folder / "paper.md").read_text(encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"paper: {folder}/paper.md: {error.strerror}; make it with"
                         " 'farline reproduce --paper'") from error  # fmt: skip
    (folder / "paper.html").write_text(page(text), encoding="utf-8")
    print_pdf(folder / "paper.html", (folder / "paper.pdf").absolute())
    print(f"{folder}/paper.html, {folder}/paper.pdf")


if __name__ == "__main__":
    main()
