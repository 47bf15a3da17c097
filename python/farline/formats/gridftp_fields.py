"""Fields of a GridFTP transfer log and words in them, which `gridftp` and its fast half share."""

from __future__ import annotations

HEAD = ("DATE", "HOST", "PROG", "NL.EVNT", "START", "USER", "FILE")
"""Fields in front of the file name and its own, in their order."""

TAIL = ("BUFFER", "BLOCK", "NBYTES", "VOLUME", "STREAMS", "STRIPES", "DEST", "TYPE", "CODE")
"""Fields behind the file name."""

SENT, RECEIVED = ("RETR", "ERET"), ("STOR", "ESTO")
LISTINGS = ("LIST", "NLST", "MLSD", "MLSC", "MLSR", "MLST", "STAT")
"""What TYPE may be."""

COMPLETE_CODE = "226"

LISTING, EMPTY, MESSAGE = "directory listing", "empty file", "message of the server"
"""Why a line is no transfer."""
