"""Services for tests: over a store made by hand, in this process or in one of their own."""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from farline.portal.access import BEARER, SCOPES
from farline.portal.app import Service, create_service
from farline.portal.settings import Settings
from farline.spec.infrastructure import Connection, FileSystem, Infrastructure, Site
from farline.store import Store
from tests.support.serving import environment
from tests.support.transfers import transfers_table

PATHS_MS = {
    ("ANL", "BNL"): 22.6, ("ANL", "NERSC"): 48.0, ("ANL", "ORNL"): 17.0, ("BNL", "NERSC"): 70.2,
    ("BNL", "ORNL"): 20.9, ("NERSC", "ORNL"): 58.3, ("CERN", "BNL"): 88.0, ("CERN", "ANL"): 104.0,
    ("CERN", "NERSC"): 147.0, ("CERN", "ORNL"): 113.0,
}  # fmt: skip
NOW_S = 1_795_600_000.0


def made_sites() -> Infrastructure:
    """Five sites with hosts such as `dtn1.anl`, lines of 10 Gbit/s, one host of 4 Gbit/s."""
    names = ("ANL", "BNL", "NERSC", "ORNL", "CERN")
    systems = (FileSystem("lustre", 9e9, 6e9),)
    sites = tuple(
        Site(name, (f"*.{name.lower()}",), 4e9 if name == "ORNL" else 1e10, systems)
        for name in names
    )
    lines = tuple(Connection(pair, rtt_ms) for pair, rtt_ms in PATHS_MS.items())
    return Infrastructure("made", sites, lines, 1e10)


def sites_text() -> str:
    """The made sites as a file has them."""
    made = made_sites()
    lines = ["capacity_bps = 10e9"]
    lines += [f'[sites.{one.name}]\nhosts = ["{one.hosts[0]}"]' for one in made.sites]
    for one in made.connections:
        lines += [f'[connections."{" - ".join(one.sites)}"]\nrtt_ms = {one.rtt_ms}']
    return "\n".join(lines) + "\n"


def made_transfers(each: int = 24, seed: int = 3) -> list[dict[str, Any]]:
    """Transfers of two months over every path: slower over long ones, ORNL's host slowest."""
    draw = np.random.default_rng(seed)
    rows = []
    for (a, b), rtt_ms in PATHS_MS.items():
        for source, destination in ((a, b), (b, a)):
            level = 9e9 / (1 + rtt_ms / 60) * (0.35 if "ORNL" in (source, destination) else 1.0)
            for number in range(each):
                size = float(draw.choice([2e9, 2e10, 4e11]))
                rate_bps = level * float(np.exp(draw.normal(0, 0.18)))
                ended_s = NOW_S - 86_400 * 60 * (1 - number / each) - float(draw.uniform(0, 3600))
                began = datetime.datetime.fromtimestamp(ended_s - 8 * size / rate_bps, datetime.UTC)
                rows.append({
                    "tool": "gridftp", "started_at": began, "duration_s": 8 * size / rate_bps,
                    "bytes": int(size), "files": 40, "rate_bps": rate_bps, "rtt_ms": rtt_ms,
                    "from_host": f"dtn1.{source.lower()}", "to_host": f"dtn1.{destination.lower()}",
                    "streams": (4 if number < each // 2 else 8), "concurrency": 4,
                    "transport": "tcp",
                })  # fmt: skip
    return rows


def made_store(folder: Path, rows: Sequence[dict[str, Any]] | None = None) -> Path:
    """A store that keeps a log of `made_transfers`."""
    log = folder / "gridftp.log"
    log.write_text("made by hand")
    store = Store(folder / "store")
    table = transfers_table(list(made_transfers() if rows is None else rows))
    store.append_transfers([table], log, reader="made 1")
    return store.path


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    at_s: float = NOW_S

    def __call__(self) -> float:
        """What time it is."""
        return self.at_s


@dataclass
class Portal:
    """A service in this process: nothing of it runs by itself, so that a test says when."""

    service: Service
    client: TestClient
    clock: Clock
    settings: Settings
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, user: str = "ada", scopes: Sequence[str] = tuple(SCOPES)) -> str:
        """A token of a user."""
        name = f"{user} {scopes}"
        if name not in self.tokens:
            self.tokens[name], _ = self.service.access.make(BEARER, user, scopes, 86_400)
        return self.tokens[name]

    def headers(self, user: str = "ada", scopes: Sequence[str] = tuple(SCOPES)) -> dict[str, str]:
        """Headers that show a token of a user."""
        return {"Authorization": f"Bearer {self.token(user, scopes)}"}

    def get(self, path: str, user: str = "ada", **more: Any) -> Any:
        """Asks for an address."""
        return self.client.get(path, headers=self.headers(user), **more)

    def post(self, path: str, body: Any = None, user: str = "ada", **headers: str) -> Any:
        """Sends a document to an address."""
        return self.client.post(path, json=body, headers=self.headers(user) | headers)

    def log_in(self, user: str = "ada") -> TestClient:
        """A browser that is logged in."""
        browser = TestClient(self.service.app, base_url="http://localhost", follow_redirects=False)
        answer = browser.post("/login", data={"token": self.token(user)})
        assert answer.status_code == 303, answer.text
        return browser


