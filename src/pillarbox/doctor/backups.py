"""Whether backups are still made, and whether a restore waits for the operator."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.doctor import queries
from pillarbox.doctor.checks import Check, Level
from pillarbox.kernel.observability.queries import last_backup

LATE: Final = timedelta(days=2)
"""A daily backup may fail once before anybody is told twice."""

AHEAD: Final = timedelta(hours=1)
"""Between clocks of several machines; more is a wrong clock."""


async def age(pool: asyncpg.Pool, now: datetime) -> Check:
    """Check whether the last backup is recent; skipped where none was ever made by `pillarbox backup`."""
    last = await last_backup(pool)
    title, wanted = "Backups are made", f"at least every {LATE.days} days"
    if last is None:
        advice = "`pillarbox backup TARGET` makes one (docs/guide/backup.md)."
        return Check(
            name="backup.age",
            level=Level.SKIPPED,
            title=title,
            found="none was made by this program",
            expected=wanted,
            step=advice,
        )
    found = f"the last is of {last:%Y-%m-%d %H:%M} UTC"
    if last > now + AHEAD:
        advice = "Look at the clocks: a backup is of the future, so nobody can tell how old the last one is."
        return Check(
            name="backup.age", level=Level.WARNING, title=title, found=found, expected=wanted, step=advice
        )
    late = now - last > LATE
    return Check(
        name="backup.age",
        level=Level.WARNING if late else Level.OK,
        title=title,
        found=found,
        expected=wanted,
        step="Look at what your timer said, and run `pillarbox backup TARGET`." if late else None,
    )


async def put_aside(pool: asyncpg.Pool) -> Check:
    """Check whether a restore has put work aside that nobody has decided about."""
    backup = await queries.restored_backup(pool)
    return Check(
        name="restored.open",
        level=Level.OK if backup is None else Level.WARNING,
        title="Nothing waits that a restore has put aside",
        found="nothing" if backup is None else f"work of the backup {backup}",
        expected="nothing",
        step=None
        if backup is None
        else "`pillarbox restored` shows it; `restored release` or `drop` decides.",
    )
