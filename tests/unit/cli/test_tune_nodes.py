"""What `farline tune --nodes` and `farline tune` tell of what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from farline.cli.group import cli
from farline.store import Store
from farline.store.paths.node_choices import NodeChoice, write_node_choice


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Store()


def told(*words: str) -> str:
    said = CliRunner().invoke(cli, ["tune", *words])
    assert said.exit_code == 0, said.output
    return said.stdout


def test_what_was_found_for_a_tool_is_told_with_the_tool(store: Store) -> None:
    choice = NodeChoice(
        "wte gridftp", 1.0, "2stm-4str-2n-4str-2n", 2e8, "1stm-1str-1n-1str-1n", 7e7
    )
    write_node_choice(store.layout.paths, store.layout.temp, choice)
    lines = told("wte", "--nodes", "2", "--tool", "gridftp", "--explain")
    assert "nodes of wte gridftp: 0 samples" in lines
    assert "farline probe SINK --tool gridftp --streams 2" in lines
    assert told("wte", "--nodes", "2", "--explain") == "nothing is known of the nodes of wte\n"


@pytest.mark.parametrize("pool", ["far[1-4]:/x", "slurm:xfer:8/x", "testbed:bed:sink-[1-2]/x"])
def test_several_nodes_are_one_end_whose_path_can_be_told_and_forgotten(
    store: Store, pool: str
) -> None:
    name = pool.removesuffix(":/x").removesuffix("/x")
    assert told("data", pool, "--explain") == f"nothing is known about the path to {name}\n"
    assert told(pool, "data", "--explain") == f"nothing is known about the path from {name}\n"
    assert "0 past transfers ignored" in told("data", pool, "--forget")
    assert f'"host": "{name}"' in told("data", pool, "--export", "-")