def make_portal(folder: Path, *, store: Path | None = None, **settings: Any) -> Portal:
    """A service whose clock stands still."""
    clock = Clock()
    made = Settings(
        folder / "state", store or folder / "no-store", made_sites(), now=clock, **settings
    )
    service = create_service(made)
    client = TestClient(service.app, base_url="http://localhost", raise_server_exceptions=False)
    return Portal(service, client, clock, made)


@dataclass
class Process:
    """A service in a process of its own, and the ones after it over the same folders."""

    folder: Path
    arguments: Sequence[str] = ()
    token: str = ""
    url: str = ""
    login: str = ""
    process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> Path:
        """What all of them said."""
        return self.folder / "portal.log"

    def start(self) -> None:
        """Starts it on a port of the kernel's choice."""
        command = [sys.executable, "-m", "farline", "portal", "start", "--json", "-B"]
        command += ["127.0.0.1:0", "--log-level", "debug", *self.arguments]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True,
                env=environment(self.folder), start_new_session=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        self.url, self.login = ready["url"], ready["login"]

    def stop(self, number: int = signal.SIGKILL) -> None:
        """Ends it, as a crash does unless another signal is named."""
        if self.process is not None and self.process.stdout is not None:
            self.process.send_signal(number)
            self.process.wait(30)
            self.process.stdout.close()
            self.process = None

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Any:
        """What the service answers; a body makes it a POST."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data, method=method)
        asked.add_header("Authorization", f"Bearer {self.token}")
        asked.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            asked.add_header(name.replace("_", "-"), value)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            text = answer.read()
        is_json = answer.headers.get_content_type() == "application/json"
        return json.loads(text) if is_json else text.decode()

    def until(self, path: str, *states: str, within_s: float = 60.0) -> dict[str, Any]:
        """A transfer once it is in one of these states."""
        end_s = time.monotonic() + within_s
        while True:
            found: dict[str, Any] = self.ask(path)
            if found["state"] in states:
                return found
            assert time.monotonic() < end_s, found
            time.sleep(0.1)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of a transfer, from its file."""
        file = self.folder / "home-state/farline/portal/transfers" / name / "events.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines if line]


def portal_command(folder: Path, *words: str) -> str:
    """What `farline portal WORDS` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "farline", "portal", *words], env=environment(folder), text=True,
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


@contextmanager
def portal_process(folder: Path, *arguments: str) -> Iterator[Process]:
    """A service with a token for everything, until the block ends."""
    made = Process(folder, arguments)
    words = [word for scope in SCOPES for word in ("--scope", scope)]
    made.token = portal_command(folder, "token", "--user", "ada", *words)
    try:
        made.start()
        yield made
    finally:
        made.stop()
