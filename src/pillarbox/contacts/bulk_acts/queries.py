"""SQL of acts on many contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page
from pillarbox.kernel.work.collectors import changed

JOB: Final = "contact.bulk_act"

BulkKind = Literal["add_to_segment", "remove_from_segment", "unsubscribe", "delete"]
BulkStatus = Literal["queued", "in_progress", "completed", "stopped", "failed"]

INSERT: Final = """
    INSERT INTO contact_bulk_acts
           (team_id, id, kind, status, segment_id, contact_ids, conditions, search, total, created_at)
    VALUES ($1, $2, $3, 'queued', $4, $5, $6::text::json, $7, $8, $9)
"""

# The acts of a page, or the one with the id `$5`.
READ: Final = """
    SELECT id, kind, status, segment_id, total, done, changed, reason, created_at, ended_at FROM (
        (SELECT * FROM contact_bulk_acts WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM contact_bulk_acts WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM contact_bulk_acts WHERE team_id = $1 AND id = $5)
    ) AS page
"""

COUNT_OPEN: Final = """
    SELECT count(*) FROM contact_bulk_acts WHERE team_id = $1 AND status IN ('queued', 'in_progress')
"""

TAKE: Final = """
    UPDATE contact_bulk_acts
       SET status = 'in_progress'
     WHERE team_id = $1 AND id = $2 AND status IN ('queued', 'in_progress')
    RETURNING id, kind, segment_id, contact_ids, conditions::text AS conditions, search, position, created_at
"""

# Who stops the act waits until the batch is committed.
HOLD: Final = """
    SELECT true FROM contact_bulk_acts WHERE team_id = $1 AND id = $2 AND status = 'in_progress' FOR UPDATE
"""

ADVANCE: Final = """
    UPDATE contact_bulk_acts
       SET position = $3, done = done + $4, changed = changed + $5
     WHERE team_id = $1 AND id = $2
"""

END: Final = """
    UPDATE contact_bulk_acts
       SET status = $3, reason = $4, ended_at = $5, contact_ids = NULL, total = coalesce(total, done)
     WHERE team_id = $1 AND id = $2 AND status IN ('queued', 'in_progress')
"""

CHOSEN: Final = """
    SELECT id, address
      FROM contacts
     WHERE team_id = $1 AND id = ANY ($2::uuid[]) AND id > $3
     ORDER BY id
     LIMIT $4
"""

DIGEST: Final = """
    SELECT coalesce(string_agg(id || status || done, ',' ORDER BY id), '')
      FROM (SELECT id, status, done FROM contact_bulk_acts WHERE team_id = $1 ORDER BY id DESC LIMIT 20) AS a
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAct:
    """An act as it is shown. `total` is None where nobody counted; `segment_id` is that of `kind`."""

    id: UUID
    kind: BulkKind
    status: BulkStatus
    segment_id: UUID | None
    total: int | None
    done: int
    changed: int
    reason: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBulkAct:
    """An act as the job knows it: contacts that were named, or the conditions and words of a filter."""

    id: UUID
    kind: BulkKind
    segment_id: UUID | None
    contact_ids: Sequence[UUID] | None
    conditions: str | None
    search: str | None
    position: UUID
    created_at: datetime


class ChosenContact(NamedTuple):
    """A contact that an act is about."""

    id: UUID
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBulkAct:
    """The act that is to be done, and the contacts that it is about: `contact_ids`, or else a filter."""

    id: UUID
    kind: BulkKind
    segment_id: UUID | None
    contact_ids: Sequence[UUID] | None
    conditions: str | None
    search: str | None
    total: int | None
    created_at: datetime


async def insert(db: TeamDb, new: NewBulkAct) -> None:
    await db.run(
        INSERT,
        new.id,
        new.kind,
        new.segment_id,
        new.contact_ids,
        new.conditions,
        new.search,
        new.total,
        new.created_at,
    )


async def page(db: TeamDb, page: Page) -> list[BulkAct]:
    return await db.all(BulkAct, READ, *page.args, None)


async def one(db: TeamDb, act_id: UUID) -> BulkAct | None:
    return await db.one(BulkAct, READ, *NO_PAGE, act_id)


async def count_open(db: TeamDb) -> int:
    found: int = await db.value(COUNT_OPEN)
    return found


async def take(db: TeamDb, act_id: UUID) -> RunningBulkAct | None:
    """Begin an act, or go on with it; None where it has ended."""
    return await db.one(RunningBulkAct, TAKE, act_id)


async def hold(db: TeamDb, act_id: UUID) -> bool:
    """Keep the act from being stopped until the transaction ends; False where it was."""
    return bool(await db.value(HOLD, act_id))


async def advance(db: TeamDb, act_id: UUID, position: UUID, done: int, changed: int) -> None:
    await db.run(ADVANCE, act_id, position, done, changed)


async def end(db: TeamDb, act_id: UUID, status: BulkStatus, reason: str | None, now: datetime) -> bool:
    """End an act; False where it has ended."""
    return await db.run(END, act_id, status, reason, now) == 1


async def chosen(db: TeamDb, ids: Sequence[UUID], after: UUID, limit: int) -> list[ChosenContact]:
    """Return the next of these contacts that are there."""
    return await db.all(ChosenContact, CHOSEN, ids, after, limit)


async def digest(db: TeamDb) -> str:
    """Return a text that is another one when an act goes on."""
    return str(await db.value(DIGEST))


# Across teams: acts that ended before an instant.
async def remove_ended(source: Source, before: datetime, limit: int) -> int:
    """Remove up to `limit` acts that ended before an instant; return how many."""
    return changed(
        await source.execute(
            """
            WITH old AS MATERIALIZED (
                SELECT team_id, id FROM contact_bulk_acts WHERE ended_at < $1 ORDER BY ended_at LIMIT $2
            )
            DELETE FROM contact_bulk_acts b USING old WHERE b.team_id = old.team_id AND b.id = old.id
            """,
            before,
            limit,
        )
    )
