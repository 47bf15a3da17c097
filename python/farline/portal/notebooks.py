"""A lab as a Jupyter notebook, which measures by itself where farline is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farline.portal.lessons import Lab

_RUN = """import json
import subprocess

command = ["farline", "{verb}", "{name}.toml", "--store", "{name}-store", "--json"]
done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
document = json.loads(done.stdout)"""

_RATES = {
    "profile": """rates = {
    ", ".join(str(value) for value in row["varied"].values()): row["mean_bps"] / 1e6
    for row in document["settings"]
    if row["mean_bps"] is not None
}
rates""",
    "fairness": """import farline

outcome = farline.contend(resume="last", store="{name}-store").outcome
rates = {
    f"{name}, {side}": contest.full.measures[f"{side}_bps"].mean / 1e6
    for name, contest in outcome.contests.items()
    for side in ("subject", "background")
}
rates""",
}

_DRAW = """import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3))
axes.barh(list(rates), list(rates.values()))
axes.invert_yaxis()
axes.set_xlabel("Mbit/s")"""


def notebook_of(lab: Lab) -> dict[str, Any]:
    """The notebook as a document of nbformat 4.5."""
    run, rates = _RUN.replace("{verb}", lab.verb), _RATES[lab.verb]
    rates = rates.replace('"{name}-store"', f'"{lab.name}-store"')
    cells = [
        _text(f"# {lab.title}", lab.goal, lab.story, f"**The line.** {lab.setup}"),
        _text("## Predict", lab.question.text, _choices(lab)),
        _code("prediction = ...  # your answer"),
        _text("## Measure", "This needs Linux and farline, as root or with user namespaces."),
        _code(f"%%writefile {lab.name}.toml\n{lab.plan.strip()}"),
        _code(run.replace("{name}", lab.name)), _code(rates), _code(_DRAW),
        _text("## What it means", *lab.explanation),
    ]  # fmt: skip
    language = {"display_name": "Python 3", "language": "python", "name": "python3"}
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    return {
        "nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": language}, "cells": numbered
    }  # fmt: skip


def _choices(lab: Lab) -> str:
    return f"Choose one of: {', '.join(lab.choices)}." if lab.choices else "Write it in Mbit/s."


def _text(*paragraphs: str) -> Mapping[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines("\n\n".join(paragraphs))}


def _code(text: str) -> Mapping[str, Any]:
    return {
        "cell_type": "code", "metadata": {}, "source": _lines(text), "outputs": [],
        "execution_count": None,
    }  # fmt: skip


def _lines(text: str) -> Sequence[str]:
    return text.splitlines(keepends=True)
