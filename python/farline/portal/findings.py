"""What limits throughput between sites, worked out once for every state of the store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from farline.errors import FarlineError
from farline.portal.knowledge import Knowledge


class Findings:
    """Answers from `farline.analysis`; working them out may take seconds."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def document(self) -> dict[str, Any]:
        """`lead`, `causes`, `sites`, `next`, `not_enough`, `notes`: as `farline analyze explain`.

        Where nothing can be explained, `lead` says why.
        """
        return self._knowledge.remembered("findings", self._explained)

    def profiles(self) -> list[dict[str, Any]]:
        """A profile for each modality: `modality`, `rtt_ms`, `mean_bps`, `count`."""
        return self._knowledge.remembered("profiles", self._profiles)

    def _explained(self) -> dict[str, Any]:
        from farline.analysis import explain, open_measurements, select

        store = self._knowledge.store()
        if store is None:
            return _nothing("nothing has been measured yet")
        try:
            with open_measurements(
                (), store=store, infrastructure=self._knowledge.infrastructure
            ) as source:
                found = explain(source, select())
        except FarlineError as error:
            return _nothing(error.message)
        return {**asdict(found.explanation), "notes": list(found.notes)}

    def _profiles(self) -> list[dict[str, Any]]:
        rows: dict[tuple[str, float], list[float]] = {}
        for row in self._knowledge.now.rows:
            if row.rtt_ms and row.sound:
                rows.setdefault((row.modality, round(row.rtt_ms, 1)), []).append(row.rate_bps)
        return [
            {"modality": modality, "rtt_ms": rtt_ms, "mean_bps": sum(rates) / len(rates),
             "count": len(rates)}
            for (modality, rtt_ms), rates in sorted(rows.items())
        ]  # fmt: skip


def _nothing(why: str) -> dict[str, Any]:
    return {"lead": why, "causes": [], "sites": [], "next": [], "not_enough": None, "notes": []}
