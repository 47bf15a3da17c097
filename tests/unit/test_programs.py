"""What stands beside the package: programs called wrongly, and pages that must keep up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_unknown_bench_is_refused_with_those_there_are() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benches" / "run.py", "no-such-bench"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    benches = {path.stem.replace("_", "-") for path in (ROOT / "benches").glob("[a-z]*.py")}
    for name in benches - {"run"}:
        assert name in done.stderr


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY:"))
    done = subprocess.run(
        ["make", "-C", str(ROOT)], capture_output=True, text=True, timeout=30, check=True
    )
    listed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}
    assert listed == set(phony.split()[1:])


def test_a_missing_compiler_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "flock"):
        (tools / name).symlink_to(next(Path(place) / name for place in ("/usr/bin", "/bin")))
    checkout = tmp_path / "a checkout"
    (checkout / "scripts").mkdir(parents=True)
    script = checkout / "scripts" / "setup.sh"
    script.write_bytes((ROOT / "scripts" / "setup.sh").read_bytes())
    done = subprocess.run(
        [str(tools / "bash"), str(script)],
        capture_output=True,
        text=True,
        timeout=30,
        env={"PATH": str(tools)},
    )
    assert done.returncode == 1
    assert done.stderr == "setup: a C compiler is missing: apt install build-essential\n"


def test_the_guide_explains_every_verdict_there_is() -> None:
    schema = json.loads((ROOT / "schemas/run-record.schema.json").read_text(encoding="utf-8"))
    guide = (ROOT / "docs/guide/probe.md").read_text(encoding="utf-8")
    words = [one["const"] for one in schema["$defs"]["LimitedBy"]["oneOf"]]
    assert len(words) > 5
    assert [word for word in words if f"`{word}`" not in guide] == []
