"""Whether the clock was set while we ran, and whether it has dated anything in the future."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.doctor import queries
from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.ids import first_id
from pillarbox.kernel.process.clock_watch import AHEAD

DAYS: Final = 7

NTP: Final = "Let NTP set the clocks, by slewing, and find out who sets them otherwise."


async def jumps(pool: asyncpg.Pool) -> Check:
    """Check whether the clock was set while we ran."""
    found = await queries.clock_jumps(pool, timedelta(days=DAYS))
    found_text = f"none seen in {DAYS} days"
    if found:
        last = found[0]
        found_text = f"{len(found)} in {DAYS} days, the last to {_shown(last.at)} by {last.seconds:+.0f} s"
    return Check(
        name="clock.jumps",
        level=Level.WARNING if found else Level.OK,
        title="Nobody sets the clock while we run",
        found=found_text,
        expected="none",
        step=f"{NTP} What it did to the queue: docs/guide/queue-and-retention.md." if found else None,
    )


async def future(pool: asyncpg.Pool, now: datetime) -> Check:
    """Check whether there are emails that are dated ahead of the clock."""
    newest = await queries.newest_email(pool, first_id(now + AHEAD))
    wrong = newest.at is not None
    found_text = "none"
    if newest.at is not None:
        found_text = f"the newest of {newest.teams} teams is dated {_shown(newest.at)}"
    return Check(
        name="clock.future",
        level=Level.WARNING if wrong else Level.OK,
        title="No email is dated in the future",
        found=found_text,
        expected="none",
        step="Compare the clock with another. If it is right now, it was wrong then." if wrong else None,
    )


def _shown(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
