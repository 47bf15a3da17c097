"""`farline analyze`: profiles, comparisons, sites and pages as a user gets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from farline.cli.analyze import VERBS
from farline.cli.group import cli, run
from farline.store import Store
from farline.store.entry import RunBundle
from tests.support.records import make_record, make_samples
from tests.unit.cli.analyze_sample import FILE_GBPS, MAP, RTTS_MS, SITES, write_sample
from tests.unit.cli.test_group import imported_after

KNOWN = ("--infrastructure", "sites.toml")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of its own, a terminal of 80 columns, and the sample in the folder."""
    monkeypatch.setenv("FARLINE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    write_sample(tmp_path)


@pytest.fixture
def kept() -> None:
    """Both logs are in the store."""
    analyze("ingest", "gridftp.log")
    analyze("ingest", "memory.csv", "--map", MAP)


def analyze(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["analyze", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(analyze(*arguments, "--json").stdout)
    assert found["schema"] == 1
    return found


@pytest.mark.parametrize("arguments", [["analyze", "--help"], ["analyze", "profile", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert imported_after(*arguments) == set()


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "--help"]) == 0
    listed = capsys.readouterr().out
    assert [verb for verb in VERBS if f"\n  {verb} " not in listed] == []
    for verb in VERBS:
        assert run(["analyze", verb, "--help"]) == 0
        assert "farline" in capsys.readouterr().out


def test_a_log_is_profiled_as_it_lies_and_is_not_kept() -> None:
    (profile,) = document("profile", "gridftp.log", *KNOWN)["profiles"]
    assert (profile["modality"], profile["failed"]) == ("E", 1)
    assert profile["rtt_ms"] == [10.0, 30.0, 60.0] and profile["n"] == [5.0] * 3
    assert (profile["unplaced"], profile["notes"]) == (0, [])
    means = {RTTS_MS[pair]: gbps for pair, gbps in FILE_GBPS.items()}
    rates = [1e9 * means[rtt_ms] for rtt_ms in profile["rtt_ms"]]
    assert profile["mean_bps"] == pytest.approx(rates, rel=1e-6)
    # m is the trapezoid mean over L: 2/5 · 3.5 + 3/5 · 2.5, of 10.
    found = profile["coefficients"]
    assert found["mean"]["value"] == pytest.approx(0.29, rel=1e-6)
    assert found["c_uc"]["value"] == pytest.approx(0.29 - 0.15 + 0.25, rel=1e-6)
    assert found["mean"]["low"] < 0.29 < found["mean"]["high"]
    assert not Path("store").exists()


def test_hosts_of_no_site_count_in_profiles_and_are_named() -> None:
    text = Path("memory.csv").read_text()
    stranger = text.splitlines()[1].replace("dtn.ash.example", "dtn.oak.example")
    Path("memory.csv").write_text(text + stranger + "\n")
    found = document("profile", "memory.csv", "--map", MAP, *KNOWN)
    assert sum(found["profiles"][0]["n"]) == 31
    (note,) = found["notes"]
    assert note == "Without a site in trees: an end of 1 transfer, most often dtn.oak.example (1)."
    shown = analyze("sites", "memory.csv", "--map", MAP, *KNOWN).stdout
    assert "dtn.oak.example (1)" in shown


def test_a_profile_in_words_fits_80_columns_and_says_what_counts(kept: None) -> None:
    text = analyze("profile", *KNOWN, "--running", "--at", "20ms").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "file to file (E), 15 transfers at 3 round-trip times, 1 failed" in text
    assert "memory to memory (T), 30 transfers" in text
    assert "C_UC" in text and "95 % CI" in text and "At other round-trip times" in text


def test_selections_choose_what_is_profiled(kept: None) -> None:
    def n(*arguments: str) -> float:
        return float(sum(sum(p["n"]) for p in document("profile", *KNOWN, *arguments)["profiles"]))

    assert n() == 45
    assert n("--modality", "E") == 15
    assert n("--modality", "T", "--where", "streams=4") == 15
    assert n("--at-site", "fir") == 30
    assert n("--sites", "ash,elm") == 15
    assert n("--min-rate", "5.4G") == 10 + 10 + 4  # all of two pairs, and the best of the third
    assert n("--until", "2026-09-01T06:00:00Z") == 3 + 12
    assert n("--no-logs", "--runs", "memory.csv", "--map", MAP) == 30


def test_profiles_are_told_apart_by_columns_and_sites(kept: None) -> None:
    by_streams = document("profile", *KNOWN, "--modality", "T", "--by", "streams")["profiles"]
    assert [profile["name"] for profile in by_streams] == ["1", "4"]
    slow, fast = (sum(profile["mean_bps"]) for profile in by_streams)
    assert fast == pytest.approx(1.1 * slow, rel=1e-5)
    by_site = document("profile", *KNOWN, "--modality", "E", "--by", "site")["profiles"]
    assert [profile["name"] for profile in by_site] == list(SITES)
    assert all(sum(profile["n"]) == 10 for profile in by_site)


def test_other_round_trip_times_are_on_the_lines_and_beyond_only_if_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = ("profile", "gridftp.log", *KNOWN, "--at", "20ms,120ms")
    assert run(["analyze", *case]) == 1
    assert "outside the measured range" in capsys.readouterr().err
    (profile,) = document(*case, "--extrapolate")["profiles"]
    assert profile["at"]["rate_bps"] == pytest.approx([3.5e9, 1e9], rel=1e-6)
    assert profile["at"]["extrapolated"] == [False, True]
    assert "extrapolated" in analyze(*case, "--extrapolate").stdout


def test_a_site_that_does_not_reach_so_far_is_named_and_the_others_are_told(kept: None) -> None:
    case = ("profile", *KNOWN, "--modality", "E", "--by", "site", "--at", "45ms")
    found = document(*case)
    told = {one["name"]: "at" in one for one in found["profiles"]}
    assert told == {"ash": True, "elm": False, "fir": True}
    (note,) = found["notes"]
    assert "elm: 45 ms is outside" in note and "--extrapolate" in note
    everywhere = document(*case, "--extrapolate")
    assert all("at" in one for one in everywhere["profiles"]) and everywhere["notes"] == []


def test_why_no_model_is_chosen_is_said(kept: None) -> None:
    case = ("profile", *KNOWN, "--modality", "E")
    assert "No model: choosing one needs 4 round-trip times." in analyze(*case).stdout
    assert "No model" not in analyze(*case, "--model", "none").stdout


def test_what_is_no_log_in_a_folder_is_left_out_and_said() -> None:
    Path("logs").mkdir()
    Path("gridftp.log").rename("logs/gridftp.log")
    Path("logs/README").write_text("what these are\n")
    result = analyze("profile", "logs", *KNOWN)
    assert "15 transfers" in result.stdout
    assert "left out: logs/README: unknown log format" in result.stderr


def test_round_trip_times_are_one_within_what_is_said_alone(tmp_path: Path) -> None:
    Path("near.csv").write_text("gbps,rtt\n5,100\n5,100.8\n5,200\n5,201.9\n")
    mapping = "rate_bps=gbps:Gbit/s,rtt_ms=rtt,modality='T'"

    def times(*more: str) -> int:
        (profile,) = document("profile", "near.csv", "--map", mapping, *more)["profiles"]
        return len(profile["rtt_ms"])

    assert times() == 2  # 1 % of 100 ms is more than 0.5 ms
    assert times("--merge", "0.5ms") == 4
    assert times("--merge", "1ms") == 3
    assert times("--merge", "0") == 4


def test_models_are_chosen_named_or_left_out(kept: None) -> None:
    case = ("profile", *KNOWN, "--modality", "E")
    assert document(*case)["profiles"][0]["model"] is None  # three RTTs are too few to choose
    assert document(*case, "--model", "none")["profiles"][0]["model"] is None


def test_a_group_too_small_for_a_model_is_profiled_and_said(tmp_path: Path) -> None:
    rows = ["when,src,dst,gbps,rtt,streams"]
    rows += [f"2026-09-03T00:00:00Z,hub,rim{n},{10 / n},{20 * n},1" for n in range(1, 6)]
    (tmp_path / "hub.csv").write_text("\n".join(rows) + "\n")
    found = document("profile", "hub.csv", "--map", MAP, "--by", "site", "--model", "power")
    models = {one["name"]: one["model"] for one in found["profiles"]}
    assert models["hub"] is not None
    assert models["rim1"] is None
    assert any("No model of site: rim1: " in note for note in found["notes"])


def test_parquet_is_read_where_it_lies_with_its_own_names(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"mbps": [900.0, 1100.0, 400.0], "rtt": [0.01, 0.01, 0.05]})
    pq.write_table(table, tmp_path / "mine.parquet")
    mapping = "rate_bps=mbps:Mbit/s,rtt_ms=rtt:s"
    case = ("profile", "mine.parquet", "--map", mapping, "--set", "modality=T")
    (profile,) = document(*case)["profiles"]
    assert profile["rtt_ms"] == [10.0, 50.0]
    assert profile["mean_bps"] == pytest.approx([1e9, 4e8])
    assert profile["coefficients"] is None
    assert "No coefficients: they need the capacity" in analyze(*case).stdout


def test_runs_of_farline_itself_are_profiled_too() -> None:
    Store().append(RunBundle(make_record(1), make_samples(2)))
    found = document("profile")["profiles"]
    assert [(profile["modality"], sum(profile["n"])) for profile in found] == [("T", 1)]


def test_a_comparison_is_over_the_common_round_trip_times(kept: None) -> None:
    found = document("compare", *KNOWN, "--a", "modality=E", "--b", "modality=T,streams=1")
    assert found["rtt_ms"] == [10.0, 30.0, 60.0]
    a, b = found["a"]["rate_bps"], found["b"]["rate_bps"]
    pairs = list(zip(a, b, strict=True))
    assert found["difference_bps"] == pytest.approx([x - y for x, y in pairs])
    assert found["ratio"] == pytest.approx([x / y for x, y in pairs])
    assert found["a"]["coefficients"]["left_ms"] == found["b"]["coefficients"]["left_ms"]
    same = document("compare", *KNOWN, "--a", "modality=E", "--b", "modality=E")
    assert same["difference_bps"] == pytest.approx([0.0] * 3)
    text = analyze("compare", *KNOWN, "--a", "modality=E", "--b", "modality=T").stdout
    assert max(map(len, text.splitlines())) <= 80 and "A / B" in text
    assert "+- of coefficients is half of their 95 % interval" in text
    assert found["a"]["notes"] == [] and found["a"]["unplaced"] == 0


def test_the_transfer_method_is_what_files_reach_of_what_they_could(kept: None) -> None:
    case = ("compare", *KNOWN, "--b", "modality=T,streams=1", "--method")
    found = document(*case, "strict")
    assert found["value"] == pytest.approx([4 / 8, 3 / 7, 2 / 5], rel=1e-5)
    assert found["limits"]["origin"] == "none known"
    capped = document(*case, "strict", "--file-limit", "4G")
    ends = (capped["value"][0], capped["value"][-1])
    assert ends == pytest.approx((1.0, 0.5), rel=1e-5) and capped["cap_bps"] == 4e9
    printed = document(*case, "paper", "--file-limit", "4G")
    assert printed["value"][0] == pytest.approx(4 / 8 * 10 / 4, rel=1e-5)
    assert "equation 2.2" in analyze(*case, "paper", "--file-limit", "4G").stdout


def test_selections_of_a_method_keep_their_modality_unless_they_state_one(kept: None) -> None:
    found = document("compare", *KNOWN, "--method", "strict", "--a", "site=elm", "--b", "streams=1")
    assert (found["a"], found["b"]) == ("modality=E,site=elm", "modality=T,streams=1")
    assert found["value"] == pytest.approx([4 / 8, 3 / 7], rel=1e-5)
    same = document("compare", *KNOWN, "--method", "strict", "--a", "streams=1,modality=T")
    assert same["a"] == "streams=1,modality=T"
    assert found["notes"] == {"a": [], "b": []}


def test_limits_are_those_of_the_sites_compared_and_each_kind_has_its_origin(kept: None) -> None:
    text = Path("sites.toml").read_text()
    limits = 'host_bps = "3G"\nfile_systems = {lustre = {read_bps = "6G"}}\n'
    Path("sites.toml").write_text(text.replace("[sites.elm]", f"{limits}[sites.elm]"))
    case = ("compare", *KNOWN, "--method", "strict", "--b", "modality=T,streams=1")
    others = document(*case, "--a", "modality=E,sites=elm,fir")
    assert others["limits"]["origin"] == "none known" and others["cap_bps"] is None
    own = document(*case, "--a", "modality=E,sites=ash,elm")
    assert own["cap_bps"] == 3e9
    stated = document(*case, "--host-limit", "9G")
    assert stated["limits"] == {
        "host_bps": [9e9],
        "file_bps": [6e9],
        "origin": "hosts as stated, file systems of trees",
    }


def test_limits_come_from_the_description_of_the_sites(kept: None) -> None:
    text = Path("sites.toml").read_text()
    Path("sites.toml").write_text(text.replace("[sites.elm]", 'host_bps = "3G"\n[sites.elm]'))
    found = document("compare", *KNOWN, "--method", "strict")
    assert found["cap_bps"] == 3e9 and found["limits"]["origin"] == "of trees"


def test_sites_stand_beside_each_other(kept: None) -> None:
    found = document("sites", *KNOWN)
    row = next(row for row in found["pairs"] if (row["from_site"], row["modality"]) == ("elm", "E"))
    assert (row["to_site"], row["rtt_ms"], row["n"]) == ("fir", 30.0, 5)
    assert row["mean_bps"] == pytest.approx(3e9, rel=1e-6)
    names = [(one["name"], one["is_site"]) for one in found["sites"]["E"]]
    assert names == [("all sites", False), *[(site, True) for site in SITES]]
    assert {one["site"] for one in found["ranks"]} <= set(SITES)
    text = analyze("sites", *KNOWN, "--modality", "E").stdout
    assert max(map(len, text.splitlines())) <= 80
    scores = [line.split()[0] for line in text.splitlines() if " to " in line and "." in line]
    assert sorted(scores[:3]) == list(SITES) and scores[3] == "all"


def test_pairs_are_shown_where_there_is_no_profile_of_them() -> None:
    Path("bare.csv").write_text("gbps,src,dst\n5,a.example,b.example\n")
    mapping = "rate_bps=gbps:Gbit/s,from_host=src,to_host=dst,modality='T'"
    text = analyze("sites", "bare.csv", "--map", mapping).stdout
    assert "Memory to memory (T), rates in Gbit/s:" in text
    assert "a.example  b.example" in text and "No profile of memory to memory" in text


def test_of_too_many_sites_those_measured_most_have_profiles(
    monkeypatch: pytest.MonkeyPatch, kept: None
) -> None:
    monkeypatch.setattr("farline.analysis.page.SITES_MAX", 2)
    with Path("more.csv").open("w") as file:
        file.write("gbps,rtt,src,dst\n")
        file.write("3,30,dtn.elm.example,dtn.fir.example\n" * 3)
        file.write("4,10,dtn.ash.example,dtn.fir.example\n")
    mapping = "rate_bps=gbps:Gbit/s,rtt_ms=rtt,from_host=src,to_host=dst,modality='T'"
    found = document("sites", "more.csv", "--map", mapping, *KNOWN)
    assert [one["name"] for one in found["sites"]["T"]] == ["all sites", "elm", "fir"]
    (line,) = [line for line in found["notes"] if "further" in line]
    assert line.startswith("No profile of 1 further site (memory to memory): only the 2 with most")


def test_transfers_without_hosts_are_counted_as_of_no_site() -> None:
    Path("bare.csv").write_text("gbps,rtt\n5,10\n4,30\n")
    case = ("explain", "bare.csv", "--map", "rate_bps=gbps:Gbit/s,rtt_ms=rtt,modality='T'")
    assert "Without a site because a host name is missing: 2 transfers." in document(*case)["notes"]


def test_without_a_description_each_host_is_a_site() -> None:
    case = ("sites", "memory.csv", "--map", MAP)
    assert {row["from_site"] for row in document(*case)["pairs"]} == {
        "dtn.ash.example", "dtn.elm.example"
    }  # fmt: skip
    assert "each host counts as its own site" in analyze(*case).stdout


def test_an_explanation_says_what_the_measurements_support(kept: None) -> None:
    found = document("explain", *KNOWN)
    assert found["explanation"]["lead"] and len(found["notes"]) >= 2
    assert found["notes"][0].startswith("46 transfers, of which 1 failed")
    text = analyze("explain", *KNOWN, "--modality", "E").stdout
    assert "16 transfers, of which 1 failed" in text
    loose = [line for line in text.splitlines() if not line.startswith("   farline ")]
    assert max(map(len, loose)) <= 80


def test_tables_of_an_engine_are_read_by_name(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "site.duckdb")) as engine:
        engine.execute("create table logs as select 5e9 + t.i * 1e9 as rate, 10.0 + 20 * t.i as rtt"
                       " from range(3) t(i)")  # fmt: skip
    case = (
        "--engine",
        f"duckdb://{tmp_path}/site.duckdb",
        "--table",
        "logs",
        "--set",
        "modality=T",
    )
    (profile,) = document("profile", *case, "--map", "rate_bps=rate,rtt_ms=rtt")["profiles"]
    assert profile["rtt_ms"] == [10.0, 30.0, 50.0]
    assert profile["mean_bps"] == pytest.approx([5e9, 6e9, 7e9])


def test_the_report_is_a_page_and_figures() -> None:
    made = analyze("report", "gridftp.log", *KNOWN, "-o", "page", "--png").stdout.splitlines()
    page = Path("page/analysis.html")
    assert made == [str(page)] and page.stat().st_size > 50_000
    text = page.read_text()
    assert "trees" in text and "gridftp.log" in text
    kinds = {path.suffix for path in Path("page/figures").iterdir()}
    assert kinds == {".png", ".txt"}


def test_a_report_leaves_out_what_different_capacities_forbid(tmp_path: Path) -> None:
    # Files went over slower lines alone.
    sites = (tmp_path / "sites.toml").read_text()
    for line in ('"ash - elm" = "10ms"', '"ash - fir" = "60ms"'):
        name, rtt = line.split(" = ")
        sites = sites.replace(line, f'{name} = {{ rtt_ms = {rtt}, capacity_bps = "10G" }}')
    sites = sites.replace('capacity_bps = "10G"\n\n', 'capacity_bps = "100G"\n\n')
    (tmp_path / "sites.toml").write_text(sites)
    log = (tmp_path / "gridftp.log").read_text().splitlines()
    slow = [line for line in log if "HOST=dtn.ash" in line]
    (tmp_path / "gridftp.log").write_text("\n".join(slow) + "\n")
    analyze("ingest", "gridftp.log")
    analyze("ingest", "memory.csv", "--map", MAP)
    analyze("report", *KNOWN, "-o", "page")
    text = Path("page/analysis.html").read_text()
    assert "No difference of" in text and "--capacity" in text
    analyze("report", *KNOWN, "-o", "same", "--capacity", "100G")
    assert "No difference of" not in Path("same/analysis.html").read_text()


def test_rates_that_fell_with_their_streams_are_no_drift(tmp_path: Path) -> None:
    def lines(late: int) -> str:
        rows = ["when,src,dst,gbps,rtt,streams"]
        for (a, b), rtt_ms in RTTS_MS.items():
            for day in range(6):
                for factor in (0.95, 1.0, 1.05):
                    gbps, streams = (8, 8) if day < 3 else (2, late)
                    rows.append(
                        f"2026-09-0{day + 1}T00:00:00Z,dtn.{a}.example,dtn.{b}.example,"
                        f"{gbps * factor},{rtt_ms},{streams}"
                    )
        return "\n".join(rows) + "\n"

    causes = {}
    for late in (2, 8):
        (tmp_path / "days.csv").write_text(lines(late))
        case = ("explain", "days.csv", "--map", MAP, *KNOWN, "--period", "1d")
        causes[late] = document(*case)["explanation"]["causes"]
    assert not any(cause["kind"] == "drift" for cause in causes[2])
    (fall,) = [cause for cause in causes[8] if cause["kind"] == "drift"]
    assert "from 2026-09-01 to 2026-09-07 (UTC)" in fall["line"]


def test_figures_are_drawn_where_they_are_told(kept: None) -> None:
    analyze("profile", *KNOWN, "--figure", "profile.svg")
    case = ("compare", *KNOWN, "--a", "modality=E", "--b", "modality=T")
    assert "both.png" in analyze(*case, "--figure", "both.png").stdout
    assert Path("profile.svg").read_text().startswith("<?xml")
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")
    analyze("profile", "gridftp.log", *KNOWN, "--figure", "run-1.5.png")
    assert Path("run-1.5.png").exists() and not Path("run-1.png").exists()


def test_a_description_of_sites_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    text = analyze("check", "sites.toml").stdout
    assert "trees: 3 sites, L = 10.0 Gbit/s" in text and "3 of 6 connections" in text
    assert document("check", "sites.toml")["connections"][0]["rtt_ms"] == 10.0
    Path("sites.toml").write_text('[connections]\n"ash - oak" = 5\n')
    assert run(["analyze", "check", "sites.toml"]) == 1
    told = capsys.readouterr()
    assert "sites.toml" in told.err and told.err.count("\n") == 1


def test_records_that_cannot_be_read_are_said_and_do_not_spoil_a_profile() -> None:
    with Path("gridftp.log").open("a") as file:
        file.write("DATE=2026 HOST=cut\n")
    result = analyze("profile", "gridftp.log", *KNOWN)
    assert "gridftp.log: 1 record could not be read; line 17" in result.stderr
    assert "15 transfers" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["profile"], "no store here"),
        (["profile", "gridftp.log", "--store", "x"], "--runs or --logs"),
        (["profile", "--no-runs", "--no-logs"], "nothing to read"),
        (["profile", "gridftp.log"], "measurements is complete and has a round-trip time; map its"),
        (["profile", "gridftp.log", "--sites", "ash"], "--infrastructure"),
        (["profile", "gridftp.log", *KNOWN, "--at-site", "oak"], "not a site of trees"),
        (["profile", "gridftp.log", *KNOWN, "--modality", "T"], "no transfer matches"),
        (["profile", "gridftp.log", *KNOWN, "--model", "magic"], "allowed: constant"),
        (["profile", "gridftp.log", *KNOWN, "--figure", "a.pdf"], ".png or .svg"),
        (["profile", "gridftp.log", *KNOWN, "--extrapolate"], "needs --at"),
        (["profile", "gridftp.log", "--where", "streams=1", "--where", "streams=4"], "given twice"),
        (["profile", "gridftp.log", *KNOWN, "--engine", "abacus://"], "abacus"),
        (["profile", "gridftp.log", "--infrastructure", "none.toml"], "none.toml"),
        (["compare", "gridftp.log", *KNOWN], "--a and --b"),
        (["compare", "gridftp.log", *KNOWN, "--a", "modality=E", "--b", "modality=T"], "--b"),
        (["compare", "gridftp.log", *KNOWN, "--host-limit", "1G"], "needs --method"),
        (["sites", "gridftp.log", *KNOWN, "--modality", "T"], "no transfer matches"),
        (["report", "gridftp.log", *KNOWN, "-o", "sites.toml"], "sites.toml"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", *arguments]) == 1
    told = capsys.readouterr()
    assert says in told.err and told.err.count("\n") == 1 and told.out == ""
