"""SQL of the complaints of receiving sites that processes share. Sites are other people's servers, and the
slots at them belong to the installation, so no team has these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.delivery.rate_control import SiteSignal
from pillarbox.delivery.site_scheduler import SiteComplaint
from pillarbox.kernel.postgres.database import Source

KEPT: Final = timedelta(days=1)

# What nobody has complained of for a day goes with the next complaint.
PUBLISH_COMPLAINTS: Final = """
    WITH gone AS (
        DELETE FROM sites WHERE changed_at < $7
    )
    INSERT INTO sites (site, signal, closed_until, rate, told_by, changed_at)
    SELECT k.site, k.signal, k.closed_until, k.rate, $5, $6
      FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::float8[])
           AS k (site, signal, closed_until, rate)
     ORDER BY k.site
    ON CONFLICT (site) DO UPDATE
       SET signal = excluded.signal, closed_until = excluded.closed_until, rate = excluded.rate,
           told_by = excluded.told_by, changed_at = excluded.changed_at
"""

READ_COMPLAINTS: Final = """
    SELECT site, signal, closed_until, rate, changed_at
      FROM sites
     WHERE changed_at > $1 AND told_by <> $2
"""

# What nobody can be asked about any more: its process has ended, perhaps for other credentials.
FORGET_ENDED: Final = """
    DELETE FROM sites s
     WHERE s.signal = 'UNREACHABLE'
       AND NOT EXISTS (SELECT FROM processes p WHERE p.id = s.told_by AND p.seen_at > $1)
"""

LIVE_PROCESSES: Final = """
    SELECT count(*) FROM processes
     WHERE seen_at > $1 AND 'delivery' = ANY (string_to_array(roles, ','))
"""


async def publish_complaints(
    conn: Source, complaints: Sequence[SiteComplaint], owner: UUID, now: datetime
) -> None:
    """Write what sites have complained of."""
    rows = [(h.site, h.signal.name, now + timedelta(seconds=h.closed_for), h.rate) for h in complaints]
    await conn.execute(PUBLISH_COMPLAINTS, *zip(*rows, strict=True), owner, now, now - KEPT)


async def read_complaints(
    conn: Source, since: datetime, owner: UUID, now: datetime
) -> list[tuple[SiteComplaint, datetime]]:
    """Return the complaints of other processes since then, each with its instant."""
    rows = await conn.fetch(READ_COMPLAINTS, since, owner)
    return [
        (
            SiteComplaint(
                row["site"],
                SiteSignal[row["signal"]],
                max(0.0, (row["closed_until"] - now).total_seconds()),
                row["rate"],
            ),
            row["changed_at"],
        )
        for row in rows
    ]


async def forget_ended(conn: Source, since: datetime) -> None:
    """Forget which sites processes could not reach that have not been seen since then."""
    await conn.execute(FORGET_ENDED, since)


async def live_processes(conn: Source, since: datetime) -> int:
    """Return how many processes that deliver were seen since then."""
    count: int = await conn.fetchval(LIVE_PROCESSES, since)
    return count
