"""The verdict of a run, with what the path itself says of the packets that it passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farline.campaign.measure import Judge
    from farline.explain.black_hole import Suspicion
    from farline.profiles.application_bound import Bound
    from farline.profiles.series import Columns
    from farline.spec._types import RunRecord, Verdict


def asking_path(bounds: Sequence[Bound]) -> Judge:
    """The verdict with `bounds` of the receiver, which asks where large packets seem to vanish."""

    def judge(record: RunRecord, samples: Columns) -> Verdict:
        from farline.explain.verdict import verdict

        return verdict(record, samples, bounds, passing_bytes)

    return judge


def passing_bytes(found: Suspicion) -> int | None:
    """The largest packet that the path to the server passes, asked by echo requests."""
    from farline.tools import path_mtu

    host = found.address.rpartition(":")[0].strip("[]")
    return path_mtu.passing_bytes(host, found.packet_bytes, found.rtt_s)
