"""Packages that farline runs without: which extra brings each, and what to say where it is missing.

The core of `pyproject.toml` serves and copies; these come with `pip install 'farline[EXTRA]'`.
"""

from __future__ import annotations

import importlib.util
from functools import cache

ANALYSIS = "analysis"
FSSPEC = "fsspec"
OIDC = "oidc"
PORTAL = "portal"
SPARK = "spark"

EXTRA_OF = {
    "duckdb": ANALYSIS,
    "ibis": ANALYSIS,
    "jinja2": ANALYSIS,
    "matplotlib": ANALYSIS,
    "numpy": ANALYSIS,
    "pandas": ANALYSIS,
    "pyarrow": ANALYSIS,
    "scipy": ANALYSIS,
    "fastapi": PORTAL,
    "fsspec": FSSPEC,
    "httptools": PORTAL,
    "joserfc": OIDC,
    "uvicorn": PORTAL,
    "uvloop": PORTAL,
    "pyspark": SPARK,
}
"""The extra of each package that modules of farline import, by the name it is imported by."""


def missing_text(user: str, error: ImportError) -> str | None:
    """What to install so that `user` works; None where `error` is not about an extra's package."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    # What is there but does not load is another matter: its own text says why.
    if extra is None or not isinstance(error, ModuleNotFoundError):
        return None
    return f"{user} needs {package}: install it with pip install 'farline[{extra}]'"


@cache
def has_analysis() -> bool:
    """Whether what sums up and judges longer runs in full is installed."""
    return all(map(_is_there, ("numpy", "pyarrow", "scipy")))


@cache
def has_numpy() -> bool:
    """Whether columns of samples can be numpy's arrays."""
    return _is_there("numpy")


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False
