"""The record of a run that never began: its emulated link could not be set as the run asks."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from farline.tools.run_name import new_run_name

if TYPE_CHECKING:
    from farline.errors import FarlineError
    from farline.spec._types import RunRecord

RECORD_SCHEMA = 1


def unmade_record(server_address: str, spec: Mapping[str, Any], error: FarlineError) -> RunRecord:
    """A failed run without streams; it stands in its place of the campaign as others do."""
    now = datetime.datetime.now(datetime.UTC)
    record: dict[str, Any] = {
        "schema": RECORD_SCHEMA,
        "run_id": new_run_name(),
        "status": "failed",
        "error": error.failure(),
        "started_at": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "session_s": 0.0,
        "run_s": 0.0,
        "server_address": server_address,
        "spec": dict(spec),
        "server_notes": [],
        "client": None,
        "server": None,
        "streams": [],
    }
    return cast("RunRecord", record)
