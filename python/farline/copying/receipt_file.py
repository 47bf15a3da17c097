"""Where a user wants the receipt of a copy: a file that is replaced whole, or what takes bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from farline.errors import SystemFailure, UsageError

_OUTPUTS = (1, 2)

_BEGIN = b'{"path":'
"""How each line of a receipt begins."""


@dataclass(frozen=True)
class ReceiptFile:
    """A place for receipts, which could be written to when the copy began."""

    named: str
    path: Path
    is_replaced: bool
    """Whether it is a regular file or none yet; anything else (a pipe, a device) is written to."""

    def put(self, receipt: Path) -> None:
        """Puts a copy of `receipt` there; a regular file is replaced whole or not at all.

        Raises:
            SystemFailure: when that cannot be written.
        """
        draft = self.path.with_name(f".{self.path.name[:200]}.{os.getpid()}")
        try:
            if self.is_replaced:
                shutil.copyfile(receipt, draft)
                draft.replace(self.path)
            else:
                with receipt.open("rb") as lines, self.path.open("wb") as file:
                    shutil.copyfileobj(lines, file)
        except OSError as error:
            raise SystemFailure(f"--receipt {self.named}: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()


def receipt_file(text: str) -> ReceiptFile:
    """The place that `--receipt` names, links resolved.

    Raises:
        UsageError: when it cannot be written to, said before anything is copied.
    """

    def refused(why: str) -> UsageError:
        return UsageError(f"--receipt {text}: {why}")

    path = Path(text)
    try:
        facts = path.stat()
    except FileNotFoundError:
        facts = None
    except OSError as error:
        raise refused(error.strerror or "cannot be examined") from None
    if facts is not None and stat.S_ISDIR(facts.st_mode):
        raise refused("is a folder; name a file")
    if facts is not None and not stat.S_ISREG(facts.st_mode):
        if not os.access(path, os.W_OK):
            raise refused("is not writable")
        return ReceiptFile(text, path, is_replaced=False)
    if facts is not None and _is_output(facts):
        raise refused(
            "is the file that standard output goes to; use --json-stream -v to print each name "
            "there"
        )
    try:
        is_other = facts is not None and facts.st_size > 0 and not _is_receipt(path)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror}") from None
    if is_other:
        raise refused("exists and is not a receipt; name another file, or delete this one first")
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise refused("there is no such folder")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refused(f"cannot create files in {path.parent}")
    return ReceiptFile(text, path, is_replaced=True)


def _is_receipt(path: Path) -> bool:
    """Whether a copy may have written that file: anything else is somebody's data."""
    with path.open("rb") as file:
        return file.read(len(_BEGIN)) == _BEGIN


def _is_output(facts: os.stat_result) -> bool:
    """Whether it is the file that standard output or standard error goes to."""
    for number in _OUTPUTS:
        with contextlib.suppress(OSError):
            if os.path.samestat(facts, os.fstat(number)):
                return True
    return False
