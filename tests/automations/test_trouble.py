"""What goes wrong around steps: it is tried again, alone, for an hour, and nothing is done twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from kit.automation_rows import an_automation, chain, connection, step
from kit.automation_runs import (
    ADA,
    a_dead_process,
    a_template,
    errors,
    mails,
    run_of,
    runs,
    sent,
    statuses,
    walk,
)
from kit.manual_world import clock_of, run_jobs
from kit.world import Team, World
from pillarbox.automations.execution import work_queries
from pillarbox.automations.execution.claims import StepClaims
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.automations.execution.parts import subscription
from pillarbox.automations.retention import RUNS_KEPT, RunRetention
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process import faults
from pillarbox.kernel.work.lone_attempts import MOST_BEGUN

START = step("start", "trigger", event_name="user.signed_up")
LEASED = "SELECT count(*) FROM automation_work WHERE owner IS NOT NULL"
WORK = "SELECT reason, tries, attempt, failing_since FROM automation_work"


async def enabled(team: Team, *steps: dict[str, Any]) -> str:
    return await an_automation(team, chain(START, *steps), status="enabled")


async def test_trouble_is_tried_again_for_an_hour_and_then_the_step_fails(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await enabled(team, step("mail", "send_email", template={"id": await a_template(team)}))
    await sent(team, "user.signed_up")
    with faults.armed("accept.within=raise%1"):
        await walk(pillarbox)
        row = await pillarbox.pool.fetchrow(WORK)
        assert (row["reason"], row["tries"], row["attempt"]) == ("FaultRaised", 1, 1)
        clock_of(pillarbox).advance(timedelta(seconds=4))
        assert await walk(pillarbox) == 0
        tried = 0
        for _ in range(59):
            clock_of(pillarbox).advance(timedelta(minutes=1))
            tried += await walk(pillarbox)
        assert 10 <= tried <= 30
        assert (await run_of(team, automation))["status"] == "running"
        clock_of(pillarbox).advance(timedelta(minutes=6))
        await walk(pillarbox)
    run = await run_of(team, automation)
    assert (run["status"], errors(run)) == ("failed", {"mail": "internal_server_error"})
    assert await mails(team) == []


async def test_a_step_that_cannot_even_fail_is_tried_again(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await enabled(team)
    await sent(team, "user.signed_up")
    with faults.armed("automations.written=raise%1"):
        for _ in range(16):
            await walk(pillarbox)
            clock_of(pillarbox).advance(timedelta(minutes=5))
        assert (await run_of(team, automation))["status"] == "running"
    await walk(pillarbox)
    assert (await run_of(team, automation))["status"] == "completed"


async def test_trouble_that_ends_within_the_hour_leaves_nothing(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await enabled(team, step("mail", "send_email", template={"id": await a_template(team)}))
    await sent(team, "user.signed_up")
    with faults.armed("accept.before_commit=raise@1"):
        await walk(pillarbox)
    assert await mails(team) == []
    clock_of(pillarbox).advance(timedelta(minutes=5))
    await walk(pillarbox)
    assert (await run_of(team, automation))["status"] == "completed"
    assert await mails(team) == ["Welcome"]


@pytest.mark.parametrize("is_ready", [False, True], ids=["waiting", "ready"])
async def test_one_step_of_a_batch_that_cannot_be_carried_out_does_not_hold_up_the_others(
    pillarbox: World, is_ready: bool
) -> None:
    """Its version is gone, which no user can bring about."""
    team = await pillarbox.team()
    automation = await enabled(team, step("pause", "delay", duration="1 hour"))
    for number in range(4):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    await (run_jobs(pillarbox) if is_ready else walk(pillarbox))
    broken = UUID((await runs(team, automation))[1]["id"])
    await pillarbox.pool.execute("UPDATE automation_runs SET version = 9 WHERE id = $1", broken)
    await walk(pillarbox)
    clock_of(pillarbox).advance(timedelta(hours=1))
    await walk(pillarbox)
    assert sorted(one["status"] for one in await runs(team, automation)) == [
        "completed",
        "completed",
        "completed",
        "running",
    ]


async def test_a_full_disk_of_the_database_is_no_fault_of_a_step(pillarbox: World) -> None:
    """For hours; the step waits, and is carried out when there is room."""
    team = await pillarbox.team()
    automation = await enabled(team)
    await sent(team, "user.signed_up")
    while await run_jobs(pillarbox):
        pass
    await pillarbox.pool.execute(
        """
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';
            END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON automation_steps
               FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
            """
    )
    for _ in range(5):
        await walk(pillarbox)
        row = await pillarbox.pool.fetchrow(WORK)
        assert (row["reason"], row["failing_since"]) == ("DiskFullError", None)
        clock_of(pillarbox).advance(timedelta(hours=1))
    await pillarbox.pool.execute("DROP TRIGGER full_disk ON automation_steps")
    await walk(pillarbox)
    assert (await run_of(team, automation))["status"] == "completed"


async def test_steps_of_a_process_that_died_are_carried_out_by_another(pillarbox: World) -> None:
    """One that takes its process with it again and again fails."""
    team = await pillarbox.team()
    automation = await enabled(team)
    await sent(team, "user.signed_up")
    await run_jobs(pillarbox)
    dead = await a_dead_process(pillarbox)
    for begun in range(MOST_BEGUN + 1):
        await pillarbox.pool.execute(
            "UPDATE automation_work   SET owner = $1, leased_until = $2, attempt = attempt + 1, begun = $3",
            dead,
            pillarbox.clock.now() + timedelta(seconds=60),
            begun,
        )
        clock_of(pillarbox).advance(5)
        if begun < MOST_BEGUN:
            await pillarbox.pool.execute("UPDATE automation_work SET owner = NULL, leased_until = NULL")
    await walk(pillarbox)
    run = await run_of(team, automation)
    assert (run["status"], errors(run)) == ("failed", {"start": "internal_server_error"})
    again = await enabled(team)
    await sent(team, "user.signed_up")
    await run_jobs(pillarbox)
    await pillarbox.pool.execute(
        "UPDATE automation_work SET owner = $1, leased_until = $2, attempt = attempt + 1",
        dead,
        pillarbox.clock.now() + timedelta(seconds=60),
    )
    clock_of(pillarbox).advance(5)
    await walk(pillarbox)
    assert (await run_of(team, again))["status"] == "completed"


async def test_a_claim_that_was_overtaken_changes_nothing(pillarbox: World) -> None:
    """Whoever holds the step now carries it out."""
    team = await pillarbox.team()
    automation = await enabled(team, step("mail", "send_email", template={"id": await a_template(team)}))
    await sent(team, "user.signed_up")
    await run_jobs(pillarbox)
    engine = pillarbox.app.need(StepEngine)
    await engine.look()
    await engine.idle()
    with faults.armed("accept.within=delay:0.3@1"):
        await engine.look()
        await asyncio.sleep(0)
        await pillarbox.pool.execute(
            "UPDATE automation_work SET attempt = attempt + 1, owner = $1", UUID(int=7)
        )
        await engine.idle()
    assert await mails(team) == []
    await pillarbox.pool.execute("UPDATE automation_work SET owner = NULL, leased_until = NULL")
    await walk(pillarbox)
    assert await mails(team) == ["Welcome"]
    assert (await run_of(team, automation))["status"] == "completed"


async def test_an_event_and_the_timeout_of_a_wait_have_one_outcome(pillarbox: World) -> None:
    """At the same time, many times: each run goes one way."""
    team = await pillarbox.team()
    template = await a_template(team)
    graph = {
        "steps": [
            START,
            step("pause", "wait_for_event", event_name="user.paid", timeout="1 hour"),
            step("yes", "send_email", template={"id": template}, subject="Yes"),
            step("no", "send_email", template={"id": template}, subject="No"),
        ],
        "connections": [
            connection("start", "pause"),
            connection("pause", "yes", "event_received"),
            connection("pause", "no", "timeout"),
        ],
    }
    automation = await an_automation(team, graph, status="enabled")
    for number in range(30):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    await walk(pillarbox)
    clock_of(pillarbox).advance(timedelta(minutes=59, seconds=59))
    for number in range(30):
        await sent(team, "user.paid", f"c{number}@quay.example")
    clock_of(pillarbox).advance(timedelta(seconds=2))
    engine = pillarbox.app.need(StepEngine)
    await asyncio.gather(run_jobs(pillarbox), engine.look())
    await walk(pillarbox)
    found = await runs(team, automation)
    assert {one["status"] for one in found} == {"completed"}
    assert len(await mails(team)) == 30
    for one in found:
        run = (await team.get(f"/automations/{automation}/runs/{one['id']}")).json()
        assert sorted([statuses(run)["yes"], statuses(run)["no"]]) == ["completed", "skipped"]


async def test_the_runs_of_an_automation_that_was_stopped_do_not_go_on(pillarbox: World) -> None:
    """Nor those that nobody has cancelled yet, for there are too many."""
    team = await pillarbox.team()
    automation = await enabled(
        team,
        step("pause", "delay", duration="1 hour"),
        step("mail", "send_email", template={"id": await a_template(team)}),
    )
    await sent(team, "user.signed_up")
    await walk(pillarbox)
    await pillarbox.pool.execute("UPDATE automations SET epoch = epoch + 1")
    await pillarbox.pool.execute(
        "INSERT INTO jobs (team_id, id, kind, subject_id, due_at, created_at)"
        " VALUES ($1, $2, 'automations.end', $2, $3, $3)",
        team.id,
        UUID(automation),
        pillarbox.clock.now() + timedelta(days=1),
    )
    assert await runs(team, automation, "running") == []
    assert [one["status"] for one in await runs(team, automation, "cancelled")] == ["cancelled"]
    assert (await run_of(team, automation))["status"] == "cancelled"
    clock_of(pillarbox).advance(timedelta(hours=1))
    await walk(pillarbox)
    assert await pillarbox.pool.fetchval("SELECT status FROM automation_runs") == "cancelled"
    assert await mails(team) == []


async def test_runs_go_ninety_days_after_they_ended(pillarbox: World) -> None:
    """With their steps, and versions that no run walks."""
    team = await pillarbox.team()
    automation = await enabled(team)
    await sent(team, "user.signed_up")
    await walk(pillarbox)
    body = {"status": "disabled", **chain(START, step("pause", "delay", duration="30 days"))}
    assert (await team.call("PATCH", f"/automations/{automation}", body)).status_code == 200
    retention = RunRetention(pillarbox.pool, pillarbox.clock, subscription(pillarbox.app.kit))
    assert await retention.collect() == "0 runs, 0 versions, 0 subscriptions"
    clock_of(pillarbox).advance(RUNS_KEPT + timedelta(seconds=1))
    assert await retention.collect() == "1 runs, 1 versions, 0 subscriptions"
    assert await runs(team, automation) == []
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM automation_steps") == 0


async def test_work_that_was_claimed_is_given_back_when_its_process_stops(pillarbox: World) -> None:
    team = await pillarbox.team()
    await enabled(team)
    await sent(team, "user.signed_up")
    await run_jobs(pillarbox)
    engine = pillarbox.app.need(StepEngine)
    with faults.armed("automations.written=delay:30@1"):
        await engine.look()
        await asyncio.sleep(0.05)
        assert await leased(pillarbox.pool) == 1
        await engine.stop(0.01)
    assert await leased(pillarbox.pool) == 0


async def test_deleting_a_contact_meets_steps_that_change_it(pillarbox: World) -> None:
    """In both orders, many at once: nobody waits for ever, and no run is left over."""
    team = await pillarbox.team()
    segment = (await team.post("/segments", {"name": "Crew"})).json()["id"]
    automation = await enabled(
        team,
        step("name", "contact_update", first_name="Ada"),
        step("join", "add_to_segment", segment_id=segment),
        step("pause", "delay", duration="1 hour"),
    )
    for _ in range(10):
        await sent(team, "user.signed_up")
    for _ in range(10):
        await sent(team, "user.signed_up", "bob@quay.example")
    await run_jobs(pillarbox)
    answers = await asyncio.gather(
        walk(pillarbox),
        *(team.call("DELETE", f"/contacts/{address}") for address in (ADA, "bob@quay.example")),
    )
    assert [answer.status_code for answer in answers[1:]] == [200, 200]
    clock_of(pillarbox).advance(timedelta(minutes=10))
    await walk(pillarbox)
    assert {one["status"] for one in await runs(team, automation)} == {"cancelled"}
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM automation_work") == 0


async def leased(pool: asyncpg.Pool) -> int:
    return int(await pool.fetchval(LEASED))


async def test_what_somebody_has_locked_holds_up_nobody_who_gives_back(pillarbox: World) -> None:
    team = await pillarbox.team()
    automation = await enabled(team)
    for number in range(3):
        await sent(team, "user.signed_up", f"c{number}@quay.example")
    while await run_jobs(pillarbox):
        pass
    engine = pillarbox.app.need(StepEngine)
    claims = StepClaims(pillarbox.pool, engine._owner)
    items = await claims.claim([(UUID(str(team.id)), 3)], pillarbox.clock.now())
    db = TeamDb(pillarbox.pool, items[0].team_id)
    async with pillarbox.pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM automation_work WHERE run_id = $1 FOR UPDATE", items[0].run_id)
        now = pillarbox.clock.now()
        async with asyncio.timeout(10):
            left = await work_queries.postpone(db, items[:2], engine._owner, now, "test", now)
            assert left == items[:1]
            assert await work_queries.give_back(db, [items[0], items[2]], engine._owner) == items[:1]
        engine._left = items[:1]
        await engine.look()
        await engine.idle()
        assert len(await runs(team, automation, "completed")) == 2
    await walk(pillarbox)
    assert len(await runs(team, automation, "completed")) == 3
    rows = await pillarbox.pool.fetch("SELECT attempt - tries AS deaths FROM automation_work")
    assert rows == []
    assert await work_queries.give_back(db, items, engine._owner) == [], "of what is gone nothing is left"
