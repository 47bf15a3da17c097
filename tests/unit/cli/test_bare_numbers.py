"""A time or a rate without its unit: refused by every verb, except behind a peer's own flags."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from farline.cli.group import cli
from farline.spec.letters import PEER_FLAGS

RSYNC_FLAGS = frozenset(("--bwlimit", "--modify-window"))
IN_ITS_NAME = frozenset(("--seconds",))
TIMES_AND_RATES = frozenset(("TIME", "RATE", "SECONDS", "MS", "DURATION", "RTT"))


def leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None:
            yield from leaves(found, (*words, name))


def takes_a_time_or_rate(option: click.Option) -> bool:
    shown = (option.metavar or option.type.name).upper()
    # --since and --until take a moment or an age, which has its unit.
    return shown in TIMES_AND_RATES and not {"--since", "--until"} & set(option.opts)


def zero_lacks_nothing(option: click.Option, context: click.Context) -> bool:
    """Whether 0 is read, be it that 0 is too small."""
    try:
        option.type.convert("0", option, context)
    except click.BadParameter as error:
        return "out of range" in error.message
    return True


def test_no_option_of_any_verb_takes_a_time_or_a_rate_without_its_unit() -> None:
    seen = set()
    for name, command in leaves(cli, ()):
        context = click.Context(command, info_name=name)
        for option in command.params:
            if not isinstance(option, click.Option) or not takes_a_time_or_rate(option):
                continue
            if set(option.opts) & (PEER_FLAGS | RSYNC_FLAGS | IN_ITS_NAME):
                continue
            if option.type is click.STRING:  # read later, with what else was given
                assert option.name in ("rate_bps", "deadline", "start"), (name, option.opts)
                continue
            seen.add(f"{name} {option.opts[-1]}")
            with pytest.raises(click.BadParameter, match=r"100 could be 100\S+ or 100\S+; write"):
                option.type.convert("100", option, context)
            assert zero_lacks_nothing(option, context), (name, option.opts)
    assert {"host --rtt", "host --rate", "model rbudp --rtt", "testbed up --rtt"} <= seen
    assert {"profile --rtt", "probe --duration", "probe --connect-timeout"} <= seen
    assert {"copy --stall-timeout", "copy --retry-for", "serve --limit-time"} <= seen
    assert {"analyze profile --merge", "analyze report --period", "ticket make --lifetime"} <= seen


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["host", "--rtt", "100"], "100 could be 100ms or 100s; write the unit"),
        (["host", "--rate", "10"], "10 could be 10bit/s or 10Mbit/s; write the unit"),
        (["model", "rbudp", "--payload", "1M", "--rate", "1G", "--rtt", "100"], "100ms or 100s"),
        (["testbed", "up", "back-to-back", "--rtt", "100"], "100ms or 100s"),
        (["testbed", "change", "bed", "--delay", "5"], "5ms or 5s"),
        (["profile", "--rtt", "0,11.8,366"], "11.8 could be 11.8ms or 11.8s"),
        (["profile", "192.0.2.1", "--sweep", "duration_s=1,2"], "1 could be 1ms or 1s"),
        (["profile", "192.0.2.1", "--pause", "3"], "3ms or 3s"),
        (["probe", "192.0.2.1", "--rate", "1000000"], "1000000bit/s or 1000000Mbit/s"),
        (["probe", "192.0.2.1", "--duration", "10"], "10ms or 10s"),
        (["copy", "a", "b", "--stall-timeout", "5"], "5ms or 5s"),
        (["copy", "a", "b", "--rate", "1000000"], "1000000bit/s or 1000000Mbit/s"),
        (["analyze", "profile", "--at", "80"], "80 could be 80ms or 80s"),
    ],
)
def test_a_user_is_told_both_readings(words: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, words)
    said = result.output + str(result.exception or "")
    assert result.exit_code != 0
    assert says in said
