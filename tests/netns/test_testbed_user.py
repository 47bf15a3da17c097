"""A testbed of a user who is not root: user namespaces, and the right to open the TUN device."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import farline
from tests.support import round_trips

pytestmark = pytest.mark.netns

PYTHON = "/usr/bin/python3"
"""Not the one of these tests, which may be in a folder that only root may enter."""

AS_NOBODY = (
    """
set -e
mount -t tmpfs none "$1/devices"
mknod "$1/devices/tun" c 10 200
chmod "$2" "$1/devices/tun"
mount --bind "$1/devices/tun" /dev/net/tun
cd /
exec setpriv --reuid=65534 --regid=65534 --clear-groups \
    env -u FARLINE_TESTBED_DIR PYTHONPATH="$1" XDG_RUNTIME_DIR="$1/beds/own" """
    + f'{PYTHON} "$1/script.py"\n'
)

SCRIPT = f"""
import json, os, subprocess, sys
from farline.errors import FarlineError
from farline.testbeds import Testbed, list_beds, load
try:
    with Testbed.up(load("long-path", rate_bps="100Mbit")) as bed:
        host = bed.hosts["auckland"]
        names = host.run(["hostname"]).stdout.strip()
        command = ["{PYTHON}", "-S", sys.path[0] + "/round_trips.py", "3", "wellington"]
        [rtt_s] = json.loads(host.run(command, check=True).stdout)
        sleep = ["sh", "-c", "echo inside; exec sleep 600"]
        inside = host.popen(sleep, stdout=subprocess.PIPE)
        inside.stdout.readline()
    code = inside.wait(timeout=10)
    # By the keeper itself: `list_beds` would remove what it has left.
    left = sorted(os.listdir(bed.folder.parent))
    print(json.dumps([os.geteuid(), names, rtt_s, code, left, len(list_beds())]))
except FarlineError as error:
    print(json.dumps(error.failure()))
"""


@pytest.fixture
def readable_place() -> Iterator[Path]:
    """A folder where nobody finds farline, and may write in `beds`."""
    if subprocess.run([PYTHON, "-c", "import tomllib"], capture_output=True).returncode:
        pytest.skip(f"needs {PYTHON} 3.11 or later")
    place = Path(tempfile.mkdtemp(prefix="farline-"))
    shutil.copytree(Path(farline.__file__).parent, place / "farline", symlinks=False)
    shutil.copy(round_trips.__file__, place)
    (place / "script.py").write_text(SCRIPT, encoding="utf-8")
    (place / "devices").mkdir()
    (place / "beds").mkdir()
    (place / "beds").chmod(0o777)
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def run_as_nobody(place: Path, mode: str) -> object:
    """What the script says, with a TUN device of that mode."""
    command = ["unshare", "--mount", "sh", "-c", AS_NOBODY, "sh", str(place), mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer: object = json.loads(done.stdout)
    return answer


def test_who_may_open_the_tun_device_needs_no_root(readable_place: Path) -> None:
    answer = run_as_nobody(readable_place, "666")
    assert isinstance(answer, list), answer
    user, name, rtt_s, code, left, beds = answer
    assert (user, name, code, beds) == (65534, "auckland", -15, 0)
    assert [name for name in left if not name.startswith(".")] == [], "of root's it knows nothing"
    assert 0.00959 <= rtt_s < 0.0115


def test_who_may_not_is_told_so_in_one_line(readable_place: Path) -> None:
    answer = run_as_nobody(readable_place, "600")
    assert isinstance(answer, dict), answer
    assert answer["kind"] == "system"
    assert answer["message"].startswith(
        "testbed: /dev/net/tun is needed: Permission denied; run as root"
    )
