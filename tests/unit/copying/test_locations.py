"""Where a copy comes from and goes to, as people write it."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farline.copying.connector import from_home
from farline.copying.locations import (
    Host,
    Location,
    SshHost,
    StandingServer,
    ThisHost,
    read_endpoints,
    read_location,
)
from farline.errors import UsageError
from farline.spec.path_text import from_path_text

TICKET = "farline://far.example:5470/v1.abc.def?key=sha256-xyz"


@pytest.mark.parametrize(
    ("text", "host", "path"),
    [
        ("data/", ThisHost(), "data/"),
        ("./a:b", ThisHost(), "./a:b"),
        ("/srv/a:b/c", ThisHost(), "/srv/a:b/c"),
        ("~/x", ThisHost(), "~/x"),
        ("dtn:/archive/", SshHost("dtn"), "/archive/"),
        ("dtn:", SshHost("dtn"), "."),
        ("user@dtn.example:a b", SshHost("dtn.example", "user"), "a b"),
        ("me@corp@dtn:x:y", SshHost("dtn", "me@corp"), "x:y"),
        ("[2001:db8::1]:x", SshHost("2001:db8::1"), "x"),
        ("u@[fe80::1%eth0]:/x", SshHost("fe80::1%eth0", "u"), "/x"),
        (f"{TICKET}#data/a#b", StandingServer(TICKET), "data/a#b"),
        ("farline://far.example#x", StandingServer("farline://far.example"), "x"),
    ],
)
def test_places(text: str, host: Host, path: str) -> None:
    assert read_location(text) == Location(host, path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (":x", "is not a host"),
        ("-oProxyCommand=x:y", "is not a host"),
        ("a b:x", "is not a host"),
        ("dtn::module/x", "the rsync daemon"),
        ("rsync://dtn/module/x", "rsync:// URLs are not supported; write [user@]host:path"),
        ("[zz]:x", "is not a host"),
        ("far;rm:x", "./far;rm:x"),
        (TICKET, "the path is missing"),
        (f"{TICKET}#", "the path is missing"),
        ("a\0b", "zero byte"),
    ],
)
def test_what_is_no_place_is_one_line_that_says_why(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_location(text)
    assert said in refused.value.message
    assert "v1.abc" not in refused.value.message


def test_a_ticket_is_not_shown() -> None:
    place = read_location(f"{TICKET}#data/")
    assert str(place) == "farline://far.example:5470#data/"


@given(st.binary(min_size=1, max_size=40))
def test_a_name_with_a_slash_in_front_is_itself_whatever_its_bytes(name: bytes) -> None:
    path = b"./" + name.replace(b"\0", b"0")
    place = read_location(os.fsdecode(path))
    assert place.host == ThisHost()
    assert from_path_text(place.path) == path


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_a_usage_error(text: str) -> None:
    try:
        place = read_location(text)
    except (UsageError, UnicodeEncodeError):
        return
    assert place.path
    if isinstance(place.host, SshHost):
        assert not place.host.target.startswith("-")


def test_ends_have_their_sources_in_one_place() -> None:
    ends = read_endpoints(["a", "b", "dtn:c"])
    assert (ends.source_host, ends.sources) == (ThisHost(), ("a", "b"))
    assert (ends.destination_host, ends.destination) == (SshHost("dtn"), "c")
    with pytest.raises(UsageError, match="sources on this host and on dtn"):
        read_endpoints(["a", "dtn:b", "c"])
    with pytest.raises(UsageError, match="one source and a destination"):
        read_endpoints(["a"])


def test_a_source_that_is_named_twice_is_taken_once() -> None:
    assert read_endpoints(["b", "a", "./a", "b", "d"]).sources == ("b", "a", "./a")
    assert read_endpoints(["dtn:a", "dtn:a", "d/"]).sources == ("a",)


def test_sources_that_turn_out_to_be_one_still_go_into_a_folder() -> None:
    assert read_endpoints(["a", "a", "d"]).destination == "d/"
    assert read_endpoints(["a", "a", "d/"]).destination == "d/"
    assert read_endpoints(["a", "d"]).destination == "d"
    assert read_endpoints(["a", "b", "a", "d"]).destination == "d"


@pytest.mark.parametrize(
    ("path", "full"),
    [
        ("/x/", "/x/"),
        ("x", "/home/u/x"),
        ("x/", "/home/u/x/"),
        (".", "/home/u/"),
        ("~/x", "/home/u/x"),
        ("~", "/home/u/"),
    ],
)
def test_relative_paths_begin_at_the_home_folder(path: str, full: str) -> None:
    assert from_home(path, "/home/u") == full


def test_another_home_folder_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="in full"):
        from_home("~other/x", "/home/u")
