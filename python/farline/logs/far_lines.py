"""Log lines of a farline on another host, which come over ssh's standard error, in this log.

The other end writes them as JSON, whatever form this log has. All else that comes there (what ssh
and shells say) is left for whoever reads that.
"""

from __future__ import annotations

import json

from farline import _native
from farline.logs.levels import LEVELS, ROOMS

MAX_LINE_BYTES = 64 << 10
"""What is longer is no log line."""

_START = b'{"time":'
_IDS = ("session", "stream", "entry")


class FarLines:
    """Takes the log lines out of what one host says."""

    def __init__(self, host: str) -> None:
        """`host` is what the lines have as their field `host`."""
        self._host = host
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Writes the log lines in `data` to the log; returns all else, in its order.

        A log line that has not ended yet is kept for the next call; `data` of nothing is the end.
        """
        if not data:
            left, self._rest = self._rest, b""
            return left
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        other = b"".join(line + b"\n" for line in lines if not self._take(line))
        if self._rest and (
            len(self._rest) > MAX_LINE_BYTES or not _START.startswith(self._rest[: len(_START)])
        ):
            # No log line begins so: a question for a password, say, has no newline at its end.
            other, self._rest = other + self._rest, b""
        return other

    def _take(self, line: bytes) -> bool:
        """Whether `line` is a log line, which then is written."""
        if not line.startswith(_START):
            return False
        try:
            said = json.loads(line)
            level, room, message = said["level"], said["target"], said["message"]
        except (ValueError, KeyError, RecursionError):
            return False
        if level not in LEVELS or room not in ROOMS or not isinstance(message, str):
            return False
        fields = said.get("fields")
        document = {name: said[name] for name in _IDS if name in said}
        document |= {"host": self._host, "host_time": said["time"]}
        document |= fields if isinstance(fields, dict) else {}
        _native.write_log(level, room, message, json.dumps(document))
        return True
