"""The commands of the guides, run, and what they print held against what the guides show.

A ```console block is typed and compared: lines with `$ ` are commands for bash, a `\\` at the end
goes on in the next line, lines below are the output. Of the output numbers, times, rates, sizes,
hosts, identifiers and the width of columns may differ; a line `...` stands for any lines, and
`...` within a line for any text. A command without output below it only has to succeed.

A comment directly above a block says more:

    <!-- not run: REASON -->   shown only; the reason is one of REASONS, then whatever explains it
    <!-- file: NAME -->        not typed but written to the file, for the commands below
    <!-- server -->            started, and left running until the page ends
    <!-- exit: N -->           the last command ends with this exit code
    <!-- root -->              typed in the tier netns, as root

HOST in a command is the server's address and port, `farline://...` a ticket of it: for files where
the command is a copy or about names. `.venv/bin/farline` and `farline` are the farline of this
interpreter.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from farline.drivers.record import stolen_s
from tests.support.serving import environment, serving

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    *sorted((ROOT / "docs" / "guide").rglob("*.md")),
]
LATE = re.compile(r"\s*[\d.]+ % .* files$|\s*changed: the RTT was ")
HELD_UP = re.compile(
    r"the hypervisor took .*^farline: no run was valid: ", re.DOTALL | re.MULTILINE
)
"""What a campaign over an emulated path says where the CPUs are others'."""
REASONS = ("another host", "root", "spark", "trino", "time", "browser", "build", "outside")
"""What a block that is not run may lack; the colon and an explanation follow."""
SHOWN = ("toml", "python", "json", "text", "ini")
"""Languages of blocks that are no commands."""
SHARED = ("plans", "examples", ".venv")
"""What pages expect beside them: folders of the checkout."""
SERVED = ("archive", "public")
"""Folders of the shared server, for writing and for reading."""

_FENCE = re.compile(r"^```(\S*)\s*$")
_COMMENT = re.compile(r"^<!-- (.*) -->$")


class HeldUpError(Exception):
    """No run of a campaign counts, since others had the CPUs: no fault of a page, and its end."""


@dataclass(frozen=True)
class Command:
    """One command and the output that the page shows for it."""

    text: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page and the comment above it."""

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]
    comment: str = ""

    @property
    def where(self) -> str:
        """File and line, as editors take them."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def directive(self, name: str) -> str | None:
        """What stands behind `NAME:` in the comment; empty for a bare NAME."""
        for part in self.comment.split("; "):
            if part == name or part.startswith(f"{name}: "):
                return part[len(name) + 2 :]
        return None

    def commands(self) -> list[Command]:
        """Commands of a console block with what is shown below each."""
        found: list[tuple[list[str], list[str]]] = []
        goes_on = False
        for line in self.lines:
            if goes_on or line.startswith("$ "):
                if not goes_on:
                    found.append(([], []))
                found[-1][0].append(line.removeprefix("$ "))
                goes_on = line.endswith("\\")
            elif found:
                found[-1][1].append(line)
            else:
                raise AssertionError(f"{self.where}: begins with output")
        return [Command("\n".join(typed), tuple(shown)) for typed, shown in found]


def blocks(page: Path) -> list[Block]:
    """Fenced blocks of a page, in order."""
    found: list[Block] = []
    comment, language, start = "", None, 0
    lines: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if language is None:
            if fence:
                language, start, lines = fence.group(1), number, []
            else:
                above = _COMMENT.match(line)
                comment = above.group(1) if above else comment if not line.strip() else ""
        elif fence and not fence.group(1):
            found.append(Block(page, start, language, tuple(lines), comment))
            language, comment = None, ""
        else:
            lines.append(line)
    return found


