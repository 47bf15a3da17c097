"""Any other tool: a command line as a template, and where its figure stands in its output.

```toml
[fixed]
tool = "command"
tool_command = "qperf {host} -t {duration_s} -uu tcp_bw"
tool_result = 'bw = (?P<bytes_per_second>\\d+)'
```

A template is split into words as a shell would, and is run without one; then `{host}`, `{port}`,
`{source}`, `{destination}` and options of the run by name (`{streams}`, `{duration_s}`,
`{tcp.congestion_control}`) are filled in. `tool_result` is a regular expression with named groups,
or paths into a JSON document: `bits_per_second=$.end.sum_received.bits_per_second`. The figures
that it may name are in `FIGURES`. A password belongs into the environment, which the tool inherits.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from string import Formatter
from typing import Any

from farline.drivers.driver import Abilities, Driver, Figures, Flow, Task, refuse
from farline.drivers.places import Place
from farline.drivers.processes import Ended
from farline.drivers.said import failure_of
from farline.errors import ProtocolError, SpecError

FIGURES = {
    "bits_per_second": 1.0,
    "kilobits_per_second": 1e3,
    "megabits_per_second": 1e6,
    "gigabits_per_second": 1e9,
    "bytes_per_second": 8.0,
    "mebibytes_per_second": 8.0 * (1 << 20),
    "bytes": 1.0,
    "seconds": 1.0,
}
"""What a result may name, and what makes bits per second, bytes or seconds of it."""

_PLACES = ("host", "port", "source", "destination", "folder")
_WORDS = (
    "streams", "block_bytes", "duration_s", "total_bytes", "omit_s", "rate_bps", "ip_version",
    "tos", "tcp.congestion_control", "tcp.send_buffer_bytes", "tcp.receive_buffer_bytes",
    "tcp.mss_bytes", "udp.packet_bytes", "copy.concurrency", "copy.pipeline", "copy.cipher",
    "copy.total_rate_bps", "copy.chunk_bytes", "copy.overwrite",
)  # fmt: skip
_PATH = re.compile(r"([a-z_]+)=\$((?:\.[\w-]+|\[-?\d+\])+)")


class Command(Driver):
    """A template for what has no driver."""

    name = "command"
    title = "Any command line (tool_command, tool_result)"
    program = ""
    server_program = ""
    package = "whatever brings the program that tool_command names"
    abilities = Abilities(
        "mover",
        {
            "tool_command": "",
            "tool_server_command": "",
            "tool_result": "",
            **{path: f"{{{path}}}" for path in _WORDS},
        },
        transports=("tcp", "udp", "udt", "rbudp"),
        directions=("forward", "reverse", "bidirectional"),
        memory=True,
    )

    def find(self, place: Place) -> str | None:
        """Depends on the template: `check` looks for it."""
        return "command"

    def find_server(self, place: Place, task: Task | None = None) -> str | None:
        """The first word of the server's template."""
        words = shlex.split(task.get("tool_server_command", "")) if task is not None else []
        return place.find(words[0]) if words else None

    def starts_at(self, place: Place) -> bool:
        """Where the task has a template for it: `check` says so if it has none."""
        return True

    def version(self, place: Place) -> str | None:
        """Not known: every program says it in its own way."""
        return None

    def check_words(self, document: Mapping[str, Any]) -> None:
        """What was stated and stands in no template would be ignored in silence."""
        texts = (document.get("tool_command"), document.get("tool_server_command"))
        named = _fields(" ".join(filter(None, texts)))
        for path in document:
            if path in _WORDS and path not in named:
                raise refuse(self.name, path, f"takes it where tool_command says {{{path}}}")

    def check(self, task: Task) -> None:
        """A template for each end that is to be started, and a figure or files to judge by."""
        if not task.get("tool_command"):
            raise refuse(self.name, "tool_command", "needs the command line of the client")
        if task.is_started and not task.get("tool_server_command"):
            raise refuse(
                self.name, "tool_server_command",
                "needs the command line of the server; for one that runs already use tool_server "
                "standing",
            )  # fmt: skip
        if not task.files and not task.get("tool_result"):
            raise refuse(self.name, "tool_result", "needs a figure where no files are moved")
        self._check_result(task.get("tool_result"))
        self._check_used(task)
        words = shlex.split(task.get("tool_command"))
        if task.client.find(words[0]) is None:
            raise self.missing(task.client, words[0])

    def _check_result(self, pattern: str | None) -> None:
        if pattern is None:
            return
        try:
            names = list(_paths(pattern)) or list(re.compile(pattern).groupindex)
        except re.error as error:
            raise refuse(self.name, "tool_result", f"reads no such expression: {error}") from None
        if not names or any(name not in FIGURES for name in names):
            raise refuse(
                self.name, "tool_result",
                "names figures by groups (?P<NAME>...) or NAME=$.path; names: "
                f"{', '.join(FIGURES)}",
            )  # fmt: skip

    def _check_used(self, task: Task) -> None:
        """Names that are none, and files that no template names."""
        text = f"{task.get('tool_command')} {task.get('tool_server_command', '')}"
        for name in _fields(text):
            if name not in (*_PLACES, *_WORDS):
                raise refuse(self.name, "tool_command", f"knows no {{{name}}}")
        if task.files and not {"source", "destination"} <= set(_fields(text)):
            raise refuse(self.name, "tool_command", "needs {source} and {destination} of files")

    def server_words(self, task: Task, program: str) -> list[str]:
        """The template, filled in."""
        return [program, *_filled(task, task.get("tool_server_command"))[1:]]

    def client_words(self, task: Task, program: str) -> list[str]:
        """The template, filled in."""
        return _filled(task, task.get("tool_command"))

    def read(self, task: Task, ended: Ended) -> Figures:
        """What the result names in the output."""
        if ended.exit_code:
            raise failure_of(self.name, ended)
        pattern = task.get("tool_result")
        if pattern is None:
            return Figures()
        found = _by_path(pattern, ended) if _paths(pattern) else _by_expression(pattern, ended)
        flow = _flow(found, ended.wall_s)
        if not flow.bytes and not task.files:
            raise ProtocolError(f"{self.name} failed: its output holds no rate and no bytes")
        return Figures({task.way: flow})


