"""Congestion controls in a real kernel: loaded, used, unloaded, and held against what is published.

`scripts/congestion_controls.py` is the long form of the second half.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from farline.errors import SystemFailure
from farline.testbeds import Testbed, congestion, struct_ops
from farline.testbeds.struct_ops import Kernel
from tests.support.congestion import compare, reference, runs

pytestmark = pytest.mark.netns

ROOT = Path(__file__).resolve().parents[2]
NAMES = [one.name for one in congestion.PUBLISHED]
RUNS_MAX = 3
LIST = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    """The kernel's list is as before afterwards; without programs there is nothing to test."""
    obstacle = struct_ops.obstacle(Kernel())
    if obstacle is not None:
        pytest.skip(f"this kernel loads no congestion control: {obstacle}")
    before = set(congestion.loaded())
    yield
    after = set(congestion.loaded())
    for name in after - before:
        congestion.unload(name)
    for name in before - after:
        congestion.load(name)


@pytest.fixture
def fresh() -> Callable[[str], None]:
    """Makes sure that a congestion control is not there, so that loading it does something."""

    def unload(name: str) -> None:
        if name in congestion.loaded():
            congestion.unload(name)
        if name in LIST.read_text(encoding="utf-8").split():
            pytest.skip(f"this kernel loads no congestion control: it has {name} of its own")

    return unload


@pytest.mark.parametrize("name", NAMES)
def test_what_is_loaded_is_listed_and_gone_after_unloading(
    name: str, fresh: Callable[[str], None]
) -> None:
    fresh(name)
    found = congestion.load(name)
    assert (found.state, found.kernel_name) == ("loaded", name)
    assert name in LIST.read_text(encoding="utf-8").split()
    assert congestion.load(name).state == "loaded", "a second time changes nothing"
    congestion.unload(name)
    assert name not in LIST.read_text(encoding="utf-8").split()
    assert name not in congestion.loaded()


def test_one_in_use_is_not_unloaded_until_its_last_socket_ends(
    fresh: Callable[[str], None],
) -> None:
    fresh("scalable")
    congestion.load("scalable")
    with socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"scalable")
        with pytest.raises(SystemFailure, match="scalable: in use by 1 sockets"):
            congestion.unload("scalable")
        assert "scalable" in congestion.loaded()
    congestion.unload("scalable")


def test_what_a_killed_process_loaded_is_found_and_unloaded(fresh: Callable[[str], None]) -> None:
    fresh("highspeed")
    program = (
        "import os, signal; from farline.testbeds import congestion;"
        "congestion.load('highspeed'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert "highspeed" in congestion.loaded()
    congestion.unload("highspeed")
    assert "highspeed" not in congestion.loaded()


def test_hosts_of_a_testbed_can_have_it_as_their_default_without_privilege() -> None:
    congestion.load("htcp")
    ask = (
        "import socket; s = socket.socket(); print(s.getsockopt(6, 13, 16).strip(b'\\0').decode())"
    )
    with Testbed.up(runs.topology(0.001)) as bed:
        host = bed.hosts["sender"]
        host.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control=htcp"], check=True)
        default = host.run([sys.executable, "-c", ask], check=True)
        chosen = ask.replace("print", "s.setsockopt(6, 13, b'htcp'); print")
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        other = bed.hosts["receiver"].run([*user, "/usr/bin/python3", "-c", chosen], check=True)
    assert (default.stdout.strip(), other.stdout.strip()) == ("htcp", "htcp")


@pytest.mark.parametrize("name", NAMES)
def test_sources_build_to_programs_that_load(
    tmp_path: Path, name: str, fresh: Callable[[str], None]
) -> None:
    if shutil.which("clang") is None:
        pytest.skip("building BPF programs needs clang: install clang and libbpf-dev")
    fresh(name)
    make = ["make", "--silent", "-C", str(ROOT / "bpf"), f"OUT={tmp_path}"]
    subprocess.run([*make, f"{tmp_path}/{name}.bpf.o"], check=True, timeout=60)
    struct_ops.register(tmp_path / f"{name}.bpf.o")
    assert name in congestion.loaded()
    congestion.unload(name)


UNASKED = ("ring_drops", "emulator_drops", "receive_buffer_drops", "memory_prunes")


def steady(control: str, between: int, first: int, rtt_s: float, seconds: float) -> runs.Run:
    """A run with a loss every so many packets, over a path that was as ordered.

    A run during which it was not says less about the congestion control: it is done again. Where
    others keep the host busy all the time, one will do in which packets came late and none were
    lost but those ordered: it is held against packets and the round trips that the sender saw.
    """
    congestion.load(control)
    late, stamps = None, []
    for _ in range(RUNS_MAX):
        run = runs.watch(control, seconds, runs.topology(rtt_s, packets=[first], every=between))
        if run.stamp["valid"]:
            return run
        if run.stamp["unexplained_packets"] == 0 and not any(run.stamp[name] for name in UNASKED):
            late = run
        stamps.append(run.stamp)
    if late is None:
        pytest.fail(f"the emulated path lost more than was ordered, {RUNS_MAX} times: {stamps}")
    return late


@pytest.mark.alone
def test_scalable_grows_by_a_hundredth_per_packet_and_keeps_seven_eighths() -> None:
    run = steady("scalable", 10_000, 800, 0.02, 6.0)
    epochs = compare.whole_epochs(run)
    assert len(epochs) > 10
    per_packet = [
        (one.window[-1] - one.window[0]) / (one.delivered[-1] - one.delivered[0]) for one in epochs
    ]
    assert np.median(per_packet) == pytest.approx(reference.SCALABLE_INCREASE, rel=0.01)
    assert compare.kept(run, 3) == pytest.approx(0.875, rel=0.01)
    seen_rtt_s = float(np.mean(np.concatenate([one.rtt_s for one in epochs[3:]])))
    assert seen_rtt_s > 0.02
    rtt_s = 0.02 if run.stamp["valid"] else seen_rtt_s
    stated = compare.cycle("scalable", 1e-4, 0.02).round_trips * rtt_s
    assert compare.period_s(run, 3) == pytest.approx(stated, rel=0.08)


@pytest.mark.alone
def test_highspeed_follows_the_rfcs_increase_decrease_and_response() -> None:
    run = steady("highspeed", 10_000, 330, 0.02, 10.0)
    assert compare.growth_ratio(run) == pytest.approx(1, abs=0.03)
    for one in run.epochs()[2:]:
        kept = 1 - reference.hstcp_decrease(one.window_before)
        assert one.kept == pytest.approx(kept, rel=0.03)
    assert run.mean_window(3) == pytest.approx(reference.hstcp_response(1e-4), rel=0.1)


@pytest.mark.alone
@pytest.mark.parametrize("control", ["htcp", "htcp_no_scale"])
def test_htcp_grows_as_alpha_of_the_time_since_the_loss(control: str) -> None:
    run = steady(control, 10_000, 250, 0.05, 12.0)
    assert compare.growth_ratio(run) == pytest.approx(1, abs=0.05)
    assert compare.kept(run, 3) == pytest.approx(0.8, rel=0.02)
    first_second = [
        np.interp(1.0, one.at_s, one.window) - one.window[0] for one in run.epochs()[2:-1]
    ]
    gentle = reference.htcp_growth(0.05, 1.0, 0.8, 0.05, scaled=False)
    assert float(np.mean(first_second)) == pytest.approx(gentle, abs=2)
