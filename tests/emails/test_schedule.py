"""`scheduled_at` and `expires_in` (emails.md 1.5 and 5.3; contract decision 36; API-09)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.emails.requests.schedule import (
    BAD_EXPIRY,
    NOT_UNDERSTOOD,
    TOO_FAR,
    TOO_OLD,
    ScheduleError,
    parse_expiry,
    parse_schedule,
)

NOW = datetime(2026, 10, 7, 14, 30, 15, 250_000, tzinfo=UTC)
"""A Wednesday."""

PIECES = [
    "in",
    "at",
    "on",
    "next",
    "this",
    "a",
    "1",
    "12",
    "2026",
    "may",
    "friday",
    "9am",
    "15:00",
    "hour",
    "month",
    "UTC",
    "ET",
    "from",
    "now",
    "and",
    ",",
    "-",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def reason(text: str, now: datetime = NOW) -> str:
    with pytest.raises(ScheduleError) as failure:
        parse_schedule(text, now)
    return failure.value.reason


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-10-08T09:00:00Z", "2026-10-08T09:00"),
        ("2026-10-08 09:00", "2026-10-08T09:00"),
        ("2026-10-08T09:00:00.123456789+02:00", "2026-10-08T07:00:00.123456"),
        ("  2026-10-08t09:00z  ", "2026-10-08T09:00"),
        ("2026-10-08", "2026-10-08T00:00"),
    ],
)
def test_iso_8601(text: str, instant: str) -> None:
    assert parse_schedule(text, NOW) == at(instant)


def test_now_is_now() -> None:
    assert parse_schedule("now", NOW) == parse_schedule(" NOW ", NOW) == NOW


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("in 1 hour", timedelta(hours=1)),
        ("in 1 hours", timedelta(hours=1)),
        ("IN  45   Minutes", timedelta(minutes=45)),
        ("in 90 s", timedelta(seconds=90)),
        ("in 90s", timedelta(seconds=90)),
        ("in 5 sec", timedelta(seconds=5)),
        ("in 5 seconds", timedelta(seconds=5)),
        ("in 5 min", timedelta(minutes=5)),
        ("in 5 mins", timedelta(minutes=5)),
        ("in 5m", timedelta(minutes=5)),
        ("in 2 hr", timedelta(hours=2)),
        ("in 2 hrs", timedelta(hours=2)),
        ("in 2h", timedelta(hours=2)),
        ("in 3 d", timedelta(days=3)),
        ("in 3 days", timedelta(days=3)),
        ("in 2 w", timedelta(weeks=2)),
        ("in two weeks", timedelta(weeks=2)),
        ("in 9999 seconds", timedelta(seconds=9999)),
        ("in a minute", timedelta(minutes=1)),
        ("in an hour", timedelta(hours=1)),
        ("in one day", timedelta(days=1)),
        ("in twelve hours", timedelta(hours=12)),
        ("in half an hour", timedelta(minutes=30)),
        ("in 1 hour 30 minutes", timedelta(hours=1, minutes=30)),
        ("in 1 hour and 30 minutes", timedelta(hours=1, minutes=30)),
        ("in 1 hour, 30 minutes", timedelta(hours=1, minutes=30)),
        ("in 1h 30m", timedelta(hours=1, minutes=30)),
        ("in 1h30m", timedelta(hours=1, minutes=30)),
        ("in an hour 15 min 10 sec", timedelta(hours=1, minutes=15, seconds=10)),
        ("2 days from now", timedelta(days=2)),
        ("an hour from now", timedelta(hours=1)),
        ("1h 30m from now", timedelta(hours=1, minutes=30)),
        ("half an hour from now", timedelta(minutes=30)),
    ],
)
def test_relative(text: str, span: timedelta) -> None:
    assert parse_schedule(text, NOW) == NOW + span


def test_a_month_keeps_its_day_or_takes_the_last() -> None:
    assert parse_schedule("in 1 month", at("2026-11-05T08:00")) == at("2026-12-05T08:00")
    assert parse_schedule("in a month", at("2027-01-31T08:00:00.5")) == at("2027-02-28T08:00:00.5")
    assert parse_schedule("next month", at("2027-01-30T08:00")) == at("2027-02-28T08:00")
    assert reason("in 1 month", at("2026-10-05T08:00")) == TOO_FAR


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("today at 3pm", "2026-10-07T15:00"),
        ("today", "2026-10-07T14:30:15.25"),
        ("tonight", "2026-10-07T20:00"),
        ("tonight at 9:30 pm", "2026-10-07T21:30"),
        ("tomorrow", "2026-10-08T14:30:15.25"),
        ("Tomorrow  At  9AM", "2026-10-08T09:00"),
        ("tomorrow 9am", "2026-10-08T09:00"),
        ("9am tomorrow", "2026-10-08T09:00"),
        ("at 9am on friday", "2026-10-09T09:00"),
        ("tomorrow at noon", "2026-10-08T12:00"),
        ("tomorrow at midnight", "2026-10-08T00:00"),
        ("tomorrow at 15:00", "2026-10-08T15:00"),
        ("tomorrow at 15:00:30", "2026-10-08T15:00:30"),
        ("tomorrow at 9:05", "2026-10-08T09:05"),
        ("tomorrow at 12am", "2026-10-08T00:00"),
        ("tomorrow at 12 pm", "2026-10-08T12:00"),
        ("friday", "2026-10-09T14:30:15.25"),
        ("fri at 9am", "2026-10-09T09:00"),
        ("on monday at 9:30 am", "2026-10-12T09:30"),
        ("this friday at 9am", "2026-10-09T09:00"),
        ("wednesday at 3pm", "2026-10-07T15:00"),
        ("wednesday at 2pm", "2026-10-14T14:00"),
        ("wednesday", "2026-10-14T14:30:15.25"),
        ("next wednesday at 3pm", "2026-10-14T15:00"),
        ("next friday at 3pm", "2026-10-16T15:00"),
        ("next monday", "2026-10-12T14:30:15.25"),
        ("next sunday at 9am", "2026-10-18T09:00"),
        ("sunday at 9am", "2026-10-11T09:00"),
        ("next week", "2026-10-14T14:30:15.25"),
        ("next week at 9am", "2026-10-14T09:00"),
        ("October 12", "2026-10-12T14:30:15.25"),
        ("Oct 12th at 9am", "2026-10-12T09:00"),
        ("October 12, 2026 at 9:30 am", "2026-10-12T09:30"),
        ("12 October", "2026-10-12T14:30:15.25"),
        ("12 oct 2026 at noon", "2026-10-12T12:00"),
        ("1 november at 8:00", "2026-11-01T08:00"),
        ("october 7", "2026-10-07T14:30:15.25"),
        ("october 7 at 3pm", "2026-10-07T15:00"),
        ("2026-10-12 at 9am", "2026-10-12T09:00"),
        ("2026-10-12 9:30 pm", "2026-10-12T21:30"),
        ("noon", "2026-10-08T12:00"),
        ("at noon", "2026-10-08T12:00"),
        ("midnight", "2026-10-08T00:00"),
        ("3pm", "2026-10-07T15:00"),
        ("at 2:30pm", "2026-10-08T14:30"),
        ("15:00", "2026-10-07T15:00"),
        ("14:30", "2026-10-08T14:30"),
    ],
)
def test_days_and_times(text: str, instant: str) -> None:
    assert parse_schedule(text, NOW) == at(instant)


def test_a_month_that_is_over_means_the_next_year() -> None:
    assert parse_schedule("January 5 at 9am", at("2026-12-20T08:00")) == at("2027-01-05T09:00")
    assert reason("October 6", NOW) == TOO_FAR


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("tomorrow at 9am UTC", "2026-10-08T09:00"),
        ("tomorrow at 9am gmt", "2026-10-08T09:00"),
        ("tomorrow at 9am ET", "2026-10-08T13:00"),
        ("tomorrow at 9am CT", "2026-10-08T14:00"),
        ("tomorrow at 9am MT", "2026-10-08T15:00"),
        ("tomorrow at 9am PT", "2026-10-08T16:00"),
        ("tomorrow at 9am EST", "2026-10-08T14:00"),
        ("tomorrow at 9am EDT", "2026-10-08T13:00"),
        ("tomorrow at 9am CST", "2026-10-08T15:00"),
        ("tomorrow at 9am CDT", "2026-10-08T14:00"),
        ("tomorrow at 9am MST", "2026-10-08T16:00"),
        ("tomorrow at 9am MDT", "2026-10-08T15:00"),
        ("tomorrow at 9am PST", "2026-10-08T17:00"),
        ("tomorrow at 9am PDT", "2026-10-08T16:00"),
        ("tomorrow at 9am CET", "2026-10-08T08:00"),
        ("tomorrow at 9am CEST", "2026-10-08T07:00"),
        ("tomorrow at 9am BST", "2026-10-08T08:00"),
        ("tomorrow at 9am Europe/Berlin", "2026-10-08T07:00"),
        ("tomorrow at 9am europe/berlin", "2026-10-08T07:00"),
        ("tomorrow at 9am AMERICA/ARGENTINA/BUENOS_AIRES", "2026-10-08T12:00"),
        ("tomorrow at 9am +05:30", "2026-10-08T03:30"),
        ("tomorrow at 9am -03:00", "2026-10-08T12:00"),
        ("tomorrow at 09:00+02:00", "2026-10-08T07:00"),
        ("tomorrow at 9am+02:00", "2026-10-08T07:00"),
        ("tomorrow at 09:00z", "2026-10-08T09:00"),
        ("3pm Asia/Tokyo", "2026-10-08T06:00"),
        ("23:00 Asia/Tokyo", "2026-10-08T14:00"),
        ("today at 23:45 Asia/Tokyo", "2026-10-07T14:45"),
        ("tomorrow at 1am Pacific/Auckland", "2026-10-08T12:00"),
        ("tomorrow CET", "2026-10-08T14:30:15.25"),
        ("friday Asia/Tokyo", "2026-10-09T14:30:15.25"),
        ("2026-10-12 CEST", "2026-10-11T22:00"),
        ("2026-10-12 15:00 CEST", "2026-10-12T13:00"),
        ("2026-10-12 +02:00", "2026-10-11T22:00"),
    ],
)
def test_zones(text: str, instant: str) -> None:
    """Short names are fixed offsets; ET, CT, MT, PT and IANA names follow their clocks."""
    assert parse_schedule(text, NOW) == at(instant)


@pytest.mark.parametrize(
    ("text", "now", "instant"),
    [
        # New York, 14 March 2027: 02:00 to 03:00 does not exist.
        ("tomorrow at 2:30am ET", "2027-03-13T12:00", "2027-03-14T07:30"),
        ("tomorrow at 1:59am ET", "2027-03-13T12:00", "2027-03-14T06:59"),
        ("tomorrow at 3am ET", "2027-03-13T12:00", "2027-03-14T07:00"),
        # New York, 1 November 2026: 01:00 to 02:00 happens twice.
        ("november 1 at 1:30am ET", "2026-10-30T12:00", "2026-11-01T05:30"),
        ("november 1 at 2am ET", "2026-10-30T12:00", "2026-11-01T07:00"),
        ("1:30am ET", "2026-11-01T05:00", "2026-11-01T05:30"),
        ("1:30am ET", "2026-11-01T05:45", "2026-11-02T06:30"),
        # Berlin, 25 October 2026 and 28 March 2027.
        ("sunday at 2:30 Europe/Berlin", "2026-10-23T12:00", "2026-10-25T00:30"),
        ("tomorrow at 2:30 Europe/Berlin", "2027-03-27T12:00", "2027-03-28T01:30"),
        ("tomorrow Europe/Berlin", "2027-03-27T01:30", "2027-03-28T01:30"),
        ("tomorrow Europe/Berlin", "2026-10-24T12:00", "2026-10-25T13:00"),
        # A day of the clock, not of the wall.
        ("in 1 day", "2026-10-24T12:00", "2026-10-25T12:00"),
        # Lord Howe Island changes by half an hour.
        ("sunday at 2:15 Australia/Lord_Howe", "2026-10-02T12:00", "2026-10-03T15:45"),
    ],
)
def test_days_on_which_clocks_change(text: str, now: str, instant: str) -> None:
    """A gap is shifted forward; of two occurrences the first counts."""
    assert parse_schedule(text, at(now)) == at(instant)


def test_thirty_days_ahead_and_not_a_second_more() -> None:
    limit = NOW.replace(microsecond=0) + timedelta(days=30)
    assert parse_schedule(limit.isoformat(), NOW) == limit
    assert parse_schedule("in 30 days", NOW) == NOW + timedelta(days=30)
    assert reason((limit + timedelta(seconds=1)).isoformat()) == TOO_FAR
    assert reason("in 30 days 1 second") == TOO_FAR


def test_up_to_a_minute_back_means_now() -> None:
    for seconds in (0.001, 1, 59, 60):
        assert parse_schedule((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == NOW
    assert reason((NOW - timedelta(seconds=61)).isoformat()) == TOO_OLD
    assert reason("today at 9am") == TOO_OLD
    assert reason("2026-10-07") == TOO_OLD
    assert reason("tonight", at("2026-10-07T21:00")) == TOO_OLD


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31T23:59:59Z",
        "in 9999 weeks",
        "in 9999 months",
        "december 31 9999 at 23:00 -05:00",
        "next month",
    ],
)
def test_far_ahead(text: str) -> None:
    assert reason(text) == TOO_FAR


def test_months_that_leave_the_calendar_are_too_far() -> None:
    text = "in" + " 9999 month" * 8
    assert reason(text, at("9990-01-01T00:00")) == TOO_FAR


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "in",
        "in hour",
        "in 0 minutes",
        "in 10000 minutes",
        "in -5 minutes",
        "in 1.5 hours",
        "in thirteen hours",
        "in 5",
        "in 5 fortnights",
        "in 1 hour and",
        "in and 1 hour",
        "in anhour",
        "in 1 hour UTC",
        "1 hour",
        "from now",
        "1 hour ago",
        "tomorrow at",
        "tomorrow at 9",
        "tomorrow at 13pm",
        "tomorrow at 0am",
        "tomorrow at 24:00",
        "tomorrow at 9:60",
        "tomorrow at 9:5",
        "tomorrow at 9am 10am",
        "tomorrow friday",
        "tomorrow at 9am Mars/Olympus",
        "tomorrow at 9am ../../etc/passwd",
        "tomorrow at 9am localtime",
        "tomorrow at 9am +24:00",
        "tomorrow at 9am +2",
        "UTC",
        "on",
        "at",
        "next",
        "next tomorrow",
        "last friday",
        "february 30",
        "october 0",
        "october 12 26",
        "october 12 1969",
        "13 13 2026",
        "2026-02-30",
        "2026-10-12T",
        "10/12/2026",
        "1760000000",
        "٣pm",
        "tomorrow\u00a0at 9am",
        "tomorrow at 9am; DROP TABLE emails",
    ],
)
def test_anything_else_is_not_understood(text: str) -> None:
    assert reason(text) == NOT_UNDERSTOOD


@pytest.mark.parametrize(
    "text",
    [
        "in " + "1 hour " * 100_000,
        "a " * 48,
        "1" * 100,
        "in " + "9" * 97,
        " " * 10_000_000,
        "at " * 33,
        "- : + " * 16,
    ],
)
def test_long_and_tangled_texts_cost_little(text: str) -> None:
    """API-09."""
    begun = time.thread_time()
    assert reason(text) == NOT_UNDERSTOOD
    assert time.thread_time() - begun < 0.2


@given(st.lists(st.sampled_from(PIECES), max_size=9))
def test_any_words_give_a_time_or_a_reason(words: list[str]) -> None:
    """Never another exception, never a time outside the limits."""
    try:
        instant = parse_schedule(" ".join(words), NOW)
    except ScheduleError:
        return
    assert NOW <= instant <= NOW + timedelta(days=30)


def test_the_answer_is_in_utc_whatever_the_zone_of_now() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    for text in ("in 1 hour", "tomorrow at 9am", "2026-10-08T09:00:00+02:00", "now"):
        assert parse_schedule(text, there) == parse_schedule(text, NOW)
        assert parse_schedule(text, there).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("10m", timedelta(minutes=10)),
        ("2 hours", timedelta(hours=2)),
        ("1 day", timedelta(days=1)),
        ("1h 30m", timedelta(hours=1, minutes=30)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1d 1h 1m 1s", timedelta(days=1, hours=1, minutes=1, seconds=1)),
        (" 90 SEC ", timedelta(seconds=90)),
        ("1 second", timedelta(seconds=1)),
        ("5 min", timedelta(minutes=5)),
        ("5 minutes", timedelta(minutes=5)),
        ("1 hr", timedelta(hours=1)),
        ("48h", timedelta(hours=48)),
        ("2 days", timedelta(hours=48)),
        ("172800s", timedelta(hours=48)),
    ],
)
def test_how_long_a_share_link_holds(text: str, span: timedelta) -> None:
    assert parse_expiry(text) == span


@pytest.mark.parametrize(
    "text",
    [
        *("", "0m", "0h 0m", "10", "m", "48h 1s", "172801s", "3 days", "1 week", "1 month", "-1h", "1.5h"),
        *("1h,", "an hour", "1h and 5m", "1 h x", "h1", "1000000s", "٣h", "1h " * 50, "9" * 5000),
    ],
)
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ScheduleError) as failure:
        parse_expiry(text)
    assert failure.value.reason == BAD_EXPIRY
