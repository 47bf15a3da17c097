"""What was mistyped is told, with what may have been meant; nothing hidden is ever suggested."""

from __future__ import annotations

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farline.cli.command import Command, visible_flags
from farline.cli.group import cli, run
from farline.spec.near import near, unknown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prob"], "no such command: prob; did you mean probe?"),
        (["analyze", "explian"], "did you mean explain?"),
        (["testbed", "stauts"], "did you mean status?"),
        (["testbed", "cc", "lode"], "did you mean load?"),
        (["ticket", "revok"], "did you mean revoke? For a host of that name write"),
        (
            ["probe", "--transprt", "udt", "h"],
            "option: --transprt; did you mean --transport?",
        ),
        (["copy", "--bwlimt", "1M", "a", "b"], "did you mean --bwlimit?"),
        (["copy", "--exclud", "x", "--include", "y", "a", "b"], "did you mean --exclude"),
        (["probe", "--transport", "tpc", "h"], "did you mean tcp?"),
        (["export", "--status", "fialed", "-o", "x.csv"], "did you mean failed?"),
        (["profile", "h", "--sweep", "tcp.mss_byte=1400"], "did you mean tcp.mss_bytes?"),
        (["analyze", "profile", "--modality", "X"], "allowed:"),
    ],
)
def test_what_may_have_been_meant_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["frobnicate"], ["nofile"], ["probe", "--frobnicate"], ["copy", "--xyzzy", "a", "b"]]
)
def test_where_nothing_is_near_nothing_is_suggested(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 1
    assert "did you mean" not in capsys.readouterr().err


def hidden_flags(verb: str) -> list[tuple[str, str]]:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    hidden = [one for one in command.params if isinstance(one, click.Option) and one.hidden]
    return [(verb, flag) for one in hidden for flag in one.opts if len(flag) > 4]


@pytest.mark.parametrize(("verb", "flag"), [*hidden_flags("copy"), *hidden_flags("serve")])
def test_no_hidden_option_is_suggested(
    verb: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert command is not None
    context = click.Context(command, info_name=verb)
    assert flag not in visible_flags(command, context)
    # A letter left out in the middle, so that the hidden one would be the nearest.
    assert run([verb, flag[:3] + flag[4:], "a", "b"]) == 1
    asked = capsys.readouterr().err.partition("did you mean")[2]
    assert flag not in asked.split("?")[0].replace(" or ", " ").split()


def test_help_has_both_spellings_whoever_asks_first() -> None:
    command = Command("one")
    click.Context(command, help_option_names=["--what"]).get_help()
    assert {"-h", "--help"} <= set(visible_flags(command, click.Context(command)))


def test_what_was_typed_is_not_suggested() -> None:
    assert unknown("native", ["native", "iperf3"]) == "allowed: native, iperf3"


def test_a_long_list_is_not_printed_beside_a_suggestion() -> None:
    many = [f"word{number}" for number in range(40)]
    assert unknown("wrd7", [*many, "other"]).startswith("did you mean")
    assert unknown("zzz", many).startswith("allowed: word0, ")


@settings(max_examples=50)
@given(st.lists(st.text("abcdef-", min_size=1, max_size=8), min_size=1, max_size=6))
def test_a_word_that_is_known_is_the_nearest(words: list[str]) -> None:
    bare = [word for word in words if word.lstrip("-")]
    for word in bare:
        assert near(word, [word, *bare])[0].lstrip("-") == word.lstrip("-")
