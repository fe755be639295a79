"""When an endpoint is given up (webhooks.md section 4; WH-04, MSG-13): the rule, and what it writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from email.parser import BytesParser
from email.policy import default
from itertools import pairwise
from uuid import UUID

from kit.clock import START
from kit.manual_world import clock_of, run_jobs
from kit.smtp_sink import Sink
from kit.webhooks import Hook, hook, publish
from kit.world import World
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.webhooks import health
from pillarbox.webhooks.failure_clock import DISABLE_AFTER, HEALTHY, AttemptEnd, WebhookHealth, judged

TEAM, HOOK = UUID(int=1), UUID(int=2)
FIRST, SECOND = UUID(int=11), UUID(int=12)


def failed(after: timedelta | float = 0, event: UUID = FIRST, code: int = 500, **more: bool) -> AttemptEnd:
    hours = after if isinstance(after, timedelta) else timedelta(hours=after)
    return AttemptEnd(TEAM, HOOK, event, START + hours, code=code, succeeded=False, **more)


def answered(after: float, event: UUID = FIRST, **more: bool) -> AttemptEnd:
    return AttemptEnd(TEAM, HOOK, event, START + timedelta(hours=after), code=200, succeeded=True, **more)


def test_the_first_failure_starts_the_clock_and_a_success_stops_it() -> None:
    verdict = judged(HEALTHY, [failed(1)])
    assert verdict.health == WebhookHealth(START + timedelta(hours=1), FIRST)
    assert (verdict.notify, verdict.disable) == (False, False)
    assert judged(verdict.health, [failed(2)]).health == verdict.health
    assert judged(verdict.health, [failed(2, SECOND)]).health == replace(verdict.health, failing_several=True)
    assert judged(verdict.health, [answered(2)]).health == HEALTHY
    assert judged(verdict.health, [answered(2, replayed=True)]).health == HEALTHY


def test_a_failed_replay_counts_for_nothing() -> None:
    old = WebhookHealth(START, FIRST, True)
    for health_before in (HEALTHY, old):
        verdict = judged(health_before, [failed(500, SECOND, replayed=True)])
        assert verdict == (health_before, False, False, None)


def test_five_days_of_failures_of_two_events_are_the_end() -> None:
    clock = judged(HEALTHY, [failed(0), failed(1, SECOND)]).health
    assert not judged(clock, [failed(DISABLE_AFTER - timedelta(microseconds=1))]).disable
    assert judged(clock, [failed(DISABLE_AFTER)]).disable
    assert judged(HEALTHY, [failed(0), failed(DISABLE_AFTER, SECOND)]).disable


def test_failures_of_one_event_are_never_the_end() -> None:
    clock = judged(HEALTHY, [failed(0)]).health
    assert not judged(clock, [failed(1000)]).disable
    assert judged(clock, [failed(1000), failed(1000, SECOND)]).disable


def test_one_success_starts_the_five_days_anew() -> None:
    clock = judged(HEALTHY, [failed(0), failed(1, SECOND), answered(119), failed(120), failed(239, SECOND)])
    assert not clock.disable
    assert clock.health.failing_since == START + timedelta(hours=120)
    assert judged(clock.health, [failed(240)]).disable


def test_the_team_is_notified_once_that_it_begins() -> None:
    first = judged(HEALTHY, [failed(0), failed(27, exhausted=True)])
    assert first.notify
    assert first.last_failure == failed(27, exhausted=True)
    second = judged(first.health, [failed(28, SECOND, exhausted=True)])
    assert not second.notify
    again = judged(second.health, [answered(29), failed(30), failed(57, exhausted=True)])
    assert again.notify


# What is written ----------------------------------------------------------------------------------


class Failing:
    """A webhook with two events that fail as the test says."""

    def __init__(self, pillarbox: World, made: Hook, events: list[UUID]) -> None:
        self.world, self.hook, self.events = pillarbox, made, events

    async def results(self, *results: AttemptEnd) -> set[tuple[UUID, UUID]]:
        ids = {FIRST: self.events[0], SECOND: self.events[1]}
        ours = [
            r._replace(team_id=self.hook.team.id, webhook_id=UUID(self.hook.id), event_id=ids[r.event_id])
            for r in results
        ]
        async with transaction(self.world.pool) as conn:
            return await health.record(conn, ours, self.world.app.need(Ids))

    async def jobs(self) -> list[str]:
        rows = await self.world.pool.fetch("SELECT kind FROM jobs WHERE kind LIKE 'webhook.%' ORDER BY id")
        return [row["kind"] for row in rows]

    async def version(self) -> str:
        """Changes with every write to the row."""
        found: str = await self.world.pool.fetchval(
            "SELECT xmin::text FROM webhooks WHERE id = $1", UUID(self.hook.id)
        )
        return found


async def failing(pillarbox: World) -> Failing:
    team = await pillarbox.team("Harbor", email="mina@harbor.example")
    made = await hook(team)
    await publish(team, "domain.updated", "domain.updated")
    return Failing(pillarbox, made, [row["event_id"] for row in await made.owed()])


async def test_results_that_change_nothing_write_nothing(pillarbox: World) -> None:
    case = await failing(pillarbox)
    versions = [await case.version()]
    for result in (
        answered(0),
        failed(1),
        failed(2),
        failed(3, SECOND),
        failed(4),
        failed(5, replayed=True),
    ):
        await case.results(result)
        versions.append(await case.version())
    await case.results(answered(6))
    versions.append(await case.version())
    assert [before != after for before, after in pairwise(versions)] == [
        False, True, False, True, False, False, True,
    ]  # fmt: skip
    assert await case.jobs() == []


async def test_a_hopeless_endpoint_is_disabled_and_what_is_open_has_failed(pillarbox: World) -> None:
    case = await failing(pillarbox)
    assert await case.results(failed(0), failed(1, SECOND)) == set()
    assert await case.results(failed(119)) == set()
    assert await case.results(failed(120)) == {(case.hook.team.id, UUID(case.hook.id))}
    assert (await case.hook.get())["status"] == "disabled"
    assert [event["status"] for event in await case.hook.events()] == ["failed", "failed"]
    assert await case.results(failed(121), failed(122, SECOND)) == set()
    assert await case.jobs() == ["webhook.disabled"]
    await case.hook.change(status="enabled")
    assert await case.results(failed(123), failed(124, SECOND)) == set()
    assert (await case.hook.get())["status"] == "enabled"
    assert [event["status"] for event in await case.hook.events()] == ["failed", "failed"]


async def test_enabling_starts_the_clock_anew(pillarbox: World) -> None:
    case = await failing(pillarbox)
    await case.results(failed(0), failed(1, SECOND))
    await case.hook.change(status="enabled")
    assert await case.results(failed(120)) == set()
    assert (await case.hook.get())["status"] == "enabled"


def text_of(sink: Sink, at: int) -> tuple[str, str]:
    """Subject and body of a mail, and who got it."""
    message = sink.received[at]
    assert message.recipients == ["mina@harbor.example"]
    found = BytesParser(policy=default).parsebytes(message.content)
    assert found["Auto-Submitted"] == "auto-generated"
    return str(found["Subject"]), found.get_content()


async def test_the_team_gets_one_mail_when_it_begins_and_one_when_it_ends(
    relayed: tuple[World, Sink],
) -> None:
    pillarbox, sink = relayed
    case = await failing(pillarbox)
    clock_of(pillarbox).set(START + timedelta(hours=300))
    await case.results(failed(0), failed(27, exhausted=True, code=503))
    assert await run_jobs(pillarbox) == 1
    await case.results(failed(28, SECOND, exhausted=True, code=0))
    await pillarbox.turn()
    assert await run_jobs(pillarbox) == 0
    await case.results(failed(120, SECOND, code=0))
    assert await run_jobs(pillarbox) == 1
    await pillarbox.turn()
    assert len(sink.received) == 2
    begins, ends = text_of(sink, 0), text_of(sink, 1)
    assert begins[0] == "A webhook endpoint does not answer"
    assert "https://hooks.harbor.example/in" in begins[1]
    assert "HTTP status 503" in begins[1]
    assert iso_style(START + timedelta(hours=27)) in begins[1]
    assert ends[0].startswith("A webhook was disabled")
    assert "no HTTP answer" in ends[1]
    assert iso_style(START + timedelta(hours=120)) in ends[1]


async def test_a_notice_is_mailed_once_though_its_job_is_run_again(relayed: tuple[World, Sink]) -> None:
    pillarbox, sink = relayed
    case = await failing(pillarbox)
    await case.results(failed(0), failed(27, exhausted=True))
    jobs = await pillarbox.pool.fetch("SELECT * FROM jobs WHERE kind = 'webhook.failing'")
    clock_of(pillarbox).advance(1)
    assert await run_jobs(pillarbox) == 1
    columns = ", ".join(jobs[0].keys())
    marks = ", ".join(f"${at}" for at in range(1, len(jobs[0]) + 1))
    await pillarbox.pool.execute(f"INSERT INTO jobs ({columns}) VALUES ({marks})", *jobs[0].values())
    assert await run_jobs(pillarbox) == 1
    await pillarbox.turn()
    assert len(sink.received) == 1
