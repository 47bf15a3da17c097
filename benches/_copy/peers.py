"""The peers as their users start them: GridFTP, rsync, scp, rclone; one server of each kind.

A peer copies what is in one folder into another that is there and empty. Its documented options
that could make it faster here are contenders of their own; a row takes the fastest.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _copy.place import Place, ending, first_line, free_port

Commands = Callable[[Path, Path], list[str]]
"""A command line from a source folder and a target folder."""

PACKAGES = {
    "globus-gridftp-server": "globus-gridftp-server-progs",
    "globus-url-copy": "globus-gass-copy-progs",
    "rsync": "rsync",
    "sshd": "openssh-server",
    "scp": "openssh-client",
    "rclone": "rclone",
}
FAST_CIPHER = "aes128-gcm@openssh.com"


@dataclass(frozen=True)
class Contender:
    """Somebody who copies: a name for the table, and the command line."""

    name: str
    command: Commands


def need(*programs: str) -> None:
    """Ends the bench with the package to install if a peer is missing."""
    places = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
    for name in programs:
        if shutil.which(name, path=places) is None:
            raise SystemExit(f"{name} is missing: apt-get install {PACKAGES[name]}")


@contextmanager
def gridftp(place: Place) -> Iterator[dict[str, Contender]]:
    """A GridFTP server; single files with its best options, trees with concurrency.

    It serves nobody: targets are open to everybody.
    """
    need("globus-gridftp-server", "globus-url-copy")
    interfaces = ["-control-interface", place.address, "-data-interface", place.address]
    # Without the machine's own configuration it takes a port of the kernel's choice and says it.
    # For third-party copies it is both ends.
    argv = [
        "globus-gridftp-server",
        "-c",
        "/dev/null",
        "-aa",
        "-anonymous-user",
        "nobody",
        *interfaces,
    ]
    with ending(place.start(argv)) as server:
        words = first_line(server).split()
        if not words:
            raise RuntimeError("globus-gridftp-server ended at once")
        base = f"ftp://{place.address}:{words[-1].rpartition(':')[2]}"
        yield {one.name: one for one in _gridftp_contenders(place, base)}


def _gridftp_contenders(place: Place, base: str) -> Iterator[Contender]:
    def copier(near: str, *options: str) -> Commands:
        def command(source: Path, target: Path) -> list[str]:
            urls = [f"{near}{source}/", f"{base}{target}/"]
            if len(names := [path.name for path in source.iterdir() if path.is_file()]) == 1:
                urls = [f"{near}{source}/{names[0]}", f"{base}{target}/{names[0]}"]
            else:
                return place.call(["globus-url-copy", "-r", "-cd", "-fast", *options, *urls])
            return place.call(["globus-url-copy", "-fast", *options, *urls])

        return command

    yield Contender("gridftp p1", copier("file://", "-p", "1"))
    yield Contender("gridftp p4", copier("file://", "-p", "4"))
    yield Contender("gridftp p4 bs4M", copier("file://", "-p", "4", "-bs", "4M"))
    yield Contender("gridftp cc4 pp", copier("file://", "-cc", "4", "-pp"))
    yield Contender("gridftp 3rd pp", copier(base, "-pp"))
    yield Contender("gridftp 3rd cc4 pp", copier(base, "-cc", "4", "-pp"))


@contextmanager
def rsync_daemon(place: Place, folder: Path) -> Iterator[Contender]:
    """An rsync daemon that serves the whole file system to this place."""
    need("rsync")
    config, port = folder / "rsyncd.conf", free_port()
    module = "[m]\npath=/\nread only=no\nuid=root\ngid=root\nuse chroot=no\n"
    config.write_text(module, encoding="ascii")
    argv = ["rsync", "--daemon", "--no-detach", f"--config={config}", f"--port={port}"]
    with ending(place.start([*argv, f"--address={place.address}"], folder / "rsyncd.log")):
        place.wait_for_port(port)

        def command(source: Path, target: Path) -> list[str]:
            url = f"rsync://{place.address}:{port}/m{target}/"
            return place.call(["rsync", "-aW", f"{source}/", url])

        yield Contender("rsync daemon", command)


@contextmanager
def ssh(place: Place, folder: Path) -> Iterator[dict[str, Contender]]:
    """An ssh server with a key of its own; scp, rsync and rclone over it."""
    need("sshd", "scp", "rsync", "rclone")
    config, port = _ssh_files(folder, place.address)
    with ending(place.start(["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd")], folder / "log")):
        place.wait_for_port(port)
        host = f"root@{place.address}"
        remote = f":sftp,host={place.address},port={port},user=root,key_file={folder / 'key'}"

        def over(*argv: str) -> Commands:
            def command(source: Path, target: Path) -> list[str]:
                words = (word.replace("SOURCE", f"{source}") for word in argv)
                return place.call([word.replace("TARGET", f"{target}") for word in words])

            return command

        shell = f"ssh -F {config} -c {FAST_CIPHER}"
        quick = ["-c", FAST_CIPHER]
        scp = ["scp", "-q", "-p", "-r", "-F", str(config)]
        found = (
            Contender("scp", over(*scp, "SOURCE/.", f"{host}:TARGET/")),
            Contender("scp gcm", over(*scp, *quick, "SOURCE/.", f"{host}:TARGET/")),
            Contender("rsync ssh", over("rsync", "-aW", "-e", shell, "SOURCE/", f"{host}:TARGET/")),
            Contender(
                "rclone sftp",
                over(
                    "rclone",
                    "copy",
                    "--transfers",
                    "4",
                    "SOURCE",
                    f"{remote},shell_type=unix:TARGET",
                ),
            ),
        )
        yield {one.name: one for one in found}


def _ssh_files(folder: Path, address: str) -> tuple[Path, int]:
    """Keys and settings of both ends; the client's settings and the server's port."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    for name in ("host", "key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    server = (
        f"Port {port}\nListenAddress {address}\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {folder / 'key.pub'}\nPermitRootLogin prohibit-password\n"
        "StrictModes no\nUsePAM no\nMaxStartups 100\nPidFile none\nUseDNS no\n"
        "Subsystem sftp internal-sftp\n"
    )
    client = (
        f"Port {port}\nIdentityFile {folder / 'key'}\nUserKnownHostsFile /dev/null\n"
        "StrictHostKeyChecking no\nLogLevel ERROR\nIdentitiesOnly yes\nBatchMode yes\n"
    )
    (folder / "sshd").write_text(server, encoding="ascii")
    config = folder / "ssh"
    config.write_text(client, encoding="ascii")
    return config, port
