"""SQL of lists of contacts: pages, whole lists, exports; of all contacts or of the members of a segment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import EncodedRows, Page

PAGE = """
    SELECT id, email, first_name, last_name, created_at, unsubscribed FROM (
        (SELECT id, coalesce(email, address) AS email, first_name, last_name, created_at, unsubscribed
           FROM contacts WHERE team_id = $1 AND id < $2 ORDER BY id DESC LIMIT $4)
        UNION ALL
        (SELECT id, coalesce(email, address) AS email, first_name, last_name, created_at, unsubscribed
           FROM contacts WHERE team_id = $1 AND id > $3 ORDER BY id LIMIT $4)
    ) AS page
"""

# The page is cut before contacts are looked up, and they are looked up one by one: a plan that is kept for
# all limits would read half of the segment for a page.
MEMBERS = """
    SELECT id, email, first_name, last_name, created_at, unsubscribed FROM (
        (SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
                c.unsubscribed
           FROM (SELECT contact_id
                   FROM segment_members
                  WHERE team_id = $1 AND segment_id = $5 AND contact_id < $2
                  ORDER BY contact_id DESC LIMIT $4) AS m
          CROSS JOIN LATERAL (
                SELECT id, email, address, first_name, last_name, created_at, unsubscribed
                  FROM contacts WHERE team_id = $1 AND id = m.contact_id OFFSET 0) AS c
          ORDER BY c.id DESC)
        UNION ALL
        (SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
                c.unsubscribed
           FROM (SELECT contact_id
                   FROM segment_members
                  WHERE team_id = $1 AND segment_id = $5 AND contact_id > $3
                  ORDER BY contact_id LIMIT $4) AS m
          CROSS JOIN LATERAL (
                SELECT id, email, address, first_name, last_name, created_at, unsubscribed
                  FROM contacts WHERE team_id = $1 AND id = m.contact_id OFFSET 0) AS c
          ORDER BY c.id)
    ) AS page
"""

# What a list shows of each contact, as answers encode it.
ENCODED = """
    SELECT string_agg(
               '{"id":"' || id || '","email":' || to_json(email)
               || ',"first_name":' || coalesce(to_json(first_name)::text, 'null')
               || ',"last_name":' || coalesce(to_json(last_name)::text, 'null')
               || ',"created_at":"' || to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')
               || '","unsubscribed":' || CASE WHEN unsubscribed THEN 'true}' ELSE 'false}' END,
               ',' ORDER BY id DESC) AS text,
           (array_agg(id ORDER BY id))[1] AS last, count(*) < $4 AS is_last
      FROM (SELECT id, coalesce(email, address) AS email, first_name, last_name, created_at, unsubscribed
              FROM contacts
             WHERE team_id = $1 AND id < $2 AND id > $3
             ORDER BY id DESC
             LIMIT $4) AS page
"""

ENCODED_MEMBERS = """
    SELECT string_agg(
               '{"id":"' || id || '","email":' || to_json(email)
               || ',"first_name":' || coalesce(to_json(first_name)::text, 'null')
               || ',"last_name":' || coalesce(to_json(last_name)::text, 'null')
               || ',"created_at":"' || to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')
               || '","unsubscribed":' || CASE WHEN unsubscribed THEN 'true}' ELSE 'false}' END,
               ',' ORDER BY id DESC) AS text,
           (array_agg(id ORDER BY id))[1] AS last, count(*) < $4 AS is_last
      FROM (SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
                   c.unsubscribed
              FROM (SELECT contact_id
                      FROM segment_members
                     WHERE team_id = $1 AND segment_id = $5 AND contact_id < $2 AND contact_id > $3
                     ORDER BY contact_id DESC
                     LIMIT $4) AS m
             CROSS JOIN LATERAL (
                SELECT id, email, address, first_name, last_name, created_at, unsubscribed
                  FROM contacts WHERE team_id = $1 AND id = m.contact_id OFFSET 0) AS c
           ) AS page
"""

FOLLOWING = """
    SELECT id, coalesce(email, address) AS email, first_name, last_name, created_at, unsubscribed,
           properties::text AS properties
      FROM contacts
     WHERE team_id = $1 AND id > $2
     ORDER BY id
     LIMIT $3
"""

FOLLOWING_MEMBERS = """
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed, c.properties::text AS properties
      FROM (SELECT contact_id
              FROM segment_members
             WHERE team_id = $1 AND segment_id = $4 AND contact_id > $2
             ORDER BY contact_id
             LIMIT $3) AS m
     CROSS JOIN LATERAL (
           SELECT id, email, address, first_name, last_name, created_at, unsubscribed, properties
             FROM contacts WHERE team_id = $1 AND id = m.contact_id OFFSET 0) AS c
     ORDER BY c.id
"""

COUNT = """
    SELECT CASE WHEN $2::uuid IS NULL
                THEN (SELECT count(*) FROM contacts WHERE team_id = $1)
                ELSE (SELECT count(*) FROM segment_members WHERE team_id = $1 AND segment_id = $2)
            END
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContact:
    """A contact as lists show it."""

    id: UUID
    email: str
    first_name: str | None
    last_name: str | None
    created_at: datetime
    unsubscribed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedContact(ListedContact):
    """The same with its values by number, as JSON."""

    properties: str

    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.properties)
        return found


async def page(db: TeamDb, page: Page) -> list[ListedContact]:
    return await db.all(ListedContact, PAGE, *page.args)


async def members(db: TeamDb, segment_id: UUID, page: Page) -> list[ListedContact]:
    """Return the contacts of a segment, newest contact first."""
    return await db.all(ListedContact, MEMBERS, *page.args, segment_id)


async def encoded(db: TeamDb, segment_id: UUID | None, limit: int, below: UUID, above: UUID) -> EncodedRows:
    """Return the next contacts between two positions: of a segment, or all."""
    args = (below, above, limit)
    if segment_id is None:
        found = await db.one(EncodedRows, ENCODED, *args)
    else:
        found = await db.one(EncodedRows, ENCODED_MEMBERS, *args, segment_id)
    return found or EncodedRows(None, None, is_last=True)


async def following(db: TeamDb, after: UUID, segment_id: UUID | None, limit: int) -> list[ExportedContact]:
    """Return the next contacts, the oldest first: of a segment, or all."""
    if segment_id is None:
        return await db.all(ExportedContact, FOLLOWING, after, limit)
    return await db.all(ExportedContact, FOLLOWING_MEMBERS, after, limit, segment_id)


async def count(db: TeamDb, segment_id: UUID | None) -> int:
    """Return how many contacts the team, or a segment of it, has."""
    found: int = await db.value(COUNT, segment_id)
    return found
