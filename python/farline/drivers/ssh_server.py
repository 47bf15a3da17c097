"""An ssh server for one run, for movers that need one where no ssh leads.

It has a key of its own, lets in one key made for this run, and the client knows both: nobody else
gets in, and nothing of the user's own configuration is touched.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from pathlib import Path

from farline.drivers.driver import Task
from farline.drivers.places import OverSsh
from farline.errors import SystemFailure

CIPHERS = {"aes128-gcm": "aes128-gcm@openssh.com", "aes256-gcm": "aes256-gcm@openssh.com"}
"""farline's words in ssh's."""

DEFAULT_CIPHER = "aes128-gcm"


def prepare(task: Task) -> None:
    """Keys and configurations of both ends, in the task's folder.

    Raises:
        SystemFailure: when no key can be made.
    """
    folder = task.folder
    for name in ("host", "user"):
        if not (folder / name).exists():
            _make_key(folder / name)
    (folder / "authorized").write_text((folder / "user.pub").read_text("ascii"), "ascii")
    # Only root needs it, and there Debian's sshd refuses to start without it.
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (folder / "sshd").write_text(_server_text(task), "utf-8")
    host_key = (folder / "host.pub").read_text("ascii").split()[:2]
    (folder / "known").write_text(f"farline-run {' '.join(host_key)}\n", "ascii")
    (folder / "ssh").write_text(_client_text(task), "utf-8")


def user_name() -> str:
    """Whom the server lets in: the user of this process."""
    return getpass.getuser()


def _make_key(path: Path) -> None:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise SystemFailure("ssh-keygen is missing; install the Debian package openssh-client")
    words = [program, "-q", "-t", "ed25519", "-N", "", "-C", "farline", "-f", str(path)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemFailure(f"ssh-keygen failed: {done.stderr.strip()}")


def _server_text(task: Task) -> str:
    folder = task.folder
    return (
        f"Port {task.port}\nListenAddress {task.address}\nHostKey {folder / 'host'}\n"
        f"AuthorizedKeysFile {folder / 'authorized'}\nAllowUsers {user_name()}\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nStrictModes no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nAllowTcpForwarding no\nX11Forwarding no\n"
        "MaxStartups 100\nMaxSessions 100\nPidFile none\nSubsystem sftp internal-sftp\n"
    )


def _client_text(task: Task) -> str:
    folder = task.folder
    return (
        f"Host *\nHostName {task.address}\nPort {task.port}\nUser {user_name()}\n"
        f"HostKeyAlias farline-run\nIdentityFile {folder / 'user'}\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {folder / 'known'}\nGlobalKnownHostsFile /dev/null\n"
        "StrictHostKeyChecking yes\nBatchMode yes\nConnectTimeout 10\n"
    )


def server_words(task: Task, program: str) -> list[str]:
    """The server, in the foreground."""
    return [program, "-D", "-e", "-f", str(task.folder / "sshd")]


def cipher_of(task: Task) -> str:
    """The cipher in ssh's words; where the data do not go through ssh, that of its login."""
    return CIPHERS.get(task.get("copy.cipher"), CIPHERS[DEFAULT_CIPHER])


def login_options(task: Task) -> list[str]:
    """Options of ssh and scp that reach the far end: the user's own way, or that of this run."""
    if not isinstance(task.server, OverSsh):
        return ["-F", str(task.folder / "ssh"), "-c", cipher_of(task)]
    ssh = task.server.ssh
    words = ["-o", "BatchMode=yes", "-c", cipher_of(task)]
    words += ["-F", ssh.config] if ssh.config else []
    words += ["-i", ssh.identity] if ssh.identity else []
    words += ["-J", ssh.jump] if ssh.jump else []
    words += ["-o", f"Port={ssh.port}"] if ssh.port is not None else []
    words += [ssh.family] if ssh.family else []
    return [*words, *(word for option in ssh.options for word in ("-o", option))]


def login_name(task: Task) -> str:
    """What stands before the colon of a remote name."""
    return task.server.target if isinstance(task.server, OverSsh) else "farline-run"
