"""Kinds of failure: whose fault, exit code, whether to try again.

Made by `cargo xtask gen` from crates/spec; do not edit.
"""

# Kind -> (fault, exit code, whether the same request may succeed later by itself).
FAILURES: dict[str, tuple[str, int, bool]] = {
    "usage": ("caller", 1, False),
    "spec": ("caller", 1, False),
    "limit": ("caller", 8, False),
    "interrupted": ("caller", 130, False),
    "auth": ("peer", 4, False),
    "busy": ("peer", 5, True),
    "version": ("peer", 7, False),
    "protocol": ("peer", 7, True),
    "unreachable": ("path", 5, True),
    "timeout": ("path", 30, True),
    "system": ("system", 2, False),
    "internal": ("internal", 70, False),
}

# Kind -> what it means.
FAILURE_MEANINGS: dict[str, str] = {
    "usage": "The command was put together wrongly.",
    "spec": "A value or a document is not allowed.",
    "limit": "More was asked for than the other side's limits allow.",
    "interrupted": "Someone stopped the run.",
    "auth": "No ticket, or one that is wrong, expired or out of scope; or a server key that is not the pinned one.",
    "busy": "The server has no room now.",
    "version": "The two ends have no protocol version in common.",
    "protocol": "The other end broke the protocol, vanished inside it or failed by itself.",
    "unreachable": "No way to the other end: name, route, port.",
    "timeout": "Nothing came in the time allowed.",
    "system": "This machine refused: kernel, disk, memory, permission.",
    "internal": "A defect in farline.",
}

# Some names of a copy are not as they should be at the destination.
PARTIAL_EXIT_CODE = 23

# Nothing failed in a copy but sources that vanished meanwhile.
VANISHED_EXIT_CODE = 24
