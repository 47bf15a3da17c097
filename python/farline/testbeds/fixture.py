"""The pytest fixture `testbed`: beds that end with their test, whatever it did.

```python
def test_my_tool(testbed):
    bed = testbed("long-path", rtt_s="50ms", loss="0.1%")
    assert bed.hosts["auckland"].run(["my-tool", "wellington"]).returncode == 0
```

A test that needs a bed where there can be none is skipped with `SKIP_REASON`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farline.testbeds import needs
from farline.testbeds.bed import Testbed
from farline.testbeds.topology import load

if TYPE_CHECKING:
    from farline.spec._types import Topology

SKIP_REASON = "needs root and network namespaces"

MakeBed = Callable[..., Testbed]
"""Makes a bed from a preset's name, a TOML file or TOML text, and overrides (see `load`), or from
a whole topology."""


@pytest.fixture
def testbed() -> Iterator[MakeBed]:
    """Makes beds for one test."""
    if needs.missing() is not None:
        pytest.skip(SKIP_REASON)
    with ExitStack() as stack:

        def make(source: str | Path | Topology, **overrides: object) -> Testbed:
            whole = load(source, **overrides) if isinstance(source, str | Path) else source
            return stack.enter_context(Testbed.up(whole))

        yield make
