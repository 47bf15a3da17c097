"""What a description of an infrastructure says, and what of it is refused with its place."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.errors import SpecError
from farline.spec.infrastructure import (
    Connection,
    FileSystem,
    Infrastructure,
    Site,
    all_pairs,
    pair_name,
)
from farline.spec.infrastructure_text import read_infrastructure

EXAMPLES = Path(__file__).parents[3] / "examples" / "infrastructures"
TWO = """
name = "two"
capacity_bps = "10G"
[sites.ANL]
hosts = ["dtn*.anl.example", "192.0.2.0/24"]
host_bps = 4e10
file_systems.lustre = { read_bps = "60G", write_bps = "12G" }
latitude = 41.7
[sites.ORNL]
hosts = ["dtn1.ornl.example"]
[connections]
"ANL - ORNL" = "11.8ms"
"ORNL - ORNL" = { rtt_ms = 0, capacity_bps = "100G" }
"""


def read(text: str) -> Infrastructure:
    return read_infrastructure(text, "sites.toml")


def test_every_key_reaches_its_field() -> None:
    found = read(TWO)
    assert (found.name, found.capacity_bps, found.site_names) == ("two", 1e10, ("ANL", "ORNL"))
    anl = found.site("anl")
    assert anl == Site(
        "ANL",
        ("dtn*.anl.example", "192.0.2.0/24"),
        4e10,
        (FileSystem("lustre", 6e10, 1.2e10),),
        41.7,
    )
    assert found.connections == (
        Connection(("ANL", "ORNL"), 11.8),
        Connection(("ORNL", "ORNL"), 0.0, 1e11),
    )


def test_connections_have_no_direction_and_fall_back_to_the_infrastructures_capacity() -> None:
    found = read(TWO)
    assert found.connection("ORNL", "ANL") == found.connection("ANL", "ORNL")
    assert found.connection("ANL", "ANL") is None
    assert found.capacity("ORNL", "ANL") == 1e10
    assert found.capacity("ORNL", "ORNL") == 1e11
    assert found.rtts() == (0.0, 11.8)
    assert found.rtts(("anl",)) == (11.8,)
    with pytest.raises(SpecError, match="'BNL' is not a site of two; its sites are ANL, ORNL"):
        found.rtts(("BNL",))


def test_the_seven_sites_of_the_paper_have_28_connections() -> None:
    found = read_infrastructure((EXAMPLES / "seven-sites.toml").read_text(), "seven-sites.toml")
    assert len(found.sites) == 7
    pairs = {connection.sites for connection in found.connections}
    assert {tuple(sorted(pair)) for pair in pairs} == set(all_pairs(sorted(found.site_names)))
    assert len(pairs) == 28
    assert (found.rtts()[0], found.rtts()[-1]) == (0.0, 366.0)
    assert found.site_of("nersc-2") == "NERSC"
    assert found.site_of("dtn01.NERSC.gov") == "NERSC"


def test_the_small_example_reads_and_knows_its_hosts() -> None:
    found = read_infrastructure((EXAMPLES / "two-sites.toml").read_text(), "two-sites.toml")
    assert found.capacity("Lab", "Centre") == 1e10
    for host in ("192.0.2.77", "dtn1.LAB.example.org.", "lab"):
        assert found.site_of(host) == "Lab"
    for host in ("2001:DB8:7:1::1", "x.centre.example.org", "centre gpfs collection"):
        assert found.site_of(host) == "Centre"
    for stranger in ("192.0.3.1", "dtn2.lab.example.org", "centre.example.org", "", None):
        assert found.site_of(stranger) is None


def with_hosts(**hosts: tuple[str, ...]) -> Infrastructure:
    return Infrastructure("test", tuple(Site(name, theirs) for name, theirs in hosts.items()))


def test_the_more_particular_pattern_wins() -> None:
    found = with_hosts(
        A=("*.example", "192.0.2.0/24", "10.*"),
        B=("dtn1.x.example", "192.0.2.7", "192.0.2.128/25"),
        C=("*.x.example", "dtn?"),
    )
    wanted = {
        "dtn1.x.example": "B",
        "dtn2.x.example": "C",
        "dtn2.y.example": "A",
        "192.0.2.7": "B",
        "::ffff:192.0.2.7": "B",
        "192.0.2.200": "B",
        "192.0.2.8": "A",
        "10.1.2.3": "A",
        "dtn7": "C",
        "dtn77": None,
    }
    assert {host: found.site_of(host) for host in wanted} == wanted


def test_brackets_and_dots_in_patterns_mean_themselves() -> None:
    found = with_hosts(A=("dtn[1].example", "a+b.*"))
    assert found.site_of("dtn[1].example") == "A"
    assert found.site_of("dtn1.example") is None
    assert found.site_of("dtn1xexample") is None
    assert found.site_of("a+b.example") == "A"
    assert found.site_of("aab.example") is None


def test_wildcards_of_two_sites_that_fit_equally_are_refused_not_guessed() -> None:
    found = with_hosts(A=("dtn*.example",), B=("*dtn.example",))
    with pytest.raises(SpecError, match=r"host 'dtn-dtn\.example'.*A and B"):
        found.site_of("dtn-dtn.example")


@given(st.ip_addresses(v=4), st.integers(8, 32))
def test_an_address_is_in_a_network_as_ipaddress_says(
    address: ipaddress.IPv4Address, bits: int
) -> None:
    network = ipaddress.ip_network("10.11.12.0/24").supernet(new_prefix=min(bits, 24))
    found = with_hosts(A=(str(network),))
    assert found.site_of(str(address)) == ("A" if address in network else None)


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), st.text())
def test_capitals_never_decide_and_odd_hosts_never_raise(name: str, odd: str) -> None:
    found = with_hosts(Z=(name, "*.example"))
    assert found.site_of(name.upper()) == found.site_of(name.lower()) == "Z"
    assert found.site_of(odd) in ("Z", None)


def test_pairs_have_one_name() -> None:
    assert pair_name("ORNL", "ANL") == pair_name("ANL", "ORNL") == "ANL - ORNL"
    assert len(all_pairs("abcdefg")) == 28


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sites = 1 1", "not TOML.*line 1"),
        ("[sites.A]\n[sites.A]\n", "not TOML"),
        ("", "no sites"),
        ("site = 1", "unknown key 'site'; allowed: name, capacity_bps, sites, connections"),
        ("sites = 3", "sites: 3 is not a table"),
        ("[sites.A]\nhost = 'x'", "sites.A: unknown key 'host'; allowed: hosts"),
        ("[sites.A]\nhosts = 'x'", "sites.A.hosts: 'x' is not a list"),
        ("[sites.A]\nhosts = [1]", "sites.A.hosts"),
        ("[sites.A]\nhosts = ['']", "empty host pattern"),
        ("[sites.A]\nhosts = ['192.0.2.1/24']", "192.0.2.1/24.*host bits"),
        ("[sites.A]\n[sites.a]", "two sites are called 'A'"),
        ('[sites."A - B"]', "not a valid site name"),
        ('[sites."A,B"]', "not a valid site name"),
        ("[sites.A]\nhosts=['x']\n[sites.B]\nhosts=['X']", "'X': both A and B claim it"),
        ("[sites.A]\n[sites.B]\nhosts=['a']", "'a': both A and B claim it"),
        ("[sites.A]\nhost_bps = '10Q'", "sites.A.host_bps: '10Q' is not a rate"),
        ("[sites.A]\nhost_bps = 0", "sites.A.host_bps: 0 is not a rate above 0"),
        ("[sites.A]\nhost_bps = true", "sites.A.host_bps: True is neither"),
        ("[sites.A]\nlatitude = 91", "sites.A.latitude: 91 is not between -90 and 90"),
        ("[sites.A]\nlongitude = 'x'", "sites.A.longitude"),
        ("[sites.A]\nfile_systems.s.speed = 1", "file_systems.s: unknown key 'speed'"),
        (f"capacity_bps = {'9' * 400}\n[sites.A]", "capacity_bps: a number of 400 digits is too"),
        ("capacity_bps = nan\n[sites.A]", "capacity_bps: nan is not a rate"),
        ("name = ' '\n[sites.A]", "name: ' ' is not a string"),
        ("[sites.A]\n[connections]\n'A' = 1", "write two sites"),
        (
            "[sites.A]\n[connections]\n'A - B' = '1ms'",
            "A - B: unknown site 'B'; the sites are A",
        ),
        ("[sites.A]\n[connections]\n'A - A' = 22.6", "'A - A': 22.6 could be 22.6ms or 22.6s"),
        ("[sites.A]\n[connections]\n'A - A' = '22.6'", "22.6 could be 22.6ms or 22.6s; write"),
        ("[sites.A]\n[connections]\n'A - A' = -1", "rtt_ms: -1 is not between 0 and 100000 ms"),
        ("[sites.A]\n[connections]\n'A - A' = nan", "rtt_ms: nan is not between"),
        ("[sites.A]\n[connections]\n'A - A' = '1x'", "rtt_ms: '1x"),
        ("[sites.A]\n[connections]\n'A - A' = {rtt_s = 1}", "unknown key 'rtt_s'; allowed: rtt_ms"),
        ("[sites.A]\n[connections]\n'A - A' = {capacity_bps = 1}", "no rtt_ms"),
        (
            "[sites.A]\n[sites.B]\n[connections]\n'A - B' = '1ms'\n'B - A' = '2ms'",
            "2 connections between A - B; only one is allowed",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        read(text)
    assert caught.value.message.startswith("sites.toml: ")
    assert "\n" not in caught.value.message


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        read(text)
    except SpecError as error:
        assert error.message.startswith("sites.toml: ")


@given(
    st.decimals(0, 99_999, places=3, allow_nan=False, allow_infinity=False),
    st.sampled_from(["'{}ms'", "{{ rtt_ms = {} }}", "{{ rtt_ms = '{}ms' }}"]),
)
def test_a_round_trip_time_is_read_exactly_in_every_form(value: object, form: str) -> None:
    number = float(str(value))
    text = f"[sites.A]\n[connections]\n'A - A' = {form.format(value)}"
    assert read(text).connections[0].rtt_ms == pytest.approx(number, rel=1e-12, abs=0)
