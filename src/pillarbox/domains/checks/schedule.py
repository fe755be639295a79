"""When DNS is looked at again after somebody asked for a check (domains.md sections 4.6 and 5.4)."""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST_CHECKS = tuple(timedelta(minutes=minutes) for minutes in (0, 1, 2, 5, 10, 30, 60))
"""After the request; from the last one on, hourly."""

HOUR = timedelta(hours=1)


def next_check(since: datetime, after: datetime) -> datetime:
    """The first check later than `after` of a series that was asked for at `since`.

    `after` is when the check before it began: a request that came later gets a check of its own at once.
    """
    for step in FIRST_CHECKS:
        if since + step > after:
            return since + step
    return since + ((after - since) // HOUR + 1) * HOUR
