"""How soon the work of a machine that died goes on elsewhere (architecture 2.5, docs/decisions/0156)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from kit.http_client import http_client
from kit.manual_world import clock_of, manual_world
from kit.process import KEY, connected, first_team, reconciled, worker_processes
from kit.smtp_sink import Sink
from kit.world import World
from pillarbox.automations.execution.claims import LEASE as STEP_LEASE
from pillarbox.automations.execution.engine import StepEngine
from pillarbox.delivery.lease_expiry import LEASE as DELIVERY_LEASE
from pillarbox.kernel.work.claim_queries import LEASE as JOB_LEASE
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.queries import LEASE as WEBHOOK_LEASE

DEAD = UUID(int=7)
REGISTER = """
    INSERT INTO processes (id, host, pid, pid_start, roles, started_at, seen_at)
    VALUES ($1, 'another', 1, 1, 'delivery,webhooks,jobs', $2, $2)
"""
DELIVERY = """
    INSERT INTO deliveries (team_id, email_id, grp, destination, due_at, owner, leased_until, released,
                            created_at)
    VALUES ($1, $2, 0, 'quay.example', $3, $4, $5, true, $3)
"""
WEBHOOK_DELIVERY = """
    INSERT INTO webhook_deliveries (team_id, webhook_id, event_id, kind, at, epoch, due_at, owner,
                                    leased_until)
    VALUES ($1, $2, $2, 'email.sent', $3, 1, $3, $4, $5)
"""
JOB = """
    INSERT INTO jobs (team_id, id, kind, subject_id, due_at, owner, leased_until, created_at)
    VALUES ($1, $2, 'test.nobody', $2, $3, $4, $5, $3)
"""
STEP = """
    INSERT INTO automation_work (team_id, run_id, position, contact_id, due_at, waiting, owner, leased_until)
    VALUES ($1, $2, 0, $2, $3, false, $4, $5)
"""
PARTS = {
    "deliveries": (DELIVERY, DELIVERY_LEASE, 20),
    "webhook_deliveries": (WEBHOOK_DELIVERY, WEBHOOK_LEASE, 35),
    "jobs": (JOB, JOB_LEASE, 70),
    "automation_work": (STEP, STEP_LEASE, 70),
}


def looks(pillarbox: World) -> dict[str, Callable[[], Awaitable[object]]]:
    """What looks for lost work of each table."""
    dispatcher, steps = pillarbox.app.need(WebhookDispatcher), pillarbox.app.need(StepEngine)
    assert dispatcher is not None
    assert steps is not None
    return {
        "deliveries": pillarbox.engine.look,
        "webhook_deliveries": dispatcher.look,
        "jobs": pillarbox.app.need(Jobs).look,
        "automation_work": steps.look,
    }


@pytest.mark.parametrize("table", PARTS)
async def test_work_of_a_machine_that_died_is_free_in_time(
    database_url: str, tmp_path: Path, table: str
) -> None:
    """DUR-03: it died right after it renewed its leases."""
    insert, lease, most = PARTS[table]
    async with manual_world(database_url, tmp_path) as pillarbox:
        clock, team = clock_of(pillarbox), await pillarbox.team()
        look = looks(pillarbox)[table]
        await pillarbox.pool.execute(REGISTER, DEAD, clock.now())
        due = clock.now() + timedelta(days=1)
        await pillarbox.pool.execute(insert, team.id, UUID(int=9), due, DEAD, clock.now() + lease)
        passed = 0.0
        while await pillarbox.pool.fetchval(f"SELECT owner FROM {table}") is not None:
            assert passed < most
            clock.advance(0.5)
            passed += 0.5
            await look()
        assert passed >= lease.total_seconds()


@pytest.mark.slow
async def test_mail_of_a_machine_that_died_goes_out_within_twenty_seconds(
    database_url: str, tmp_path: Path
) -> None:
    """Two groups of workers on one database. The hosts count as different, so only leases say who is gone."""
    await first_team(database_url)
    gate = asyncio.Event()
    async with Sink() as sink, connected(database_url) as conn:
        sink.script("RCPT", then=(gate, "250 2.1.5 ok"))
        route = f"relay:smtp://127.0.0.1:{sink.port}"
        (tmp_path / "other").mkdir()
        with worker_processes(database_url, tmp_path, route=route) as group:
            group.start()
            await conn.execute("UPDATE processes SET host = 'another'")
            async with http_client("http://{}:{}".format(*group.at), KEY) as client:
                email = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "x", "text": "x"}
                assert (await client.post("/emails", json=email)).status_code == 200
            await sink.commands("RCPT")
            group.start(place=1)
            await asyncio.to_thread(group.kill)
            died = time.monotonic()
            gate.set()
            async with asyncio.timeout(30):
                await sink.messages(1, 25)
            assert time.monotonic() - died < 20
            assert len(sink.received) == 1
    await reconciled(database_url)
