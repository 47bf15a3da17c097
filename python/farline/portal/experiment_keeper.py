"""The process that measures for a service: `python -m farline.portal.experiment_keeper FOLDER`.

It belongs to no terminal and outlives the service that started it. One machine measures one thing
at a time: a keeper waits for its turn, then runs the command that a person would type, and leaves
what it came to. Whoever comes second finds the folder locked, or ended, and leaves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from farline.errors import FarlineError
from farline.portal.experiment_results import bars_of
from farline.portal.job_folder import JobFolder
from farline.store.disk import locked

ATTEMPT = 1
"""An experiment is begun once."""

PLAN, BEGUN, OUTPUT, TURN = "plan.toml", "begun", "output.json", "turn.lock"
"""Files: the plan, the mark of a turn that has come, what the command printed; whose turn it is."""

LOOK_EACH_S = 0.2
GRACE_S = 30.0
"""How long a command may take to stop before it is killed."""

_MARK = "farline: "


def command_of(folder: JobFolder) -> Sequence[str]:
    """The command that measures what the folder's order says."""
    order = folder.order()
    words = [sys.executable, "-m", "farline", order["verb"], str(folder.path / PLAN)]
    return [*words, "--store", order["store"], "--json"]


def work(folder: JobFolder) -> None:
    """Measures, and leaves what it came to; the folder's lock is held."""
    if folder.end(ATTEMPT) is not None:
        return
    with _turn(folder) as has_come:
        code = _run(folder) if has_come else None
    is_stopped = folder.stop_file.exists() and code != 0
    end: dict[str, Any] = {"exit_code": code, "stopped": is_stopped, "at": round(time.time(), 3)}
    try:
        end["bars"] = [asdict(one) for one in bars_of(Path(folder.order()["store"]))]
        end["error"] = None if code in (0, 3) else _reason(folder)
    except FarlineError as error:
        end |= {"bars": [], "error": error.message}
    folder.write_end(ATTEMPT, end)


@contextlib.contextmanager
def _turn(folder: JobFolder) -> Iterator[bool]:
    """Waits for the turn; gives false where somebody stopped it before that."""
    while not folder.stop_file.exists():
        with locked(folder.path.parent / TURN, exclusive=True, wait=False) as has_come:
            if has_come:
                (folder.path / BEGUN).touch()
                yield True
                return
        time.sleep(LOOK_EACH_S)
    yield False


def _run(folder: JobFolder) -> int:
    """Runs the command to its end; the code it ended with, also of one that was too long."""
    until_s = time.monotonic() + folder.order()["most_s"]
    with (folder.path / OUTPUT).open("wb") as out, folder.log.open("ab") as log:
        process = subprocess.Popen(
            command_of(folder), stdin=subprocess.DEVNULL, stdout=out, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        while process.poll() is None:
            if folder.stop_file.exists() or time.monotonic() > until_s:
                folder.ask_to_stop()
                return _stopped(process)
            time.sleep(LOOK_EACH_S)
    return process.returncode


def _stopped(process: subprocess.Popen[bytes]) -> int:
    """Stops it as Ctrl-C does in a terminal: it takes its testbed down; later it is killed."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _reason(folder: JobFolder) -> str:
    """The last line in which the command says why it failed."""
    try:
        lines = folder.log.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        lines = []
    said = [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)]
    return said[-1] if said else "it ended without a reason; keeper.log of its folder has more"


def main() -> None:
    """Takes the folder's lock and works."""
    folder = JobFolder(Path(sys.argv[1]))
    with folder.held() as is_mine:
        if is_mine:
            work(folder)


if __name__ == "__main__":
    main()
