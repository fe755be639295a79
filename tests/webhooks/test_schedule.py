"""When deliveries are tried, and what becomes of them (webhooks.md sections 2.4, 2.5 and 4; WH-02, WH-04)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from kit import webhooks
from kit.clock import ManualClock
from kit.receiver import WEBHOOKS, Receiver, receiver, status
from kit.webhooks import Hook, hook
from kit.world import Team, World, world
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher

WAITS = [5, 300, 1800, 7200, 18000, 36000, 36000]


@asynccontextmanager
async def hooked(url: str, folder: Path, clock: ManualClock) -> AsyncIterator[tuple[World, Hook, Receiver]]:
    """A world whose time stands still, one webhook, and its receiver."""
    async with receiver() as at, world(url, folder, clock=clock, started=False, **WEBHOOKS) as pillarbox:
        team = await pillarbox.team()
        try:
            yield pillarbox, await hook(team, endpoint=at.url), at
        finally:
            await dispatcher(pillarbox).stop(1)


def dispatcher(pillarbox: World) -> WebhookDispatcher:
    found = pillarbox.app.need(WebhookDispatcher)
    assert found is not None
    return found


async def publish(team: Team, *kinds: str, **data: Any) -> None:
    """Events, and the millisecond in which they become due: ids of one instant are microseconds apart."""
    await webhooks.publish(team, *kinds, **data)
    clock = team.world.clock
    assert isinstance(clock, ManualClock)
    clock.advance(0.001)


async def turn(pillarbox: World) -> None:
    """Let the dispatcher do all that is due."""
    while await dispatcher(pillarbox).look():
        await dispatcher(pillarbox).idle()


async def shown(on: Hook, event: str) -> tuple[str, str | None]:
    found = await on.get(f"/events/{event}")
    return found["status"], found["next_attempt_at"]


async def attempts(on: Hook, event: str) -> list[tuple[int, str]]:
    found: list[dict[str, Any]] = (await on.get(f"/events/{event}/attempts"))["data"]
    return [(attempt["http_status_code"], attempt["response"]) for attempt in found][::-1]


def in_(clock: ManualClock, seconds: float) -> str:
    at: datetime = clock.now() + timedelta(seconds=seconds)
    return iso_style(at)


async def test_eight_attempts_at_their_times_and_then_it_has_failed(
    database_url: str, tmp_path: Path
) -> None:
    """WH-04: never earlier than the schedule says, the times are shown, the id and the bytes stay."""
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(500, b"busy"))
        await publish(on.team)
        (event,) = [found["id"] for found in await on.events()]
        assert (await shown(on, event))[0] == "pending"
        for number, wait in enumerate(WAITS, 1):
            await turn(pillarbox)
            assert len(at.arrivals) == number
            assert await shown(on, event) == ("attempting", in_(clock, wait))
            clock.advance(wait - 0.001)
            await turn(pillarbox)
            assert len(at.arrivals) == number
            clock.advance(0.001)
        await turn(pillarbox)
        assert await shown(on, event) == ("failed", None)
        clock.advance(timedelta(days=3))
        await turn(pillarbox)
        assert len(at.arrivals) == 8
        assert await attempts(on, event) == [(500, "busy")] * 8
        assert {(arrival.event, arrival.body) for arrival in at.arrivals} == {(event, at.arrivals[0].body)}
        times = [int(arrival.headers["svix-timestamp"]) for arrival in at.arrivals]
        assert [after - before for before, after in pairwise(times)] == WAITS


async def test_success_on_the_fourth_attempt_is_the_end(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(503), status(302), status(404), status(204, b""))
        await publish(on.team)
        for wait in WAITS[:4]:
            await turn(pillarbox)
            clock.advance(wait)
        await turn(pillarbox)
        (event,) = [found["id"] for found in await on.events()]
        assert await shown(on, event) == ("success", None)
        assert [code for code, _ in await attempts(on, event)] == [503, 302, 404, 204]


async def test_a_replay_is_one_attempt_more_and_leaves_the_schedule_alone(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(500), status(500), status(500), status(200))
        await publish(on.team)
        await turn(pillarbox)
        (event,) = [found["id"] for found in await on.events()]
        due = in_(clock, 5)
        for _ in range(2):
            assert (await on.replay(event)).status_code == 200
        await turn(pillarbox)
        assert len(at.arrivals) == 3
        assert await shown(on, event) == ("attempting", due)
        await on.replay(event)
        await turn(pillarbox)
        assert await shown(on, event) == ("attempting", due), "a replay that succeeds changes nothing yet"
        clock.advance(5)
        await turn(pillarbox)
        assert await shown(on, event) == ("success", None)
        assert len({arrival.body for arrival in at.arrivals}) == 1
        assert {arrival.event for arrival in at.arrivals} == {event}


async def test_a_replay_after_the_end_can_only_make_it_better(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(500))
        await publish(on.team)
        for wait in [*WAITS, 1]:
            await turn(pillarbox)
            clock.advance(wait)
        (event,) = [found["id"] for found in await on.events()]
        await on.replay(event)
        await turn(pillarbox)
        assert await shown(on, event) == ("failed", None)
        at.answers(status(200))
        await on.replay(event)
        await turn(pillarbox)
        assert await shown(on, event) == ("success", None)
        at.answers(status(500))
        await on.replay(event)
        await turn(pillarbox)
        assert await shown(on, event) == ("success", None), "success is final"
        assert len(await attempts(on, event)) == 11
        clock.advance(timedelta(days=2))
        await turn(pillarbox)
        assert len(at.arrivals) == 11, "a replay has no retries"


async def test_a_disabled_webhook_is_not_called_and_enabling_revives_nothing(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(500))
        await publish(on.team)
        await turn(pillarbox)
        (event,) = [found["id"] for found in await on.events()]
        await on.change(status="disabled")
        assert await shown(on, event) == ("failed", None)
        assert (await on.replay(event)).status_code == 422
        await publish(on.team)
        clock.advance(10)
        await turn(pillarbox)
        await on.change(status="enabled")
        clock.advance(timedelta(days=2))
        await turn(pillarbox)
        assert len(at.arrivals) == 1
        assert [(found["id"], found["status"]) for found in await on.events()] == [(event, "failed")]
        await publish(on.team)
        await turn(pillarbox)
        assert len(at.arrivals) == 2


async def test_deleted_while_an_attempt_is_on_the_wire(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):

        async def delete_first(_: object) -> bytes:
            assert (await on.team.call("DELETE", on.path)).status_code == 200
            return status(500)

        at.answers(delete_first)
        await publish(on.team)
        await turn(pillarbox)
        clock.advance(timedelta(days=2))
        await turn(pillarbox)
        assert len(at.arrivals) == 1
        assert not await on.owed()
        assert not await pillarbox.pool.fetch("SELECT FROM webhook_attempts")


async def test_disabled_while_an_attempt_is_on_the_wire(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):

        async def disable_first(_: object) -> bytes:
            assert (await on.change(status="disabled")).status_code == 200
            return status(500)

        at.answers(disable_first)
        await publish(on.team)
        await turn(pillarbox)
        (event,) = [found["id"] for found in await on.events()]
        assert await shown(on, event) == ("failed", None)
        await on.change(status="enabled")
        clock.advance(timedelta(days=2))
        await turn(pillarbox)
        assert (await shown(on, event), len(at.arrivals)) == (("failed", None), 1)


async def test_a_new_endpoint_gets_the_retries_and_new_secrets_sign_them(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at), receiver() as other:
        at.answers(status(500))
        await publish(on.team)
        await turn(pillarbox)
        await on.team.post(f"{on.path}/signing-secret/rotate")
        assert (await on.change(endpoint=other.url)).status_code == 200
        clock.advance(5)
        await turn(pillarbox)
        assert (len(at.arrivals), len(other.arrivals)) == (1, 1)
        assert at.arrivals[0].headers["svix-signature"].count("v1,") == 1
        assert other.arrivals[0].headers["svix-signature"].count("v1,") == 2


async def test_first_attempts_start_in_the_order_of_the_events(database_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        for number in range(60):
            await publish(on.team, "domain.updated", number=number)
            clock.advance(0.001)
        on_the_wire = dispatcher(pillarbox)
        await turn(pillarbox)
        assert on_the_wire.items_in_memory == 0
        expected = [found["id"] for found in await on.events()]
        assert sorted(arrival.event for arrival in at.arrivals) == expected


async def test_five_days_of_failure_of_several_events_disable_it(database_url: str, tmp_path: Path) -> None:
    """Section 4: not one second earlier, and not for a single event."""
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        at.answers(status(500))
        await publish(on.team)
        await turn(pillarbox)
        clock.advance(timedelta(hours=120, seconds=-1))
        await publish(on.team)
        await turn(pillarbox)
        assert (await on.get())["status"] == "enabled"
        clock.advance(6)
        await turn(pillarbox)
        assert (await on.get())["status"] == "disabled"
        assert {found["status"] for found in await on.events()} == {"failed"}
        count = len(at.arrivals)
        clock.advance(timedelta(days=2))
        await turn(pillarbox)
        assert len(at.arrivals) == count
        assert not await on.owed(), "what was open has left the queue"


async def test_the_old_secret_signs_for_a_day(database_url: str, tmp_path: Path) -> None:
    """Section 1.6: two signatures during the rotation, one afterwards."""
    clock = ManualClock()
    async with hooked(database_url, tmp_path, clock) as (pillarbox, on, at):
        await on.team.post(f"{on.path}/signing-secret/rotate")
        for wait in (timedelta(hours=24, seconds=-1), timedelta(seconds=2)):
            clock.advance(wait)
            await publish(on.team)
            await turn(pillarbox)
        assert [arrival.headers["webhook-signature"].count("v1,") for arrival in at.arrivals] == [2, 1]
