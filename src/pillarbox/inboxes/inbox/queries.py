"""SQL of inboxes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import Page

JOB_REMOVE: Final = "inbox.remove"
"""Removes what a deleted inbox has left behind; its subject is the inbox."""

# `last_received` is the newest of the newest threads of each class of lists: one look into an index for each.
BY_IDS: Final = """
    SELECT i.id, i.name, i.email_address, i.receiving_address, i.from_name, i.domain_id, i.unread, i.drafts,
           i.created_at, i.updated_at,
           (SELECT max((SELECT max(t.received_at) FROM inbox_threads t
                         WHERE t.team_id = i.team_id AND t.inbox_id = i.id AND t.list_class = c.number))
              FROM generate_series(0, 19) AS c (number)) AS last_received
      FROM inboxes i
     WHERE i.team_id = $1 AND i.id = ANY ($2::uuid[])
"""

PAGE: Final = """
    SELECT i.id, i.name, i.email_address, i.receiving_address, i.from_name, i.domain_id, i.unread, i.drafts,
           i.created_at, i.updated_at,
           (SELECT max((SELECT max(t.received_at) FROM inbox_threads t
                         WHERE t.team_id = i.team_id AND t.inbox_id = i.id AND t.list_class = c.number))
              FROM generate_series(0, 19) AS c (number)) AS last_received
      FROM ((SELECT *
               FROM inboxes
              WHERE team_id = $1 AND id < $2 AND ($5::uuid IS NULL OR id = $5) ORDER BY id DESC LIMIT $4)
            UNION ALL
            (SELECT *
               FROM inboxes
              WHERE team_id = $1 AND id > $3 AND ($5::uuid IS NULL OR id = $5) ORDER BY id LIMIT $4)) AS i
"""

INSERT: Final = """
    INSERT INTO inboxes (team_id, id, name, email_address, receiving_address, from_name, domain_id,
                         created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
"""

# Ids and their times may be ahead of the clock.
CHANGE: Final = """
    UPDATE inboxes
       SET name = coalesce($3, name), from_name = CASE WHEN $4 THEN $5 ELSE from_name END,
           updated_at = greatest($6, updated_at)
     WHERE team_id = $1 AND id = $2
       AND (name <> coalesce($3, name) OR ($4 AND from_name IS DISTINCT FROM $5))
"""

COUNT: Final = """
    SELECT count(*) FROM inboxes WHERE team_id = $1
"""

LOCK_OF_DOMAIN: Final = """
    SELECT id FROM inboxes WHERE team_id = $1 AND domain_id = $2 ORDER BY id FOR UPDATE
"""

DELETE: Final = """
    DELETE FROM inboxes WHERE team_id = $1 AND id = ANY ($2::uuid[]) RETURNING id
"""


class InboxRow(NamedTuple):
    """An inbox with its counts, and when something came into one of its threads last."""

    id: UUID
    name: str
    email_address: str
    receiving_address: str | None
    from_name: str | None
    domain_id: UUID
    unread: int
    drafts: int
    created_at: datetime
    updated_at: datetime
    last_received: datetime | None


class NewInboxRow(NamedTuple):
    """The row of a new inbox."""

    id: UUID
    name: str
    email_address: str
    receiving_address: str | None
    from_name: str | None
    domain_id: UUID
    created_at: datetime


async def get(db: TeamDb, inbox_id: UUID) -> InboxRow | None:
    return await db.one(InboxRow, BY_IDS, [inbox_id])


async def exists(db: TeamDb, inbox_id: UUID) -> bool:
    """Return whether the team has this inbox."""
    found = await db.value("SELECT true FROM inboxes WHERE team_id = $1 AND id = $2", inbox_id)
    return found is True


async def some(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, InboxRow]:
    """Return those of these inboxes that exist, by id."""
    return {inbox.id: inbox for inbox in await db.all(InboxRow, BY_IDS, ids)}


async def page(db: TeamDb, page: Page, only: UUID | None = None) -> list[InboxRow]:
    """Return a page of the team's inboxes, or of one alone."""
    return await db.all(InboxRow, PAGE, *page.args, only)


async def insert(db: TeamDb, new: NewInboxRow) -> None:
    await db.run(INSERT, *new)


async def change(
    db: TeamDb,
    inbox_id: UUID,
    name: str | None,
    from_name: str | None,
    now: datetime,
    *,
    sets_from_name: bool,
) -> bool:
    """Change what is another than before; False where nothing is, or there is no such inbox."""
    return await db.run(CHANGE, inbox_id, name, sets_from_name, from_name, now) == 1


async def count(db: TeamDb) -> int:
    return int(await db.value(COUNT))


async def lock_of_domain(db: TeamDb, domain_id: UUID) -> Sequence[UUID]:
    """Lock the inboxes of a domain until the transaction ends; return their ids."""
    return await db.values(LOCK_OF_DOMAIN, domain_id)


async def delete(db: TeamDb, ids: Sequence[UUID]) -> list[UUID]:
    """Remove the rows of these inboxes; returns which there were, in order."""
    return sorted(await db.values(DELETE, ids))
