"""The period that screens ask the metrics for: whole quarter hours, which need few rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pillarbox.dashboard.frame.metrics_periods import QUARTER, metric_range

NOW = datetime(2026, 10, 3, 8, 29, 59, 999_999, tzinfo=UTC)
WEEK = timedelta(days=7)


def test_a_period_up_to_now_begins_at_a_quarter_hour_and_has_no_end() -> None:
    assert metric_range(NOW - WEEK, NOW, NOW) == {
        "start_date": "2026-09-26T08:15:00.000+00:00",
        "end_date": None,
    }


def test_the_period_before_ends_where_the_other_begins() -> None:
    before = metric_range(NOW - 2 * WEEK, NOW - WEEK, NOW)
    assert before["end_date"] == metric_range(NOW - WEEK, NOW, NOW)["start_date"]
    start = datetime.fromisoformat(before["start_date"])
    assert (start - NOW.replace(minute=0, second=0, microsecond=0)) % QUARTER == timedelta()
