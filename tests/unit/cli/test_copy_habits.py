"""Options typed from habit with rsync: accepted where they hold anyway, else refused with a way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from farline.cli.copy import habits
from farline.cli.copy.command import command
from farline.cli.copy.filters import rules_of
from farline.cli.log_options import log_options
from tests.unit.cli.test_copy_options import run

GUIDE = Path(__file__).parents[3] / "docs/guide/rsync.md"

RSYNC_OPTIONS = [
    "--verbose",
    "-v",
    "--info",
    "--debug",
    "--stderr",
    "--quiet",
    "-q",
    "--no-motd",
    "--checksum",
    "-c",
    "--archive",
    "-a",
    "--recursive",
    "-r",
    "--inc-recursive",
    "--i-r",
    "--no-inc-recursive",
    "--no-i-r",
    "--relative",
    "-R",
    "--no-implied-dirs",
    "--backup",
    "-b",
    "--backup-dir",
    "--suffix",
    "--update",
    "-u",
    "--inplace",
    "--append",
    "--append-verify",
    "--dirs",
    "-d",
    "--old-dirs",
    "--mkpath",
    "-l",
    "--copy-links",
    "-L",
    "--copy-unsafe-links",
    "--safe-links",
    "--insecure-links",
    "--confine-root",
    "--munge-links",
    "--copy-dirlinks",
    "-k",
    "--keep-dirlinks",
    "-K",
    "--hard-links",
    "-H",
    "--perms",
    "-p",
    "--executability",
    "-E",
    "--chmod",
    "--acls",
    "-A",
    "--xattrs",
    "-X",
    "--owner",
    "--group",
    "--devices",
    "--copy-devices",
    "--write-devices",
    "--specials",
    "--drop-D",
    "-D",
    "--times",
    "-t",
    "--atimes",
    "-U",
    "--open-noatime",
    "--crtimes",
    "-N",
    "--omit-dir-times",
    "-O",
    "--omit-link-times",
    "--super",
    "--fake-super",
    "--sparse",
    "-S",
    "--preallocate",
    "--dry-run",
    "-n",
    "--whole-file",
    "-W",
    "--no-whole-file",
    "--no-W",
    "--checksum-choice",
    "--one-file-system",
    "-x",
    "--block-size",
    "-B",
    "--rsh",
    "-e",
    "--rsync-path",
    "--existing",
    "--ignore-non-existing",
    "--ignore-existing",
    "--del",
    "--delete",
    "--delete-before",
    "--delete-during",
    "--delete-delay",
    "--delete-after",
    "--delete-excluded",
    "--ignore-missing-args",
    "--delete-missing-args",
    "--ignore-errors",
    "--force",
    "--max-delete",
    "--max-size",
    "--min-size",
    "--max-alloc",
    "--partial",
    "--partial-dir",
    "--delay-updates",
    "--prune-empty-dirs",
    "-m",
    "--usermap",
    "--groupmap",
    "--chown",
    "--timeout",
    "--contimeout",
    "--ignore-times",
    "-I",
    "--size-only",
    "--temp-dir",
    "-T",
    "--fuzzy",
    "-y",
    "--compare-dest",
    "--copy-dest",
    "--link-dest",
    "--compress",
    "-z",
    "--compress-choice",
    "--compress-level",
    "--compress-threads",
    "--skip-compress",
    "--cvs-exclude",
    "-C",
    "--filter",
    "-f",
    "--exclude",
    "--exclude-from",
    "--include",
    "--include-from",
    "--files-from",
    "--from0",
    "-0",
    "--old-args",
    "--secluded-args",
    "-s",
    "--trust-sender",
    "--copy-as",
    "--address",
    "--port",
    "--sockopts",
    "--blocking-io",
    "--outbuf",
    "--stats",
    "--8-bit-output",
    "-8",
    "--human-readable",
    "--progress",
    "-P",
    "--itemize-changes",
    "--remote-option",
    "-M",
    "--out-format",
    "--log-file",
    "--log-file-format",
    "--password-file",
    "--early-input",
    "--list-only",
    "--bwlimit",
    "--stop-after",
    "--stop-at",
    "--fsync",
    "--write-batch",
    "--only-write-batch",
    "--read-batch",
    "--protocol",
    "--iconv",
    "--checksum-seed",
    "-4",
    "-6",
]
"""Of rsync 3.5's help, those that name no letter that is ssh's here, and `--delete`'s kinds."""

SPELLED = {"--delete", "--delete-after", "--delete-delay"}


