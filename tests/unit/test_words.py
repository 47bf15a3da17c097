"""The words that farline prints: a catalogue that is reviewed, and phrases that are banned.

A text that is changed or new changes `tests/data/printed-texts.txt`: `make words` writes it anew,
and the difference shows in review. A banned phrase fails with what to write instead; a new one is a
line in `BANNED`, with `docs=True` where the pages may not have it either.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.printed_texts import CATALOGUE, ROOT, Text, catalogue, printed_texts

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


@dataclass(frozen=True)
class Banned:
    """A phrase that a reader stumbles over, as a regular expression, and what to write instead."""

    phrase: str
    instead: str
    docs: bool = False

    def found_in(self, text: str) -> bool:
        """Whether the phrase stands in a text, in small or capital letters."""
        return re.search(self.phrase, text, re.IGNORECASE) is not None


BANNED = (
    # Riddles and old syntax.
    Banned(r"\bso many\b", "the number, or 'at most N'"),
    Banned(r"\bthere (are|is) (not|none)\b", "'unknown X' or 'no X'"),
    Banned(r"\bthat (is|are) none\b", "'not a X' or 'an invalid X'", docs=True),
    Banned(r"(?<!there )\bis no (?!longer|limit|column|such)[a-z]+\b", "'is not a X'"),
    Banned(r"\bunasked\b|\basked for\b", "'requested', or 'on by default'"),
    Banned(r"\bnamed? limit\b|\bto name a limit\b", "'what limited it'", docs=True),
    Banned(r"\bin the way of\b", "'blocking'", docs=True),
    Banned(r"\bto look at$|, \d+ well\b|\{\} well\b", "'warnings', 'ok'"),
    Banned(r"\btold\b|\btold apart\b", "'reported', 'within the uncertainty'"),
    Banned(r"\bmend(s|ed|ing)?\b", "'fix'"),
    Banned(r"\bcame (whole|damaged)\b|\bcomes? to nothing\b", "'arrived complete', 'failed'"),
    Banned(r"\bgoes? without\b|\bgoes? with\b", "'cannot be combined with', 'needs'"),
    Banned(r"\bsay(s)? two things\b|\bcontradict each other\b", "'cannot be combined'"),
    Banned(r"\bwithout a word\b", "'silently', 'without a message'"),
    Banned(r"\bonce more\b", "'again'"),
    Banned(r"\bafter all$|\ball the same\b", "'still', 'anyway'"),
    Banned(r"\bnot to be had\b|\bas it has it\b", "'not available'", docs=True),
    Banned(r"\bafresh\b", "'again', 'new'"),
    Banned(r"\bis (looked|tended) (at|to)\b", "'is examined'"),
    Banned(r"\bare all (of )?it\b|\bat (the )?least\.$", "a full sentence"),
    # Nouns that are the code's and not the field's.
    Banned(r"\bseal(s|ed|ing)?\b|\bclear text\b", "'encrypted', 'not encrypted'"),
    Banned(r"\bunder way\b|\bon (its|their) way\b", "'in flight', 'running'"),
    Banned(r"\bsent again\b|\bsegments? again\b", "'retransmitted'"),
    Banned(r"\broom for what came\b", "'receive buffer overflow'", docs=True),
    Banned(r"\bspoiled\b", "'corrupted'"),
    Banned(r"\bbr(o|ea)ke? off\b|\bbreaks off\b", "'was interrupted'"),
    Banned(r"\btaken in\b|\btakes? in\b", "'ingested', 'received'"),
    Banned(r"\brun as often as\b", "'completed'"),
    Banned(r"\bis not on its way\b|(?<!install )\bfarline there\b", "'on that host'"),
    Banned(r"\bfor others that have\b|\bone that others have\b", "'waiting for a CPU'"),
    # Names of the protocol's states.
    Banned(
        r"\b(CTRL_CHAN_EST|CREATE_STREAMS|PROFILING_(START|END)|EXCHANGE_PROFILE|TPG[_ ]DONE)\b",
        "what happens, such as 'opening data streams'",
    ),
    # Grammar.
    Banned(r"\ballowed (are|is)\b", "'allowed: X'"),
    Banned(r"\b(bit/s|\{\}) a (GB|stream|second|path|socket)\b", "'per X'"),
    Banned(r"\bpapers/\d", "the paper's short name, such as 'He et al. 2002'", docs=True),
    Banned(r"\{\}\(s\)|\b(file|run|segment|stream|packet)\(s\)", "the plural that fits the count"),
)
"""What is not printed, and what is printed instead."""


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    return printed_texts()


@pytest.mark.parametrize("banned", BANNED, ids=lambda banned: banned.phrase)
def test_nothing_printed_has_a_banned_phrase(banned: Banned, texts: list[Text]) -> None:
    hits = [f"{one.file}:{one.line}: {one.text}" for one in texts if banned.found_in(one.text)]
    assert not hits, f"write {banned.instead} instead:\n" + "\n".join(hits)


@pytest.mark.parametrize(
    "banned", [one for one in BANNED if one.docs], ids=lambda banned: banned.phrase
)
def test_no_page_has_a_banned_phrase(banned: Banned) -> None:
    hits = [
        f"{page.relative_to(ROOT)}:{number}: {line.strip()}"
        for page in PAGES
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if banned.found_in(line)
    ]
    assert not hits, f"write {banned.instead} instead:\n" + "\n".join(hits)


def test_the_catalogue_of_printed_texts_is_up_to_date() -> None:
    known, now = CATALOGUE.read_text(encoding="utf-8"), catalogue()
    changes = difflib.unified_diff(known.splitlines(), now.splitlines(), "catalogue", "now", n=0)
    assert known == now, "`make words` writes it anew:\n" + "\n".join(changes)


def test_a_banned_phrase_is_found_with_its_place(tmp_path: Path) -> None:
    """The lint can fail: in an f-string, across lines, and not in help or docstrings."""
    source = tmp_path / "one.py"
    source.write_text(
        '"""A docstring that is told."""\n'
        "def say(count):\n"
        '    option("--x", help="What is told here.")\n'
        '    return (f"{count} names were "\n'
        '            f"told to {count}")\n'
    )
    (found,) = printed_texts(tmp_path)
    assert (found.line, found.text) == (4, "{} names were told to {}")
    assert Banned(r"\btold\b", "").found_in(found.text)
