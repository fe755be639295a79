"""Timestamps of the wire (conventions section 11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.wire.instants import database_style, iso_style, parse_instant

AT = datetime(2026, 10, 3, 8, 0, 0, tzinfo=UTC)
INSTANTS = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("micros", "database", "iso"),
    [
        (0, "2026-10-03 08:00:00.000000+00", "2026-10-03T08:00:00.000Z"),
        (301_877, "2026-10-03 08:00:00.301877+00", "2026-10-03T08:00:00.301Z"),
        (999_999, "2026-10-03 08:00:00.999999+00", "2026-10-03T08:00:00.999Z"),
        (900_000, "2026-10-03 08:00:00.900000+00", "2026-10-03T08:00:00.900Z"),
        (999, "2026-10-03 08:00:00.000999+00", "2026-10-03T08:00:00.000Z"),
    ],
)
def test_both_styles_have_a_fixed_form_and_never_round(micros: int, database: str, iso: str) -> None:
    instant = AT.replace(microsecond=micros)
    assert database_style(instant) == database
    assert iso_style(instant) == iso


def test_other_zones_are_written_in_utc() -> None:
    there = datetime(2026, 10, 3, 23, 30, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))
    assert database_style(there) == "2026-10-04 05:00:00.000000+00"
    assert iso_style(there) == "2026-10-04T05:00:00.000Z"


def test_early_years_keep_four_digits() -> None:
    assert iso_style(datetime(987, 1, 2, tzinfo=UTC)) == "0987-01-02T00:00:00.000Z"


def test_a_time_without_a_zone_is_an_error_of_ours() -> None:
    for style in (database_style, iso_style):
        with pytest.raises(ValueError, match="zone"):
            style(datetime(2026, 10, 3))


@given(INSTANTS)
def test_what_is_written_is_read_back(instant: datetime) -> None:
    assert parse_instant(database_style(instant)) == instant
    assert parse_instant(iso_style(instant)) == instant.replace(
        microsecond=instant.microsecond // 1000 * 1000
    )


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-10-03T08:00:00Z", AT),
        ("2026-10-03t08:00:00z", AT),
        ("2026-10-03 08:00:00", AT),
        ("2026-10-03T08:00", AT),
        ("2026-10-03 08:00Z", AT),
        ("2026-10-03T08:00:00.5Z", AT.replace(microsecond=500_000)),
        ("2026-10-03T08:00:00.000001", AT.replace(microsecond=1)),
        ("2026-10-03T08:00:00.123456789Z", AT.replace(microsecond=123_456)),
        ("2026-10-03T10:00:00+02:00", AT),
        ("2026-10-03T10:00:00+02", AT),
        ("2026-10-03 02:30-05:30", AT),
        ("2026-10-03T08:00:00-00:00", AT),
        ("2026-10-04T07:59:00+23:59", AT),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime.max.replace(tzinfo=UTC)),
        ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_input_grammar(text: str, instant: datetime) -> None:
    read = parse_instant(text)
    assert read == instant
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026",
        "2026-10",
        "2026-10-03",
        "20261003T080000Z",
        "2026-10-03T08",
        "2026-10-03T0800",
        "2026-10-03T08:00:00,5Z",
        "2026-10-03T08:00:00.Z",
        "2026-10-03T08:00:00.1234567890Z",
        "2026-10-03T08:00:00+0200",
        "2026-10-03T08:00:00+2:00",
        "2026-10-03T08:00:00 Z",
        "2026-10-03T08:00:00Z\n",
        " 2026-10-03T08:00:00Z",
        "2026-10-03  08:00:00Z",
        "2026-10-03T08:00:00UTC",
        "26-10-03T08:00:00Z",
        "+2026-10-03T08:00:00Z",
        "٢٠٢٦-10-03T08:00:00Z",
        "2026-W40-6T08:00:00Z",
        "2026-276T08:00:00Z",
        "1" * 100_000,
    ],
)
def test_anything_else_is_refused_with_the_form(text: str) -> None:
    """TRAP-12: only ASCII digits count."""
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-03T08:00:00Z",
        "2026-00-03T08:00:00Z",
        "2026-02-29T08:00:00Z",
        "2026-10-03T24:00:00Z",
        "2026-10-03T08:60:00Z",
        "2026-10-03T08:00:60Z",
        "2026-10-03T08:00:00+24:00",
        "2026-10-03T08:00:00+02:60",
        "0000-10-03T08:00:00Z",
        "9999-12-31T23:59:59-00:01",
        "0001-01-01T00:00:00+01:00",
    ],
)
def test_a_date_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no such date"):
        parse_instant(text)


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00+00:01"]
)
def test_years_before_1970_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="1970"):
        parse_instant(text)


def test_a_date_alone_only_where_it_is_allowed() -> None:
    assert parse_instant("2026-10-03", date_only=True) == datetime(2026, 10, 3, tzinfo=UTC)
    assert parse_instant("2026-10-03T08:00Z", date_only=True) == AT
    for text in ("2026-10-03Z", "2026-10-03+02:00", "2026-10-03T"):
        with pytest.raises(ValueError, match="ISO 8601"):
            parse_instant(text, date_only=True)
