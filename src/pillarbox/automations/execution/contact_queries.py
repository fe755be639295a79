"""SQL of contacts as steps see them, and of what schemas call dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

# By their keys, and not the numbers under which values are kept.
CONTACTS: Final = """
    SELECT c.id, c.address, coalesce(c.email, c.address) AS email, c.first_name, c.last_name, c.unsubscribed,
           c.created_at,
           (SELECT coalesce(jsonb_object_agg(p.key, v.value), '{}')::text
              FROM jsonb_each(c.properties) AS v
              JOIN contact_properties p
                ON p.team_id = $1 AND p.number = v.key::integer AND p.deleted_at IS NULL) AS properties
      FROM contacts c
     WHERE c.team_id = $1 AND c.id = ANY ($2::uuid[])
"""

DATES: Final = """
    SELECT d.name, k.key
      FROM event_definitions d, json_each_text(coalesce(d.schema, '{}'::json)) AS k
     WHERE d.team_id = $1 AND d.name = ANY ($2::text[]) AND k.value = 'date'
"""

# In the order of addresses, as by everybody who locks several. Who deletes a contact waits.
HOLD: Final = """
    SELECT id
      FROM contacts
     WHERE team_id = $1 AND id = ANY ($2::uuid[])
     ORDER BY address COLLATE "C"
       FOR NO KEY UPDATE
"""

HOLD_ALONE: Final = """
    SELECT id FROM contacts WHERE team_id = $1 AND id = $2 FOR UPDATE
"""

CALLER: Final = """
    SELECT t.number, t.daily_quota, t.monthly_quota
      FROM (SELECT id AS team_id, number, daily_quota, monthly_quota FROM teams) AS t
     WHERE t.team_id = $1
"""


class AutomationContact(NamedTuple):
    """A contact; `properties` is JSON."""

    id: UUID
    address: str
    email: str
    first_name: str | None
    last_name: str | None
    unsubscribed: bool
    created_at: datetime
    properties: str


class SendingTeam(NamedTuple):
    """A team's number and quotas, as sending needs them."""

    number: int
    daily_quota: int | None
    monthly_quota: int | None


async def contacts(db: TeamDb, contact_ids: Sequence[UUID]) -> list[AutomationContact]:
    return await db.all(AutomationContact, CONTACTS, contact_ids)


async def dates(db: TeamDb, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the keys that the schemas of these events call dates, by the name of the event."""
    found: dict[str, set[str]] = {}
    for row in await db.source.fetch(DATES, db.team_id, names):
        found.setdefault(row["name"], set()).add(row["key"])
    return {name: frozenset(keys) for name, keys in found.items()}


async def hold(db: TeamDb, contact_ids: Sequence[UUID]) -> set[UUID]:
    """Lock these contacts; returns those that are there."""
    return set(await db.values(HOLD, contact_ids))


async def hold_alone(db: TeamDb, contact_id: UUID) -> bool:
    """Lock a contact that is to be deleted; False where it is gone."""
    return await db.value(HOLD_ALONE, contact_id) is not None


async def sending_team(db: TeamDb) -> SendingTeam | None:
    return await db.one(SendingTeam, CALLER)
