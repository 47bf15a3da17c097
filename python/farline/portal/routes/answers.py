"""What all routes have in common: the answers to what goes wrong, as OpenAPI has them."""

from __future__ import annotations

from typing import Any

from farline.portal.problems import MEDIA_TYPE, TITLES

_PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}


Answers = dict[int | str, dict[str, Any]]


def content(media_type: str, *more: int) -> Answers:
    """An answer that is no JSON document, and the problems of its route."""
    whole = {"content": {media_type: {"schema": {"type": "string"}}}}
    return {200: whole, **problems(*more)}


def problems(*more: int) -> Answers:
    """The problems that a route may answer: those of every route, and `more`."""
    statuses = sorted({400, 401, 403, 413, 422, 429, 503, *more})
    return {
        status: {"description": TITLES[status], "content": {MEDIA_TYPE: _PROBLEM}}
        for status in statuses
    }
