"""What the benches are made of, tested on series whose answer is known."""

from __future__ import annotations

import sys
from pathlib import Path

# Benches are programs, not a package: their modules are found beside them.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches"))
