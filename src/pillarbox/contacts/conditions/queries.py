"""SQL of who fits a filter. Each statement is a whole text; conditions are put in at its two comments
(`compiling.filled`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.contacts.conditions.compiling import compiled, filled
from pillarbox.contacts.conditions.filtering import ContactFilter, compiled_filter, facts_of
from pillarbox.contacts.conditions.language import Condition
from pillarbox.contacts.list_queries import ExportedContact, ListedContact
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.paging import OLDEST, EncodedRows, Page

PAGE: Final = """
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed
      FROM contacts c /* joins */
     WHERE c.team_id = $1 AND c.id < $2 AND c.id > $3 /* conditions */
     ORDER BY c.id DESC
     LIMIT $4
"""

PAGE_UPWARDS: Final = """
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed
      FROM contacts c /* joins */
     WHERE c.team_id = $1 AND c.id > $2 /* conditions */
     ORDER BY c.id
     LIMIT $3
"""

# As the list of all contacts, see `list_queries.ENCODED`.
ENCODED: Final = """
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
              FROM contacts c /* joins */
             WHERE c.team_id = $1 AND c.id < $2 AND c.id > $3 /* conditions */
             ORDER BY c.id DESC
             LIMIT $4) AS page
"""

FOLLOWING: Final = """
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed, c.properties::text AS properties
      FROM contacts c /* joins */
     WHERE c.team_id = $1 AND c.id > $2 /* conditions */
     ORDER BY c.id
     LIMIT $3
"""

WITH_PROPERTIES: Final = """
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed, c.properties::text AS properties
      FROM contacts c /* joins */
     WHERE c.team_id = $1 AND c.id < $2 AND c.id >= $3 /* conditions */
     ORDER BY c.id DESC
     LIMIT $4
"""

# Contacts that have the terms, whose words are compared as conditions. They are found first: a plan that does
# not know the terms would go through those of all contacts, in the order of the page.
BY_TERMS: Final = """
    WITH known AS MATERIALIZED (
        SELECT t.contact_id
          FROM contact_terms t
         WHERE t.team_id = $1 AND t.contact_id < $2 AND t.terms @> $3::integer[]
    )
    SELECT c.id, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.created_at,
           c.unsubscribed, c.properties::text AS properties
      FROM known
      JOIN contacts c ON c.team_id = $1 AND c.id = known.contact_id /* joins */
     WHERE c.team_id = $1 /* conditions */
     ORDER BY c.id DESC
     LIMIT $4
"""

COUNT: Final = """
    SELECT count(*) AS contacts, count(*) FILTER (WHERE NOT c.unsubscribed) AS subscribed
      FROM contacts c /* joins */
     WHERE c.team_id = $1 /* conditions */
"""

FITS: Final = """
    SELECT EXISTS (SELECT FROM contacts c /* joins */ WHERE c.team_id = $1 AND c.id = $2 /* conditions */)
"""

# One of several that become one statement.
FITS_ONE: Final = """
    SELECT 0 /* place */ AS place
     WHERE EXISTS (SELECT FROM contacts c /* joins */ WHERE c.team_id = $1 AND c.id = $2 /* conditions */)
"""

# The contact that stands so many below a position.
BELOW: Final = """
    SELECT id FROM contacts WHERE team_id = $1 AND id < $2 ORDER BY id DESC OFFSET $3 LIMIT 1
"""


FITTED_AT_ONCE: Final = 20
"""Conditions of which one statement asks whether a contact fits."""


async def by_terms(
    db: TeamDb, contact_filter: ContactFilter, below: UUID, terms: Sequence[int], limit: int
) -> list[ExportedContact]:
    """Return the first contacts below a position that fit and have these terms."""
    found = await compiled_filter(db, contact_filter, 5)
    return await db.all(ExportedContact, filled(BY_TERMS, found), below, terms, limit, *found.args)


class FittingCounts(NamedTuple):
    """Numbers of contacts that fit a filter: all of them, and those that are not unsubscribed."""

    contacts: int
    subscribed: int


async def page(db: TeamDb, contact_filter: ContactFilter, page: Page) -> list[ListedContact]:
    """Return the contacts of a page that fit, by the pattern of `kernel/wire/paging.py`."""
    upper, lower, limit = page.args
    if upper is None:
        found = await compiled_filter(db, contact_filter, 4)
        return await db.all(ListedContact, filled(PAGE_UPWARDS, found), lower, limit, *found.args)
    found = await compiled_filter(db, contact_filter, 5)
    return await db.all(ListedContact, filled(PAGE, found), upper, OLDEST, limit, *found.args)


async def encoded(
    db: TeamDb, contact_filter: ContactFilter, limit: int, below: UUID, above: UUID
) -> EncodedRows:
    """Return the next contacts that fit between two positions, as answers encode them."""
    found = await compiled_filter(db, contact_filter, 5)
    row = await db.one(EncodedRows, filled(ENCODED, found), below, above, limit, *found.args)
    return row or EncodedRows(None, None, is_last=True)


async def following(
    db: TeamDb, contact_filter: ContactFilter, after: UUID, limit: int
) -> list[ExportedContact]:
    """Return the next contacts that fit, the oldest first."""
    found = await compiled_filter(db, contact_filter, 4)
    return await db.all(ExportedContact, filled(FOLLOWING, found), after, limit, *found.args)


async def between(
    db: TeamDb, contact_filter: ContactFilter, below: UUID, lowest: UUID, limit: int
) -> list[ExportedContact]:
    """Return the first contacts that fit below a position, down to and with the lowest one."""
    found = await compiled_filter(db, contact_filter, 5)
    return await db.all(ExportedContact, filled(WITH_PROPERTIES, found), below, lowest, limit, *found.args)


async def count(db: TeamDb, contact_filter: ContactFilter) -> FittingCounts:
    """Return how many contacts fit."""
    found = await compiled_filter(db, contact_filter, 2)
    return await db.one(FittingCounts, filled(COUNT, found), *found.args) or FittingCounts(0, 0)


async def fits(db: TeamDb, contact_filter: ContactFilter, contact_id: UUID) -> bool:
    """Return whether a contact is there and fits."""
    found = await compiled_filter(db, contact_filter, 3)
    return bool(await db.value(filled(FITS, found), contact_id, *found.args))


async def fitting(db: TeamDb, contact_id: UUID, conditions: Sequence[Condition], now: datetime) -> list[int]:
    """Return the places of those of these conditions that a contact fits."""
    known = await facts_of(db, conditions)
    places: list[int] = []
    for start in range(0, len(conditions), FITTED_AT_ONCE):
        pieces, args = [], list[object]()
        for place, condition in enumerate(conditions[start : start + FITTED_AT_ONCE], start):
            found = compiled(condition, None, known, now, 3 + len(args))
            pieces.append(filled(FITS_ONE.replace("0 /* place */", str(place)), found))
            args += found.args
        places += await db.values(" UNION ALL ".join(pieces), contact_id, *args)
    return places


async def below(db: TeamDb, position: UUID, number: int) -> UUID | None:
    """Return the contact that is so many contacts below a position; None where there are fewer."""
    found: UUID | None = await db.value(BELOW, position, number - 1)
    return found
