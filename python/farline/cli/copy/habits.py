"""Options that people type from habit with rsync: what holds without them, and what does it here.

An option is accepted in silence only where it changes nothing because the copy does so anyway; then
one line says that. Every other is refused with the way to do it. The guide has the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

ON_BY_DEFAULT: dict[str, tuple[tuple[str, ...], str]] = {
    "habit_links": (("-l",), "links are kept as links"),
    "habit_whole_file": (("-W", "--whole-file"), "files are always sent whole"),
    "habit_partial": (("--partial",), "what has arrived is kept, and the copy continues there"),
    "habit_human": (("--human-readable",), "sizes are printed with units"),
    "habit_inc": (
        ("--inc-recursive", "--i-r"),
        ("copying starts while folders are still being listed"),
    ),
    "habit_args": (
        ("-s", "--secluded-args", "--protect-args"),
        "names never pass through a remote shell",
    ),
    "habit_no_devices": (
        ("--no-D", "--no-devices", "--no-specials"),
        "devices, pipes and sockets are skipped and counted",
    ),
    "habit_no_compress": (("--no-compress", "--no-z"), "nothing is compressed"),
    "habit_no_inplace": (
        ("--no-inplace",),
        ("files get their final name only when they are complete"),
    ),
    "habit_no_relative": (("--no-relative", "--no-R"), "names are relative to their source"),
}
"""What holds anyway: flags by parameter name, and what does."""

_NO_SPECIALS = "devices, pipes and sockets are not copied: they are skipped and counted"
_DELETES_LAST = "names are deleted after the copy: write --delete"
_NOT_IN_PLACE = (
    "a file is written next to the old one and replaces it when it is complete; an interrupted "
    "copy continues without an option"
)
_LINKS = "one choice applies to all links: --links keep, follow or skip"
_COMPRESS = "data are not compressed in transit"
_NO_BASIS = "files are sent whole, without using another file as a basis"
_TIMES = "only modification times are kept"
_BACKUP = "replaced files are not kept; rename the folder, or take a snapshot, before the copy"
_IDS = "owners are matched by name, or by number with --numeric-ids; they are not mapped"
_SIZES = (
    "there is no size filter: list the names with find -type f -size and pass the list to "
    "--files-from"
)
_LOG = "--receipt FILE writes a JSON line per name, --json-stream prints events as they happen"
_DAEMON = "farline does not support the rsync daemon"
_WIRE = "the rsync protocol is not used; leave this option out"
_MISSING = "a missing source is an error: leave it out of the command"
_STOP = "stop it with timeout(1) or Ctrl-C; the same command continues where it stopped"
_BATCH = "batch files are not supported; copy to each destination"

REFUSED: dict[str, str] = {
    "-D": _NO_SPECIALS,
    "--devices": _NO_SPECIALS,
    "--specials": _NO_SPECIALS,
    "--copy-devices": _NO_SPECIALS,
    "--write-devices": _NO_SPECIALS,
    "--drop-D": _NO_SPECIALS + " anyway; leave this option out",
    "--del": _DELETES_LAST,
    "--delete-before": _DELETES_LAST,
    "--delete-during": _DELETES_LAST,
    "--delete-excluded": "names that a filter leaves out are not deleted:"
    " delete them at the destination, or copy without the filter",
    "--ignore-errors": "nothing is deleted when a source could not be read: fix that first",
    "--inplace": _NOT_IN_PLACE,
    "--append": _NOT_IN_PLACE,
    "--append-verify": _NOT_IN_PLACE,
    "--no-whole-file": _NO_BASIS,
    "--no-W": _NO_BASIS,
    "-y": _NO_BASIS,
    "--fuzzy": _NO_BASIS,
    "-d": "to create folders without their contents use --exclude '/*/*'",
    "--dirs": "to create folders without their contents use --exclude '/*/*'",
    "--old-dirs": "to create folders without their contents use --exclude '/*/*'",
    "-R": "to keep part of a path, list the names below one source: --files-from FILE SOURCE/",
    "--relative": "to keep part of a path, list the names below one source: --files-from FILE "
    "SOURCE/",
    "--no-implied-dirs": "folders above a listed name are always created",
    "-b": _BACKUP,
    "--backup": _BACKUP,
    "--mkpath": "only the last folder of a destination is created: create the others with mkdir -p",
    "--copy-unsafe-links": _LINKS,
    "--safe-links": _LINKS,
    "--munge-links": _LINKS,
    "--insecure-links": _LINKS,
    "-k": _LINKS,
    "--copy-dirlinks": _LINKS,
    "-A": "-X keeps access control lists, with the other extended attributes",
    "--acls": "-X keeps access control lists, with the other extended attributes",
    "-E": "permission bits are kept, unless --no-modes says otherwise",
    "--executability": "permission bits are kept, unless --no-modes says otherwise",
    "-U": _TIMES,
    "--atimes": _TIMES,
    "-N": _TIMES,
    "--crtimes": _TIMES,
    "--open-noatime": _TIMES,
    "-O": "times are kept for all names, or for none with --no-times",
    "--omit-dir-times": "times are kept for all names, or for none with --no-times",
    "--omit-link-times": "times are kept for all names, or for none with --no-times",
    "--super": (
        "the receiving end sets what its user is allowed to set, and reports what it could not"
    ),
    "--fake-super": "owners are set (--owner, --group) or not; they are not stored otherwise",
    "--preallocate": "space for large files is reserved where the file system supports it",
    "-x": "leave out other mounted file systems with --exclude '/PATH/'",
    "--one-file-system": "leave out other mounted file systems with --exclude '/PATH/'",
    "--no-inc-recursive": (
        "copying starts while folders are still being listed; -n prints the totals first"
    ),
    "--no-i-r": "copying starts while folders are still being listed; -n prints the totals first",
    "--ignore-missing-args": _MISSING,
    "--delete-missing-args": _MISSING,
    "--delay-updates": "each file gets its final name when it is complete; to switch everything "
    "at once, copy into a new folder and rename that",
    "-m": "leave out folders with --exclude, or list names with --files-from",
    "--prune-empty-dirs": "leave out folders with --exclude, or list names with --files-from",
    "-C": "write the patterns to a file and pass it to --exclude-from",
    "--cvs-exclude": "write the patterns to a file and pass it to --exclude-from",
    "--list-only": "-n -v lists what would be copied and changes nothing",
    "--itemize-changes": f"-v lists each file; {_LOG}",
    "--old-args": "names never pass through a remote shell; the other end expands patterns",
    "--trust-sender": "the other end is never trusted; leave this option out",
    "-8": "names are always printed unchanged; leave this option out",
    "--8-bit-output": "names are always printed unchanged; leave this option out",
    "--blocking-io": "data do not go through the remote shell; leave this option out",
    "--no-motd": _DAEMON,
}
"""What is not done: flags without a value, and the way."""

REFUSED_VALUES: dict[str, str] = {
    "--backup-dir": _BACKUP,
    "--suffix": _BACKUP,
    "--chmod": "permission bits are the source's, or the umask's with --no-modes;"
    " change them afterwards with chmod",
    "--chown": "owners are the source's (--owner, --group); change them afterwards with chown",
    "--usermap": _IDS,
    "--groupmap": _IDS,
    "--copy-as": "run the receiving end as that user: ssh USER@HOST",
    "--confine-root": "a ticket gives access to one folder only: farline serve --write FOLDER",
    "--max-size": _SIZES,
    "--min-size": _SIZES,
    "--max-alloc": "memory use is bounded; --chunk and --streams set how much is used",
    "--partial-dir": "incomplete files are in .farline-partial in the destination folder",
    "--temp-dir": "incomplete files are in .farline-partial in the destination folder",
    "-T": "incomplete files are in .farline-partial in the destination folder",
    "--timeout": "--stall-timeout limits the time without progress",
    "--contimeout": "--retry-for limits the time for new attempts",
    "--compare-dest": _NO_BASIS,
    "--copy-dest": _NO_BASIS,
    "--link-dest": _NO_BASIS,
    "--compress-choice": _COMPRESS,
    "--zc": _COMPRESS,
    "--compress-level": _COMPRESS,
    "--zl": _COMPRESS,
    "--compress-threads": _COMPRESS,
    "--zt": _COMPRESS,
    "--skip-compress": _COMPRESS,
    "--checksum-choice": "--hash sets the checksum of a copy; files are compared with BLAKE3",
    "--cc": "--hash sets the checksum of a copy; files are compared with BLAKE3",
    "--checksum-seed": "--hash sets the checksum of a copy; files are compared with BLAKE3",
    "--block-size": "--chunk sets how much of a file is sent and verified at a time",
    "-B": "--chunk sets how much of a file is sent and verified at a time",
    "--rsync-path": "--remote-farline sets the command name of farline on the other host",
    "-M": "both ends get the same options; --remote-farline sets the command that is started there",
    "--remote-option": (
        "both ends get the same options; --remote-farline sets the command that is started there"
    ),
    "--info": "-v lists each file, --progress shows progress, --stats shows where the time went",
    "--debug": "-v prints each step",
    "--stderr": "errors go to standard error, results to standard output",
    "--outbuf": "output is not buffered",
    "--log-file-format": _LOG,
    "--out-format": _LOG,
    "--stop-after": _STOP,
    "--stop-at": _STOP,
    "--write-batch": _BATCH,
    "--only-write-batch": _BATCH,
    "--read-batch": _BATCH,
    "--protocol": _WIRE,
    "--iconv": "names are kept byte for byte",
    "--sockopts": "--window and --congestion set what TCP uses",
    "--address": "--bind sets the source address",
    "--password-file": _DAEMON,
    "--early-input": _DAEMON,
}
"""What is not done: flags with a value, and the way."""


def habit_options(command: _Command) -> _Command:
    """Adds those that hold anyway, and letters, which stand among others, unseen in the help."""
    for name, (flags, _) in ON_BY_DEFAULT.items():
        command = click.option(*flags, name, is_flag=True, hidden=True)(command)
    for flag in REFUSED:
        if flag[:2] != "--":
            command = click.option(flag, _name(flag), is_flag=True, hidden=True)(command)
    for flag in REFUSED_VALUES:
        if flag[:2] != "--":
            command = click.option(flag, _name(flag), hidden=True)(command)
    return command


def _name(flag: str) -> str:
    return f"refused_{flag[1:]}"


def refuse_words(words: Sequence[str]) -> None:
    """Refuses the first long option that is another program's.

    Raises:
        click.UsageError: with the way to do it.
    """
    for word in words:
        if word == "--":
            return
        if word[:2] == "--":
            _refuse(word.partition("=")[0])


def refuse_letters(values: Mapping[str, Any]) -> None:
    """The same of one-letter options, as click parsed them."""
    for flag in (*REFUSED, *REFUSED_VALUES):
        if flag[:2] != "--" and values.get(_name(flag)):
            _refuse(flag)


def _refuse(flag: str) -> None:
    way = REFUSED.get(flag) or REFUSED_VALUES.get(flag)
    if way is not None:
        raise click.UsageError(f"{flag} is not an option of farline copy: {way}")


def notes(values: Mapping[str, Any]) -> list[str]:
    """A line for each option that holds anyway."""
    return [
        f"{flags[-1]}: on by default: {what}"
        for name, (flags, what) in ON_BY_DEFAULT.items()
        if values.get(name)
    ]
