"""Of what jobs draw themselves in a notebook: small pieces of HTML, inline SVG, no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from farline.spec.units import rate_human

WIDTH, HEIGHT = 640, 120
"""Pixels of a curve."""
COLOURS = ("#0072B2", "#D55E00")


def curve(times_s: Sequence[float], lines: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Rates in bit/s over seconds as SVG, with the largest and the last time written beside."""
    top = max((max(rates, default=0.0) for _, rates in lines), default=0.0)
    if top <= 0 or len(times_s) < 2:
        return ""
    end = times_s[-1]
    parts = []
    for (name, rates), colour in zip(lines, COLOURS, strict=False):
        points = " ".join(
            f"{at / end * WIDTH:.1f},{HEIGHT - rate / top * (HEIGHT - 8):.1f}"
            for at, rate in zip(times_s, rates, strict=True)
            if rate == rate
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(name)}</title></polyline>"
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18}" width="100%" style="max-width:{WIDTH}px"'
        f' role="img" aria-label="Throughput over time, at most {escape(rate_human(top))}">'
        f'<line x1="0" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}" stroke="currentColor"'
        f' stroke-opacity="0.4"/>{"".join(parts)}'
        f'<text x="0" y="{HEIGHT + 14}" font-size="11" fill="currentColor">0 s</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 14}" font-size="11" text-anchor="end"'
        f' fill="currentColor">{end:.3g} s</text>'
        f'<text x="4" y="12" font-size="11" fill="currentColor">{escape(rate_human(top))}</text>'
        "</svg>"
    )


def rate_text(rate_bps: float | None) -> str:
    """A rate; None where nothing came."""
    return "nothing arrived" if rate_bps is None else rate_human(rate_bps)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of texts."""
    head = "".join(f'<th style="text-align:left">{escape(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(one)}</td>' for one in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def card(title: str, rows: Iterable[tuple[str, str]], below: str = "") -> str:
    """A title, a table of names and values, and what stands below."""
    body = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"{titled(title)}<table><tbody>{body}</tbody></table>{below}"


def titled(title: str) -> str:
    """A title."""
    return f"<p><strong>{escape(title)}</strong></p>"
