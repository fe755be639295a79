"""Operations on one broadcast at the same time (broadcasts.md section 8), on real connections."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from uuid import UUID

from kit.broadcasts import crew, made, recipients, sent, shown, status_of
from kit.manual_world import clock_of, run_jobs
from kit.world import Team, World
from pillarbox.broadcasts.start import BroadcastStart
from pillarbox.kernel.work.jobs import Job

TURNS = 12

RECIPIENT = """
    INSERT INTO broadcast_recipients (team_id, broadcast_id, contact_id) VALUES ($1, $2, $3)
"""

WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%segment_members%'
"""


async def test_of_many_sendings_one_counts(pillarbox: World) -> None:
    """What a test must cover 5."""
    team = await pillarbox.team()
    broadcast_id = await made(team)
    path = f"/broadcasts/{broadcast_id}/send"
    answers = await asyncio.gather(*[team.post(path) for _ in range(8)])
    assert Counter(answer.status_code for answer in answers) == {200: 1, 403: 7}
    await run_jobs(pillarbox)
    assert len(await recipients(team, broadcast_id)) == 3


async def due(pillarbox: World, team: Team) -> str:
    """A scheduled broadcast whose time has come."""
    broadcast_id = await made(team)
    await sent(team, broadcast_id, scheduled_at="in 1 minute")
    clock_of(pillarbox).advance(60)
    return broadcast_id


async def test_a_cancel_and_the_beginning(pillarbox: World) -> None:
    """Either it is a draft again, and nothing was begun, or it is canceled."""
    team = await pillarbox.team()
    found = Counter[str]()
    for _ in range(TURNS):
        broadcast_id = await due(pillarbox, team)
        cancel = team.post(f"/broadcasts/{broadcast_id}/cancel")
        answer, _ = await asyncio.gather(cancel, run_jobs(pillarbox))
        assert answer.status_code == 200
        status = await status_of(team, broadcast_id)
        found[status] += 1
        if status == "draft":
            assert await recipients(team, broadcast_id) == []
    assert set(found) <= {"draft", "canceled"}


async def test_a_change_and_the_beginning(pillarbox: World) -> None:
    """The mail is wholly what was committed last."""
    team = await pillarbox.team()
    for _ in range(TURNS):
        broadcast_id = await due(pillarbox, team)
        change = team.call("PATCH", f"/broadcasts/{broadcast_id}", {"subject": "New", "html": "<p>New</p>"})
        answer, _ = await asyncio.gather(change, run_jobs(pillarbox))
        assert answer.status_code in (200, 403)
        stored = await shown(team, broadcast_id)
        is_new = answer.status_code == 200
        assert (stored["subject"] == "New", stored["html"] == "<p>New</p>") == (is_new, is_new)
        content = await pillarbox.pool.fetchrow(
            """
                SELECT c.subject, c.html FROM broadcasts b JOIN contents c ON c.id = b.content_id
                 WHERE b.id = $1
                """,
            UUID(broadcast_id),
        )
        assert (content["subject"], content["html"]) == (stored["subject"], stored["html"])


async def start(pillarbox: World, team: Team, broadcast_id: str) -> None:
    """What the job does, beside a test that goes on."""
    now = pillarbox.clock.now()
    job = Job(
        team_id=team.id,
        id=UUID(int=1),
        kind="broadcast.start",
        subject_id=UUID(broadcast_id),
        attempt=1,
        tries=0,
        created_at=now,
    )
    await pillarbox.app.need(BroadcastStart).run(job)


async def test_a_cancel_does_not_wait_for_the_recipients_to_be_written(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await made(team)
    await sent(team, broadcast_id)
    member = await pillarbox.pool.fetchval("SELECT contact_id FROM segment_members LIMIT 1")
    async with pillarbox.pool.acquire() as other:
        held = other.transaction()
        await held.start()
        await other.execute(RECIPIENT, team.id, UUID(broadcast_id), member)
        starting = asyncio.create_task(start(pillarbox, team, broadcast_id))
        async with asyncio.timeout(10):
            while not await pillarbox.pool.fetchval(WAITING):
                await asyncio.sleep(0.01)
        answer = await team.post(f"/broadcasts/{broadcast_id}/cancel")
        assert (answer.status_code, await status_of(team, broadcast_id)) == (200, "canceled")
        assert not starting.done()
        await held.rollback()
        await starting
    assert await status_of(team, broadcast_id) == "canceled"
    assert await recipients(team, broadcast_id) == []
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM contents") == 0


async def test_two_processes_that_begin_it_write_each_recipient_once(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await made(team, await crew(team, 20))
    await sent(team, broadcast_id)
    await asyncio.gather(*[start(pillarbox, team, broadcast_id) for _ in range(4)])
    assert await status_of(team, broadcast_id) == "queued"
    assert len(await recipients(team, broadcast_id)) == 20
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM contents") == 1


async def test_a_deleted_segment_gives_all_of_its_members_or_none(pillarbox: World) -> None:
    team = await pillarbox.team()
    for _ in range(TURNS):
        segment_id = await crew(team, 5)
        broadcast_id = await made(team, segment_id)
        await sent(team, broadcast_id)
        delete = team.call("DELETE", f"/segments/{segment_id}")
        await asyncio.gather(delete, run_jobs(pillarbox))
        with suppress(TimeoutError):
            await run_jobs(pillarbox)
        status, got = await status_of(team, broadcast_id), len(await recipients(team, broadcast_id))
        assert (status, got) in (("queued", 5), ("failed", 0))
