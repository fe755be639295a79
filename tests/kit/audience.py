"""Parts of a team's audience, made by their rows: quicker than by the API, and before their slices are looked
at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from kit.webhook_events import subscribe
from kit.world import Team, world
from pillarbox.contacts.event_data import SHAPES
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


@asynccontextmanager
async def told_team(database_url: str, folder: Path) -> AsyncIterator[Team]:
    """Yield a team that has a webhook for all events of contacts."""
    async with world(database_url, folder, started=False) as pillarbox:
        team = await pillarbox.team()
        await subscribe(team, list(SHAPES))
        yield team


async def a_segment(team: Team, name: str = "Beta testers") -> UUID:
    stamp = team.world.app.need(Ids).stamp()
    await team.world.pool.execute(
        "INSERT INTO segments (team_id, id, name, created_at) VALUES ($1, $2, $3, $4)",
        team.id,
        stamp.id,
        name,
        stamp.at,
    )
    return UUID(str(stamp.id))


async def a_topic(
    team: Team, default: str = "opt_in", name: str = "Release notes", visibility: str = "public"
) -> UUID:
    stamp = team.world.app.need(Ids).stamp()
    await team.world.pool.execute(
        """
        INSERT INTO topics (team_id, id, name, default_subscription, visibility, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $6, $5, $5)
        """,
        team.id,
        stamp.id,
        name,
        default,
        stamp.at,
        visibility,
    )
    return UUID(str(stamp.id))


async def a_property(team: Team, key: str = "plan", kind: str = "string") -> UUID:
    stamp = team.world.app.need(Ids).stamp()
    await team.world.pool.execute(
        """
        INSERT INTO contact_properties (team_id, id, number, key, type, created_at)
        SELECT $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5 FROM contact_properties WHERE team_id = $1
        """,
        team.id,
        stamp.id,
        key,
        kind,
        stamp.at,
    )
    return UUID(str(stamp.id))


async def a_contact(team: Team, address: str, *, unsubscribed: bool = False) -> UUID:
    """Store a contact as a row, and return its id."""
    stamp = team.world.app.need(Ids).stamp()
    form = email_address(address)
    await team.world.pool.execute(
        INSERT_CONTACT, team.id, stamp.id, form.address, form.given, unsubscribed, stamp.at
    )
    return UUID(int=stamp.id.int)


async def some_contacts(team: Team, count: int) -> list[UUID]:
    """Store so many contacts at once; return their ids, the oldest first."""
    made = [UUID(int=one.int) for one in team.world.app.need(Ids).several(count)]
    await team.world.pool.execute(MANY_CONTACTS, team.id, made, datetime.now(UTC))
    return made


async def chooses(team: Team, contact_id: UUID, topic_id: UUID, subscription: str) -> None:
    """Store what a contact chose of a topic, as a row."""
    await team.world.pool.execute(CHOOSE, team.id, contact_id, topic_id, subscription, team.world.clock.now())


async def joins(team: Team, segment_id: UUID, members: Sequence[UUID]) -> None:
    """Store members of a segment, as rows."""
    await team.world.pool.execute(JOIN, team.id, segment_id, members, team.world.clock.now())
