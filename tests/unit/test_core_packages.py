"""The core of farline works without its extras: nothing that serves or copies imports them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from farline.cli.verbs import COMMANDS
from farline.copying import CopyRequest, steering
from farline.copying.live_tuning import WORTH_S
from farline.copying.locations import read_endpoints
from farline.spec.extras import ANALYSIS, EXTRA_OF, PORTAL, SPARK, missing_text
from farline.tools.events import Notice, NoticeKind, Progress, SessionBegun

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

CORE = {"click", "rich"}

NEEDS_ANALYSIS = {"profile", "runs", "show", "export", "model"}
"""Verbs of which even the help needs packages of the extra."""

BLOCKED = """
import importlib.abc, sys
from farline.spec.extras import EXTRA_OF
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
COMMAND_LINE = "from farline.cli import main\nmain()\n"


def core_farline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`farline` where no package of an extra can be imported."""
    return core_python(folder, COMMAND_LINE, *words)


def core_python(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A program where no package of an extra can be imported."""
    home = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + program, *words],
        capture_output=True, text=True, check=False, timeout=60, cwd=folder,
        env={**os.environ, **home, "FARLINE_STORE": str(folder / "store")},
    )  # fmt: skip


def names(requirements: list[str]) -> set[str]:
    """The packages that are required, without versions."""
    found = (re.match(r"[\w.-]+", one) for one in requirements)
    return {one.group() for one in found if one}


def test_the_core_requires_little() -> None:
    assert names(PROJECT["dependencies"]) == CORE


def test_every_package_of_an_extra_is_known_by_its_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    imported = {"ibis-framework": "ibis"}
    for extra in (ANALYSIS, PORTAL, SPARK):
        own = names(extras[extra]) - {"farline"}
        if extra == SPARK:
            own -= {"ibis-framework"}
        assert {EXTRA_OF[imported.get(name, name)] for name in own} == {extra}


@pytest.mark.parametrize("verb", sorted(set(COMMANDS) - NEEDS_ANALYSIS))
def test_help_needs_no_extra(verb: str, tmp_path: Path) -> None:
    done = core_farline(tmp_path, verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "farline[analysis]" not in done.stdout


@pytest.mark.parametrize("verb", sorted(NEEDS_ANALYSIS))
def test_help_of_other_verbs_says_what_to_install(verb: str, tmp_path: Path) -> None:
    done = core_farline(tmp_path, verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install 'farline[analysis]'" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["runs"], ANALYSIS),
        (["show", "--json", "last"], ANALYSIS),
        (["model", "rbudp", "--rate", "1Gbit/s"], ANALYSIS),
        (["estimate", "a", "b"], ANALYSIS),
        (["copy", "a", "b", "--tune", "auto"], ANALYSIS),
        (["portal"], PORTAL),
    ],
)
def test_a_missing_extra_is_one_line_and_exit_1(
    words: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x")
    done = core_farline(tmp_path, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("farline: ") and done.stderr.count("\n") == 1
    assert f"pip install 'farline[{extra}]'" in done.stderr


def test_man_and_completion_work_in_the_core(tmp_path: Path) -> None:
    done = core_farline(tmp_path, "man", "--output", "pages")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "pages" / "man1" / "farline-copy.1").stat().st_size > 1000
    assert "complete" in core_farline(tmp_path, "completion", "bash").stdout


def test_a_copy_of_a_moment_is_judged_and_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    done = core_farline(tmp_path, "copy", "a", "b/")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "b" / "a").stat().st_size == 1_000_000
    assert "verdict" in done.stdout and list((tmp_path / "store").rglob("*.jsonl"))


def test_several_nodes_are_copied_to_in_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = tmp_path / "farline" / "pools.toml"
    pools.parent.mkdir()
    pools.write_text(
        '[pool]\nnodes = ["one%127.0.0.1", "two%127.0.0.1"]\ncommand = "{argv}"\n'
        f'farline = "{sys.executable} -m farline"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    done = core_farline(tmp_path, "copy", "a", f"pool:{tmp_path}/b")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b" / "a").stat().st_size == 1_000_000


def test_a_program_copies_in_the_core(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    done = core_python(tmp_path, "import farline\nfarline.copy('a', 'b/').wait()\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "b" / "a").stat().st_size == 1_000_000


def test_a_longer_copy_is_kept_and_judged(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    done = core_farline(tmp_path, "copy", "a", "b/", "--rate", "10Mbit/s", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    # What the copy's own report does not tell: found in the samples. Beside other work it may
    # have waited for a CPU.
    assert record["verdict"]["limit"] in ("application", "rate", "sender-cpu", "receiver-cpu")
    assert any("of the time; of that, held back" in line for line in record["verdict"]["evidence"])
    assert list((tmp_path / "store").rglob("*.jsonl"))


def test_a_copy_that_would_be_tuned_says_once_why_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(_start: object) -> Any:
        raise AssertionError("a tuner was made")

    monkeypatch.setattr(steering, "has_analysis", lambda: False)
    now = [100.0]
    request = CopyRequest(read_endpoints(("a", "host:b")), tune="auto")
    assert request.tunes_live
    # Neither sessions nor changes are needed by a copy that is not tuned.
    nothing: Any = None
    one = steering.Steering(request, nothing, nothing, never, lambda: now[0])
    assert list(one.note(SessionBegun())) == []
    progress = Progress(cast("Any", {}))
    now[0] += WORTH_S - 1
    assert list(one.note(progress)) == []
    now[0] += 2
    assert list(one.note(progress)) == [Notice(NoticeKind.NOT_TUNED, steering.NO_ANALYSIS)]
    assert list(one.note(progress)) == []


def test_packages_that_belong_to_no_extra_stay_defects() -> None:
    assert missing_text("farline", ModuleNotFoundError("x", name="farline.nothing")) is None
    assert missing_text("farline", ImportError("broken", name="numpy")) is None
