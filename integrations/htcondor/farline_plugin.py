#!/usr/bin/env python3
"""HTCondor's file-transfer plugin for farline:// (protocol versions 2 and 4).

Called by condor_starter: `-classad` asks what it can do; `-infile FILE -outfile FILE [-upload]` has
it move files. It runs `farline copy`, one for all files of a server and folder, and needs nothing
but Python and farline: `FARLINE` may name the program.

A URL is `farline://HOST:PORT/#PATH`. Its ticket is not in it, for `condor_q -l` shows URLs to
everybody: it is a line of a file `farline*.use` in the credential folder (`_CONDOR_CREDS`), or one
of those that `farline trust` remembers. A ticket in a URL works, and is not printed.

See docs/guide/htcondor.md; HTCondor: docs/apis/file-transfer-plugins (version 25).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

VERSION = "1.0"
SCHEME = "farline://"
OPTIONS = {"streams": "--streams", "transport": "--transport", "rate": "--bwlimit"}
"""What a job may ask for in `farline_PluginData`, or `PluginData`."""
LIMIT_S = 72_000
"""As HTCondor's own limit of a plugin's life."""

_BUSY, _USAGE, _SYSTEM, _AUTH, _UNREACHABLE, _PROTOCOL, _LIMIT, _TIMEOUT = 5, 1, 2, 4, 5, 7, 8, 30


@dataclass
class Wanted:
    """One file that is to be moved, and what became of it."""

    url: str
    local: str
    options: Mapping[str, str] = field(default_factory=dict)
    began_s: float = 0.0
    ended_s: float = 0.0
    size: int = 0
    error: str | None = None
    code: int = 0
    run: str | None = None

    @property
    def server(self) -> str:
        """The URL up to the path, as farline takes it."""
        return self.url.partition("#")[0]

    @property
    def path(self) -> str:
        """The path there, with single slashes: HTCondor joins a folder and a name by a slash."""
        return re.sub(r"/{2,}", "/", self.url.partition("#")[2])

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The URL without a ticket."""
        return f"{bare(self.server)}#{self.path}"


def bare(server: str) -> str:
    """A server's URL without its ticket."""
    return SCHEME + re.split(r"[/?#]", server.removeprefix(SCHEME), maxsplit=1)[0] + "/"


def capabilities() -> str:
    """What HTCondor is told of this plugin, as an old ClassAd."""
    facts = {
        "MultipleFileSupport": True, "PluginVersion": VERSION, "PluginType": "FileTransfer",
        "ProtocolVersion": 4, "SupportedMethods": "farline",
    }  # fmt: skip
    return "\n".join(f"{name} = {value_text(value)}" for name, value in facts.items())


# ClassAds


