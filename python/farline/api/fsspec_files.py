"""farline's files for fsspec: `pandas.read_csv("farline://…#data.csv")`.

fsspec finds it by its entry point, and whatever takes fsspec's URLs so takes farline's: pandas,
xarray, dask, Arrow. A URL is a ticket with a path, `farline://HOST:PORT/TICKET?key=KEY#path`, or
`farline://HOST:PORT#path` where the ticket is remembered (`farline trust`).

Small reads go by ranges over one session about names. `get` and `put` of whole files and folders
are `farline.copy`, with its streams, proofs and retries; a file that is written is copied when it
is closed, and has its name only then. A ticket is for reading or for writing: one to write lists
and changes names, and does not read.
"""

from __future__ import annotations

import tempfile
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from farline.api.copy import copy
from farline.api.folder import Folder, open_host
from farline.copying.locations import SCHEME, StandingServer, read_location
from farline.errors import UsageError
from farline.spec.path_text import from_path_text, to_path_text

if TYPE_CHECKING:
    from farline.tools.names import Name

_KINDS = {"folder": "directory", "file": "file", "link": "link", "other": "other"}
BLOCK_BYTES = 4 << 20
"""Read ahead, where fsspec is not told otherwise."""


class FarlineFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Names below the folder of one ticket, as fsspec has them."""

    protocol = "farline"
    root_marker = ""

    def __init__(self, server: str = "", **options: Any) -> None:
        """`server`: the URL of the ticket without a path; otherwise that of the first URL."""
        super().__init__(**options)
        if not server:
            raise UsageError(f"server: give the ticket, {SCHEME}HOST:PORT/TICKET?key=KEY")
        self._server = server.partition("#")[0]
        self._folder: Folder | None = None

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = str(path)
        if text.startswith(SCHEME):
            text = text.partition("#")[2]
        return "/".join(part for part in text.split("/") if part not in ("", "."))

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        url = path.partition("#")[0]
        return {"server": url} if url.startswith(SCHEME) else {}

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path, without its ticket: what is printed is not a secret."""
        return f"{StandingServer(self._server)}#{self._strip_protocol(name)}"

    @property
    def fsid(self) -> str:
        """The server, without its ticket."""
        return str(StandingServer(self._server))

    def _names(self) -> Folder:
        if self._folder is None:
            host = read_location(f"{self._server}#.").host
            self._folder = open_host(host)
        return self._folder

    def _entry(self, path: str, name: Name) -> dict[str, Any]:
        kind = name.target_kind or name.kind
        return {
            "name": path, "size": None if kind == "folder" else name.bytes,
            "type": _KINDS[kind], "mtime": name.mtime_ns / 1e9, "mode": name.mode,
            "islink": name.kind == "link", "destination": name.target,
        }  # fmt: skip

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        """What is in a folder; of a file itself."""
        path = self._strip_protocol(path)
        try:
            names = list(self._names().list(to_text(path)))
        except NotADirectoryError:
            found = [self.info(path)]
        else:
            found = [self._entry(_below(path, to_name(name.name)), name) for name in names]
            # The size of what a link leads to is not in a listing.
            found = [self.info(one["name"]) if one["islink"] else one for one in found]
        return found if detail else [one["name"] for one in found]

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """What a path is; links are followed where they can be."""
        path = self._strip_protocol(path)
        own = self._names().stat(to_text(path))
        if own.kind != "link":
            return self._entry(path, own)
        try:
            led_to = self._names().stat(to_text(path), follow=True)
        except (OSError, UsageError):
            return self._entry(path, own)
        return {**self._entry(path, led_to), "islink": True, "destination": own.target}

    def modified(self, path: str) -> Any:
        """The last change of the content."""
        from datetime import datetime

        return datetime.fromtimestamp(self.info(path)["mtime"], tz=UTC)

    def checksum(self, path: str) -> int:
        """MD5 of the content, computed at the server, as a number."""
        digits = self._names().stat(to_text(self._strip_protocol(path)), sums=("md5",)).sums["md5"]
        return int(digits, 16)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_options: Any
    ) -> bytes:
        """The content, or a range of it; negative places count from the end."""
        path = self._strip_protocol(path)
        if (start or 0) < 0 or (end is not None and end < 0):
            size = self.info(path)["size"]
            start = max(0, size + start) if (start or 0) < 0 and start is not None else start
            end = size + end if end is not None and end < 0 else end
        begin = start or 0
        count = None if end is None else max(0, end - begin)
        return self._names().read(to_text(path), begin, count)

    def mkdir(self, path: str, create_parents: bool = True, **_options: Any) -> None:
        """Makes a folder, by default with those above it."""
        path = self._strip_protocol(path)
        if create_parents and "/" in path:
            self.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._names().make_folder(to_text(path))
        self.invalidate_cache()

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Makes a folder with those above it."""
        path = self._strip_protocol(path)
        if not path:
            return
        made = self._names().make_folder(to_text(path), parents=True)
        if not made and not exist_ok:
            raise FileExistsError(path)

    def rmdir(self, path: str) -> None:
        """Removes an empty folder."""
        if self.info(path)["type"] != "directory":
            raise NotADirectoryError(path)
        self._names().remove(to_text(self._strip_protocol(path)))

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        self._names().remove(to_text(self._strip_protocol(path)))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files, and folders with all that is in them if `recursive`."""
        if maxdepth is not None or not recursive:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        for one in self.expand_path(path):
            self._names().remove(to_text(one), recursive=True)

    def mv(self, path1: str, path2: str, **_options: Any) -> None:
        """Renames; a file with the new name is replaced."""
        names = self._strip_protocol(path1), self._strip_protocol(path2)
        self._names().rename(to_text(names[0]), to_text(names[1]), replace=True)

    def cp_file(self, path1: str, path2: str, **_options: Any) -> None:
        """A ticket is for reading or for writing, and a copy there needs both."""
        raise NotImplementedError("copying within a server: use farline copy with two tickets")

    def get_file(self, rpath: str, lpath: Any, **_options: Any) -> None:
        """Copies one file here."""
        path, here = self._strip_protocol(rpath), Path(lpath)
        if self.info(path)["type"] == "directory":
            here.mkdir(parents=True, exist_ok=True)
            return
        here.parent.mkdir(parents=True, exist_ok=True)
        copy(f"{self._server}#{to_text(path)}", str(here), keep=False, overwrite="always").wait()

    def put_file(self, lpath: Any, rpath: str, **_options: Any) -> None:
        """Copies one file there."""
        path, here = self._strip_protocol(rpath), Path(lpath)
        if here.is_dir():
            self.makedirs(path, exist_ok=True)
            return
        if "/" in path:
            self.makedirs(path.rpartition("/")[0], exist_ok=True)
        copy(str(here), f"{self._server}#{to_text(path)}", keep=False, overwrite="always").wait()

    def _open(
        self, path: str, mode: str = "rb", block_size: int | None = None, **options: Any
    ) -> FarlineFile:
        if mode not in ("rb", "wb", "xb"):
            raise UsageError(f"mode: {mode!r} is not allowed; one of: rb, wb, xb")
        return FarlineFile(self, path, mode, block_size or BLOCK_BYTES, **options)

    def close(self) -> None:
        """Ends the session; a later call begins another."""
        if self._folder is not None:
            self._folder.close()
        self._folder = None


class FarlineFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read by ranges, or written here and copied when it is closed."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.cat_file(self.path, start, end)
        return found

    def _initiate_upload(self) -> None:
        if self.mode == "xb" and self.fs.exists(self.path):
            raise FileExistsError(self.path)
        self._parts = tempfile.TemporaryDirectory(prefix="farline-")
        self._here = Path(self._parts.name) / "content"
        self._here.touch()

    def _upload_chunk(self, final: bool = False) -> bool:
        with self._here.open("ab") as file:
            file.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Copies what was written; the name is there when all of it is."""
        self.fs.put_file(self._here, self.path)
        self._parts.cleanup()

    def discard(self) -> None:
        """Forgets what was written."""
        self._parts.cleanup()


def to_text(path: str) -> str:
    """A path of fsspec's as farline takes it."""
    return to_path_text(path.encode("utf-8", "surrogateescape"))


def to_name(text: str) -> str:
    """A name as fsspec has it: bytes that are no UTF-8 as Python's own files have them."""
    return from_path_text(text).decode("utf-8", "surrogateescape")


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
