"""Refusals of a field of the spec, in the words of the command line."""

from __future__ import annotations

from farline.errors import FarlineError
from farline.spec.options import copy_flag


def in_flags(error: FarlineError) -> FarlineError:
    """The error, with the flag in the place of the field that it begins with, if it does."""
    path, colon, rest = error.message.partition(":")
    flag = copy_flag(path) if colon else None
    return error.reworded(f"{flag}:{rest}") if flag else error
