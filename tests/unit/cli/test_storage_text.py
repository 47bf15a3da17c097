"""What `farline storage` says of caps."""

from __future__ import annotations

from farline.cli.storage_text import caps_text
from farline.models.storage_caps import StorageCaps, fit_caps


def document(caps: StorageCaps) -> dict[str, object]:
    """The caps as they stand in a profile."""
    process, total = (
        None
        if one is None
        else {"rate_bps": one.rate_bps, "low_bps": one.low_bps, "high_bps": None}
        for one in (caps.process, caps.total)
    )
    return {
        "form": caps.form, "process": process, "total": total,
        "most_processes": caps.most_processes, "best_processes": caps.best_processes,
        "best_bps": caps.best_bps, "declines_to_bps": caps.declines_to_bps,
    }  # fmt: skip


def test_a_rate_that_fell_with_more_processes_is_not_said_to_have_risen() -> None:
    text = caps_text(document(fit_caps([1, 2], [48e9, 42e9])))
    assert "rose" not in text
    assert text.endswith("by one process; best with 1 process, 42.0 Gbit/s with 2")
    text = caps_text(document(fit_caps([1, 2, 4], [1.5e9, 3e9, 1.5e9])))
    assert "rose" not in text
    assert text.endswith(", 3.00 Gbit/s in all; best with 2 processes, 1.50 Gbit/s with 4")
    text = caps_text(document(fit_caps([1, 2], [1e9, 2e9])))
    assert text.endswith("; the total still rose at 2 processes, 2.00 Gbit/s")
