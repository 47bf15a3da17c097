"""Conservation: books that balance, and every kind of slip in them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from _emulator.ledger import DROPS, of_pipe, pipes, worst_imbalance

COLUMNS = ("in_packets", "out_packets", "duplicated_packets", "in_flight_packets", *DROPS)


def books(link: int = 0, direction: int = 0, rows: int = 50) -> dict[str, NDArray[np.int64]]:
    """Balanced samples of a pipe with drops, duplicates and packets under way."""
    draw = np.random.default_rng(link * 2 + direction)
    samples = {name: draw.integers(0, 20, rows) for name in COLUMNS}
    samples["in_flight_packets"] = draw.integers(0, 500, rows)
    under_way = np.diff(samples["in_flight_packets"], prepend=0)
    gone = sum((samples[name] for name in DROPS), samples["out_packets"] + under_way)
    samples["in_packets"] = gone - samples["duplicated_packets"]
    samples["end_us"] = np.arange(1, rows + 1) * 100_000
    samples["link"] = np.full(rows, link)
    samples["direction"] = np.full(rows, direction)
    return samples


def join(parts: list[dict[str, NDArray[np.int64]]]) -> dict[str, NDArray[np.int64]]:
    """Samples of several pipes as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_books_that_balance_have_no_imbalance() -> None:
    samples = join([books(link, direction) for link in (0, 1) for direction in (0, 1)])
    assert pipes(samples) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert worst_imbalance(samples) == 0


@pytest.mark.parametrize("column", COLUMNS)
def test_one_packet_astray_in_one_interval_is_seen(column: str) -> None:
    samples = join([books(0, 0), books(1, 1)])
    samples[column][70] += 1
    assert worst_imbalance(samples) == 1


def test_samples_out_of_order_are_put_in_order() -> None:
    samples = books()
    shuffled = {name: column[::-1] for name, column in samples.items()}
    assert worst_imbalance(shuffled) == 0
    assert of_pipe(shuffled, 0, 0)["end_us"].tolist() == samples["end_us"].tolist()
