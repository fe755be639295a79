"""Broadcasts in a database that was restored from a backup: none goes on by itself."""

from __future__ import annotations

from datetime import timedelta

from kit.broadcasts import made, recipients, sent, status_of
from kit.manual_world import clock_of, run_jobs
from kit.world import Team, World
from pillarbox.backup import restored
from pillarbox.backup.restored import RestoredChoice
from pillarbox.kernel.postgres.database import transaction
from pillarbox.timeline.record import Timeline

SCHEDULED_FOR = timedelta(hours=1)


async def three(team: Team) -> tuple[str, str, str]:
    """One that is being sent, one that is about to begin, and one that is scheduled."""
    running = await made(team)
    await sent(team, running)
    await run_jobs(team.world)
    queued, scheduled = await made(team), await made(team)
    await sent(team, queued)
    await sent(team, scheduled, scheduled_at="in 1 hour")
    return running, queued, scheduled


async def restore(pillarbox: World) -> None:
    """What a restore does last."""
    async with transaction(pillarbox.pool) as conn:
        await restored.put_aside(conn, "backup", pillarbox.clock.now(), pillarbox.clock.now())


async def hours_pass(pillarbox: World) -> None:
    clock_of(pillarbox).advance(2 * SCHEDULED_FOR)
    for _ in range(3):
        await run_jobs(pillarbox)
        while await pillarbox.turn():
            pass
        clock_of(pillarbox).advance(2)


async def statuses(team: Team, ids: tuple[str, ...]) -> list[str]:
    return [await status_of(team, broadcast_id) for broadcast_id in ids]


async def test_none_goes_on_until_it_is_released(pillarbox: World) -> None:
    team = await pillarbox.team()
    ids = await three(team)
    await restore(pillarbox)
    await hours_pass(pillarbox)
    assert await statuses(team, ids) == ["queued", "queued", "scheduled"]
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == 0
    assert await recipients(team, ids[1]) == []
    [work] = await restored.summary(pillarbox.pool, pillarbox.clock.now())
    assert (work.kind, work.items) == ("broadcasts", 3)
    assert await restored.release(pillarbox.pool, RestoredChoice(), None, pillarbox.clock.now) == 3
    await hours_pass(pillarbox)
    assert await statuses(team, ids) == ["sent", "sent", "sent"]
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == 9
    assert await restored.origin(pillarbox.pool) is None


async def test_what_was_to_begin_later_is_released_alone(pillarbox: World) -> None:
    team = await pillarbox.team()
    ids = await three(team)
    await restore(pillarbox)
    lost_at = pillarbox.clock.now() + SCHEDULED_FOR / 2
    assert await restored.release(pillarbox.pool, RestoredChoice(), lost_at, pillarbox.clock.now) == 1
    await hours_pass(pillarbox)
    assert await statuses(team, ids) == ["queued", "queued", "sent"]


async def test_they_are_given_up(pillarbox: World) -> None:
    team = await pillarbox.team()
    ids = await three(team)
    await restore(pillarbox)
    timeline = pillarbox.app.need(Timeline)
    assert await restored.drop(pillarbox.pool, RestoredChoice(), timeline, pillarbox.clock.now) == 3
    await hours_pass(pillarbox)
    assert await statuses(team, ids) == ["canceled", "canceled", "draft"]
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == 0
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind LIKE 'broadcast.%'") <= 1
    assert await restored.origin(pillarbox.pool) is None


async def test_one_that_is_put_aside_is_canceled_over_the_api(pillarbox: World) -> None:
    team = await pillarbox.team()
    ids = await three(team)
    await restore(pillarbox)
    for broadcast_id in ids:
        assert (await team.post(f"/broadcasts/{broadcast_id}/cancel")).status_code == 200
    assert await restored.summary(pillarbox.pool, pillarbox.clock.now()) == []
    await sent(team, ids[2])
    await hours_pass(pillarbox)
    assert await statuses(team, ids) == ["canceled", "canceled", "sent"]
