"""What holds whatever happens to a copy: the short form of the bench copy-faults.

Every kind of fault, transport and way is among the cases. `benches/copy_faults.py --short --only N`
does one of them again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from _copy.faults.case import run
from _copy.faults.ground import Ground, ground
from _copy.faults.plan import SHORT, Case, cases

SEED, CASES = 1, 16

pytestmark = [pytest.mark.netns, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def here() -> Iterator[Ground]:
    """One bed and one server for all of them."""
    with ground() as made:
        yield made


@pytest.mark.parametrize("case", cases(SEED, CASES, SHORT), ids=lambda case: case.name.strip())
def test_a_disturbed_copy_ends_with_the_right_files(here: Ground, case: Case) -> None:
    outcome = run(here, case, SHORT)
    assert outcome.is_right, "\n".join(outcome.problems)
