"""How a broadcast begins: who gets it, and what hinders it (broadcasts.md sections 6 and 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.audience import a_contact, a_segment, a_topic, chooses, joins
from kit.broadcasts import crew, made, recipients, sent, shown, status_of
from kit.brought import INVARIANTS
from kit.client import error
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.world import Team, World
from pillarbox.broadcasts.start import SEGMENT_GONE
from pillarbox.emails.integrity.reconcile import reconcile


async def row(pillarbox: World, broadcast_id: str) -> Any:
    return await pillarbox.pool.fetchrow("SELECT * FROM broadcasts WHERE id = $1", UUID(broadcast_id))


async def test_sending_a_draft_writes_a_row_for_each_member(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await made(team, reply_to=["a@harbor.example"], preview_text="High")
    await sent(team, broadcast_id)
    assert await status_of(team, broadcast_id) == "queued"
    assert await run_jobs(pillarbox) == 1
    assert len(await recipients(team, broadcast_id)) == 3
    found = await shown(team, broadcast_id)
    assert (found["status"], found["sent_at"], found["scheduled_at"]) == ("queued", None, None)
    begun = await row(pillarbox, broadcast_id)
    assert (begun["recipients"], begun["domain_name"]) == (3, "harbor.example")
    shared = await pillarbox.pool.fetchrow("SELECT * FROM contents WHERE id = $1", begun["content_id"])
    assert (shared["sender"], shared["subject"]) == (found["from"], found["subject"])
    assert (shared["html"], shared["text"], shared["preview_text"]) == (found["html"], None, "High")
    assert shared["reply_to_list"] == '["a@harbor.example"]'


async def test_who_wants_no_mail_and_who_joins_later_gets_none(pillarbox: World) -> None:
    team = await pillarbox.team()
    segment_id = await a_segment(team)
    member = await a_contact(team, "in@quay.example")
    left = await a_contact(team, "left@quay.example", unsubscribed=True)
    await a_contact(team, "out@quay.example")
    await joins(team, segment_id, [member, left])
    broadcast_id = await made(team, segment_id)
    await sent(team, broadcast_id)
    clock_of(pillarbox).advance(1)
    await joins(team, segment_id, [await a_contact(team, "late@quay.example")])
    await run_jobs(pillarbox)
    assert await recipients(team, broadcast_id) == [member]


@pytest.mark.parametrize("default", ["opt_in", "opt_out"])
@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_topic_decides_who_gets_it(pillarbox: World, default: str, is_deleted: bool) -> None:
    """What people chose counts, else the default, also where the topic is deleted after the sending."""
    team = await pillarbox.team()
    segment_id, topic_id = await a_segment(team), await a_topic(team, default)
    joined, refused, silent = [await a_contact(team, f"{n}@quay.example") for n in "abc"]
    await chooses(team, joined, topic_id, "opt_in")
    await chooses(team, refused, topic_id, "opt_out")
    await joins(team, segment_id, [joined, refused, silent])
    broadcast_id = await made(team, segment_id, topic_id=str(topic_id))
    await sent(team, broadcast_id, scheduled_at="in 1 hour")
    if is_deleted:
        assert (await team.call("DELETE", f"/topics/{topic_id}")).status_code == 200
        assert (await shown(team, broadcast_id))["topic_id"] is None
        renamed = await team.call("PATCH", f"/broadcasts/{broadcast_id}", {"subject": "Other"})
        assert renamed.status_code == 200
    clock_of(pillarbox).advance(3600)
    await run_jobs(pillarbox)
    wanted = [joined] if default == "opt_out" else [joined, silent]
    assert await recipients(team, broadcast_id) == wanted


async def test_a_draft_forgets_a_topic_that_is_deleted(pillarbox: World) -> None:
    team = await pillarbox.team()
    topic_id = await a_topic(team, "opt_out")
    broadcast_id = await made(team, topic_id=str(topic_id))
    await team.call("DELETE", f"/topics/{topic_id}")
    await sent(team, broadcast_id)
    await run_jobs(pillarbox)
    assert len(await recipients(team, broadcast_id)) == 3


async def test_with_nobody_to_get_it_a_broadcast_is_sent_at_once(pillarbox: World) -> None:
    """What a test must cover 9."""
    team = await pillarbox.team()
    topic_id = await a_topic(team, "opt_out")
    broadcast_id = await made(team, topic_id=str(topic_id))
    await sent(team, broadcast_id)
    await run_jobs(pillarbox)
    found = await shown(team, broadcast_id)
    assert (found["status"], found["sent_at"] is None) == ("sent", False)
    assert (await row(pillarbox, broadcast_id))["recipients"] == 0
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM contents") == 0
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM jobs WHERE kind LIKE 'broadcast.%'") == 0


async def test_a_scheduled_one_begins_when_it_is_due(pillarbox: World) -> None:
    """What a test must cover 4: what was last changed is what goes out."""
    team = await pillarbox.team()
    broadcast_id = await made(team)
    await sent(team, broadcast_id, scheduled_at="in 1 hour")
    when = (await shown(team, broadcast_id))["scheduled_at"]
    clock_of(pillarbox).advance(3590)
    assert await run_jobs(pillarbox) == 0
    await team.call("PATCH", f"/broadcasts/{broadcast_id}", {"subject": "High water"})
    assert (await shown(team, broadcast_id))["scheduled_at"] == when
    clock_of(pillarbox).advance(10)
    await run_jobs(pillarbox)
    found = await shown(team, broadcast_id)
    assert (found["status"], found["scheduled_at"]) == ("queued", when)
    begun = await row(pillarbox, broadcast_id)
    subject = "SELECT subject FROM contents WHERE id = $1"
    assert await pillarbox.pool.fetchval(subject, begun["content_id"]) == "High water"


@pytest.mark.parametrize("way", ["cancel", "delete"])
async def test_nothing_goes_out_of_one_that_was_taken_back(pillarbox: World, way: str) -> None:
    """What a test must cover 14."""
    team = await pillarbox.team()
    broadcast_id = await made(team)
    await sent(team, broadcast_id, scheduled_at="in 1 hour")
    path = f"/broadcasts/{broadcast_id}"
    answer = await (team.post(f"{path}/cancel") if way == "cancel" else team.call("DELETE", path))
    assert answer.status_code == 200
    clock_of(pillarbox).advance(7200)
    assert await run_jobs(pillarbox) == 0
    assert await recipients(team, broadcast_id) == []
    if way == "cancel":
        found = await shown(team, broadcast_id)
        assert (found["status"], found["scheduled_at"]) == ("draft", None)
        await sent(team, broadcast_id)
        await run_jobs(pillarbox)
        assert len(await recipients(team, broadcast_id)) == 3


async def failed(team: Team, broadcast_id: str) -> str:
    """Why it failed; nothing is left of a beginning."""
    await run_jobs(team.world)
    assert await status_of(team, broadcast_id) == "failed"
    assert await recipients(team, broadcast_id) == []
    assert await team.world.pool.fetchval("SELECT count(*) FROM contents") == 0
    found: str = (await row(team.world, broadcast_id))["failed_for"]
    return found


async def test_it_fails_where_its_segment_is_gone(pillarbox: World) -> None:
    team = await pillarbox.team()
    segment_id = await crew(team)
    broadcast_id = await made(team, segment_id)
    await sent(team, broadcast_id, scheduled_at="in 1 hour")
    await team.call("DELETE", f"/segments/{segment_id}")
    await run_jobs(pillarbox)
    clock_of(pillarbox).advance(3600)
    assert await failed(team, broadcast_id) == SEGMENT_GONE


async def test_it_goes_on_where_its_segment_is_deleted_later(pillarbox: World) -> None:
    team = await pillarbox.team()
    segment_id = await crew(team)
    broadcast_id = await made(team, segment_id)
    await sent(team, broadcast_id)
    await run_jobs(pillarbox)
    await team.call("DELETE", f"/segments/{segment_id}")
    await run_jobs(pillarbox)
    assert (await shown(team, broadcast_id))["segment_id"] is None
    assert await status_of(team, broadcast_id) == "queued"
    assert len(await recipients(team, broadcast_id)) == 3


async def test_it_fails_where_its_domain_may_not_send_any_more(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, require_verified_domain="always") as pillarbox:
        team = await pillarbox.team()
        domain_id = await team.domain()
        broadcast_id = await made(team)
        await sent(team, broadcast_id, scheduled_at="in 1 hour")
        assert (await team.call("DELETE", f"/domains/{domain_id}")).status_code == 200
        clock_of(pillarbox).advance(3600)
        assert "harbor.example domain is not verified" in await failed(team, broadcast_id)


async def test_it_fails_where_its_content_cannot_be_composed(pillarbox: World) -> None:
    team = await pillarbox.team()
    broadcast_id = await made(team)
    await sent(team, broadcast_id)
    await pillarbox.pool.execute("UPDATE broadcasts SET sender = 'nobody'")
    assert "address" in await failed(team, broadcast_id)


async def test_the_quota_is_asked_at_the_sending_and_at_the_start(pillarbox: World) -> None:
    team = await pillarbox.team()
    await pillarbox.pool.execute("UPDATE teams SET daily_quota = 4")
    small, large = await made(team, await crew(team, 3)), await made(team, await crew(team, 2))
    await sent(team, small)
    await run_jobs(pillarbox)
    assert await status_of(team, small) == "queued"
    await sent(team, large)
    await run_jobs(pillarbox)
    assert await status_of(team, large) == "failed"
    assert "quota" in (await row(pillarbox, large))["failed_for"]
    await pillarbox.pool.execute("UPDATE teams SET daily_quota = 0")
    clock_of(pillarbox).advance(2)
    third = await made(team)
    refused = error(await team.post(f"/broadcasts/{third}/send"))
    assert refused[:2] == (429, "daily_quota_exceeded")
    assert await status_of(team, third) == "draft"


async def test_the_installation_is_sound_after_a_start(pillarbox: World) -> None:
    team = await pillarbox.team()
    for scheduled_at in (None, "in 1 hour"):
        await sent(team, await made(team), scheduled_at=scheduled_at)
    await run_jobs(pillarbox)
    found = await reconcile(pillarbox.pool, 10, INVARIANTS)
    assert found.gaps == []
