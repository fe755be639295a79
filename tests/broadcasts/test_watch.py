"""A broadcast while it is being sent: how it ends, and what stops it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from uuid import UUID

import pytest

from kit.broadcasts import made, sent, shown, status_of
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team, World
from pillarbox.broadcasts import copy_counts_queries, watch_queries
from pillarbox.broadcasts.copy_counts_queries import CopyCounts
from pillarbox.broadcasts.limits import BrakeLimits, reason_to_pause
from pillarbox.kernel.ids import Ids
from pillarbox.timeline.rollups import fold

COUNT = """
    INSERT INTO metric_increments (team_id, id, start, domain_name, broadcast_id, sent, delivered,
                                   bounced_permanent, complained)
    VALUES ($1, $2, $3, 'harbor.example', $4, $5, $6, $7, $8)
"""


def so_far(sent: int, bounced: int = 0, complained: int = 0) -> CopyCounts:
    return CopyCounts(
        received=sent,
        sent=sent,
        delivered=sent - bounced,
        bounced=bounced,
        complained=complained,
        suppressed=0,
        failed=0,
        opened=0,
        clicked=0,
        unsubscribed=0,
    )


@pytest.mark.parametrize(
    ("found", "limits", "said"),
    [
        (so_far(499, 400), BrakeLimits(), None),
        (so_far(500, 25), BrakeLimits(), None),
        (so_far(500, 26), BrakeLimits(), "5.20 % of 500 sent copies bounced; the limit is 5 %."),
        (so_far(1000, 0, 3), BrakeLimits(), None),
        (
            so_far(1000, 0, 4),
            BrakeLimits(),
            "0.40 % of 1,000 delivered copies were complained about; the limit is 0.3 %.",
        ),
        (so_far(500, 500, 0), BrakeLimits(bounces=Fraction(0)), None),
        (so_far(10, 1), BrakeLimits(after=10), "10.00 % of 10 sent copies bounced; the limit is 5 %."),
        (so_far(0), BrakeLimits(after=1), None),
    ],
)
def test_what_stops_a_broadcast(found: CopyCounts, limits: BrakeLimits, said: str | None) -> None:
    assert reason_to_pause(found, limits) == said


async def begun(team: Team, count: int = 3) -> str:
    broadcast_id = await made(team)
    await sent(team, broadcast_id)
    await run_jobs(team.world)
    return broadcast_id


async def look(team: Team) -> None:
    """The next look at what is being sent."""
    clock_of(team.world).advance(2)
    await run_jobs(team.world)


async def counted(team: Team, broadcast_id: str, sent: int, bounced: int = 0, complained: int = 0) -> None:
    """What the timeline adds when so much happens."""
    world = team.world
    await world.pool.execute(
        COUNT,
        team.id,
        world.app.need(Ids).new(),
        world.clock.now(),
        UUID(broadcast_id),
        sent,
        sent - bounced,
        bounced,
        complained,
    )


async def test_it_is_sent_when_nobody_waits(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await begun(team)
    contacts = await pillarbox.pool.fetch("SELECT contact_id FROM broadcast_recipients")
    skip = "UPDATE broadcast_recipients SET skipped_for = 'gone' WHERE contact_id = $1"
    for contact in contacts:
        await look(team)
        assert await status_of(team, broadcast_id) == "queued"
        await pillarbox.pool.execute(skip, contact["contact_id"])
    await look(team)
    found = await shown(team, broadcast_id)
    assert (found["status"], found["sent_at"] is None) == ("sent", False)
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind LIKE 'broadcast.%'") == 0


async def test_bounces_pause_it_until_somebody_resumes_it(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, broadcast_limits_after="100") as pillarbox:
        team = await pillarbox.team()
        broadcast_id = await begun(team)
        await counted(team, broadcast_id, 99, 50)
        await look(team)
        assert await pillarbox.pool.fetchval("SELECT paused_at FROM broadcasts") is None
        await counted(team, broadcast_id, 1)
        await look(team)
        reason = await pillarbox.pool.fetchval("SELECT paused_for FROM broadcasts")
        assert reason == "50.00 % of 100 sent copies bounced; the limit is 5 %."
        assert await status_of(team, broadcast_id) == "queued"
        await look(team)
        clock_of(pillarbox).advance(60)
        assert await watch_queries.resume(team.db, UUID(broadcast_id), pillarbox.clock.now())
        await look(team)
        assert await pillarbox.pool.fetchval("SELECT paused_at FROM broadcasts") is None
        clock_of(pillarbox).advance(60)
        await counted(team, broadcast_id, 100, 6)
        await look(team)
        reason = await pillarbox.pool.fetchval("SELECT paused_for FROM broadcasts")
        assert reason == "6.00 % of 100 sent copies bounced; the limit is 5 %."
        answer = await team.post(f"/broadcasts/{broadcast_id}/cancel")
        assert (answer.status_code, await status_of(team, broadcast_id)) == (200, "canceled")
        await look(team)
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind LIKE 'broadcast.%'") == 0


async def test_figures_are_the_same_before_and_after_folding(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await begun(team)
    began = await pillarbox.pool.fetchval("SELECT queued_at FROM broadcasts")
    await counted(team, broadcast_id, 10, 2, 1)
    before = await copy_counts_queries.since_start(team.db, UUID(broadcast_id), began)
    assert (before.sent, before.delivered, before.bounced, before.complained) == (10, 8, 2, 1)
    await fold(pillarbox.pool, pillarbox.clock.now())
    await counted(team, broadcast_id, 1)
    after = await copy_counts_queries.since_start(team.db, UUID(broadcast_id), began)
    assert (after.sent, after.delivered, after.bounced) == (11, 9, 2)
    clock_of(pillarbox).advance(3600)
    lately = await copy_counts_queries.lately(team.db, UUID(broadcast_id), pillarbox.clock.now())
    assert lately.sent == 0
