"""What every page is put together from: styles, scripts, templates, and the policy that seals it.

A page's content security policy allows exactly the scripts and styles that are in it, by their
SHA-256, and no connection at all; a browser refuses whatever else might be slipped in.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

_COEFFICIENT = re.compile(r"\bC_(UC|CC|U)\b")


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure in large, with what it is and what it rests on."""

    label: str
    figure: str
    note: str
    bad: bool = False


def render(
    template: str,
    values: Mapping[str, Any],
    style_names: Sequence[str],
    script_names: Sequence[str],
    data: str,
) -> str:
    """A whole page as text. `data` is JSON that is safe inside a script element.

    Names are those of files in `templates/` and `static/`. The template finds `values` as `page`.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    styles = [(_room() / "static" / name).read_text("utf-8") for name in style_names]
    scripts = [_script(name) for name in script_names]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_template)
    )
    environment.filters["symbols"] = symbols
    return environment.get_template(template).render(
        page=values,
        policy=policy(styles, scripts),
        styles=[Markup(style) for style in styles],
        scripts=[Markup(script) for script in scripts],
        data=Markup(data),
    )


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """The content security policy of a page with exactly these styles and scripts."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def symbols(text: str) -> Markup:
    """Text for a page in which the coefficients' names have their index below: C_UC and others."""
    from markupsafe import Markup, escape

    return Markup(_COEFFICIENT.sub(r"C<sub>\1</sub>", str(escape(text))))


def _room() -> Any:
    return files("farline.plots")


def _template(name: str) -> str:
    return str((_room() / "templates" / name).read_text("utf-8"))


def _script(name: str) -> str:
    text = str((_room() / "static" / name).read_text("utf-8"))
    if name.startswith("uplot/"):
        licence = (_room() / "static/uplot/LICENSE").read_text("utf-8").strip()
        text = f"/*!\n{licence}\n*/\n{text}"
    return text


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
