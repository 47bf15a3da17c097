"""Configurations of other tools as what farline and ssh read; what has no place here is named.

rclone's remotes over SFTP become hosts of ssh's configuration, which `farline copy` uses as they
are; folders of a Globus Connect Personal become tickets to make; a perfSONAR mesh (pSConfig)
becomes a file of sites, with the measurement of each pair as a command.
"""

from __future__ import annotations

import configparser
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farline.errors import SpecError

MOST_PAIRS = 1000
"""Commands of a mesh that are written; it grows with the square of its hosts."""

_WORD = re.compile(r"[A-Za-z0-9_.:%@+~/\\-]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True)
class Imported:
    """What a configuration came to."""

    text: str
    """To be kept, or run."""
    place: str
    """Where it belongs."""
    left_out: tuple[str, ...] = ()
    """What has no place, a line each."""


def from_rclone(text: str) -> Imported:
    """Hosts for ssh's configuration from `rclone.conf`.

    Raises:
        SpecError: when it is none, or is encrypted.
    """
    if text.lstrip().startswith("# Encrypted rclone configuration") or "RCLONE_ENCRYPT" in text:
        raise SpecError("it is encrypted: decrypt it with rclone config encryption remove")
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), default_section="\0")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise SpecError(f"not a configuration of rclone: {str(error).splitlines()[0]}") from None
    blocks, left_out = [], []
    for name in parser.sections():
        found = _sftp_host(name, parser[name])
        if isinstance(found, str):
            blocks.append(found)
            if "pass" in parser[name]:
                left_out.append(f"{name}: its password; make a key with ssh-keygen, ssh-copy-id")
        else:
            left_out.append(f"{name}: {found[0]}")
    return Imported("\n".join(blocks), "~/.ssh/config", tuple(left_out))


def _sftp_host(name: str, remote: Mapping[str, str]) -> str | tuple[str]:
    """A block of ssh's configuration, or why there is none."""
    kind = remote.get("type", "")
    if kind == "alias":
        return (f"another name for {_shown(remote.get('remote', ''))}",)
    if kind != "sftp":
        return (f"of the type {_shown(kind)}, not sftp: use rclone for it",)
    if not _NAME.fullmatch(name):
        return ("a name that ssh does not take",)
    lines = [f"Host {name}"]
    for key, option in (("host", "HostName"), ("user", "User"), ("port", "Port"),
                        ("key_file", "IdentityFile"), ("known_hosts_file", "UserKnownHostsFile"),
                        ):  # fmt: skip
        value = remote.get(key, "")
        if value and not _WORD.fullmatch(value):
            return (f"its {key} is {_shown(value)}",)
        if value:
            lines.append(f"    {option} {value}")
    if "host" not in remote:
        return ("no host",)
    return "\n".join(lines) + "\n"


def from_globus(text: str, home: str) -> Imported:
    """Tickets to make from `config-paths` of a Globus Connect Personal: path, sharing, writing.

    Raises:
        SpecError: for a line that is none.
    """
    commands = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        path, *flags = line.rsplit(",", 2)
        if len(flags) != 2 or not set(flags) <= {"0", "1"} or not path:
            raise SpecError(f"line {number}: not PATH,0|1,0|1, as in config-paths of Globus")
        whole = home + path[1:] if path == "~" or path.startswith("~/") else path
        may = "--write" if flags[1] == "1" else "--read"
        commands.append(f"farline ticket make HOST {may} {_quoted(whole)}")
    return Imported("\n".join(commands) + "\n" if commands else "", "a shell on this host")


