"""Parts of a team's audience, made by their rows: quicker than by the API, and before their slices are looked
at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from kit.webhook_events import subscribe
from kit.world import Team, world
from pillarbox.contacts.event_data import SHAPES
from pillarbox.kernel.ids import Ids


@asynccontextmanager
async def told_team(database_url: str, folder: Path) -> AsyncIterator[Team]:
    """A team that has a webhook for all events of contacts."""
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


async def a_contact(
    team: Team, address: str, topics: Mapping[UUID, str] | None = None, *, unsubscribed: bool = False
) -> UUID:
    """A contact with what it chose of topics."""
    stamp = team.world.app.need(Ids).stamp()
    await team.world.pool.execute(
        """
        INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5)
        """,
        team.id,
        stamp.id,
        address,
        unsubscribed,
        stamp.at,
    )
    for topic_id, subscription in (topics or {}).items():
        await choose(team, UUID(str(stamp.id)), topic_id, subscription)
    return UUID(str(stamp.id))


async def choose(team: Team, contact_id: UUID, topic_id: UUID, subscription: str) -> None:
    """What a contact chooses of a topic from now on."""
    await team.world.pool.execute(
        """
        INSERT INTO topic_choices (team_id, contact_id, topic_id, subscription, chosen_at)
        VALUES ($1, $2, $3, $4, now())
        ON CONFLICT (team_id, contact_id, topic_id) DO UPDATE SET subscription = excluded.subscription
        """,
        team.id,
        contact_id,
        topic_id,
        subscription,
    )


async def mark_deleted(team: Team, topic_id: UUID) -> None:
    """What deleting a topic does to its row."""
    await team.world.pool.execute(
        "UPDATE topics SET deleted_at = now() WHERE team_id = $1 AND id = $2", team.id, topic_id
    )
