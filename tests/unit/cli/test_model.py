"""`farline model rbudp`: tables that fit, documents, pictures, kept runs, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farline.cli.group import cli, run
from farline.store import Store
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples
from tests.unit.models.records import made_blast, made_run

CASE = ("--payload", "600MB", "--rate", "610Mbit", "--rtt", "110ms", "--loss", "7%")
MB = 10**6


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two runs of a campaign, and one over TCP."""
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    store = Store()
    labels = {"setting": "abc", "block": 1, "slot": 0, "attempt": 0, "reference": False}
    for number, elapsed_s in ((1, 9.36), (2, 9.20)):
        record = made_run(number, [made_blast(600 * MB, elapsed_s)])
        store.append(RunBundle(record, make_samples(2), campaign="sweep", labels=labels))
    store.append(RunBundle(make_record(3), make_samples(2)))
    return store


def model(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["model", "rbudp", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(model(*arguments, "--json").stdout)
    assert found["schema"] == 1
    return found


def row(text: str, name: str) -> list[str]:
    """Cells of the table's row that begins with `name`."""
    line = next(line for line in text.splitlines() if line.strip().startswith(name))
    return [cell.strip() for cell in line.strip().removeprefix(name).split("  ") if cell.strip()]


def test_the_papers_example_stands_beside_the_corrected_ones_in_80_columns() -> None:
    text = model(*CASE, "--in-flight", "8", "--efficiency", "90%", "--curve", "payload").stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.splitlines()[0] == ("RBUDP: 600 MB (572 MiB) at 610 Mbit/s over 110 ms, 7 % loss")
    assert row(text, "throughput") == ["526 Mbit/s", "513 Mbit/s", "539 Mbit/s"]
    assert row(text, "time") == ["9.13 s", "9.36 s", "8.91 s"]
    assert row(text, "reports, T_ack") == ["3.93 ms", "221 ms", "0"]
    assert row(text, "passes, N + 1") == ["6.00", "5.55", "5.55"]
    assert row(text, "8 in flight") == ["567 Mbit/s", "567 Mbit/s", "567 Mbit/s"]


def test_it_says_in_words_where_the_printed_equations_mislead() -> None:
    text = " ".join(model(*CASE).stdout.split())
    assert "Where the printed equations mislead:" in text
    assert "+217 ms report over TCP: the first report has about" in text
    assert "-49.4 ms chance: N_resend is not 5" in text
    assert "mislead" not in model(*CASE, "--early").stdout


def test_models_can_be_chosen() -> None:
    assert list(document(*CASE)["predictions"]) == ["printed", "passes", "early"]
    assert list(document(*CASE, "--early", "--printed")["predictions"]) == ["printed", "early"]
    assert list(document(*CASE, "--passes")["predictions"]) == ["passes"]


def test_the_printed_column_has_the_papers_packets_and_the_others_farlines() -> None:
    found = document(*CASE)["predictions"]
    assert (found["printed"]["packets"], found["passes"]["packets"]) == (400_000, 412_088)
    jumbo = document(*CASE, "--packet", "8972")["predictions"]
    assert jumbo["printed"] == found["printed"]
    assert jumbo["early"]["packet_payload_bytes"] == 8956


def test_the_document_has_every_part_of_a_prediction() -> None:
    found = document(*CASE, "--in-flight", "2")
    printed = found["predictions"]["printed"]
    assert printed["time_s"] == pytest.approx(9.125065107, abs=1e-9)
    parts = ("send_s", "resend_s", "report_s", "waiting_s")
    assert sum(printed[part] for part in parts) == pytest.approx(printed["time_s"])
    assert printed["sustained_bps"] > printed["throughput_bps"]
    assert found["case"]["loss"] == 0.07
    assert {gap["name"] for gap in found["gaps"]} >= {"report over TCP", "chance", "packet size"}


def test_the_papers_74_mb_for_90_percent() -> None:
    case = ("--payload", "600MB", "--rate", "600Mbit", "--rtt", "110ms", "--efficiency", "90%")
    text = model(*case).stdout
    assert "Payload for 90 % of the sending rate:" in text
    assert row(text, "equation 4, no loss") == ["74.25 MB"]
    found = document(*case)["efficiency"]
    assert found["equation_4_bytes"] == pytest.approx(74_250_000)
    assert found["payload_bytes"] == {
        "printed": 74_305_730, "passes": 74_250_000, "early": 74_250_000
    }  # fmt: skip


def test_an_efficiency_that_loss_forbids_is_said_and_is_no_failure() -> None:
    text = model(*CASE, "--efficiency", "0.95").stdout
    assert text.count("no payload reaches this rate") == 3
    assert document(*CASE, "--efficiency", "0.95")["efficiency"]["payload_bytes"]["early"] is None


def test_fig_6_its_two_curves_and_where_they_cross() -> None:
    arguments = (*CASE, "--printed", "--curve", "payload", "--beside", "550Mbit@0%")
    text = model(*arguments).stdout
    assert "610 Mbit/s, 7 % loss:" in text and "550 Mbit/s, no loss:" in text
    assert row(text.rpartition("same throughput")[2], "as printed") == ["1.51 GB"]
    found = document(*arguments)
    (crossing,) = found["crossings_bytes"]["printed"]
    assert crossing // MB == 1509
    lossy, clean = found["curves"]
    at = lossy["places"].index(100e6)
    assert lossy["throughput_bps"]["printed"][at] == pytest.approx(386.32e6, abs=5e3)
    assert clean["throughput_bps"]["printed"][at] == pytest.approx(511.29e6, abs=5e3)


def test_fig_4_the_best_throughput_over_the_sending_rate() -> None:
    case = ("--payload", "600MB", "--rate", "600Mbit", "--rtt", "110ms", "--printed")
    found = document(*case, "--curve", "rate")["curves"][0]
    assert found["over"] == "rate_bps"
    at = found["places"].index(300e6)
    assert found["throughput_bps"]["printed"][at] == pytest.approx(297.927e6, abs=500)


def test_waits_windows_and_overhead_change_what_they_should() -> None:
    def time_s(*more: str) -> dict[str, float]:
        found = document(*CASE, *more)["predictions"]
        return {name: found[name]["time_s"] for name in found}

    plain = time_s()
    settled, slow = time_s("--settle", "50ms"), time_s("--initial-window", "2")
    seldom, line = time_s("--interval", "300ms"), time_s("--overhead", "82")
    assert {plain["printed"]} == {t["printed"] for t in (settled, slow, seldom, line)}
    assert settled["passes"] > plain["passes"] and settled["early"] > plain["early"]
    assert slow["passes"] > plain["passes"] and slow["early"] == plain["early"]
    assert seldom["early"] > plain["early"] and seldom["passes"] == plain["passes"]
    assert line["passes"] - plain["passes"] == pytest.approx(8.461 * 82 / 1456, rel=0.01)


def test_a_kept_run_stands_beside_the_model(store: Store) -> None:
    text = model(*CASE, "--against", make_record(1)["run_id"]).stdout
    assert max(len(line) for line in text.splitlines()) <= 80
    assert row(text, "00000001")[-4:] == ["5-6", "513 Mbit/s", "513 Mbit/s", "-0.1 %"]
    (one,) = document(*CASE, "--against", make_record(1)["run_id"])["measured"]
    assert (one["passes"], one["model"], one["rtt_s"]) == (6, "passes", 0.11)
    assert one["first_pass_loss"] == pytest.approx(0.07, abs=1e-3)


def test_a_whole_campaign_stands_beside_the_model_each_run_once(store: Store) -> None:
    found = document(*CASE, "--campaign", "last", "--against", make_record(2)["run_id"])
    assert sorted(one["run_id"] for one in found["measured"]) == [
        make_record(1)["run_id"], make_record(2)["run_id"]
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize("more", [(), ("--curve", "rate"), ("--beside", "550Mbit")])
def test_pictures_are_written(
    store: Store, tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    path = tmp_path / f"model.{kind}"
    told = model(*CASE, "--campaign", "sweep", "--plot", str(path), *more).stdout
    assert told.splitlines()[-1] == str(path)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--payload", "0"), "--payload: 0 is out of range; allowed: 1 to"),
        (("--payload", "big"), "'big' is not a size"),
        (("--rate", "0"), "--rate: 0 is out of range"),
        (("--rtt", "near"), "'near' is not a duration"),
        (("--loss", "100%"), "--loss: 1 is out of range; allowed: 0 to 0.9"),
        (("--loss", "some"), "'some' is not a probability"),
        (("--packet", "16"), "allowed: 64 to 65507"),
        (("--in-flight", "0"), "allowed: 1 to 64"),
        (("--efficiency", "100%"), "--efficiency: 1 is not between 0 and 100 %"),
        (("--curve", "loss"), "'loss' is not allowed; allowed: payload, rate"),
        (("--plot", "model.pdf"), "the file name must end in .png or .svg"),
        (("--beside", "550Mbit"), "--beside: needs --curve payload or --plot"),
        (("--curve", "rate", "--beside", "550Mbit"), "--beside: needs --curve payload"),
        (("--curve", "payload", "--beside", "fast@0%"), "--beside: 'fast' is not a rate"),
        (("--curve", "payload", "--beside", "1G@2"), "--beside: loss: 2 is out of range"),
        (("--store", "/tmp"), "--store: needs --against or --campaign"),
    ],
)
def test_bad_input_is_one_line_and_exit_1(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    assert run(["model", "rbudp", *CASE, *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("farline: ") and told.err.count("\n") == 1
    assert words in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--against", "zzz"), "no run 'zzz'"),
        (("--against", "01JD"), "matches 3 runs"),
        (("--against", "last"), "has no complete RBUDP blast at its sender"),
        (("--campaign", "night"), "no campaign 'night' in"),
    ],
)
def test_a_run_that_is_not_there_or_has_no_blast_is_named(
    store: Store, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert run(["model", "rbudp", *CASE, *arguments]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1) and words in told.err


def test_a_file_that_cannot_be_written_is_this_machines_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "not-there" / "model.png"
    assert run(["model", "rbudp", *CASE, "--plot", str(path)]) == 2
    assert f"--plot {path}: No such file or directory" in capsys.readouterr().err


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "rbudp", "--payload", "1M"]) == 1
    assert "--rate is missing" in capsys.readouterr().err
