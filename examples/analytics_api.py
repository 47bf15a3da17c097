"""From a table of measurements to profiles and coefficients, in Python alone.

Run it with `.venv/bin/python examples/analytics_api.py`. The table may as well be a pandas
DataFrame or an Arrow table; here it is drawn from a seed so that nothing has to be measured first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from farline.profiles.calculus import compare, restrict
from farline.profiles.cells import cells_of
from farline.profiles.method_profile import method_profile
from farline.profiles.throughput_profile import ThroughputProfile
from farline.spec.units import rate_human

CAPACITY_BPS = 10e9
RTTS_MS = {("ANL", "ORNL"): 22.6, ("ANL", "NERSC"): 45.6, ("NERSC", "ORNL"): 91.6}
WINDOW_BITS = {"T": 8 * 100e6, "E": 8 * 25e6}
"""What may be under way at once; less from file to file."""


def measurements() -> dict[str, list[Any]]:
    """Ten memory and ten file transfers each way between three sites."""
    random = np.random.default_rng(1)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("from_site", "to_site", "modality", "rtt_ms", "rate_bps")
    }
    for (one, other), rtt_ms in RTTS_MS.items():
        for modality, window_bits in WINDOW_BITS.items():
            rate = min(0.95 * CAPACITY_BPS, window_bits / rtt_ms * 1e3)
            for sites in [(one, other), (other, one)] * 10:
                values = (*sites, modality, rtt_ms, rate * random.lognormal(0, 0.1))
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
    return rows


def main() -> None:
    """Prints profiles, their coefficients, one site beside the whole, and the method's profile."""
    cells = cells_of(measurements(), by=["from_site", "to_site", "modality"])
    memory, files = (
        ThroughputProfile.from_cells(
            [cell for cell in cells if cell.keys["modality"] == modality],
            capacity_bps=CAPACITY_BPS,
            label=label,
        )
        for modality, label in [("T", "memory"), ("E", "files")]
    )
    print(memory, files, sep="\n\n")
    print(f"\nfiles at 60 ms: {rate_human(float(files(60.0)))}")

    found = files.coefficients()
    print(f"C_UC of files: {found.c_uc.value:.3f} ({found.c_uc.low:.3f} to {found.c_uc.high:.3f})")
    print(*found.warnings, sep="\n")

    at_nersc = ThroughputProfile.from_cells(
        [cell for cell in restrict(cells, at_site="NERSC") if cell.keys["modality"] == "E"],
        capacity_bps=CAPACITY_BPS,
        label="files at NERSC",
    )
    both = compare(files, at_nersc)
    print(
        f"\nNERSC beside all, {both.left_ms:g} to {both.right_ms:g} ms:", *both.warnings, sep="\n"
    )

    method = method_profile(files, memory)
    print(method.profile)


if __name__ == "__main__":
    main()
