"""Deadlines as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from farline.estimating.times import checked_future, parse_time, rfc3339, time_text

ZURICH = ZoneInfo("Europe/Zurich")
NOW = datetime(2026, 11, 25, 12, 0, tzinfo=ZURICH)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01 18:00", "2026-12-01T18:00:00+01:00"),
        ("2026-12-01T18:00:30", "2026-12-01T18:00:30+01:00"),
        ("2026-12-01T18:00Z", "2026-12-01T18:00:00+00:00"),
        ("2026-12-01T18:00-0800", "2026-12-01T18:00:00-08:00"),
        ("2026-12-01 18:00 +05:30", "2026-12-01T18:00:00+05:30"),
        ("2026-12-01 18:00 America/Los_Angeles", "2026-12-01T18:00:00-08:00"),
        ("2026-12-01 18:00 UTC", "2026-12-01T18:00:00+00:00"),
        ("2027-07-01 18:00", "2027-07-01T18:00:00+02:00"),
        ("18:00", "2026-11-25T18:00:00+01:00"),
        ("23:30 America/Los_Angeles", "2026-11-25T23:30:00-08:00"),
        ("36h", "2026-11-27T00:00:00+01:00"),
        ("+90min", "2026-11-25T13:30:00+01:00"),
        ("2d", "2026-11-27T12:00:00+01:00"),
        ("1d 12h", "2026-11-27T00:00:00+01:00"),
        ("1h30m", "2026-11-25T13:30:00+01:00"),
        ("in 36h", "2026-11-27T00:00:00+01:00"),
        ("1w", "2026-12-02T12:00:00+01:00"),
        ("2 weeks", "2026-12-09T12:00:00+01:00"),
        ("2026-12-01t18:00z", "2026-12-01T18:00:00+00:00"),
    ],
)
def test_a_time_is_read(text: str, expected: str) -> None:
    assert rfc3339(parse_time(text, NOW)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a time: write"),
        ("soon", "is not a time: write"),
        ("tomorrow 18:00", "is not a time: write"),
        ("2026-12-01", "has no time of day: write 2026-12-01 18:00"),
        ("2026-13-01 18:00", "is not a time"),
        ("2026-02-30 18:00", "is not a time"),
        ("2026-12-01 25:00", "is not a time"),
        ("2026-12-01 18:00 Europe/Zuerich", "'Europe/Zuerich' is not a time zone"),
        ("2026-12-01 18:00 ../../etc/passwd", "is not a time zone"),
        ("2026-12-01 18:00 +25:00", "is not a time zone"),
        ("36", "is not a time: write"),
        ("36 parsecs", "is not a time: write"),
        ("6pm", "is not a time: write"),
        ("1..5h", "is not a time: write"),
        ("99999999h", "is more than a year away"),
        ("99999999999999999999h", "is more than a year away"),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as error:
        parse_time(text, NOW)
    assert words in str(error.value)


def test_an_hour_that_the_clocks_skip_does_not_exist() -> None:
    with pytest.raises(ValueError, match="does not exist: clocks are set forward"):
        parse_time("2027-03-28 02:30 Europe/Zurich", NOW)


def test_an_hour_that_comes_twice_asks_for_an_offset() -> None:
    with pytest.raises(ValueError, match="occurs twice") as error:
        parse_time("2026-10-25 02:30 Europe/Zurich", NOW)
    assert "2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00" in str(error.value)


def test_a_deadline_in_the_past_is_refused_in_its_own_zone() -> None:
    at = parse_time("2026-11-25 10:00 UTC", NOW)
    with pytest.raises(ValueError, match="is in the past") as error:
        checked_future(at, NOW, "--deadline")
    assert str(error.value) == (
        "--deadline Wed 2026-11-25 10:00 UTC is in the past: it is Wed 2026-11-25 12:00 CET now"
    )


def test_a_deadline_in_a_far_year_is_a_slip() -> None:
    with pytest.raises(ValueError, match="more than a year away"):
        checked_future(NOW + timedelta(days=400), NOW, "--deadline")


def test_now_is_not_in_the_past() -> None:
    assert checked_future(parse_time("0s", NOW), NOW, "--start") == NOW


def test_a_time_of_another_zone_is_one_point_in_time() -> None:
    at = parse_time("2026-11-25 13:30 Asia/Kolkata", NOW)
    assert at.astimezone(UTC).hour == 8
    assert time_text(at) == "Wed 2026-11-25 13:30 IST"
