"""Every address of `/v1` against its own description: made requests, sequences of them included.

schemathesis makes requests from the description, good ones and bad ones, and checks that each
answer is one that the description has, and none a defect.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.portals import portal_command, portal_process

LONG = os.environ.get("FARLINE_LONG") == "1"
EXAMPLES = 100 if LONG else 4
SITES = 'capacity_bps = 10e9\n[sites.A]\n[sites.B]\n[connections."A - B"]\nrtt_ms = 10\n'


@pytest.mark.timeout(3600 if LONG else 600)
def test_no_answer_is_undocumented_and_none_a_defect(tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(SITES)
    for name in ("src", "dst"):
        (tmp_path / name).mkdir()
        portal_command(tmp_path, "endpoint", "add", name, str(tmp_path / name))
    with portal_process(tmp_path, "--sites", str(tmp_path / "sites.toml")) as portal:
        config = tmp_path / "schemathesis.toml"
        config.write_text(f'[auth.openapi.HTTPBearer]\nbearer = "{portal.token}"\n')
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run",
             f"{portal.url}/v1/openapi.json", "--max-examples", str(EXAMPLES), "--no-color",
             "--seed", "1", "--workers", "1", "--phases", "examples,coverage,fuzzing,stateful",
             # That a time is past or a name unknown is no matter of a schema.
             "--exclude-checks", "positive_data_acceptance",
             # A stream of events does not end before its transfer does.
             "--exclude-path-regex", "/events$"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[:8000] + done.stderr[-2000:]
    assert "stateful" in done.stdout.lower()
