"""`farline tools`: what is said of one tool, farline's own engine among them."""

from __future__ import annotations

import json

import pytest

from farline.cli.group import run


def test_farline_s_own_engine_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "native"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("native      farline's own engine")
    assert "takes" not in said
    assert run(["tools", "native", "scp", "--json"]) == 0
    own, other = json.loads(capsys.readouterr().out)["tools"]
    assert (own["name"], own["installed"], other["name"]) == ("native", True, "scp")
    assert own.keys() == other.keys()
    assert "tcp" in own["transports"]
