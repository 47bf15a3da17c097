"""Files that people write or that were damaged: one line says what is wrong, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from farline.campaign.plan import load_plan
from farline.errors import FarlineError
from farline.spec.infrastructure_text import read_infrastructure
from farline.spec.json_text import read_json, read_object
from farline.spec.toml_reading import read_toml
from farline.testbeds.topology import load
from farline.tools.known_servers import KnownServers

TOMLS = {
    "nested 2,000 deep": "a = " + "[" * 2000 + "]" * 2000,
    "nested 300 deep": "a = " + "[" * 300 + "]" * 300,
    "tables in tables": "[" + ".".join("a" * 2000) + "]\nb = 1",
    "cut": '[[links]]\nname = "a',
    "nothing but a key": "links",
    "another type": "links = 3\nhosts = 3\nsites = 3\ncampaign = 3\ngrid = 3\nconnections = 3",
    "a list of numbers": "links = [1]\nhosts = [1]\nsites = [1]\ngrid = [1]\nconnections = [1]",
    "a first link without a name": '[[hosts]]\nname = "a"\n[[links]]\nbetween = ["a", "b"]',
    "a link whose name is a number": "[[links]]\nname = 3",
    "a number that is none": "seed = nan\n[defaults.link]\nrtt_s = nan",
    "a large number": "seed = 1" + "0" * 400,
    "zero bytes": "\0\0\0\0",
}
READERS: dict[str, Callable[[Path], object]] = {
    "topology": load,
    "plan": load_plan,
    "infrastructure": lambda path: read_infrastructure(path.read_text(), str(path)),
}


@pytest.mark.parametrize("text", TOMLS.values(), ids=TOMLS)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_toml_file_is_refused_in_one_line(
    tmp_path: Path, reader: Callable[[Path], object], text: str
) -> None:
    path = tmp_path / "file.toml"
    path.write_text(text)
    with pytest.raises(FarlineError) as failed:
        reader(path)
    assert "file.toml" in failed.value.message


JSONS = ["", "{", "[]", "3", "[" * 100_000, '{"a":' * 200 + "1" + "}" * 200, '{"a": NaN}', "\ud800"]


@pytest.mark.parametrize("text", JSONS)
def test_json_that_is_no_object_is_a_value_error(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    with pytest.raises(ValueError):
        read_object(raw)


def test_what_is_sound_is_read() -> None:
    assert read_json(b'[1, {"a": null}]') == [1, {"a": None}]
    assert read_toml("a = [1]\n[b.c]\nd = 2") == {"a": [1], "b": {"c": {"d": 2}}}


@pytest.mark.parametrize(
    "text",
    [*JSONS, '{"schema": 1}', '{"schema": 1, "servers": {"a": {"ticket": 3}}}',
     '{"schema": 1, "servers": {"a": {"x": "y"}}}', '{"schema": 9, "servers": {}}'],
)  # fmt: skip
def test_a_damaged_list_of_known_servers_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "known.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(FarlineError, match="move it away to start with an empty list"):
        KnownServers(path).all()