def _fields(text: str) -> list[str]:
    try:
        return [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise SpecError(f"tool_command: {error}; write {{{{ and }}}} for braces") from None


def _filled(task: Task, template: str) -> list[str]:
    """Words of a template: each is filled in by itself, so that no name falls apart."""
    values: dict[str, Any] = {
        "host": task.address,
        "port": task.port,
        "folder": task.folder,
        **{path: task.get(path) for path in _WORDS},
    }
    if task.files:
        (pair,) = task.files
        values.update(source=pair.source, destination=pair.destination)
    return [_word(word, values) for word in shlex.split(template)]


def _word(word: str, values: Mapping[str, Any]) -> str:
    filled = ""
    for text, name, _, _ in Formatter().parse(word):
        filled += text
        if name is None:
            continue
        value = values.get(name)
        if value is None:
            raise SpecError(f"tool_command: {{{name}}} has no value in this run: give {name}")
        filled += f"{value:g}" if isinstance(value, float) else str(value)
    return filled


def _paths(pattern: str) -> dict[str, str]:
    """Figures by their path into a JSON document; none for an expression."""
    parts = re.split(r"[,\s]+", pattern.strip())
    matched = [_PATH.fullmatch(part) for part in parts]
    return {one[1]: one[2] for one in matched if one} if all(matched) else {}


def _by_path(pattern: str, ended: Ended) -> dict[str, float]:
    try:
        document = json.loads(ended.output)
        return {name: float(_at(document, path)) for name, path in _paths(pattern).items()}
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ProtocolError(f"command failed: tool_result is not in its output: {error}") from None


def _at(document: Any, path: str) -> Any:
    for name, index in re.findall(r"\.([\w-]+)|\[(-?\d+)\]", path):
        document = document[name] if name else document[int(index)]
    return document


def _by_expression(pattern: str, ended: Ended) -> dict[str, float]:
    """The last place that fits: intervals come before what they add up to."""
    texts = [ended.text, ended.errors.decode("utf-8", "replace")]
    found = [match for text in texts for match in re.finditer(pattern, text)]
    if not found:
        raise ProtocolError("command failed: nothing in its output fits tool_result")
    try:
        groups = found[-1].groupdict()
        return {name: float(value.replace(",", "")) for name, value in groups.items() if value}
    except ValueError as error:
        raise ProtocolError(f"command failed: tool_result holds no number: {error}") from None


def _flow(found: Mapping[str, float], wall_s: float) -> Flow:
    """Bytes, time and rate: of a rate alone, bytes over the seconds said, or the wall clock."""
    values = {name: value * FIGURES[name] for name, value in found.items()}
    size, seconds = values.get("bytes"), values.get("seconds")
    rates = [value for name, value in values.items() if name.endswith("_per_second")]
    rate_bps = rates[0] if rates else None
    if size is None and rate_bps is not None:
        seconds = seconds or wall_s
        size = rate_bps * seconds / 8
    if rate_bps is None and size is not None and seconds:
        rate_bps = size * 8 / seconds
    return Flow(None if size is None else round(size), seconds, rate_bps)
