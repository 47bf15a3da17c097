"""Programs on nodes that an engine starts: a template of words in place of ssh's.

`srun`, `pbsdsh`, `mpirun`, `farline testbed exec`: whatever starts a program on a node, keeps its
standard input open, and gives back its lines and its exit code. In a template `{node}` is the name
of the node, `{index}` its number from 0, the word `{argv}` stands for the words of the program, and
`{command}` for all of them in one word, as a shell reads them.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from farline.errors import FarlineError, UnreachableError, UsageError
from farline.tools.ssh_command import NAME, START_S, SshCommand

ARGV = "{argv}"
_NOT_STARTED = 255
_LINES = 2


@dataclass(frozen=True)
class StepCommand(SshCommand):
    """How an engine starts farline on each of its nodes. Answers to what `SshCommand` does."""

    template: tuple[str, ...] = (ARGV,)
    via: tuple[str, ...] = (ARGV,)
    """What leads to where the engine's own commands run, such as ssh to a login node."""
    nodes: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Address for data of each of `nodes`."""
    farline_words: tuple[str, ...] = (NAME,)
    """What farline is called there."""
    remote_farline: str | None = NAME
    """It is not looked for in other folders."""

    def farline(self, target: str, *arguments: str) -> list[str]:
        """Words of a command that runs farline on the node `target`."""
        index = self.nodes.index(target) if target in self.nodes else 0
        argv = [*self.farline_words, *arguments]
        return filled(self.via, filled(self.template, argv, target, index))

    def host_name(self, target: str, fallback: str) -> str:
        """The node's address for data."""
        if target in self.nodes:
            return self.addresses[self.nodes.index(target)]
        return fallback

    def why_ended(
        self, target: str, farline: str, code: int | None, said: Sequence[str], printed: bytes
    ) -> FarlineError:
        """As for ssh; 255 is not ssh's here, but of an engine that could not start the program."""
        said = sentences(said)
        if code == _NOT_STARTED and said:
            return UnreachableError(f"{target}: {'; '.join(said[-_LINES:])}")
        return super().why_ended(target, farline, code, said, printed)

    def no_program(self) -> str:
        """It is a word of the template, not ssh."""
        return "check the command that starts programs on these nodes (pools.toml)"

    def start_limit_s(self, target: str) -> float:
        """As long as an ssh without a time-out of its own may take."""
        return START_S if self.start_s is None else self.start_s


def sentences(said: Sequence[str]) -> list[str]:
    """Lines without rules of dashes; of a page between two, as mpirun prints it, one sentence."""
    found: list[str] = []
    page: list[str] | None = None
    for line in said:
        if any(map(str.isalnum, line)):
            (found if page is None else page).append(line.strip())
        elif page:
            found.append(" ".join(" ".join(page).partition(". ")[0].split()))
            page = None
        else:
            page = []
    return found + (page or [])


def filled(
    template: Sequence[str], argv: Sequence[str], node: str = "", index: int = 0
) -> list[str]:
    """The words of a template with those of a program in it."""
    found: list[str] = []
    for word in template:
        if word == ARGV:
            found += argv
            continue
        word = word.replace("{node}", node).replace("{index}", str(index))
        found.append(word.replace("{command}", shlex.join(argv)).replace(ARGV, shlex.join(argv)))
    return found


def read_template(text: str) -> tuple[str, ...]:
    """A template from one line, as a shell would split it.

    Raises:
        UsageError: when the program to be started has no place in it.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"command {text!r}: {error}") from None
    if not any(ARGV in word or "{command}" in word for word in words):
        raise UsageError(
            f"command {text!r}: {ARGV} is missing: it stands for the program to be started, as in "
            "'pbsdsh -n {index} -- {argv}'"
        )
    return words
