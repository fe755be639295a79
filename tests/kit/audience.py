"""The audience of a team in tests: topics and segments made through the API, contacts as rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from kit.world import Team
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.wire.email_address import email_address

INSERT_CONTACT = """
    INSERT INTO contacts (team_id, id, address, email, unsubscribed, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $6)
"""

CHOOSE = """
    INSERT INTO topic_choices (team_id, contact_id, topic_id, subscription, chosen_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (team_id, contact_id, topic_id) DO UPDATE SET subscription = excluded.subscription
"""

JOIN = """
    INSERT INTO segment_members (team_id, segment_id, contact_id, added_at)
    SELECT $1, $2, k.contact_id, $4 FROM unnest($3::uuid[]) AS k (contact_id)
"""

MANY_CONTACTS = """
    INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
    SELECT $1, k.id, 'c' || k.id || '@orchard.example', false, $3, $3 FROM unnest($2::uuid[]) AS k (id)
"""


async def topic(team: Team, default: str = "opt_in", **fields: Any) -> UUID:
    """A new topic."""
    wanted = {"name": "Release notes", "default_subscription": default, **fields}
    answer = await team.post("/topics", wanted)
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["id"])


async def segment(team: Team, name: str = "Beta testers") -> UUID:
    """A new segment."""
    answer = await team.post("/segments", {"name": name})
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["id"])


async def contact(team: Team, address: str, *, unsubscribed: bool = False) -> UUID:
    """A new contact, as a row."""
    stamp = team.world.app.need(Ids).stamp()
    form = email_address(address)
    await team.world.pool.execute(
        INSERT_CONTACT, team.id, stamp.id, form.address, form.given, unsubscribed, stamp.at
    )
    return UUID(int=stamp.id.int)


async def contacts(team: Team, count: int) -> list[UUID]:
    """So many contacts at once, the oldest first."""
    made = [UUID(int=one.int) for one in team.world.app.need(Ids).several(count)]
    await team.world.pool.execute(MANY_CONTACTS, team.id, made, datetime.now(UTC))
    return made


async def chooses(team: Team, contact_id: UUID, topic_id: UUID, subscription: str) -> None:
    """What a contact chose of a topic, as a row."""
    await team.world.pool.execute(CHOOSE, team.id, contact_id, topic_id, subscription, team.world.clock.now())


async def joins(team: Team, segment_id: UUID, members: Sequence[UUID]) -> None:
    """Members of a segment, as rows."""
    await team.world.pool.execute(JOIN, team.id, segment_id, members, team.world.clock.now())
