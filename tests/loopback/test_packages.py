"""The Debian package: the same bytes each time, and a farline that works from it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import dist
from tests.support.trees import make_tree, shape

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text())["project"]
VERSION = dist.version().replace("-rc", "rc")
"""As Python writes it (PEP 440)."""
SITE = Path(next(path for path in sys.path if path.endswith("site-packages")))


def make_wheel(folder: Path) -> Path:
    """A wheel of this checkout with the extension that is there."""
    info = f"farline-{VERSION}.dist-info"
    wheel = folder / f"farline-{VERSION}-cp311-abi3-linux_x86_64.whl"
    native = folder / "_native.abi3.so"
    shutil.copy(dist.ROOT / "python" / "farline" / native.name, native)
    subprocess.run(["strip", native], check=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted((dist.ROOT / "python" / "farline").rglob("*")):
            if path.suffix in (".py", ".pyi", ".toml", ".html", ".css", ".typed", ".svg", ".json"):
                archive.write(path, path.relative_to(dist.ROOT / "python"))
        archive.write(native, f"farline/{native.name}")
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: farline\nVersion: {VERSION}\n"
            + "".join(f"Requires-Dist: {one}\n" for one in PROJECT["dependencies"]),
        )
        scripts = "".join(f"{name} = {what}\n" for name, what in PROJECT["scripts"].items())
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}")
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n"
            "Tag: cp311-abi3-linux_x86_64\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Two builds of the package, one after the other."""
    top = tmp_path_factory.mktemp("dist")
    wheel = make_wheel(top)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "install_core", copy_core)
        built = []
        for name in ("first", "second"):
            (top / name).mkdir()
            built.append(dist.build_deb(wheel, top / name, EPOCH))
        yield built[0], built[1]


def copy_core(site: Path) -> None:
    """What pip would install, from this environment."""
    for name in ("click", "markdown_it", "mdurl", "pygments", "rich"):
        shutil.copytree(
            SITE / name, site / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )


@pytest.fixture(scope="module")
def root(packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the package would put below /."""
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["dpkg-deb", "--extract", packages[0], root], check=True)
    return root


def test_the_same_files_make_the_same_package(packages: tuple[Path, Path]) -> None:
    first, second = packages
    assert dist.digest("sha256", first) == dist.digest("sha256", second)


def test_a_copy_works_from_what_is_installed_and_finds_nothing_elsewhere(
    root: Path, tmp_path: Path
) -> None:
    tree = make_tree(tmp_path / "tree")
    python = root / "usr/lib/farline/bin/python3"
    words = [str(python), "-m", "farline", "copy", "--no-store", f"{tree}/", f"{tmp_path}/copy"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shape(tmp_path / "copy") == shape(tree)
    where = subprocess.run(
        [python, "-c", "import farline, click; print(farline.__file__, click.__file__)"],
        capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert all(path.startswith(str(root)) for path in where.stdout.split()), where.stdout


def test_pages_completion_and_units_come_along(root: Path) -> None:
    share = root / "usr/share"
    pages = {path.name for path in (share / "man/man1").iterdir()}
    assert {"farline.1.gz", "farline-copy.1.gz", "farline-serve.1.gz"} <= pages
    assert "farline" in (share / "bash-completion/completions/farline").read_text()
    assert (share / "zsh/vendor-completions/_farline").exists()
    assert (share / "fish/vendor_completions.d/farline.fish").exists()
    units = {path.name for path in (root / "usr/lib/systemd/system").iterdir()}
    assert units == {"farline-serve.service", "farline-serve.socket", "farline-portal.service"}
    assert (root / "usr/bin/farline").resolve().name == "farline"


def test_nothing_tells_of_the_machine_that_built_it(root: Path) -> None:
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if path.is_symlink():
            continue
        assert not mode & (stat.S_IWGRP | stat.S_IWOTH), path
        if path.is_file() and path.suffix != ".so":
            assert str(dist.ROOT).encode() not in path.read_bytes(), path


def test_dpkg_reads_what_it_is(packages: tuple[Path, Path]) -> None:
    said = subprocess.run(
        ["dpkg-deb", "--field", packages[0]], capture_output=True, text=True, check=True
    ).stdout
    assert f"Version: {dist.debian_version(dist.version())}\n" in said
    assert "Architecture: amd64\n" in said
    size = re.search(r"Installed-Size: (\d+)", said)
    assert size is not None and int(size[1]) > 1000


def test_a_candidate_comes_before_its_version_for_dpkg() -> None:
    order = ["0.2.0", "1.0.0-rc1", "1.0.0-rc2", "1.0.0", "1.0.1-rc1"]
    for older, newer in itertools.pairwise(map(dist.debian_version, order)):
        subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)


def test_the_core_is_locked_by_hashes_and_listed_in_the_sbom() -> None:
    core = list(dist.entries(dist.core_lock(dist.lock_text())))
    assert [name for name, _, _ in core] == list(dist.CORE)
    for name, number, hashes in core:
        found = dist.component((name, number, hashes))
        assert found["purl"] == f"pkg:pypi/{name}@{number}"
        assert hashes


def test_a_package_for_another_processor_has_its_extension_and_no_other(tmp_path: Path) -> None:
    ours = make_wheel(tmp_path)
    named = tmp_path / ours.name.replace("x86_64", "aarch64")
    shutil.copy(ours, named)
    with pytest.raises(SystemExit, match="its extension is for another processor"):
        dist.build_deb(named, tmp_path, EPOCH)
    with zipfile.ZipFile(ours) as archive, zipfile.ZipFile(named, "w") as other:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename.endswith(".so"):
                content = content[:18] + dist.ELF["aarch64"].to_bytes(2, "little") + content[20:]
            other.writestr(info, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "install_core", copy_core)
        package = dist.build_deb(named, tmp_path, EPOCH)
    assert package.name == f"farline_{dist.debian_version(dist.version())}_arm64.deb"
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "root"], check=True)
    (native,) = (tmp_path / "root").rglob("_native.abi3.so")
    assert int.from_bytes(native.read_bytes()[18:20], "little") == dist.ELF["aarch64"]
    assert (tmp_path / "root/usr/share/man/man1/farline-copy.1.gz").exists()


def test_a_wheel_forgets_where_it_was_built_and_its_record_stays_true(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    name = "x-1.dist-info/sboms/x.cyclonedx.json"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x/a.py", "pass\n")
        archive.writestr(name, f'{{"bom-ref": "path+file://{dist.ROOT}/crates/py#1"}}')
        archive.writestr("x-1.dist-info/RECORD", f"x/a.py,sha256=k,5\n{name},sha256=old,1\n")
    dist.forget_place(wheel)
    with zipfile.ZipFile(wheel) as archive:
        sbom = archive.read(name)
        lines = archive.read("x-1.dist-info/RECORD").decode().splitlines()
    assert sbom == b'{"bom-ref": "path+file:///farline/crates/py#1"}'
    checksum = base64.urlsafe_b64encode(hashlib.sha256(sbom).digest()).rstrip(b"=").decode()
    assert lines == ["x/a.py,sha256=k,5", f"{name},sha256={checksum},{len(sbom)}"]
