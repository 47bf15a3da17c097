"""A run handle that plays back events, for tests of what lies above the extension."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from farline.spec._types import RunRecord


class FakeColumns:
    """Sample columns as the extension hands them over."""

    def __init__(self, samples: Mapping[str, npt.NDArray[np.int64]]) -> None:
        self._samples = samples

    def names(self) -> list[str]:
        return list(self._samples)

    def __len__(self) -> int:
        return len(next(iter(self._samples.values())))

    def column(self, name: str) -> bytes:
        return self._samples[name].astype("<i8").tobytes()


Played = tuple[str, str, FakeColumns | None] | None


@dataclass
class FakeRun:
    """Plays `events` back, one per poll; `None` is a poll in which nothing happened."""

    events: list[Played]
    calls: list[str] = field(default_factory=list)

    def poll(self, timeout_s: float) -> Played:
        assert timeout_s > 0
        return self.events.pop(0)

    def stop(self) -> None:
        self.calls.append("stop")

    def abort(self) -> None:
        self.calls.append("abort")


def stage(name: str) -> Played:
    return ("stage", json.dumps(name), None)


def server_key(fingerprint: str) -> Played:
    return ("server_key", json.dumps(fingerprint), None)


def samples(columns: Mapping[str, npt.NDArray[np.int64]]) -> Played:
    return ("samples", "null", FakeColumns(columns))


def done(record: RunRecord) -> Played:
    return ("done", json.dumps(record), None)


@dataclass
class FakeExtension:
    """Stands in for `start_run` and remembers what it was asked."""

    run: FakeRun
    target: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    def start_run(self, target_json: str, spec_json: str, *_of_copies: object) -> FakeRun:
        self.target, self.spec = json.loads(target_json), json.loads(spec_json)
        return self.run
