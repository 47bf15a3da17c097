"""What RBUDP's blasts came to, as columns of a campaign's rows that can be drawn.

Sums of all blasts that a run's record kept, both directions together: of He et al. 2002 the
throughput and the loss of the first blast (Fig. 2 to 5), and the passes, N_resend + 1 of its
equation 5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from farline.profiles.blasts import blast_rows
from farline.profiles.response import Row

BLAST_RATE, BLAST_PASSES, FIRST_BLAST_LOSS = "blast_bps", "blast_passes", "first_blast_loss"


def with_blasts(rows: Sequence[Row]) -> list[Row]:
    """The rows, those of RBUDP runs with their blasts' columns."""
    return [{**row, **_blast_columns(row)} for row in rows]


def _blast_columns(row: Row) -> Mapping[str, Any]:
    """Payload bits per second of a blast by itself, its passes on average, loss in per cent.

    Nothing for a run of another transport, and for one in which no blast became whole.
    """
    if row.get("transport") != "rbudp" or not row.get("record"):
        return {}
    blasts = [one.blast for one in blast_rows(json.loads(row["record"]))]
    if not blasts:
        return {}
    bits = 8 * sum(blast["bytes"] for blast in blasts)
    seconds = sum(blast["elapsed_us"] for blast in blasts) / 1e6
    packets = sum(blast["packets"] for blast in blasts)
    lost = sum(blast["first_pass_lost_packets"] for blast in blasts)
    return {
        BLAST_RATE: bits / seconds if seconds else None,
        BLAST_PASSES: sum(blast["passes"] for blast in blasts) / len(blasts),
        FIRST_BLAST_LOSS: 100 * lost / packets if packets else None,
    }