def test_every_option_of_rsync_is_known_and_in_the_guide() -> None:
    known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    known |= {flag for param in log_options() for flag in param.opts}
    known |= habits.REFUSED.keys() | habits.REFUSED_VALUES.keys()
    assert set(RSYNC_OPTIONS) - known - SPELLED == set()
    told = set(re.findall(r"`(-[^`= ]+)", GUIDE.read_text()))
    assert set(RSYNC_OPTIONS) - told - {"--port"} <= {
        # Long names of letters that the guide has, and the reverse.
        "--verbose", "--quiet", "--checksum", "--archive", "--recursive", "--update",
        "--copy-links", "--hard-links", "--xattrs", "--dry-run", "--rsh", "--ignore-times",
        "--human-readable", "--filter",
    }  # fmt: skip


def test_every_habit_is_in_the_guide_in_the_same_words() -> None:
    guide = GUIDE.read_text()
    for flags, what in habits.ON_BY_DEFAULT.values():
        assert f"| {', '.join(f'`{flag}`' for flag in flags)} | on by default: {what} |" in guide
    for flag, way in (habits.REFUSED | habits.REFUSED_VALUES).items():
        row = next(line for line in guide.splitlines() if f"`{flag}`" in line.split(" | ")[0])
        assert row.endswith(f" | refused: {way} |"), flag


def test_a_list_by_size_has_no_folders() -> None:
    """A folder in a list is copied with all that is in it, whatever its own size."""
    for flag in ("--max-size", "--min-size"):
        assert "find -type f -size" in habits.REFUSED_VALUES[flag]


@pytest.mark.parametrize("flag", habits.REFUSED)
def test_what_is_not_done_is_refused_with_the_way(flag: str) -> None:
    result = CliRunner().invoke(command, [flag, "a", "b"])
    assert result.exit_code == 2
    assert f"{flag} is not an option of farline copy: {habits.REFUSED[flag]}" in result.output


@pytest.mark.parametrize("flag", habits.REFUSED_VALUES)
def test_the_same_with_a_value(flag: str) -> None:
    words = [f"{flag}=x"] if flag[:2] == "--" else [flag, "x"]
    result = CliRunner().invoke(command, [*words, "a", "b"])
    assert result.exit_code == 2
    assert f"{flag} is not an option of farline copy: {habits.REFUSED_VALUES[flag]}" in (
        result.output
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-avh"], ["--human-readable"]),
        (["-rltW"], ["-l", "--whole-file"]),
        (["--partial", "--inc-recursive"], ["--partial", "--i-r"]),
        (["-s"], ["--protect-args"]),
    ],
)
def test_what_holds_anyway_is_accepted_with_a_line(words: list[str], said: list[str]) -> None:
    wish, _ = run(*words)
    assert [note.split(":")[0] for note in wish.notes] == said
    assert all(": on by default: " in note for note in wish.notes)


def test_h_alone_is_help_and_none_behind_a_letter_with_a_value() -> None:
    assert CliRunner().invoke(command, ["-h"]).output.startswith("Usage")
    _, options = run("-ihost")
    assert options["identity"] == "host"


def rules(*words: str) -> list[str]:
    found: list[str] = run(*words)[0].document.get("copy", {}).get("filters", [])
    return found


def test_rules_from_files_stand_where_their_option_stood(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"# comment\r\n; too\n\n*.o\r+ keep.o\n")
    more = tmp_path / "more"
    more.write_bytes(f"- x\n. {lines}\n".replace("\n. ", "\nmerge ").encode())
    assert rules("--include=a", f"--exclude-from={lines}", "--exclude=b") == [
        "+ a", "- *.o", "+ keep.o", "- b",
    ]  # fmt: skip
    lines.write_bytes(b"+ y\nexclude z\n")
    assert rules(f"--filter=. {more}") == ["- x", "+ y", "- z"]


def test_an_exclamation_mark_forgets_the_rules_before() -> None:
    assert rules("--exclude=a", "--filter=!", "--include=b") == ["+ b"]
    assert rules("--exclude=a", "--exclude=!") == []


def test_a_pattern_may_bring_its_own_sign() -> None:
    assert rules("--exclude=+ a", "--include=- b") == ["+ a", "- b"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--filter=P x", "rules for one end and per-folder filter files are not supported"),
        ("--filter=: .rules", "rules for one end and per-folder filter files are not supported"),
        ("--filter=x", "is not a rule"),
        ("--filter=- ", "the pattern is missing"),
        ("--exclude-from=/none", "/none: No such file or directory"),
        ("--max-delete=3", "needs --delete"),
    ],
)
def test_what_is_no_rule_is_named(word: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=re.escape(said)):
        run(word)


def test_a_file_that_names_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "self").write_text(f". {tmp_path}/self\n")
    values: dict[str, Any] = {"filters": [f". {tmp_path}/self"]}
    with pytest.raises(click.UsageError, match="filter files include each other"):
        rules_of(values, ["filters"])


def test_a_byte_that_is_not_utf_8_is_refused_in_patterns(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    with pytest.raises(click.UsageError, match="is not valid UTF-8"):
        rules_of({"exclude_from": [f"{tmp_path}/bytes"]}, ["exclude_from"])
