"""`make dist`: the packages of farline in `dist/`: wheel, source, Debian package, SBOM, checksums.

The same commit gives the same bytes: times are the commit's, paths of this machine are left out,
and archives are sorted. The wheel is built by maturin with Zig's linker for glibc 2.17 (manylinux
2014), so that it runs on any distribution of the last ten years; Zig comes from a wheel that
requirements-dist.lock names by its hash.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
CORE = ("click", "markdown-it-py", "mdurl", "pygments", "rich")
"""What farline needs to serve and copy, as locked."""
HOME = "usr/lib/farline"
PYTHONS = ("3.12", "3.13", "3.14")
"""Further versions of Python that may be a distribution's: the extension is one for all (abi3)."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ELF = {"x86_64": 62, "aarch64": 183}
"""Processors as ELF has them (e_machine)."""


def run(*words: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What a command prints; its failure ends this program."""
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"dist: {words[0]} ended with {done.returncode}")
    return done.stdout


def version() -> str:
    """The one version there is."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def debian_version(text: str) -> str:
    """A version as dpkg sorts it: 1.0.0~rc1 comes before 1.0.0 (deb-version(7))."""
    return text.replace("-", "~")


def environment() -> dict[str, str]:
    """What makes builds the same everywhere."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    flags = [f"--remap-path-prefix={ROOT}=/farline", f"--remap-path-prefix={cargo}=/cargo"]
    return {
        "SOURCE_DATE_EPOCH": epoch,
        "CARGO_INCREMENTAL": "0",
        "RUSTFLAGS": " ".join(flags),
        "CARGO_TARGET_DIR": str(ROOT / "target" / "dist"),
    }


def build_wheel(folder: Path, env: Mapping[str, str], machine: str) -> Path:
    """The wheel for a processor."""
    cross = [] if machine == platform.machine() else ["--target", cross_target(machine)]
    with tempfile.TemporaryDirectory(prefix="farline-zig-") as place:
        tools = Path(place)
        run(
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--require-hashes", "--target", tools / "zig", "-r",
            ROOT / "requirements-dist.lock",
        )  # fmt: skip
        zig = tools / "bin" / "zig"
        zig.parent.mkdir()
        zig.write_text(f'#!/bin/sh\nPYTHONPATH={tools}/zig exec {sys.executable} -m ziglang "$@"\n')
        zig.chmod(0o755)
        path = f"{zig.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        run(
            sys.executable, "-m", "maturin", "build", "--release", "--locked", "--strip", "true",
            "--zig", "--compatibility", "manylinux2014", "--interpreter", sys.executable,
            "--out", folder, *cross, env={**env, "PATH": path},
        )  # fmt: skip
    wheel = newest(folder, f"*{machine}.whl")
    forget_place(wheel)
    return wheel


def cross_target(machine: str) -> str:
    """Rust's target for another processor than this machine's, installed where it was missing."""
    target = f"{machine}-unknown-linux-gnu"
    library = Path(run("rustc", "--print", "target-libdir", "--target", target).strip())
    if not library.exists():
        if shutil.which("rustup") is None:
            sys.exit(f"dist: Rust's library for {target} is missing, and so is rustup to add it")
        run("rustup", "--quiet", "target", "add", target)
    return target


def forget_place(wheel: Path) -> None:
    """Takes the folder that it was built in out of the wheel's SBOM, and corrects its RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    sums = {}
    for at, (info, content) in enumerate(members):
        if "/sboms/" in info.filename:
            content = content.replace(f"path+file://{ROOT}/".encode(), b"path+file:///farline/")
            members[at] = (info, content)
            checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            sums[info.filename] = f"{info.filename},sha256={checksum.decode()},{len(content)}"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in members:
            if info.filename.endswith(".dist-info/RECORD"):
                lines = content.decode().splitlines()
                lines = [sums.get(line.partition(",")[0], line) for line in lines]
                content = ("\n".join(lines) + "\n").encode()
            archive.writestr(info, content)


def build_source(folder: Path, env: Mapping[str, str]) -> Path:
    """The source package."""
    run(sys.executable, "-m", "maturin", "sdist", "--out", folder, env=env)
    return newest(folder, "*.tar.gz")


def newest(folder: Path, pattern: str) -> Path:
    """The last file of a pattern."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)


def core_lock(text: str) -> str:
    """The entries of a lock that farline's core needs."""
    entries = re.split(r"\n(?=\S)", text.strip())
    name = {entry.partition("==")[0].strip(): entry for entry in entries}
    return "\n".join(name[one] for one in CORE) + "\n"


def build_deb(wheel: Path, folder: Path, env: Mapping[str, str]) -> Path:
    """A Debian package of the core: an environment below /usr/lib/farline, pages, units."""
    machine = machine_of(wheel)
    name = f"farline_{debian_version(version())}_{ARCHITECTURES[machine]}.deb"
    with tempfile.TemporaryDirectory(prefix="farline-deb-") as place:
        top = Path(place) / "root"
        fill_home(top, wheel)
        fill_pages(top, machine)
        fill_units(top)
        fill_control(top, ARCHITECTURES[machine])
        set_modes_and_times(top, int(env["SOURCE_DATE_EPOCH"]))
        target = folder / name
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", top, target, env=env)
    return target


def machine_of(wheel: Path) -> str:
    """The processor that a wheel is for, by its name; its extension must be for the same."""
    machine = re.sub(r".*_(x86_64|aarch64)\.whl$", r"\1", wheel.name)
    with zipfile.ZipFile(wheel) as archive, archive.open("farline/_native.abi3.so") as file:
        header = file.read(20)
    if header[:4] != b"\x7fELF" or int.from_bytes(header[18:20], "little") != ELF[machine]:
        sys.exit(f"dist: {wheel.name}: its extension is for another processor")
    return machine


def fill_home(top: Path, wheel: Path) -> None:
    """Python's packages, and an environment that finds them before those of the distribution."""
    home = top / HOME
    site = home / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    install_core(site)
    shutil.rmtree(site / "bin", ignore_errors=True)
    run(*pip_install(site), "--no-index", *for_machine(machine_of(wheel)), wheel)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for record in site.glob("*.dist-info"):
        # They name this machine's folders.
        for file in ("RECORD", "direct_url.json", "REQUESTED"):
            (record / file).unlink(missing_ok=True)
    for other in PYTHONS:
        (home / "lib" / f"python{other}").symlink_to("python3.11")
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to("/usr/bin/python3")
    (home / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    program = home / "bin" / "farline"
    program.write_text(
        f"#!/{HOME}/bin/python3\nimport sys\n\nfrom farline.cli import main\n\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    (top / "usr" / "bin").mkdir()
    (top / "usr" / "bin" / "farline").symlink_to("../lib/farline/bin/farline")


def pip_install(site: Path) -> tuple[str | Path, ...]:
    """Words that install into a folder."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return (*pip, "--no-compile", "--no-deps", "--target", site)


def for_machine(machine: str) -> tuple[str, ...]:
    """Words by which pip takes a wheel for another processor."""
    if machine == platform.machine():
        return ()
    named = (f"manylinux2014_{machine}", f"manylinux_2_17_{machine}", f"linux_{machine}")
    platforms = (word for name in named for word in ("--platform", name))
    return (*platforms, "--python-version", "3.11", "--abi", "abi3", "--only-binary", ":all:")


def install_core(site: Path) -> None:
    """The packages that farline's core needs, by the hashes of the lock."""
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as lock:
        lock.write(core_lock(lock_text()))
        lock.flush()
        run(*pip_install(site), "--require-hashes", "-r", lock.name)


def farline_of(top: Path, machine: str, *words: str) -> str:
    """What the farline in the package prints; this checkout's where that runs elsewhere alone."""
    is_ours = machine == platform.machine()
    python, place = (top / HOME / "bin" / "python3", "") if is_ours else (sys.executable, "python")
    return run(
        python, "-m", "farline", *words,
        env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT / place) if place else ""},
    )  # fmt: skip


def fill_pages(top: Path, machine: str) -> None:
    """Manual pages and completion, from the command's own definitions."""
    share = top / "usr" / "share"
    farline_of(top, machine, "man", "--output", str(share / "man"))
    for page in (share / "man" / "man1").glob("*.1"):
        compress(page)
    for shell, place in (
        ("bash", "bash-completion/completions/farline"),
        ("zsh", "zsh/vendor-completions/_farline"),
        ("fish", "fish/vendor_completions.d/farline.fish"),
    ):
        path = share / place
        path.parent.mkdir(parents=True)
        path.write_text(farline_of(top, machine, "completion", shell), encoding="utf-8")
    docs = share / "doc" / "farline"
    docs.mkdir(parents=True)
    shutil.copy(ROOT / "CHANGELOG.md", docs / "changelog")
    compress(docs / "changelog")
    shutil.copy(ROOT / "packaging" / "deb" / "copyright", docs / "copyright")


def compress(path: Path) -> None:
    """In place, without name or time."""
    with (
        path.open("rb") as plain,
        (path.parent / f"{path.name}.gz").open("wb") as packed,
        gzip.GzipFile("", "wb", 9, packed, mtime=0) as file,
    ):
        shutil.copyfileobj(plain, file)
    path.unlink()


def fill_units(top: Path) -> None:
    """Units of systemd and the user that they run as."""
    units = top / "usr" / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    for unit in sorted((ROOT / "packaging" / "systemd").iterdir()):
        if unit.suffix in (".service", ".socket"):
            shutil.copy(unit, units)
    users = top / "usr" / "lib" / "sysusers.d"
    users.mkdir()
    shutil.copy(ROOT / "packaging" / "systemd" / "farline.sysusers", users / "farline.conf")


def fill_control(top: Path, architecture: str) -> None:
    """What dpkg reads."""
    control = top / "DEBIAN"
    control.mkdir()
    kib = sum(path.lstat().st_size for path in top.rglob("*") if path.is_file()) // 1024
    text = (ROOT / "packaging" / "deb" / "control").read_text(encoding="utf-8")
    text = text.format(
        version=debian_version(version()), architecture=architecture, installed_kib=kib
    )
    (control / "control").write_text(text, encoding="utf-8")
    for script in ("postinst", "prerm"):
        shutil.copy(ROOT / "packaging" / "deb" / script, control / script)
    sums = [f"{digest('md5', path)}  {path.relative_to(top)}" for path in files_of(top)]
    (control / "md5sums").write_text("\n".join(sums) + "\n", encoding="utf-8")


def files_of(top: Path) -> Iterator[Path]:
    """Files that dpkg installs, in order."""
    for path in sorted(top.rglob("*")):
        if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts:
            yield path


def digest(kind: str, path: Path) -> str:
    """The sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def set_modes_and_times(top: Path, epoch: int) -> None:
    """The same, whatever the umask and the clock of the builder."""
    for path in sorted(top.rglob("*"), reverse=True):
        if not path.is_symlink():
            is_program = (
                path.is_dir() or path.name in ("postinst", "prerm") or (path.parent.name == "bin")
            )
            path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    top.chmod(0o755)


def write_sbom(wheel: Path, folder: Path) -> Path:
    """CycloneDX: what maturin says of the extension's crates, and the locked Python packages."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/sboms/" in name]
        documents = [json.loads(archive.read(name)) for name in sorted(names)]
    if not documents:
        sys.exit(f"dist: {wheel.name} has no SBOM: maturin 1.16 or later makes one")
    document = documents[0]
    known = document.setdefault("components", [])
    known += [component(entry) for entry in entries(core_lock(lock_text()))]
    target = folder / f"farline-{version()}.cdx.json"
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return target


def lock_text() -> str:
    """The lock of all Python packages."""
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def entries(lock: str) -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and hashes of each entry of a lock."""
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        found = re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", entry)
        if found:
            yield found[1], found[2], re.findall(r"sha256:([0-9a-f]{64})", entry)


def component(entry: tuple[str, str, list[str]]) -> dict[str, object]:
    """A Python package as CycloneDX has it."""
    name, number, hashes = entry
    return {
        "type": "library", "name": name, "version": number, "purl": f"pkg:pypi/{name}@{number}",
        "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
    }  # fmt: skip


def write_sums(folder: Path) -> None:
    """SHA256SUMS of all packages, as sha256sum -c reads them."""
    files = [path for path in sorted(folder.iterdir()) if path.name != "SHA256SUMS"]
    lines = [f"{digest('sha256', path)}  {path.name}" for path in files]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Builds all packages, or those that are named: wheel, source, deb; for named processors."""
    machines = [word for word in words if word in ARCHITECTURES] or [platform.machine()]
    wanted = set(words) - set(machines) or {"wheel", "source", "deb"}
    if unknown := wanted - {"wheel", "source", "deb"}:
        sys.exit(
            f"dist: {', '.join(sorted(unknown))}: unknown; there are wheel, source, deb,"
            f" {', '.join(ARCHITECTURES)}"
        )
    if "deb" in wanted and shutil.which("dpkg-deb") is None:
        sys.exit("dist: dpkg-deb is missing: apt install dpkg")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    env = environment()
    wheels = [build_wheel(DIST, env, machine) for machine in machines]
    write_sbom(wheels[0], DIST)
    if "source" in wanted:
        build_source(DIST, env)
    if "deb" in wanted:
        for wheel in wheels:
            build_deb(wheel, DIST, env)
    write_sums(DIST)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.1f} MB  dist/{path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
