"""The operations of other slices on the work of an email: show it, lock it, move it, remove it, release it.

Changes happen in the caller's transaction and take the work items' locks before those of the email,
as claiming does; so an email that is scheduled is either sent or canceled, never both.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pillarbox.delivery import queries
from pillarbox.delivery.queue import overview_queries
from pillarbox.delivery.queue.overview import WaitingItem
from pillarbox.kernel.postgres.database import TeamDb


async def live_items(db: TeamDb, email_id: UUID, now: datetime) -> list[WaitingItem]:
    """Return the live work of an email, as the operator sees it."""
    return await overview_queries.items_of(db.source, db.team_id, email_id, now)


async def lock(db: TeamDb, email_id: UUID) -> bool:
    """Lock the email's work; False when there is none left."""
    return bool(await queries.lock_email(db, email_id))


async def move(db: TeamDb, email_id: UUID, due_at: datetime) -> None:
    """Give the work of a scheduled email another time."""
    await queries.reschedule(db, email_id, due_at)


async def drop(db: TeamDb, email_id: UUID) -> None:
    """Remove the work of an email that is not to be sent any more."""
    await queries.drop(db, email_id)


async def release_fetched(db: TeamDb, email_id: UUID, due_at: datetime) -> None:
    """Make work claimable that waited for a file."""
    await queries.release_fetched(db, email_id, due_at)
