"""Scheduled mail: released in time, moved and canceled only while it waits, never both sent and canceled."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kit.world import World


async def test_scheduled_mail_waits_for_its_time_and_then_goes(pillarbox: World) -> None:
    """DUR-08: not before its time, and the wire shows `scheduled` until then."""
    team = await pillarbox.team()
    email = await team.send(scheduled_at="in 1 hour")
    assert (await team.email(email))["last_event"] == "scheduled"
    pillarbox.clock.advance(timedelta(minutes=59, seconds=59))
    assert await pillarbox.turn() == 0
    pillarbox.clock.advance(1)
    assert await pillarbox.turn() == 1
    assert await team.kinds(email) == ["scheduled", "queued", "sent", "delivered"]


async def test_a_moved_email_goes_at_its_new_time(pillarbox: World) -> None:
    team = await pillarbox.team()
    email = await team.send(scheduled_at="in 1 hour")
    moved = await team.call("PATCH", f"/emails/{email}", {"scheduled_at": "in 3 hours"})
    assert moved.json() == {"object": "email", "id": email}
    pillarbox.clock.advance(timedelta(hours=2))
    assert await pillarbox.turn() == 0
    pillarbox.clock.advance(timedelta(hours=1))
    assert await pillarbox.turn() == 1


async def test_a_canceled_email_leaves_no_work(pillarbox: World) -> None:
    team = await pillarbox.team()
    email = await team.send(scheduled_at="in 1 hour", to=["a@one.example", "b@two.example"])
    for _ in range(2):
        canceled = await team.post(f"/emails/{email}/cancel")
        assert (canceled.status_code, canceled.json()) == (200, {"object": "email", "id": email})
    pillarbox.clock.advance(timedelta(hours=2))
    assert await pillarbox.turn() == 0
    assert await team.kinds(email) == ["scheduled", "canceled"]
    assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0
    again = await team.call("PATCH", f"/emails/{email}", {"scheduled_at": "in 3 hours"})
    assert again.status_code == 422


async def test_mail_of_a_deleted_key_fails_when_due(pillarbox: World) -> None:
    """api-keys.md section 5: scheduled mail created with the key ends `failed`."""
    team = await pillarbox.team()
    made = await team.post("/api-keys", {"name": "short-lived"})
    email = await team.using(made.json()["token"]).send(scheduled_at="in 1 hour")
    await team.call("DELETE", f"/api-keys/{made.json()['id']}")
    pillarbox.clock.advance(timedelta(hours=1))
    await pillarbox.turn()
    assert await team.kinds(email) == ["scheduled", "queued", "failed"]


async def test_an_address_suppressed_meanwhile_is_skipped(pillarbox: World) -> None:
    """OUT-21, BNC-08: checked before it is sent; nothing reaches a transport."""
    team = await pillarbox.team()
    email = await team.send(scheduled_at="in 1 hour", to="Ada@Quay.example")
    await team.db.run(
        """
            INSERT INTO suppressions (team_id, id, address, origin, created_at)
            VALUES ($1, gen_random_uuid(), 'ada@quay.example', 'complaint', now())
            """
    )
    pillarbox.clock.advance(timedelta(hours=1))
    await pillarbox.turn()
    last = (await team.events(email))[-1]
    assert (last["event"], last["reason"]) == ("suppressed", "previous_complaint")
    assert await team.db.value("SELECT count(*) FROM captured WHERE team_id = $1") == 0


@pytest.mark.parametrize("emails", [60])
async def test_canceling_around_the_due_time_never_sends_a_canceled_email(
    pillarbox: World, emails: int
) -> None:
    """DUR-08: sent and canceled have nothing in common, and together they are all."""
    team = await pillarbox.team()
    two = ["a@one.example", "b@two.example"]
    ids = [await team.send(scheduled_at="in 1 hour", to=two) for _ in range(emails)]
    pillarbox.clock.advance(timedelta(hours=1))
    cancels = [asyncio.create_task(team.post(f"/emails/{email}/cancel")) for email in ids]
    while await pillarbox.turn():
        pass
    answers = [(await cancel).status_code for cancel in cancels]
    while await pillarbox.turn():
        pass
    for email, status in zip(ids, answers, strict=True):
        last = (await team.email(email))["last_event"]
        assert (status, last) in {(200, "canceled"), (422, "delivered")}
    assert set(answers) <= {200, 422}
