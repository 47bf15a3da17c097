"""The program behind burst_buffer.lua, where Slurm kills the group of processes that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "integrations/slurm/farline_stage.py"

COPY = """#!/bin/sh
trap 'echo asked >> {folder}/said' TERM
echo began >> {folder}/said
while :; do sleep 0.05; done
"""
"""A copy that does not end when it is asked to."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a controller whose `squeue` knows each job as ours."""
    programs = {
        "farline": COPY.format(folder=tmp_path),
        "squeue": f"#!/bin/sh\necho {os.getuid()}\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#BB_LUA stage_in /one /two\n")
    path = f"{tmp_path}:{os.environ['PATH']}"
    yield {"PATH": path, "FARLINE_STAGE_STATE": str(tmp_path / "stages"), "SITE": str(tmp_path)}
    for running in tmp_path.glob("stages/*.pid"):  # where a test has failed
        os.killpg(int(running.read_text().split()[0]), signal.SIGKILL)


def began(site: dict[str, str]) -> tuple[subprocess.Popen[str], Path, int]:
    """A stage-in as Slurm starts it, by a shell in a group of its own; where its copy is noted."""
    folder = Path(site["SITE"])
    slurm = subprocess.Popen(
        ["sh", "-c", f"{sys.executable} {PROGRAM} in {folder}/job.sh 7; echo ended"],
        env=site, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    running = folder / "stages/7.in.pid"
    wait_until(lambda: running.exists() and (folder / "said").exists())
    return slurm, running, int(running.read_text().split()[0])


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_copy_ends_though_slurm_kills_its_stager_and_no_teardown_comes(
    site: dict[str, str],
) -> None:
    slurm, running, copy = began(site)
    os.killpg(slurm.pid, signal.SIGKILL)
    slurm.wait()
    assert slurm.stdout is not None
    slurm.stdout.close()  # the plug-in that read it was of the same group
    wait_until(lambda: not Path(f"/proc/{copy}").exists() and not running.exists())
    said = (Path(site["SITE"]) / "said").read_text().split()
    assert said[:2] == ["began", "asked"], "asked before it is killed"


def test_a_teardown_goes_on_when_its_group_is_killed(site: dict[str, str]) -> None:
    slurm, running, copy = began(site)
    said = Path(site["SITE"]) / "said"
    teardown = subprocess.Popen(
        ["sh", "-c", f"{sys.executable} {PROGRAM} teardown 7; echo ended"],
        env=site, start_new_session=True,
    )  # fmt: skip
    wait_until(lambda: "asked" in said.read_text())
    os.killpg(teardown.pid, signal.SIGKILL)
    teardown.wait()
    wait_until(lambda: not Path(f"/proc/{copy}").exists() and not running.exists())
    assert "exit code -9" in slurm.communicate()[0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("stage_in /one two/", "two/: write the path in full"),
        ("stage_out results/ host:/two/", "results/: write the path in full"),
        ("stage_out $HOME/results/ host:/two/", "$HOME is not replaced here"),
        ("stage_in /one /scratch/$USER/", "$USER is not replaced here"),
        ('stage_out "/out/${SLURM_JOB_ID}/x" host:/two/', "${SLURM_JOB_ID} is not replaced here"),
        ("""stage_in "/b/'$USER'/" /two/""", "$USER is not replaced here"),
        ("""stage_in "/it's/$USER/a" "/it's/b" """, "$USER is not replaced here"),
        ("stage_in /one /two/${USER:-me}/", "${USER:-me} is not replaced here"),
        ("stage_in /one /two/$(id -un)/", "$(id -un) is not replaced here"),
        ("stage_in /one /two/`id`/", "`id` is not replaced here"),
        ("stage_in '/a $b/' /price\\$US/ ", ""),
        ('stage_in "/a \\$b/" /two/', ""),
        ("stage_in /100$ /two$/", ""),
        ("stage_out /one --bwlimit 100k /two/", ""),
        ("stage_out --bwlimit 100k host:one 'farline://host#two three/'", ""),
    ],
)
def test_paths_that_are_not_in_full_are_told_as_the_job_is_submitted(
    tmp_path: Path, line: str, why: str
) -> None:
    said = check(tmp_path, f"#!/bin/sh\n#BB_LUA {line}\ntrue\n")
    assert why in said if why else not said


def test_directives_end_at_the_first_command_as_for_slurm(tmp_path: Path) -> None:
    text = "#!/bin/sh\n\n# a word\n#BB_LUA stage_up /one /two\ntrue\n"
    assert "line 4" in check(tmp_path, text)
    inner = "#!/bin/sh\n#BB_LUA stage_in /one /two\ncat > other.sh <<END\n#BB_LUA stage_up\nEND\n"
    assert check(tmp_path, inner) == ""


def check(folder: Path, text: str) -> str:
    """What is printed of a script; nothing if it is right."""
    (folder / "script.sh").write_text(text)
    words = [sys.executable, str(PROGRAM), "check", str(folder / "script.sh")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if done.stdout else 0), done.stderr
    return done.stdout


def test_a_copy_is_tried_again_until_slurm_ends_it_unless_its_line_says_less(
    site: dict[str, str],
) -> None:
    folder = Path(site["SITE"])
    (folder / "farline").write_text(f'#!/bin/sh\necho "$*" >> {folder}/said\n')
    lines = ("/one /two", "--retry-for 5m /one /two")
    script = "".join(f"#BB_LUA stage_in {line}\n" for line in lines)
    (folder / "job.sh").write_text(f"#!/bin/sh\n{script}")
    words = [sys.executable, str(PROGRAM), "in", str(folder / "job.sh"), "7"]
    subprocess.run(words, env=site, check=True, timeout=60)
    first = "copy --progress --retry-for 365d"
    assert (folder / "said").read_text().splitlines() == [f"{first} {line}" for line in lines]
