"""The files that a campaign copies: made before its first run, removed after its last.

Everything is in two folders that the campaign makes itself, each with a mark in it; nothing is
cleared or removed that has not this campaign's mark. Every run finds the destination empty and, on
a disk, the source out of the page cache.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farline.campaign.data_table import DataTable
from farline.drivers import NATIVE, tool_of
from farline.errors import SystemFailure
from farline.spec.units import size_human

_MARK = ".farline-campaign"
_BLOCK_BYTES = 1 << 20
_FOLDER_FILES = 1000
"""Files in one folder."""
_SOURCE, _COPY = "source", "copy"


class DataSet:
    """The two folders of one campaign. Made by `data_set`."""

    def __init__(self, data: DataTable, campaign_id: str) -> None:
        """Names them; nothing is made yet."""
        self._data, self._id = data, campaign_id
        self._source = Path(data.source) / f"farline-source-{campaign_id}"
        self._copies = Path(data.destination) / f"farline-copies-{campaign_id}"

    def make(self) -> None:
        """Makes the folders and the files in the first.

        Raises:
            SystemFailure: when there is no room, or the disk refuses.
        """
        self._check_room()
        with _refusals(f"creating the files of campaign {self._id}"):
            for folder in (self._source, self._copies):
                self._make_folder(folder)
            self._write_files(self._source / _SOURCE)

    def clear(self) -> None:
        """What a run is to find: nothing at the destination, no source in the page cache."""
        with _refusals(f"clearing {self._copies}"):
            self._remove(self._copies, _COPY)
            for path in (self._source / _SOURCE).glob("*/*"):
                _forget(path)

    def remove(self) -> None:
        """Removes all that was made."""
        with _refusals(f"removing the files of campaign {self._id}"):
            for folder in (self._source, self._copies):
                self._remove(folder)

    def spec(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A spec of the campaign with the names of these folders.

        The destination is below the folder of the server's ticket, which is that of the plan; other
        tools know no tickets, and get its full name.
        """
        below = Path(self._copies.name) if tool_of(spec) == NATIVE else self._copies.absolute()
        named = {
            "sources": [f"{self._source.absolute() / _SOURCE}/"],
            "destination": str(below / _COPY),
        }
        return {**spec, "copy": {**spec["copy"], **named}}

    def _check_room(self) -> None:
        needed: dict[int, tuple[Path, int]] = {}
        for folder in (self._source.parent, self._copies.parent):
            with _refusals(f"[data] {folder}"):
                device = folder.stat().st_dev
            _, already = needed.get(device, (folder, 0))
            needed[device] = (folder, already + self._data.size_bytes)
        for folder, size_bytes in needed.values():
            free = shutil.disk_usage(folder).free
            if free < size_bytes:
                raise SystemFailure(
                    f"[data] {folder}: {size_human(size_bytes)} are needed there, but only"
                    f" {size_human(free)} are free"
                )

    def _make_folder(self, folder: Path) -> None:
        """Makes it, or takes up what an interrupted run of this campaign left."""
        if folder.exists():
            self._remove(folder)
        folder.mkdir(mode=0o755)
        (folder / _MARK).write_text(self._id, encoding="utf-8")

    def _write_files(self, folder: Path) -> None:
        block, number = os.urandom(_BLOCK_BYTES), 0
        for count, size_bytes in self._data.files:
            for _ in range(count):
                place = folder / f"{number // _FOLDER_FILES:04d}"
                place.mkdir(parents=True, exist_ok=True)
                _write(place / f"{number:07d}", size_bytes, block, number)
                number += 1
        os.sync()

    def _remove(self, folder: Path, part: str | None = None) -> None:
        """Removes the folder, or a part of it, if it bears this campaign's mark."""
        if not folder.exists():
            return
        mark, found = folder / _MARK, sorted(folder.iterdir())
        ours = mark.is_file() and mark.read_text("utf-8") == self._id
        if folder.is_symlink() or (found and not ours):
            raise SystemFailure(
                f"{folder}: it does not belong to this campaign, so it is left unchanged"
            )
        # The mark goes last: a kill in between leaves what can still be removed.
        for path in found:
            if path.is_dir() and part in (None, path.name):
                shutil.rmtree(path)
        if part is None:
            mark.unlink(missing_ok=True)
            folder.rmdir()


@contextmanager
def data_set(data: DataTable | None, campaign_id: str) -> Iterator[DataSet | None]:
    """The files of a campaign while the block runs; None for one without any.

    Raises:
        SystemFailure: when they cannot be made.
    """
    if data is None:
        yield None
        return
    files = DataSet(data, campaign_id)
    try:
        files.make()
        yield files
    finally:
        files.remove()


@contextmanager
def _refusals(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SystemFailure(f"{doing}: {error.strerror or error}") from error


def _write(path: Path, size_bytes: int, block: bytes, number: int) -> None:
    """A file that is like no other: the block, turned, over and over."""
    turn = (number * 4099) % len(block)
    turned = block[turn:] + block[:turn] if size_bytes >= len(block) else block[turn:]
    with path.open("wb") as file:
        left = size_bytes
        while left > 0:
            left -= file.write(turned[: min(left, len(turned))])


def _forget(path: Path) -> None:
    """Takes a file out of the page cache; where there is no disk below, nothing happens."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
