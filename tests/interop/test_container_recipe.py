"""The recipe of the container, step by step in a clean root: as its user, with a read-only root.

Its own lines are run: what installs, what serves, what asks for its health. The isolation of a
container engine is not tested here, for few machines let one run inside another.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts import dist
from tests.interop.clean_root import HOME, Root

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]
RECIPE = (dist.ROOT / "packaging" / "container" / "Containerfile").read_text(encoding="utf-8")
JOINED = re.sub(r"\\\n\s*", "", RECIPE)


def said(word: str) -> list[str]:
    """What follows an instruction, for each time that it is given."""
    return re.findall(rf"^{word} (.*)$", JOINED, re.MULTILINE)


def words_of(instruction: str) -> list[str]:
    """The words of an instruction that is written as JSON."""
    found: list[str] = json.loads(said(instruction)[0])
    return found


def confined(root: Root, *words: str) -> list[str]:
    """A command as the container's user, over a root that takes nothing but its volumes."""
    user, group = said("USER")[0].split(":")
    script = (
        f"mount --bind {root.path} {root.path} && mount -o remount,bind,ro {root.path}"
        f" && mount -t proc proc {root.path}/proc"
        f" && for v in {' '.join(json.loads(said('VOLUME')[0]))}; do"
        f' mount --bind "{root.path}.volumes$v" "{root.path}$v"; done'
        f" && exec chroot {root.path} setpriv --no-new-privs --bounding-set=-all --inh-caps=-all"
        f' --clear-groups --reuid {user} --regid {group} "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", *words]


def environment() -> dict[str, str]:
    """What the recipe sets."""
    return {**HOME, **dict(pair.split("=", 1) for pair in said("ENV")[0].split())}


def test_it_serves_as_its_user_over_a_read_only_root_and_says_when_it_is_well(
    root: Root, deb: Path, tmp_path: Path
) -> None:
    shutil.copy(deb, root.path / "tmp" / deb.name)
    (install,) = said("RUN")
    root.run("sh", "-c", install)
    for volume in json.loads(said("VOLUME")[0]):
        shutil.copytree(root.path / volume[1:], f"{root.path}.volumes{volume}")
        subprocess.run(["chown", said("USER")[0], f"{root.path}.volumes{volume}"], check=True)
    tried = subprocess.run(
        confined(root, "sh", "-c", "id -u; touch /x /usr/x; touch /srv/data/y && echo kept"),
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tried.stdout.split() == [said("USER")[0].split(":")[0], "kept"], tried.stderr
    health = json.loads(re.search(r"CMD (\[.*\])", said("HEALTHCHECK")[0])[1])  # type: ignore[index]
    words = [*words_of("ENTRYPOINT"), "-B", "127.0.0.1", "--json", *words_of("CMD")]
    port = {**environment(), "FARLINE_PORT": "54701"}
    asleep = subprocess.run(confined(root, *health), env=port, check=False, stderr=subprocess.PIPE)
    assert asleep.returncode != 0
    (root.path / "root" / "source").write_bytes(b"content" * 1000)
    server = subprocess.Popen(confined(root, *words), env=port, stdout=subprocess.PIPE, text=True)
    with ending(server):
        ticket = ticket_of(server)
        subprocess.run(confined(root, *health), env=port, check=True)
        root.run("farline", "copy", "--no-store", "/root/source", f"{ticket}#there")
    kept = Path(f"{root.path}.volumes/srv/data/there")
    assert kept.read_bytes() == b"content" * 1000
    assert kept.stat().st_uid == int(said("USER")[0].split(":")[0])
    # As an engine does that was handed a socket down by systemd.
    words = [*words_of("ENTRYPOINT"), "--json", *words_of("CMD")]
    with socket.create_server(("127.0.0.1", 0)) as opened:
        number = opened.fileno()
        hands_down = f'exec 3<&{number}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
        server = subprocess.Popen(
            ["bash", "-c", hands_down, "bash", *confined(root, *words)], env=port,
            stdout=subprocess.PIPE, text=True, pass_fds=[number],
        )  # fmt: skip
        with ending(server):
            ticket = ticket_of(server)
            assert f":{opened.getsockname()[1]}/" in ticket
            root.run("farline", "copy", "--no-store", "/root/source", f"{ticket}#handed-down")
    assert kept.with_name("handed-down").read_bytes() == b"content" * 1000


@contextmanager
def ending(server: subprocess.Popen[str]) -> Iterator[None]:
    """Ends it after the block."""
    try:
        yield
    finally:
        server.terminate()
        server.communicate()


def ticket_of(server: subprocess.Popen[str]) -> str:
    """The ticket for writing that it prints once it listens."""
    assert server.stdout is not None
    ticket: str = json.loads(server.stdout.readline())["tickets"]["write"]
    return ticket
