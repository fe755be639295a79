"""The machine's clock is set an hour ahead and back again: what is due stays due, and the jump is
reported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.automation_rows import an_automation, chain, connection, step
from kit.automation_runs import sent, walk
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.receiver import WEBHOOKS, receiver, status
from kit.webhooks import hook, publish
from kit.world import World, mail
from pillarbox.delivery.lease_expiry import LEASE
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.doctor import clocks
from pillarbox.doctor.checks import Level
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.plugin import clock_corrections_of
from pillarbox.kernel.process.clock_watch import JUMPS, ClockWatch
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.work import periodic
from pillarbox.kernel.work.periodic import NO_TEAM, Periodic
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
YEAR = timedelta(days=365)

DUE = "SELECT due_at FROM jobs WHERE team_id = $1 AND kind = 'test.round'"


@pytest.fixture
@asynccontextmanager
async def watched(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[World, ClockWatch]]:
    """A Pillarbox whose clock stands still, and the watch that notices when it is set."""
    async with manual_world(database_url, tmp_path, **WEBHOOKS) as pillarbox:
        app = pillarbox.app
        yield pillarbox, ClockWatch(app.kit.pool, app.kit.clock, app.need(Ids), clock_corrections_of(app.kit))


async def there_and_back(pillarbox: World, watch: ClockWatch, by: timedelta = HOUR) -> None:
    """The clock is ahead for eight seconds, in which nothing happens."""
    clock = clock_of(pillarbox)
    clock.jump(by)
    assert await watch.look()
    clock.advance(8)
    assert await watch.look() is None
    clock.jump(-by)
    assert await watch.look()


async def test_in_one_minute_is_one_minute_after_the_clock_was_ahead(
    watched: tuple[World, ClockWatch],
) -> None:
    """Ids were made while it was ahead; they hold back neither `created_at` nor what is due."""
    pillarbox, _ = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    clock.jump(HOUR)
    await team.send(scheduled_at="in 1 minute")
    clock.advance(8)
    clock.jump(-HOUR)
    email = await team.send(scheduled_at="in 1 minute")
    found = await team.email(email)
    assert abs(datetime.fromisoformat(found["scheduled_at"]) - clock.now() - MINUTE) < timedelta(seconds=1)
    assert abs(datetime.fromisoformat(found["created_at"]) - clock.now()) < timedelta(seconds=1)
    clock.advance(MINUTE)
    assert await pillarbox.turn() == 1
    assert (await team.email(email))["last_event"] == "delivered"
    moved = await team.send(scheduled_at="in 2 hours")
    await team.call("PATCH", f"/emails/{moved}", {"scheduled_at": "in 1 minute"})
    clock.advance(MINUTE)
    assert await pillarbox.turn() == 1


async def test_a_schedule_follows_the_clock_where_ids_run_ahead_of_it(
    watched: tuple[World, ClockWatch],
) -> None:
    """Set back by less than ids follow at once."""
    pillarbox, _ = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    await team.send()
    clock.jump(-9)
    email = await team.send(scheduled_at="in 1 minute")
    due = datetime.fromisoformat((await team.email(email))["scheduled_at"])
    assert abs(due - clock.now() - MINUTE) < timedelta(seconds=1)
    clock.jump(9)


async def test_mail_that_was_accepted_by_a_clock_ahead_is_sent_when_that_is_seen(
    watched: tuple[World, ClockWatch],
) -> None:
    """Its work is free: no engine took it over. It ends `delivered`, before it was accepted."""
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    clock.jump(HOUR)
    email = await team.send(to=["a@one.example", "b@two.example"])
    await pillarbox.pool.execute(
        "UPDATE deliveries SET owner = NULL, leased_until = NULL, attempt = 0 WHERE team_id = $1", team.id
    )
    single = await team.send()
    clock.jump(-HOUR)
    assert await watch.look() is None, "it is where it was at the last look"
    await there_and_back(pillarbox, watch)
    clock.advance(3)
    assert await pillarbox.turn() >= 2
    for email_id in (email, single):
        assert (await team.email(email_id))["last_event"] == "delivered"
    assert await team.db.value("SELECT count(*) FROM deliveries WHERE team_id = $1") == 0


async def test_mail_that_was_accepted_by_a_clock_ahead_is_sent_if_the_clock_was_corrected_before_the_start(
    watched: tuple[World, ClockWatch],
) -> None:
    """The watch never sees that jump; it mends at its first look, and only then."""
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    mended: list[datetime] = []

    async def noted(now: datetime) -> int:
        mended.append(now)
        return 0

    async def first_looks() -> int:
        """How many mends run in the first looks of a process."""
        mended.clear()
        begun = ClockWatch(pillarbox.pool, clock, pillarbox.app.need(Ids), [noted])
        assert await begun.look() is None
        assert await begun.look() is None
        return len(mended)

    assert await first_looks() == 0
    clock.jump(HOUR)
    email = await team.send()
    await pillarbox.pool.execute(
        "UPDATE deliveries SET owner = NULL, leased_until = NULL, attempt = 0 WHERE team_id = $1", team.id
    )
    clock.jump(-HOUR)
    assert await first_looks() == 1
    assert await watch.look() is None
    clock.advance(3)
    assert await pillarbox.turn() == 1
    assert (await team.email(email))["last_event"] == "delivered"
    clock.advance(HOUR + MINUTE)
    assert await first_looks() == 0


async def test_a_scheduled_email_of_a_clock_ahead_keeps_its_time(watched: tuple[World, ClockWatch]) -> None:
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    clock.jump(HOUR)
    email = await team.send(scheduled_at="in 1 minute")
    answered = (await team.email(email))["scheduled_at"]
    await watch.look()
    clock.jump(-HOUR)
    await watch.look()
    assert await pillarbox.turn() == 0
    assert (await team.email(email))["scheduled_at"] == answered
    clock.advance(HOUR + MINUTE)
    assert await pillarbox.turn() == 1


async def test_a_lease_that_a_clock_ahead_has_dated_ends_in_its_time(
    watched: tuple[World, ClockWatch],
) -> None:
    """Its holder died while the clock was a year ahead; who takes over saw nothing of that (DUR-09)."""
    pillarbox, _ = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    email = await team.send()
    dead = uuid4()
    await pillarbox.pool.execute(
        "UPDATE deliveries SET owner = $1, leased_until = $2, attempt = 1", dead, clock.now() + YEAR
    )
    claims = pillarbox.app.need(ItemClaims)
    assert await claims.recover() == 0
    clock.advance(LEASE)
    assert await claims.recover() == 1
    await pillarbox.turn()
    assert (await team.email(email))["last_event"] == "delivered"


async def test_windows_of_the_rate_limit_know_no_wall_clock(watched: tuple[World, ClockWatch]) -> None:
    pillarbox, _ = watched
    clock = clock_of(pillarbox)
    windows = Windows(pillarbox.app.kit.runtime.shared_memory, clock)
    key = b"clock-jump-test-"
    assert [windows.take(key, 1).allowed for _ in range(2)] == [True, False]
    clock.jump(HOUR)
    assert not windows.take(key, 1).allowed
    clock.jump(-HOUR)
    assert not windows.take(key, 1).allowed
    clock.advance(1)
    assert windows.take(key, 1).allowed


async def test_an_answer_is_given_again_for_a_day_and_not_longer(watched: tuple[World, ClockWatch]) -> None:
    """The one that was kept while the clock was a year ahead as well."""
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    before = await team.post("/emails", mail(), **{"Idempotency-Key": "before"})
    clock.jump(YEAR)
    await watch.look()
    ahead = await team.post("/emails", mail(), **{"Idempotency-Key": "ahead"})
    clock.jump(-YEAR)
    await watch.look()
    for key, first in (("before", before), ("ahead", ahead)):
        again = await team.post("/emails", mail(), **{"Idempotency-Key": key})
        assert again.json() == first.json()
    clock.advance(timedelta(hours=24, seconds=3))
    for key, first in (("before", before), ("ahead", ahead)):
        later = await team.post("/emails", mail(), **{"Idempotency-Key": key})
        assert later.json() != first.json()


async def test_an_event_of_a_clock_ahead_is_delivered_when_the_clock_is_corrected(
    watched: tuple[World, ClockWatch],
) -> None:
    """And a retry comes in its time after the clock was ahead."""
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    dispatcher = pillarbox.app.need(WebhookDispatcher)
    assert dispatcher is not None
    async with receiver() as at:
        at.answers(status(503))
        await hook(team, endpoint=at.url)
        clock.jump(HOUR)
        await watch.look()
        await publish(team)
        clock.jump(-HOUR)
        await watch.look()
        clock.advance(3)
        await dispatcher.look()
        await dispatcher.idle()
        assert len(at.arrivals) == 1
        clock.jump(HOUR)
        clock.jump(-HOUR)
        clock.advance(5.1)
        await dispatcher.look()
        await dispatcher.idle()
        assert len(at.arrivals) == 2


async def test_a_periodic_job_runs_in_time_although_the_clock_was_a_year_ahead(
    watched: tuple[World, ClockWatch],
) -> None:
    pillarbox, _ = watched
    clock = clock_of(pillarbox)
    done: list[datetime] = []

    async def work() -> str:
        done.append(clock.now())
        return ""

    turns = [Periodic("test.round", HOUR, work)]
    app = pillarbox.app
    await periodic.ensure(pillarbox.pool, turns, app.need(Ids), clock)
    wrong = clock.now() + YEAR
    await pillarbox.pool.execute("UPDATE jobs SET due_at = $1 WHERE kind = 'test.round'", wrong)
    await periodic.bring_forward(pillarbox.pool, turns, clock.now())
    assert await pillarbox.pool.fetchval(DUE, NO_TEAM) == clock.now()
    soon = clock.now() + HOUR
    await pillarbox.pool.execute("UPDATE jobs SET due_at = $1 WHERE kind = 'test.round'", soon)
    await periodic.ensure(pillarbox.pool, turns, app.need(Ids), clock)
    assert await pillarbox.pool.fetchval(DUE, NO_TEAM) == soon


async def test_a_jump_is_counted_kept_and_reported_by_the_doctor(watched: tuple[World, ClockWatch]) -> None:
    pillarbox, _ = watched
    clock, app = clock_of(pillarbox), pillarbox.app
    await pillarbox.pool.execute("DELETE FROM clock_jumps")
    assert (await clocks.jumps(pillarbox.pool)).level is Level.OK
    watch = ClockWatch(pillarbox.pool, clock, app.need(Ids))
    counted = _counted()
    clock.advance(3600)
    assert await watch.look() is None, "time that passes is no jump, nor is a suspended machine"
    clock.jump(1.5)
    assert await watch.look() is None
    await there_and_back(pillarbox, watch)
    assert _counted() == {name: counted.get(name, 0) + 1 for name in ("forward", "back")}
    found = await clocks.jumps(pillarbox.pool)
    assert (found.name, found.level) == ("clock.jumps", Level.WARNING)
    assert found.found.startswith("2 in 7 days, the last to ")
    assert found.found.endswith(" by -3600 s")


async def test_only_the_last_jumps_are_kept(watched: tuple[World, ClockWatch]) -> None:
    pillarbox, _ = watched
    clock = clock_of(pillarbox)
    watch = ClockWatch(pillarbox.pool, clock, pillarbox.app.need(Ids))
    for _ in range(51):
        await there_and_back(pillarbox, watch)
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM clock_jumps") == 100


async def test_the_doctor_tells_of_mail_from_the_future(watched: tuple[World, ClockWatch]) -> None:
    pillarbox, _ = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    late = clock.now() + 2 * YEAR
    assert (await clocks.future(pillarbox.pool, late)).level is Level.OK
    await team.send()
    found = await clocks.future(pillarbox.pool, clock.now() - HOUR)
    assert (found.name, found.level) == ("clock.future", Level.WARNING)
    assert "teams is dated" in found.found


def _counted() -> dict[str, float]:
    values: dict[Any, float] = JUMPS._values
    return {labels if isinstance(labels, str) else labels[0]: n for labels, n in values.items()}


async def test_events_and_steps_that_a_clock_ahead_has_put_off_go_on(
    watched: tuple[World, ClockWatch],
) -> None:
    """A day ahead: the partition of a team, a step, a delay of a minute, a wait, and an automation that was
    enabled then."""
    pillarbox, watch = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    named = step("named", "contact_update", first_name={"var": "event.n"})
    graph = chain(
        step("start", "trigger", event_name="order.placed"),
        step("pause", "delay", duration="1 minute"),
        named,
    )
    waiting = {
        "steps": [
            step("start", "trigger", event_name="order.placed"),
            step("paid", "wait_for_event", event_name="order.paid"),
            step("seen", "contact_update", last_name="Paid"),
        ],
        "connections": [connection("start", "paid"), connection("paid", "seen", "event_received")],
    }
    await an_automation(team, graph, status="enabled")
    await an_automation(team, waiting, status="enabled")
    clock.jump(DAY)
    assert await watch.look()
    await sent(team, "order.placed", n="1")
    await walk(pillarbox)
    late = chain(step("start", "trigger", event_name="name.given"), named)
    await an_automation(team, late, status="enabled")
    await sent(team, "name.given", "bo@quay.example", n="2")
    while await run_jobs(pillarbox):
        pass
    await sent(team, "name.given", "cy@quay.example", n="3")
    clock.jump(-DAY)
    assert await watch.look()
    clock.advance(3)
    await sent(team, "name.given", "di@quay.example", n="4")
    await sent(team, "order.paid")
    await walk(pillarbox)
    clock.advance(MINUTE)
    await walk(pillarbox)
    names = await pillarbox.pool.fetch("SELECT address, first_name, last_name FROM contacts")
    assert {row["address"].split("@")[0]: (row["first_name"], row["last_name"]) for row in names} == {
        "ada": ("1", "Paid"),
        "bo": ("2", None),
        "cy": ("3", None),
        "di": ("4", None),
    }
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM automation_work") == 0


async def test_a_clock_that_was_ahead_before_the_start_is_found_by_its_processes(
    watched: tuple[World, ClockWatch],
) -> None:
    pillarbox, _ = watched
    team, clock = await pillarbox.team(), clock_of(pillarbox)
    graph = chain(
        step("start", "trigger", event_name="order.placed"),
        step("named", "contact_update", first_name={"var": "event.n"}),
    )
    await an_automation(team, graph, status="enabled")
    clock.jump(DAY)
    await sent(team, "order.placed", n="1")
    await pillarbox.pool.execute("DELETE FROM idempotency_keys")
    await pillarbox.pool.execute(
        "INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)"
        " VALUES ($1, 'another', 1, 1, 'jobs', $2, $2)",
        uuid4(),
        clock.now(),
    )
    clock.jump(-DAY)
    app = pillarbox.app
    watch = ClockWatch(app.kit.pool, app.kit.clock, app.need(Ids), clock_corrections_of(app.kit))
    assert await watch.look() is None
    clock.advance(3)
    await walk(pillarbox)
    assert await pillarbox.pool.fetchval("SELECT first_name FROM contacts") == "1"