@dataclass
class Reader:
    """Types the commands of one page in a folder of its own."""

    folder: Path
    stack: ExitStack
    more: Mapping[str, str] = field(default_factory=dict)
    address: str | None = None
    tickets: dict[str, str] = field(default_factory=dict)
    collected: dict[tuple[int, int], str] | None = None
    """With a dict, output that differs goes here, by the block's line and the command's number."""
    home: Path = field(init=False)
    """Stores and settings, apart from what the pages make."""

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.folder /= "work"
        self.folder.mkdir()
        for name in SHARED:
            target = Path(sys.prefix) if name == ".venv" else ROOT / name
            (self.folder / name).symlink_to(target)

    def read(self, page: Path, *, root: bool) -> int:
        """Goes through the page; gives how many commands were typed."""
        typed = 0
        for block in blocks(page):
            if (name := block.directive("file")) is not None:
                self._write(name, block)
            elif block.language != "console" or block.directive("not run") is not None:
                continue
            elif (block.directive("root") is not None) is root:
                typed += self._type(block)
        return typed

    def _write(self, name: str, block: Block) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")

    def _type(self, block: Block) -> int:
        commands = block.commands()
        if block.directive("server") is not None:
            (command,) = commands
            self._serve(block, command)
            return 1
        expected = int(block.directive("exit") or 0)
        for number, command in enumerate(commands):
            stolen = stolen_s()
            done = subprocess.run(
                ["bash", "-c", self._filled(command.text)], cwd=self.folder, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                env=self._environment(),
            )  # fmt: skip
            code = expected if command is commands[-1] else 0
            where = f"{block.where}: {command.text}"
            if done.returncode != code and HELD_UP.search(done.stdout) and stolen_s() > stolen:
                raise HeldUpError(where)
            assert done.returncode == code, f"{where}\nexit {done.returncode}:\n{done.stdout}"
            if command.shown:
                self._check(where, (block.line, number), command, done.stdout)
        return len(commands)

    def _check(self, where: str, place: tuple[int, int], command: Command, printed: str) -> None:
        try:
            check(where, command.shown, printed)
        except AssertionError:
            if self.collected is None:
                raise
            self.collected[place] = printed

    def _environment(self) -> dict[str, str]:
        own = dict(environment(self.home, COLUMNS="100", **self.more))
        own["PATH"] = f"{Path(sys.executable).parent}:{own['PATH']}"
        return own

    def _serve(self, block: Block, command: Command) -> None:
        """Starts the server that the page starts, on a free port, and checks what it prints."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.text} --listen 127.0.0.1 --port 0"], cwd=self.folder,
            env=self._environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.stack.enter_context(process)
        self.stack.callback(process.kill)
        assert process.stdout is not None
        last = (
            "from " if "--read" in command.text else "to " if "--write" in command.text else "on "
        )
        printed = []
        for line in process.stdout:
            printed.append(line)
            if line.startswith(last):
                break
        output = "".join(printed)
        self._check(f"{block.where}: {command.text}", (block.line, 0), command, output)
        kinds = {"ticket": "profile", "to": "write", "from": "read"}
        for word, ticket in re.findall(r"^(\w+) .*?(farline://[^\s']+)", output, re.MULTILINE):
            self.tickets.setdefault(kinds.get(word, word), ticket)
        self.address = _address(self.tickets["profile"])

    def _share_server(self) -> None:
        """A server for pages that take one for granted, with a ticket that is remembered."""
        for name in SERVED:
            (self.folder / name).mkdir(exist_ok=True)
        write, read = (str(self.folder / name) for name in SERVED)
        server = self.stack.enter_context(
            serving(self.home, "--write", write, "--read", read, "--anonymous")
        )
        self.address = server.address
        self.tickets = {"profile": server.ticket, **server.tickets}
        trusting = [sys.executable, "-m", "farline", "trust", server.ticket]
        subprocess.run(trusting, check=True, env=self._environment(), capture_output=True)

    def _filled(self, text: str) -> str:
        if self.address is None and re.search(r"\bHOST\b|farline://", text):
            self._share_server()
        kind = "write" if re.search(r"farline copy [^|]*farline://\S*'?( &|$)", text) else "read"
        if names := re.match(r"(?:\S*/)?farline (ls|stat|cat|mkdir|rename|rm) ", text):
            kind = "read" if names[1] in ("ls", "stat", "cat") else "write"
        elif not re.match(r"(\S*/)?farline copy", text):
            kind = "profile"

        def ticket(found: re.Match[str]) -> str:
            whole = self.tickets.get(kind, self.tickets["profile"])
            return whole.partition("#")[0] + (found.group(1) or "")

        filled = re.sub(r"farline://[^\s'#]+(#[^\s']*)?", ticket, text)
        return re.sub(r"\bHOST\b", self.address or "HOST", filled)


def _address(ticket: str) -> str:
    return ticket.removeprefix("farline://").split("/")[0]


_WILD: tuple[tuple[str, str], ...] = (
    # What limits a short run is another thing on a busy host, or none alone.
    (r"^no single limit stands out.*$", "limited by nothing alone"),
    (r"^(sample \d+: .*?), limited by .*$", r"\1"),
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "RUN"),
    (r"sha256-[\w.-]+", "KEY"),
    (r"farline://[^\s']+", "TICKET"),
    (r"\b\d+\.\d+\.\d+\.\d+(:\d+)?|\[[0-9a-f:]+\](:\d+)?", "HOST"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?=\d{4}-\d\d-\d\d)", ""),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
    (r"\b\d+ (days?|h|min) \d+ (h|min|s)\b", "0 s"),
    (r"\b\d+ (days?|h)\b", "0 s"),
    (r"━*●━*", "-"),
    (r"[─━-]{3,}", "-"),
    (r"[-+−±]?\d[\d.,:]*(e[-+]?\d+)?", "0"),
    (r"\b[kKMGT]?i?(bit/s|B/s)", "RATE"),
    (r"\b0 [KMGT]?i?B\b", "0 B"),
    (r"\b0 (ns|us|µs|ms|s|min)\b", "0 s"),
)


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, word in _WILD:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def check(where: str, shown: tuple[str, ...], printed: str) -> None:
    """Fails with both texts if a program does not print what a page shows."""
    expected = [plain(line) for line in shown if line.strip()]
    found = [line for line in printed.splitlines() if line.strip()]
    # How far a copy is, and that a path is not what it was, is told where things take long: on a
    # busy host.
    lines = [plain(line) for line in found if not LATE.match(line)]
    if not _match(expected, lines):
        first = next(_unmatched(expected, lines), "its end")
        raise AssertionError(
            f"{where}\nshows, but the program does not print: {first}\n\n{printed}"
        )


def _match(expected: list[str], lines: list[str]) -> bool:
    reached = {0}
    for line in expected:
        if line == "...":
            reached = set(range(min(reached), len(lines) + 1)) if reached else set()
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.split("...")))
        reached = {at + 1 for at in reached if at < len(lines) and pattern.fullmatch(lines[at])}
    return len(lines) in reached


def _unmatched(expected: list[str], lines: list[str]) -> Iterator[str]:
    """The first line of a page that cannot be found in order."""
    for count in range(1, len(expected) + 1):
        if not _match([*expected[:count], "..."], lines):
            yield expected[count - 1]
