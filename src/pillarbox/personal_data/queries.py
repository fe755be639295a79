"""SQL of erasures. One that is done has nothing of the person but a hash of the address."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import NO_PAGE, Page

JOB = "personal_data.erase"
"""Erases a person; its subject is the erasure."""

BEHIND_LAST = "done"
"""Stands for a part where all parts have been looked at."""

# Somebody who was erased before, and is known again, is erased once more: the row begins anew. One that goes
# on looks at everything once more, for it may have passed what has come since.
BEGIN = """
    INSERT INTO erasures AS e (team_id, id, hash, address, given, contact_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT ON CONSTRAINT erasures_team_hash_key DO UPDATE
       SET address = excluded.address, given = excluded.given, contact_id = coalesce(excluded.contact_id,
           e.contact_id),
           part = '', place = '',
           rows = CASE WHEN e.completed_at IS NULL THEN e.rows ELSE 0 END,
           created_at = CASE WHEN e.completed_at IS NULL THEN e.created_at ELSE excluded.created_at END,
           completed_at = NULL
    RETURNING e.id
"""

READ = """
    SELECT id, hash, address, given, contact_id, part, place, rows, waiting, created_at, completed_at FROM (
        (SELECT * FROM erasures WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT * FROM erasures WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        UNION ALL
        (SELECT * FROM erasures WHERE team_id = $1 AND id = $5)
        UNION ALL
        (SELECT * FROM erasures WHERE team_id = $1 AND hash = $6)
    ) AS page
"""

# Held by whoever erases, so that two who believe to have the job do not go on from the same place.
HOLD = """
    SELECT part, place FROM erasures WHERE team_id = $1 AND id = $2 AND completed_at IS NULL FOR UPDATE
"""

ADVANCE = """
    UPDATE erasures
       SET part = $3, place = $4, rows = rows + $5,
           waiting = CASE WHEN part = '' THEN $6 ELSE waiting + $6 END
     WHERE team_id = $1 AND id = $2
"""

# Not where somebody else goes on with it by now.
BEGIN_AGAIN = """
    UPDATE erasures SET part = '', place = '' WHERE team_id = $1 AND id = $2 AND part = $3
"""

END = """
    UPDATE erasures
       SET completed_at = $3, address = NULL, given = NULL, contact_id = NULL, part = '', place = '',
           waiting = 0
     WHERE team_id = $1 AND id = $2
"""

REMOVE = """
    DELETE FROM erasures WHERE team_id = $1 AND id = $2 AND completed_at IS NOT NULL RETURNING id
"""


class ErasureRow(NamedTuple):
    """An erasure; `address` is there until it is done."""

    id: UUID
    hash: bytes
    address: str | None
    given: str | None
    contact_id: UUID | None
    part: str
    place: str
    rows: int
    waiting: int
    created_at: datetime
    completed_at: datetime | None

    @property
    def status(self) -> str:
        """in_progress, waiting or completed."""
        if self.completed_at is not None:
            return "completed"
        return "waiting" if self.waiting else "in_progress"


class ErasurePlace(NamedTuple):
    """Where an erasure goes on: the kind of data, and the place in it."""

    part: str
    place: str


async def begin(
    db: TeamDb,
    erasure_id: UUID,
    hash_: bytes,
    address: str,
    given: str | None,
    contact_id: UUID | None,
    now: datetime,
) -> UUID:
    """Begin the erasure of an address, or begin the one that there is anew; returns its id."""
    found: UUID = await db.value(BEGIN, erasure_id, hash_, address, given, contact_id, now)
    return found


async def page(db: TeamDb, page: Page) -> list[ErasureRow]:
    """Return a page of the team's erasures."""
    return await db.all(ErasureRow, READ, *page.args, None, None)


async def by_id(db: TeamDb, erasure_id: UUID) -> ErasureRow | None:
    """Return an erasure."""
    return await db.one(ErasureRow, READ, *NO_PAGE, erasure_id, None)


async def by_hash(db: TeamDb, hash_: bytes) -> ErasureRow | None:
    """Return the erasure of an address by its hash."""
    return await db.one(ErasureRow, READ, *NO_PAGE, None, hash_)


async def hold(db: TeamDb, erasure_id: UUID) -> ErasurePlace | None:
    """Hold an erasure that is not done until the transaction ends; None where it is done or gone."""
    return await db.one(ErasurePlace, HOLD, erasure_id)


async def advance(db: TeamDb, erasure_id: UUID, place: ErasurePlace, rows: int, waiting: int) -> None:
    """Write down how far an erasure is."""
    await db.run(ADVANCE, erasure_id, *place, rows, waiting)


async def begin_again(db: TeamDb, erasure_id: UUID) -> None:
    """Let an erasure that is behind the last part look at everything once more."""
    await db.run(BEGIN_AGAIN, erasure_id, BEHIND_LAST)


async def end(db: TeamDb, erasure_id: UUID, now: datetime) -> None:
    """End an erasure: the hash of the address is all that is left."""
    await db.run(END, erasure_id, now)


async def remove(db: TeamDb, erasure_id: UUID) -> bool:
    """Remove an erasure that is done, so that the address may be written to again."""
    return await db.value(REMOVE, erasure_id) is not None
