"""What click says of a command line reads like every other error."""

from __future__ import annotations

from pathlib import Path

import pytest

from farline.cli import group


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("probe h -P 999", "-P: 999 is out of range; allowed: 1 to 256 streams"),
        ("probe h --parallel=999", "--parallel: 999 is out of range; allowed: 1 to 256 streams"),
        ("probe h -p 99999", "-p: 99999 is out of range; allowed: 1 to 65535"),
        ("probe h -t 0", "-t: 0 is out of range; allowed: 0.01 to 604800 s"),
        ("probe h -l 0", "-l: 0 is out of range; allowed: 1 byte to 1 GiB"),
        (
            "probe h --rate 11T",
            "--rate: 11000000000000 is out of range; allowed: 0 bit/s to 10 Tbit/s",
        ),
        ("probe h --seed=-1", "--seed: -1 is out of range; allowed: 0 or more"),
        ("probe h --loss-bound 2", "--loss-bound: 2 is out of range; allowed: 0 to 0.5"),
        ("probe h -B x", "-B: 'x' is not an IP address: write SOURCE[%DEVICE][=DESTINATION]"),
        ("probe h a b", "unexpected argument: a b"),
        ("serve --write none", "--write: 'none': no such folder"),
        ("serve --write file", "--write: 'file' is a file, not a folder"),
        ("runs -n x", "-n: 'x' is not a whole number"),
        ("show", "RUN|last is missing"),
        ("export", "--output is missing"),
        ("adjust last --streams 0", "--streams: 0 is out of range; allowed: 1 to 256"),
        ("copy file to --max-harm 2", "--max-harm: 2 is out of range; allowed: above 0, below 1"),
        ("completion tcsh", "SHELL: 'tcsh' is not allowed; allowed: bash, zsh, fish"),
        ("import-config x", "TOOL: 'x' is not allowed; allowed: rclone, globus, perfsonar"),
        ("copy file to --chunk 1", "--chunk: 1 is out of range; allowed: 64 KiB to 16 MiB"),
    ],
)  # fmt: skip
def test_an_error_names_the_flag_as_it_was_typed(
    words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert group.run(words.split()) == 1
    verb = words.split()[0]
    told = capsys.readouterr().err
    assert told == f"farline: {said} (see farline {verb} --help)\n"


def test_a_flag_without_its_value_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert group.run(["probe", "h", "--title"]) == 1
    assert capsys.readouterr().err == "farline: '--title' needs a value\n"
