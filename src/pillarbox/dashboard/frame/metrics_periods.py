"""The period of a question about metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

QUARTER: Final = timedelta(minutes=15)
"""Metrics are kept by quarter hours; a period of whole ones is answered from few rows."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def metric_range(start: datetime, end: datetime, now: datetime) -> dict[str, Any]:
    """Return the query of a period at whole quarter hours, without an end where that is now."""
    return {"start_date": _iso(start), "end_date": None if end >= now else _iso(end)}


def _iso(instant: datetime) -> str:
    return (instant - (instant - _EPOCH) % QUARTER).isoformat(timespec="milliseconds")
