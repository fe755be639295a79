"""SQL of links that are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.documents.link_checks.link_request import LinkResult
from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.work.collectors import changed

JOB: Final = "document.link_check"

# What was checked, or waits, since `$5` stays as it is. The job of what waits longer is gone.
ASK: Final = """
    INSERT INTO link_checks AS c (team_id, id, url, status, asked_at)
    SELECT $1, k.id, k.url, 'waiting', $4
      FROM unnest($2::uuid[], $3::text[]) AS k (id, url)
     ORDER BY k.id
    ON CONFLICT (team_id, id) DO UPDATE
       SET status = 'waiting', reason = NULL, http_status = NULL, asked_at = excluded.asked_at,
           checked_at = NULL
     WHERE coalesce(c.checked_at, c.asked_at) < $5
    RETURNING id, url
"""

WAITING: Final = """
    SELECT id, url, asked_at FROM link_checks WHERE team_id = $1 AND id = $2 AND status = 'waiting'
"""

COUNT_WAITING: Final = """
    SELECT count(*) FROM link_checks WHERE team_id = $1 AND status = 'waiting'
"""

SETTLE: Final = """
    UPDATE link_checks
       SET status = $4, reason = $5, http_status = $6, checked_at = $7
     WHERE team_id = $1 AND id = $2 AND asked_at = $3 AND status = 'waiting'
"""

KNOWN: Final = """
    SELECT id, status, reason, http_status, checked_at
      FROM link_checks
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""


class NewLink(NamedTuple):
    """A link that is to be checked; its id follows from its URL."""

    id: UUID
    url: str


class WaitingLink(NamedTuple):
    """A link that waits for its job."""

    id: UUID
    url: str
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLink:
    """The state of a link; `checked_at` is None while it waits."""

    id: UUID
    status: str
    reason: str | None
    http_status: int | None
    checked_at: datetime | None


async def ask(db: TeamDb, links: Sequence[NewLink], now: datetime, since: datetime) -> list[NewLink]:
    """Let links wait for a check that nobody has checked since an instant; return these."""
    ids, urls = [link.id for link in links], [link.url for link in links]
    return await db.all(NewLink, ASK, ids, urls, now, since)


async def count_waiting(db: TeamDb) -> int:
    found: int = await db.value(COUNT_WAITING)
    return found


async def waiting(db: TeamDb, link_id: UUID) -> WaitingLink | None:
    """Return a link that still waits."""
    return await db.one(WaitingLink, WAITING, link_id)


async def settle(db: TeamDb, link: WaitingLink, result: LinkResult, now: datetime) -> None:
    """Write what became of a link that waits."""
    await db.run(SETTLE, link.id, link.asked_at, result.status, result.reason, result.http_status, now)


async def known(db: TeamDb, ids: Sequence[UUID]) -> list[KnownLink]:
    """Return what is known of these links, in no order."""
    return await db.all(KnownLink, KNOWN, ids)


# Across teams: links that nobody has asked for since an instant.
async def remove_old(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` of them; return how many."""
    return changed(
        await source.execute(
            """
            WITH old AS MATERIALIZED (
                SELECT team_id, id FROM link_checks WHERE asked_at < $1 ORDER BY asked_at LIMIT $2
            )
            DELETE FROM link_checks c USING old
             WHERE c.team_id = old.team_id AND c.id = old.id AND c.asked_at < $1
            """,
            before,
            limit,
        )
    )
