"""What keeping a copy imports, and when: at its end every import is a wait."""

import subprocess
import sys

import pytest

STEPS = """
import sys
from farline.cli.copy import keep
clock = [100.0]
keep.time = type("Clock", (), {"monotonic": staticmethod(lambda: clock[0]), "time": lambda: 0.0})
keeper = keep.Keeper(None, True, None, None)
keeper.meanwhile()
keeper.prepare()
clock[0] += SECONDS
keeper.meanwhile()
print("numpy" in sys.modules, "farline.explain.verdict" in sys.modules)
"""


NOT_YET = "keeper.keep(type('Attempt', (), {'record': None})())\n"
"""A session that failed early; the next one has not begun."""


@pytest.mark.parametrize(
    ("seconds", "before", "imported"), [(0.9, "", False), (1.1, "", True), (1.1, NOT_YET, False)]
)
def test_the_full_analysis_is_imported_while_a_copy_of_more_than_a_second_runs(
    seconds: float, before: str, imported: bool
) -> None:
    steps = STEPS.replace("clock[0] +=", f"{before}clock[0] +=").replace("SECONDS", str(seconds))
    done = subprocess.run([sys.executable, "-c", steps], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(imported)] * 2
