"""A copy by N nodes against the same by one: interfaces of 100 Mbit/s behind a line that is ample.

Both sides have N nodes that see one file system. Each of N nodes has as much to carry as the one
alone: one file of N times 512 MiB (4 GiB for eight), and N times 1,250 small files (10,000 for
eight). A row's `ours` is the rate of N nodes, `peer` N times that of one node in the same round,
and the ratio must be 0.93: 1 would be a copy that costs nothing to share out. `--short` (SHORT=1)
has an eighth of the bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from _contract import Row, finish, row
from _program import program
from farline.testbeds import Testbed, load

NODES = (2, 4, 8)
MUST = 0.93
ROUNDS = 5
LARGE_BYTES = 512 << 20
FILES, FILE_BYTES = 1250, 100_000
LIMIT_S = 600

TOPOLOGY = """
name = "scaling"
description = "k nodes a side with interfaces of 100 Mbit/s behind an ample line"
routers = ["source-site", "sink-site"]
main_link = "line"
[parameters]
k = 8
[[hosts]]
name = "source-{i}"
repeat = "k"
[[hosts]]
name = "sink-{i}"
repeat = "k"
[[links]]
name = "line"
a = "source-site"
b = "sink-site"
rtt_s = "20ms"
both = { rate_bps = "10Gbit" }
[[links]]
name = "source-{i}"
repeat = "k"
a = "source-{i}"
b = "source-site"
both = { rate_bps = "100Mbit", queue = { capacity_bytes = "2M" } }
[[links]]
name = "sink-{i}"
repeat = "k"
a = "sink-{i}"
b = "sink-site"
both = { rate_bps = "100Mbit", queue = { capacity_bytes = "2M" } }
"""


def make_large(folder: Path, size: int) -> None:
    """One file of random bytes."""
    folder.mkdir(parents=True)
    with (folder / "large").open("wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))


def make_small(folder: Path, count: int) -> None:
    """Files of random bytes in folders of a hundred."""
    for number in range(count):
        place = folder / f"d{number // 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}").write_bytes(os.urandom(FILE_BYTES))


def rate(bed: Testbed, nodes: int, source: Path, target: Path) -> float:
    """Mbit/s of one copy by so many nodes a side, from its record; what came is compared."""
    shutil.rmtree(target, ignore_errors=True)
    pool = f"testbed:{bed.name}"
    words = ["copy", "--json", "--no-store", "--streams", "2", "--congestion", "cubic"]
    ends = [f"{pool}:source-[1-{nodes}]{source}/", f"{pool}:sink-[1-{nodes}]{target}"]
    done = subprocess.run(
        [sys.executable, "-m", "farline", *words, *ends], capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"nodes-scaling: {done.stderr.strip().splitlines()[-1]}")
    record = json.loads(done.stdout)
    same = subprocess.run(["diff", "-rq", source, target], capture_output=True, check=False)
    if same.returncode != 0:
        raise SystemExit(f"nodes-scaling: the copy differs: {same.stdout.decode()[:500]}")
    return float(8e-6 * record["copy"]["copied"]["bytes"] / record["run_s"])


def run(short: bool) -> list[Row]:
    """Rows for one large file and for many small ones."""
    share = 8 if short else 1
    rounds = 1 if short else ROUNDS
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="farline-nodes-") as top,
        Testbed.up(load(TOPOLOGY)) as bed,
    ):
        for case in ("one file", "small files"):
            sources = {n: Path(top) / case.replace(" ", "-") / str(n) for n in (1, *NODES)}
            for nodes, folder in sources.items():
                if case == "one file":
                    make_large(folder, nodes * LARGE_BYTES // share)
                else:
                    make_small(folder, nodes * FILES // share)
            found: dict[int, list[tuple[float, float]]] = {nodes: [] for nodes in NODES}
            for _ in range(rounds):
                one = rate(bed, 1, sources[1], Path(top) / "target")
                for nodes in NODES:
                    ours = rate(bed, nodes, sources[nodes], Path(top) / "target")
                    found[nodes].append((ours, nodes * one))
            for nodes, pairs in found.items():
                many = pairs if len(pairs) > 1 else pairs * 2
                rows.append(row(f"{case}, {nodes} nodes", "Mb/s", many, must=MUST))
            shutil.rmtree(sources[1].parent)
    return rows


def main() -> int:
    """The bench."""
    return finish("nodes-scaling", run("--short" in sys.argv or bool(os.environ.get("SHORT"))))


if __name__ == "__main__":
    program(main)
