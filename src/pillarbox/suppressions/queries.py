"""SQL of suppressions. Whatever changes rows locks them in the order of their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.paging import Page

Row = tuple[UUID, UUID, str, str | None, str, UUID | None, datetime]
"""Team, id, address, the address as it was given where it differs, origin, source, time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionRow:
    """An address on the list. `email` is null where it is shown as it is compared."""

    team_id: UUID
    id: UUID
    address: str
    email: str | None
    origin: str
    source_id: UUID | None
    created_at: datetime

    @property
    def shown(self) -> str:
        """The address as answers and events have it."""
        return self.email or self.address


# Of several teams: bounces of one commit are anybody's. An address that is on the list is locked and its row
# stays as it is: `WHERE false` writes nothing. With DO NOTHING the row could be gone before its id is read.
INSERT = """
    INSERT INTO suppressions (team_id, id, address, email, origin, source_id, created_at)
    SELECT DISTINCT ON (k.team_id, k.address)
           k.team_id, k.id, k.address, k.email, k.origin, k.source_id, k.created_at
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::timestamptz[])
           AS k (team_id, id, address, email, origin, source_id, created_at)
     ORDER BY k.team_id, k.address, k.id
    ON CONFLICT ON CONSTRAINT suppressions_team_address_key
    DO UPDATE SET origin = suppressions.origin WHERE false
    RETURNING team_id, id, address, email, origin, source_id, created_at
"""


async def insert(conn: Connection, rows: Sequence[Row]) -> list[SuppressionRow]:
    """Insert what is not there yet and return it; of several rows of one address the one of the first id."""
    return [SuppressionRow(**row) for row in await conn.fetch(INSERT, *zip(*rows, strict=True))]


async def ids_of(db: TeamDb, addresses: Sequence[str]) -> list[UUID]:
    """Return the ids of these addresses, all of which are on the list, in the same order."""
    return list(
        await db.values(
            """
            SELECT s.id
              FROM unnest($2::text[]) WITH ORDINALITY AS k (address, place)
              JOIN suppressions s ON s.team_id = $1 AND s.address = k.address
             ORDER BY k.place
            """,
            addresses,
        )
    )


async def by_id(db: TeamDb, entry_id: UUID) -> SuppressionRow | None:
    return await db.one(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at
          FROM suppressions
         WHERE team_id = $1 AND id = $2
        """,
        entry_id,
    )


async def by_address(db: TeamDb, address: str) -> SuppressionRow | None:
    """Return the entry of an address in the form that is compared."""
    return await db.one(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at
          FROM suppressions
         WHERE team_id = $1 AND address = $2
        """,
        address,
    )


async def page(db: TeamDb, page: Page) -> list[SuppressionRow]:
    return await db.all(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at FROM (
            (SELECT *
               FROM suppressions WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM suppressions WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
    )


async def page_of_origin(db: TeamDb, page: Page, origin: str) -> list[SuppressionRow]:
    return await db.all(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at FROM (
            (SELECT *
               FROM suppressions WHERE team_id = $1 AND origin = $5 AND id < $2 ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM suppressions WHERE team_id = $1 AND origin = $5 AND id > $3 ORDER BY id LIMIT $4)
        ) AS page
        """,
        *page.args,
        origin,
    )


async def remove_by_address(db: TeamDb, addresses: Sequence[str]) -> list[SuppressionRow]:
    """Delete the entries of these addresses, and return them."""
    return await db.all(
        SuppressionRow,
        """
        WITH locked AS (
            SELECT id
              FROM suppressions
             WHERE team_id = $1 AND address = ANY ($2::text[])
             ORDER BY address
               FOR UPDATE
        )
        DELETE FROM suppressions s
         USING locked
         WHERE s.team_id = $1 AND s.id = locked.id
        RETURNING s.team_id, s.id, s.address, s.email, s.origin, s.source_id, s.created_at
        """,
        addresses,
    )


async def remove_by_id(db: TeamDb, ids: Sequence[UUID]) -> list[SuppressionRow]:
    """Delete the entries of these ids, and return them."""
    return await db.all(
        SuppressionRow,
        """
        WITH locked AS (
            SELECT id
              FROM suppressions
             WHERE team_id = $1 AND id = ANY ($2::uuid[])
             ORDER BY address
               FOR UPDATE
        )
        DELETE FROM suppressions s
         USING locked
         WHERE s.team_id = $1 AND s.id = locked.id
        RETURNING s.team_id, s.id, s.address, s.email, s.origin, s.source_id, s.created_at
        """,
        ids,
    )


async def following(db: TeamDb, after: UUID, origin: str | None, limit: int) -> list[SuppressionRow]:
    """Return the entries behind this id, the oldest first, of any origin or of one."""
    return await db.all(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at
          FROM suppressions
         WHERE team_id = $1 AND id > $2 AND ($3::text IS NULL OR origin = $3)
         ORDER BY id
         LIMIT $4
        """,
        after,
        origin,
        limit,
    )


async def count(db: TeamDb, origin: str | None) -> int:
    return int(
        await db.value(
            """
            SELECT count(*) FROM suppressions WHERE team_id = $1 AND ($2::text IS NULL OR origin = $2)
            """,
            origin,
        )
    )


async def containing(
    db: TeamDb, text: str, origin: str | None, before: UUID, scanned: int, limit: int
) -> list[SuppressionRow]:
    """Return the first entries whose address contains the text, of the `scanned` newest ones before an id."""
    return await db.all(
        SuppressionRow,
        """
        SELECT team_id, id, address, email, origin, source_id, created_at
          FROM (SELECT team_id, id, address, email, origin, source_id, created_at
                  FROM suppressions
                 WHERE team_id = $1 AND id < $4 AND ($3::text IS NULL OR origin = $3)
                 ORDER BY id DESC
                 LIMIT $5) AS newest
         WHERE position($2 IN address) > 0 OR position($2 IN email) > 0
         ORDER BY id DESC
         LIMIT $6
        """,
        text,
        origin,
        before,
        scanned,
        limit,
    )


async def nth_before(db: TeamDb, origin: str | None, before: UUID, number: int) -> UUID | None:
    """Return the id of the entry so many places before an id; None where there are fewer."""
    found: UUID | None = await db.value(
        """
        SELECT id
          FROM suppressions
         WHERE team_id = $1 AND id < $3 AND ($2::text IS NULL OR origin = $2)
         ORDER BY id DESC
        OFFSET $4
         LIMIT 1
        """,
        origin,
        before,
        number - 1,
    )
    return found
