"""`--bootstrap` over a real OpenSSH: hosts without farline, with odd shells, without room."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.interop.test_copy_ssh import SSHD, Sshd, sshd
from tests.support.serving import farline
from tests.support.trees import make_tree, shape

__all__ = ["sshd"]
pytestmark = pytest.mark.skipif(
    not (Path(SSHD).exists() and shutil.which("ssh-keygen")),
    reason="no OpenSSH server: apt install openssh-server",
)

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sh", "uname", "mkdir", "cat", "chmod", "mv", "rm", "rmdir", "cut")
"""Programs of a host that has little more."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, as cargo has it for its tests, without what only a debugger reads."""
    words = ["cargo", "build", "--quiet", "--locked", "--package", "farline-carried"]
    subprocess.run(words, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    small = tmp_path_factory.mktemp("program") / "farline-carried"
    subprocess.run(["strip", "-o", small, target / "debug" / "farline-carried"], check=True)
    return small


@dataclass
class Bare:
    """A host without farline: sshd runs its user's command with this home and these programs."""

    sshd: Sshd
    home: Path
    programs: Path

    def options(self, before: str = "", shell: str = "sh", home: str = "") -> list[str]:
        """Options of `farline copy`; the host's shell does `before` first."""
        environment = (
            f'env -i HOME={home or self.home} PATH={self.programs} SSH_CONNECTION="$SSH_CONNECTION"'
        )
        command = f'{before} exec {environment} {shutil.which(shell)} -c "$SSH_ORIGINAL_COMMAND"'
        words = self.sshd.forced(command)
        at = words.index("--remote-farline")
        return [*words[:at], *words[at + 2 :]]

    @property
    def cache(self) -> Path:
        """Where the program is kept."""
        return self.home / ".cache" / "farline"


@pytest.fixture
def bare(sshd: Sshd, tmp_path: Path) -> Bare:
    home, programs = tmp_path / "far-home", tmp_path / "far-programs"
    home.mkdir()
    programs.mkdir()
    for name in (*NEEDED, "sha256sum"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return Bare(sshd, home, programs)


def copy(tmp_path: Path, program: Path, options: list[str], *places: str):  # type: ignore[no-untyped-def]
    words = ["--bootstrap", "--bootstrap-program", str(program), "--no-store", *options, *places]
    return farline(tmp_path, "copy", *words)


@pytest.mark.parametrize("shell", ["sh", "bash", "tcsh", "fish", "zsh"])
def test_files_go_to_and_from_a_host_without_farline(
    bare: Bare, program: Path, tmp_path: Path, shell: str
) -> None:
    source = tmp_path / "source"
    make_tree(source)
    options, there = bare.options(shell=shell), tmp_path / "there"
    sent = copy(tmp_path, program, options, f"{source}/", f"{bare.sshd.host}:{there}/")
    assert sent.returncode == 0, sent.stderr
    assert "sending farline (" in sent.stderr
    assert shape(there) == shape(source)
    back = copy(tmp_path, program, options, f"{bare.sshd.host}:{there}/", f"{tmp_path}/back/")
    assert back.returncode == 0, back.stderr
    assert "sending farline" not in back.stderr, "it is in the cache"
    assert shape(tmp_path / "back") == shape(source)
    digits = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    assert [one.name for one in bare.cache.iterdir()] == [f"farline-{version('farline')}-{digits}"]


NOISES = {
    "to both": "echo Welcome; printf 'farline-{ no newline' >&2; set -x;",
    "no newline": "printf 'Last login: today';",
    "like a protocol": "printf '{%sevent%s: 1}' \\\" \\\"; echo SSH-2.0-OpenSSH_9.2; echo farline;",
    "colours": "printf '\\033[31mwarning\\033[0m\\033]0;title\\007\\n';",
    "a terminal is missed": "stty -echo; tput setaf 1;",
    "no text": "head -c 3000 /dev/urandom;",
    "line ends of DOS": "printf 'one\\r\\ntwo\\r\\n\\r\\n';",
    "another encoding": "printf 'Gr\\374\\337e\\n';",
    "much": "seq 1 20000;",
    "much to the other": "seq 1 20000 >&2;",
    "slow": "sleep 1; echo mounting your home;",
    "for its owner alone": "umask 077;",
    "keeps what is there": "set -C; echo;",
    "another language": "export LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 LANGUAGE=de; echo Willkommen;",
    "fails": "false; nosuchcommand; cat /nosuch;",
}
"""What start-up files of a host do before its shell runs a command."""


@pytest.mark.parametrize("noise", NOISES)
def test_a_shell_that_prints_much_is_understood(
    bare: Bare, program: Path, tmp_path: Path, noise: str
) -> None:
    (tmp_path / "a").write_text("content")
    options = bare.options(before=NOISES[noise])
    done = copy(tmp_path, program, options, str(tmp_path / "a"), f"{bare.sshd.host}:b")
    assert done.returncode == 0, done.stderr
    assert (bare.home / "b").read_text() == "content"


def test_connecting_back_and_a_tunnel_work_too(bare: Bare, program: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    options = bare.options()
    for number, way in enumerate((["--connect-back", "0"], ["--single-port"])):
        name = f"{bare.sshd.host}:b{number}"
        done = copy(tmp_path, program, [*options, *way], str(tmp_path / "a"), name)
        assert done.returncode == 0, done.stderr
        assert (bare.home / f"b{number}").read_text() == "content"


def test_a_damaged_program_in_the_cache_is_sent_again(
    bare: Bare, program: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("content")
    options, place = bare.options(), f"{bare.sshd.host}:b"
    assert copy(tmp_path, program, options, str(tmp_path / "a"), place).returncode == 0
    (kept,) = bare.cache.iterdir()
    kept.write_text("#!/bin/sh\necho pwned > ~/pwned\n")
    done = copy(tmp_path, program, [*options, "--ignore-times"], str(tmp_path / "a"), place)
    assert done.returncode == 0, done.stderr
    assert "sending farline" in done.stderr
    assert kept.read_bytes() == program.read_bytes()
    assert not (bare.home / "pwned").exists()


def test_another_hash_than_that_of_what_was_sent_keeps_nothing(
    bare: Bare, program: Path, tmp_path: Path
) -> None:
    (bare.programs / "sha256sum").unlink()
    liar = bare.programs / "sha256sum"
    liar.write_text(f"#!/bin/sh\necho {'0' * 64}  $1\n")
    liar.chmod(0o755)
    (tmp_path / "a").write_text("content")
    done = copy(tmp_path, program, bare.options(), str(tmp_path / "a"), f"{bare.sshd.host}:b")
    assert done.returncode == 2, done.stderr
    assert "did not arrive as it was sent (SHA-256 0000000000000000" in done.stderr
    assert not list(bare.cache.iterdir())
    assert not (bare.home / "b").exists()


def test_a_host_that_computes_no_hash_is_refused(bare: Bare, program: Path, tmp_path: Path) -> None:
    (bare.programs / "sha256sum").unlink()
    (tmp_path / "a").write_text("content")
    done = copy(tmp_path, program, bare.options(), str(tmp_path / "a"), f"{bare.sshd.host}:b")
    assert done.returncode == 1, done.stderr
    assert "no program on that host computes SHA-256 (sha256sum, shasum, openssl)" in done.stderr
    assert not list(bare.cache.iterdir())


def test_a_home_that_takes_nothing_is_named(bare: Bare, program: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    options = bare.options(home="/proc")
    done = copy(tmp_path, program, options, str(tmp_path / "a"), f"{bare.sshd.host}:/tmp/b")
    assert done.returncode == 1, done.stderr
    assert "the program cannot be kept in /proc/.cache/farline on that host: mkdir" in done.stderr


def test_a_program_that_does_not_run_there_is_not_kept(bare: Bare, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("#!/nowhere/sh\n")
    (tmp_path / "a").write_text("content")
    done = copy(tmp_path, other, bare.options(), str(tmp_path / "a"), f"{bare.sshd.host}:b")
    assert done.returncode == 1, done.stderr
    assert "the program that was sent does not run there: " in done.stderr
    assert not list(bare.cache.iterdir())


def test_without_the_option_the_error_offers_it(bare: Bare, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    words = ["copy", "--no-store", *bare.options(), str(tmp_path / "a"), f"{bare.sshd.host}:b"]
    done = farline(tmp_path, *words)
    assert done.returncode == 1
    assert "have a program for this copy sent with --bootstrap" in done.stderr
    assert not bare.cache.exists()


def test_it_can_be_sent_ahead_and_removed(bare: Bare, program: Path, tmp_path: Path) -> None:
    options = bare.options()
    sent = farline(tmp_path, "bootstrap", "--program", str(program), *options, bare.sshd.host)
    assert sent.returncode == 0, sent.stderr
    (kept,) = bare.cache.iterdir()
    assert sent.stdout == f"{bare.sshd.host}:{kept}\n"
    gone = farline(tmp_path, "bootstrap", "--remove", *options, bare.sshd.host)
    assert gone.stdout == f"{bare.sshd.host}:{kept}  removed\n"
    assert not bare.cache.exists()
    again = farline(tmp_path, "bootstrap", "--remove", *options, bare.sshd.host)
    assert (again.returncode, again.stdout) == (0, f"{bare.sshd.host}: nothing to remove\n")
