"""What is removed of a broadcast with its emails (docs/decisions/0076)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from kit.broadcasts import made, sent, status_of
from kit.manual_world import clock_of, run_jobs
from kit.world import Team, World
from pillarbox.broadcasts.retention import BroadcastRetention
from pillarbox.emails.retention import EmailRetention
from pillarbox.kernel.storage.blobs import BlobStore

COUNTS = "SELECT (SELECT count(*) FROM broadcast_recipients), (SELECT count(*) FROM contents)"


async def mailed(pillarbox: World) -> tuple[Team, str]:
    """A broadcast that is sent, with its copies delivered and one recipient skipped."""
    team = await pillarbox.team()
    broadcast_id = await made(team)
    await sent(team, broadcast_id)
    await run_jobs(pillarbox)
    skip = """
        UPDATE broadcast_recipients SET skipped_for = 'gone'
         WHERE contact_id = (SELECT min(contact_id::text)::uuid FROM broadcast_recipients)
    """
    await pillarbox.pool.execute(skip)
    while await pillarbox.turn():
        pass
    clock_of(pillarbox).advance(2)
    await run_jobs(pillarbox)
    assert await status_of(team, broadcast_id) == "sent"
    assert tuple(await pillarbox.pool.fetchrow(COUNTS)) == (3, 1)
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM deliveries") == 0
    return team, broadcast_id


def kept(pillarbox: World, *, emails: int, bodies: int = 0) -> tuple[EmailRetention, BroadcastRetention]:
    of_emails = EmailRetention(
        pillarbox.pool, pillarbox.clock, pillarbox.app.need(BlobStore), emails=emails, bodies=bodies
    )
    return of_emails, BroadcastRetention(pillarbox.pool, pillarbox.clock, bodies=bodies)


async def test_recipients_go_when_their_emails_are_gone(pillarbox: World) -> None:
    team, broadcast_id = await mailed(pillarbox)
    emails, broadcasts = kept(pillarbox, emails=30)
    clock_of(pillarbox).advance(timedelta(days=29))
    await emails.purge_emails()
    assert await broadcasts.collect() == "0 recipients of broadcasts, 0 bodies"
    assert tuple(await pillarbox.pool.fetchrow(COUNTS)) == (3, 1)
    clock_of(pillarbox).advance(timedelta(days=2))
    assert await emails.purge_emails() == 2
    assert await broadcasts.collect() == "3 recipients of broadcasts, 0 bodies"
    assert tuple(await pillarbox.pool.fetchrow(COUNTS)) == (0, 0)
    assert await status_of(team, broadcast_id) == "sent"
    assert await broadcasts.collect() == "0 recipients of broadcasts, 0 bodies"


@pytest.mark.parametrize("is_open", [False, True])
async def test_bodies_go_when_no_copy_is_on_its_way(pillarbox: World, is_open: bool) -> None:
    team, broadcast_id = await mailed(pillarbox)
    _, broadcasts = kept(pillarbox, emails=0, bodies=7)
    clock_of(pillarbox).advance(timedelta(days=6))
    assert await broadcasts.collect() == "0 recipients of broadcasts, 0 bodies"
    clock_of(pillarbox).advance(timedelta(days=2))
    copy = await pillarbox.pool.fetchval(
        "SELECT email_id FROM broadcast_recipients WHERE email_id IS NOT NULL"
    )
    if is_open:
        await pillarbox.pool.execute(
            """
                INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, released, created_at)
                VALUES ($1, $2, 0, 'quay.example', $3, true, $3)
                """,
            team.id,
            copy,
            pillarbox.clock.now(),
        )
    assert await broadcasts.collect() == f"0 recipients of broadcasts, {int(not is_open)} bodies"
    html = await pillarbox.pool.fetchval("SELECT html FROM contents")
    assert (html is None) is not is_open
    assert (await team.get(f"/emails/{copy}")).status_code == 200
    source = await pillarbox.pool.fetchval("SELECT html FROM broadcasts WHERE id = $1", UUID(broadcast_id))
    assert source is not None