def from_perfsonar(text: str) -> Imported:
    """Sites and measurements from a pSConfig template.

    Raises:
        SpecError: when it is none, or has more pairs than are written.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"not a JSON document: {str(error)[:100]}") from None
    addresses = _tables(document, "addresses")
    if not addresses:
        raise SpecError("no addresses: is it a pSConfig template?")
    hosts, left_out = {}, []
    for name, about in addresses.items():
        address = about.get("address")
        if isinstance(address, str) and _WORD.fullmatch(address):
            hosts[name] = address
        else:
            left_out.append(f"address {_shown(name)}: {_shown(str(address))}")
    lines = ['name = "imported mesh"', ""]
    for name, address in sorted(hosts.items()):
        lines += [f"[sites.{_toml(name)}]", f"hosts = [{_toml(address)}]", ""]
    commands = list(itertools.islice(_commands(document, hosts, left_out), MOST_PAIRS + 1))
    if len(commands) > MOST_PAIRS:
        raise SpecError(f"more than {MOST_PAIRS} pairs of hosts: import a part of the mesh")
    if commands:
        lines += ["# Its throughput tests, as commands on the first host of each pair:"]
        lines += [f"# {command}" for command in commands]
    return Imported("\n".join(lines).rstrip() + "\n", "sites.toml", tuple(left_out))


def _tables(document: Any, key: str) -> dict[str, dict[str, Any]]:
    found = document.get(key) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: one for name, one in found.items() if isinstance(one, dict)}


def _commands(document: Any, hosts: Mapping[str, str], left_out: list[str]) -> Iterator[str]:
    groups, tests = _tables(document, "groups"), _tables(document, "tests")
    schedules = _tables(document, "schedules")
    for name, task in _tables(document, "tasks").items():
        test = tests.get(str(task.get("test")), {})
        if test.get("type") != "throughput":
            kind = _shown(str(test.get("type", "unknown")))
            left_out.append(f"task {_shown(name)}: a test of {kind}")
            continue
        options = _options(test.get("spec", {}))
        repeat = schedules.get(str(task.get("schedule")), {}).get("repeat")
        every = f"  # each {repeat}" if isinstance(repeat, str) and _WORD.fullmatch(repeat) else ""
        for source, destination in _pairs(groups.get(str(task.get("group")), {}), hosts):
            yield f"{source}: farline probe {destination}{options}{every}"


def _options(spec: Any) -> str:
    """The options of a probe that a throughput test asks for."""
    if not isinstance(spec, dict):
        return ""
    words = []
    seconds = _seconds(spec.get("duration"))
    if seconds:
        words.append(f"-t {seconds:g}")
    for key, option in (("parallel", "-P"), ("mss", "-M")):
        value = spec.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            words.append(f"{option} {value}")
    if spec.get("reverse") is True:
        words.append("-R")
    if spec.get("udp") is True:
        words.append("-u")
    if isinstance(control := spec.get("congestion"), str) and _NAME.fullmatch(control):
        words.append(f"-C {control}")
    return "".join(f" {word}" for word in words)


def _seconds(text: Any) -> float | None:
    """Seconds of an ISO 8601 duration."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    parts = {name: float(value or 0) for name, value in found.groupdict().items()}
    return parts["d"] * 86_400 + parts["h"] * 3600 + parts["m"] * 60 + parts["s"]


def _pairs(group: Mapping[str, Any], hosts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The pairs that a group measures: each with each, or those of one side with the other's."""
    if group.get("type") == "disjoint":
        ones, others = _members(group, "a-addresses", hosts), _members(group, "b-addresses", hosts)
        yield from itertools.product(ones, others)
        yield from itertools.product(others, ones)
        return
    yield from itertools.permutations(_members(group, "addresses", hosts), 2)


def _members(group: Mapping[str, Any], key: str, hosts: Mapping[str, str]) -> Sequence[str]:
    listed = group.get(key)
    members = listed if isinstance(listed, list) else []
    names = [str(one.get("name")) for one in members if isinstance(one, dict)]
    return list(dict.fromkeys(hosts[name] for name in names if name in hosts))


def _toml(text: str) -> str:
    """A string of TOML: as JSON writes them, but for pairs of surrogates and DEL."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quoted(text: str) -> str:
    return text if _WORD.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def _shown(text: str) -> str:
    """Another's text on a line."""
    return "".join(one if one.isprintable() else "?" for one in text)[:80] or "nothing"
