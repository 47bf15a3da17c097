"""Striping facts from what tools print: outputs as people have posted them, names changed."""

from __future__ import annotations

from pathlib import Path

from farline.storage.striping import advice, gpfs, lustre, nfs, raid, xfs
from farline.tools.mounts import mount_of, mounts

DATA = Path(__file__).resolve().parents[2] / "data" / "storage"
FOLDER = (DATA / "lustre-folder.txt").read_text()
OLD_FOLDER = "stripe_test\nstripe_count:  1 stripe_size:   1048576 stripe_offset: -1\n"
FILE = (DATA / "lustre-file.txt").read_text()
COMPOSITE = (DATA / "lustre-composite.txt").read_text()
XFS = (DATA / "xfs_info.txt").read_text()
MMLSATTR = (DATA / "mmlsattr.txt").read_text()
MDSTAT = (DATA / "mdstat.txt").read_text()
MOUNTS = (DATA / "mountinfo.txt").read_text()


def test_a_folder_of_lustre_tells_its_default_stripes() -> None:
    (found,) = lustre(FOLDER)
    assert (found.unit_bytes, found.width_bytes) == (1 << 20, 8 << 20)
    assert found.facts == ("stripes of 1.00 MiB over 8 targets (raid0,overstriped)",)
    (old,) = lustre(OLD_FOLDER)
    assert (old.unit_bytes, old.width_bytes) == (1 << 20, 1 << 20)


def test_a_file_of_lustre_tells_the_same_in_other_words() -> None:
    (found,) = lustre(FILE)
    assert found.facts == ("stripes of 1.00 MiB over 4 targets",)
    assert found.width_bytes == 4 << 20


def test_a_composite_layout_is_told_part_by_part_and_its_rest_counts() -> None:
    (found,) = lustre(COMPOSITE)
    assert found.facts == (
        "to 100 MiB: stripes of 1.00 MiB over 1 target",
        "rest: stripes of 4.00 MiB over all targets",
    )
    assert (found.unit_bytes, found.width_bytes) == (4 << 20, None)


def test_xfs_counts_stripes_in_blocks() -> None:
    (found,) = xfs(XFS)
    assert (found.unit_bytes, found.width_bytes) == (512 << 10, 2 << 20)
    assert found.facts[0].startswith("48 allocation groups of 77.6 GiB")
    assert "realtime" not in "".join(found.facts)
    (plain,) = xfs(XFS.replace("sunit=128    swidth=512", "sunit=0      swidth=0"))
    assert (plain.unit_bytes, plain.width_bytes) == (None, None)


def test_gpfs_takes_its_block_size_from_its_own_program_or_from_statfs() -> None:
    flags = " -B                 8388608                  Block size\n"
    assert gpfs(MMLSATTR, flags, 4096).unit_bytes == 8 << 20
    found = gpfs(MMLSATTR, "", 4 << 20)
    assert found.unit_bytes == 4 << 20
    assert found.facts[1:] == ("storage pool system", "each block is kept 2 times")
    assert gpfs("", "", 1 << 20).facts == ("blocks of 1.00 MiB, spread over all disks of the pool",)


def test_raid_counts_the_disks_that_hold_data() -> None:
    striped = raid("md1", MDSTAT)
    assert striped is not None
    assert (striped.unit_bytes, striped.width_bytes) == (512 << 10, 1 << 20)
    parity = raid("md5", MDSTAT)
    assert parity is not None
    assert parity.facts == ("md5: raid5 of 4 disks, chunks of 512 KiB",)
    assert parity.width_bytes == 3 * (512 << 10)
    assert raid("md0", MDSTAT) is None
    assert raid("md9", MDSTAT) is None


def test_nfs_tells_the_largest_request_that_stays_whole() -> None:
    below = MOUNTS.replace("49 46 0:43 / /users", "49 46 0:43 / /x")
    mount = mount_of(Path("/users/someone/file"), below)
    assert mount is not None and mount.kind == "nfs4"
    (found,) = nfs(mount)
    assert found.limit_bytes == 512 << 10
    assert found.facts[2] == "8 connections to the server"


def test_the_deepest_and_topmost_mount_counts() -> None:
    points = {one.point: one.kind for one in mounts(MOUNTS)}
    assert points["/with blank"] == "lustre"
    for path, kind in {"/users/deep/x": "tmpfs", "/users/a": "tmpfs", "/usersx": "ext4"}.items():
        found = mount_of(Path(path), MOUNTS)
        assert found is not None and found.kind == kind, path
    over = mount_of(Path("/users/a"), MOUNTS)
    assert over is not None and over.source == "over"


def test_advice_names_sizes_and_nothing_is_advised_where_nothing_is_known() -> None:
    assert advice(()) is None
    assert advice(list(lustre(FOLDER))) == (
        "requests of 1.00 MiB or a multiple of it, at such offsets, touch whole units; 8.00 MiB "
        "keeps all 8 parts busy"
    )


def test_text_of_anything_else_is_no_error() -> None:
    for text in ("", "garbage", "stripe_count: x", "lfs getstripe: cannot get lov name (25)"):
        assert list(lustre(text)) == []
        assert list(xfs(text)) == []
        assert raid("md0", text) is None
