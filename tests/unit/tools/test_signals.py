"""Signals that come at an awkward moment are handled all the same."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from types import FrameType

from farline.tools.signals import handled_by, waited


def test_a_signal_that_interrupts_no_wait_is_handled_before_the_process_ends() -> None:
    """As one is that comes just before the wait: noted, and no call of the main thread ended."""
    with subprocess.Popen(["sleep", "60"]) as process:

        def pass_on(number: int, _frame: FrameType | None) -> None:
            process.send_signal(number)

        def meet() -> None:
            time.sleep(0.2)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        begun = time.monotonic()
        with handled_by(pass_on):
            threading.Thread(target=meet).start()
            assert waited(process) == -signal.SIGTERM
        assert time.monotonic() - begun < 30