def value_text(value: object) -> str:
    """A value as ClassAds have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return ad_text(value)
    if isinstance(value, list):
        return "{ " + ", ".join(map(value_text, value)) + " }"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def ad_text(facts: Mapping[str, object]) -> str:
    """A new ClassAd."""
    inner = "; ".join(f"{name} = {value_text(value)}" for name, value in facts.items())
    return f"[ {inner} ]"


_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)'
    r"|(?P<number>[-+]?[0-9][0-9.eE+-]*)|(?P<sign>[\[\]{};,=])|(?P<other>\S))",
    re.DOTALL,
)
_ESCAPES = {
    b"a": b"\a",
    b"v": b"\v",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"\b",
    b"f": b"\f",
}


class AdError(ValueError):
    """Text that is no ClassAd of the kind that HTCondor writes for plugins."""


def parse_ads(text: str) -> list[dict[str, object]]:
    """New ClassAds, one after another; names in small letters. Values are strings, numbers, words,
    and ads within ads; lists are passed over.

    Raises:
        AdError: for anything else.
    """
    tokens = [found for found in _TOKEN.finditer(text.strip()) if found[0].strip()]
    ads, at = [], 0
    while at < len(tokens):
        if tokens[at]["sign"] != "[":
            raise AdError(f"expected [, found {tokens[at][0].strip()[:40]!r}")
        ad, at = _ad(tokens, at + 1)
        ads.append(ad)
    return ads


Tokens = Sequence["re.Match[str]"]


def _ad(tokens: Tokens, at: int) -> tuple[dict[str, object], int]:
    facts: dict[str, object] = {}
    while True:
        _need(tokens, at)
        if tokens[at]["sign"] == "]":
            return facts, at + 1
        if tokens[at]["sign"] == ";":
            at += 1
            continue
        name = tokens[at]["name"]
        _need(tokens, at + 1)
        if name is None or tokens[at + 1]["sign"] != "=":
            raise AdError(f"expected NAME =, found {tokens[at][0].strip()[:40]!r}")
        facts[name.lower()], at = _value(tokens, at + 2)


def _value(tokens: Tokens, at: int) -> tuple[object, int]:
    _need(tokens, at)
    token = tokens[at]
    if token["string"] is not None:
        return _plain(token["string"][1:-1]), at + 1
    if token["sign"] == "[":
        return _ad(tokens, at + 1)
    if token["sign"] == "{":
        while tokens[at]["sign"] != "}":
            at += 1
            _need(tokens, at)
        return None, at + 1
    word = token["name"] or token["number"]
    if word is None:
        raise AdError(f"expected a value, found {token[0].strip()[:40]!r}")
    return word, at + 1


def _plain(quoted: str) -> str:
    """What is between quotes without its escapes: octal digits stand for bytes of UTF-8."""

    def byte(found: re.Match[bytes]) -> bytes:
        word = found[1]
        return bytes([int(word, 8) & 255]) if word.isdigit() else _ESCAPES.get(word, word)

    plain = re.sub(
        rb"\\([0-7]{1,3}|.)", byte, quoted.encode("utf-8", "surrogateescape"), flags=re.DOTALL
    )
    return plain.decode("utf-8", "surrogateescape")


def _need(tokens: Tokens, at: int) -> None:
    if at >= len(tokens):
        raise AdError("the text ends within an ad")


def wanted_files(text: str) -> list[Wanted]:
    """The files of an input of HTCondor's: `Url` and `LocalFileName`, and the job's options."""
    files: list[Wanted] = []
    common: dict[str, str] = {}
    for ad in parse_ads(text):
        data = ad.get("farline_plugindata") or ad.get("plugindata") or {}
        options = (
            {name: str(value) for name, value in data.items()} if isinstance(data, dict) else {}
        )
        if "url" not in ad:
            # Version 4 says first what holds for all.
            common.update(options)
            continue
        files.append(Wanted(str(ad["url"]), str(ad["localfilename"]), {**common, **options}))
    return files


# Copies


def tickets() -> dict[str, str]:
    """Tickets of the credential folder, by their server."""
    found: dict[str, str] = {}
    folder = os.environ.get("_CONDOR_CREDS")
    for path in sorted(Path(folder).glob("farline*.use")) if folder else []:
        for line in path.read_text(encoding="utf-8", errors="replace").split():
            if line.startswith(SCHEME):
                found.setdefault(bare(line), line)
    return found


def groups(files: Sequence[Wanted], uploads: bool) -> Iterator[list[Wanted]]:
    """Files that one copy moves: of one server, one folder at each end, under their own names."""
    together: dict[tuple[object, ...], list[Wanted]] = {}
    for number, one in enumerate(files):
        there, name = os.path.split(one.path)
        here, local = os.path.split(Path(one.local).absolute())
        options = tuple(sorted(one.options.items()))
        key: tuple[object, ...] = (one.server, there if uploads else "", here, options)
        if name != local:
            key = (number,)
        together.setdefault(key, []).append(one)
    for group in together.values():
        # Two files of one name, from different folders, would meet at the destination.
        names = [one.name for one in group]
        first = [one for at, one in enumerate(group) if names[at] not in names[:at]]
        yield first
        yield from ([one] for one in group if one not in first)


def carry(group: list[Wanted], uploads: bool, known: Mapping[str, str]) -> None:
    """Moves the files of a group; each is told what became of it."""
    first = group[0]
    with tempfile.TemporaryDirectory(prefix="farline-condor-") as folder:
        receipt = Path(folder) / "receipt.jsonl"
        words, environment = command(group, uploads, known, str(receipt))
        began_s = time.time()
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                env=environment, timeout=LIMIT_S,
            )  # fmt: skip
            code, said = done.returncode, done.stderr.strip().splitlines()
        except OSError as error:
            code, said = 127, [f"{words[0]}: {error.strerror}"]
        except subprocess.TimeoutExpired:
            code, said = _TIMEOUT, [f"no end after {LIMIT_S} s"]
        lines = {}
        for text in receipt.read_text("utf-8").splitlines() if receipt.exists() else []:
            line = json.loads(text)
            lines[read_name(line["path"])] = line
    reason = (said or ["no reason given"])[-1].removeprefix("farline: ")
    for one in group:
        one.began_s, one.ended_s = began_s, time.time()
        judge(one, lines, code, reason.replace(first.server, bare(first.server)))


def command(
    group: list[Wanted], uploads: bool, known: Mapping[str, str], receipt: str
) -> tuple[list[str], dict[str, str]]:
    """The copy of a group. A ticket goes in the environment: others see words."""
    first = group[0]
    server, environment = first.server, dict(os.environ)
    ticket = server if "?" in server else known.get(bare(server))
    if ticket is not None:
        environment["FARLINE_TICKET"] = ticket
        server = bare(server)
    program = shlex.split(os.environ.get("FARLINE") or shutil.which("farline") or "farline")
    words = [*program, "copy", "--no-store", "--overwrite", "different", "--receipt", receipt]
    for name, flag in OPTIONS.items():
        if name in first.options:
            words += [flag, first.options[name]]
    there, name = os.path.split(first.path)
    here, local = os.path.split(Path(first.local).absolute())
    alike = name == local
    if uploads:
        target = f"{server}#{there or '.'}/" if alike else f"{server}#{first.path}"
        return [*words, *(str(Path(one.local).absolute()) for one in group), target], environment
    sources = [f"{server}#{one.path}" for one in group]
    return [*words, *sources, f"{here}/" if alike else f"{here}/{local}"], environment


def read_name(text: str) -> str:
    """A name of a receipt, which escapes what does not show as itself (docs/guide/copy.md)."""

    def byte(found: re.Match[bytes]) -> bytes:
        return bytes([int(found[1][1:], 16)]) if len(found[1]) > 1 else found[1]

    name = re.sub(rb"\\(\\|x[0-9a-f]{2})", byte, text.encode())
    return name.decode("utf-8", "surrogateescape")


def judge(one: Wanted, lines: Mapping[str, Mapping[str, object]], code: int, said: str) -> None:
    """What the receipt, or the copy as a whole, says of a file."""
    line = lines.get(one.name) or lines.get(Path(one.local).name)
    if line is not None and line["status"] in ("copied", "present", "updated"):
        one.size = int(str(line["bytes"]))
        return
    one.code = code or _SYSTEM
    one.error = str(line.get("reason") or said) if line is not None else said


# What HTCondor is told


def result(one: Wanted, uploads: bool) -> dict[str, object]:
    """The ad of a file that was moved, or was not."""
    facts: dict[str, object] = {
        "TransferUrl": one.url, "TransferFileName": one.local, "TransferSuccess": one.error is None,
        "TransferProtocol": "farline", "TransferType": "upload" if uploads else "download",
        "TransferTotalBytes": one.size, "TransferFileBytes": one.size,
        "TransferStartTime": int(one.began_s), "TransferEndTime": int(one.ended_s),
        "TransferHostName": re.split(r"[/?]", one.server.removeprefix(SCHEME))[0],
        "TransferLocalMachineName": socket.gethostname(), "PluginVersion": VERSION,
    }  # fmt: skip
    if one.error is not None:
        facts["TransferError"] = f"{one.shown}: {one.error}"
        facts["TransferErrorData"] = [error_data(one)]
    return facts


def error_data(one: Wanted) -> dict[str, object]:
    """What kind of failure it was, and whether trying again may help (-1: no, k: after k s)."""
    server = bare(one.server)
    kinds: dict[int, dict[str, object]] = {
        _AUTH: {
            "ErrorType": "Authorization",
            "FailureType": "Authorization",
            "ShouldRefresh": True,
        },
        _UNREACHABLE: {"ErrorType": "Contact"},
        _PROTOCOL: {"ErrorType": "Contact"},
        _TIMEOUT: {"ErrorType": "Transfer", "FailureType": "TimedOut"},
        _LIMIT: {"ErrorType": "Transfer", "FailureType": "Quota"},
        _USAGE: {"ErrorType": "Parameter", "PluginVersion": VERSION, "PluginLaunched": True},
        127: {"ErrorType": "Parameter", "PluginVersion": VERSION, "PluginLaunched": False},
    }
    missing: dict[str, object] = {"ErrorType": "Specification"}
    facts = dict(kinds.get(one.code, missing))
    if "No space left" in (one.error or "") or "no space left" in (one.error or ""):
        facts = {"ErrorType": "Transfer", "FailureType": "NoSpace"}
    retryable = 30 if one.code in (_BUSY, _PROTOCOL, _TIMEOUT) else -1
    return {
        **facts, "FailedServer": server, "ErrorCode": one.code, "ErrorString": one.error or "",
        "Retryable": retryable,
    }  # fmt: skip


def write_results(path: str, files: Sequence[Wanted], uploads: bool) -> None:
    """Into the file that HTCondor made: it is longer than this, and must not become shorter."""
    text = "\n".join(ad_text(result(one, uploads)) for one in files) + "\n"
    with Path(path).open("r+b") as out:
        out.write(text.encode("utf-8", "surrogateescape"))


def main(words: Sequence[str]) -> int:
    """0 if all files were moved; else the exit code of the first that was not, which HTCondor shows
    as the subcode of the hold."""
    if list(words) == ["-classad"]:
        print(capabilities())
        return 0
    given = dict(pairwise(words))
    uploads = "-upload" in words
    if "-infile" not in given or "-outfile" not in given:
        print("usage: farline_plugin -classad | -infile FILE -outfile FILE [-upload]")
        return _USAGE
    try:
        text = Path(given["-infile"]).read_text(encoding="utf-8", errors="surrogateescape")
        files = wanted_files(text)
    except (OSError, KeyError, AdError) as error:
        print(f"farline_plugin: {given['-infile']}: {error}")
        return _USAGE
    known = tickets()
    for group in groups(files, uploads):
        carry(group, uploads, known)
    write_results(given["-outfile"], files, uploads)
    return next((one.code for one in files if one.error is not None), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
