"""`pillarbox verify` holds what happened against what webhooks are owed (DUR-14).

Rows that are gone are named; nothing is where somebody changed a webhook or the log grew old.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from typer.testing import CliRunner

from conftest import Databases
from kit.brought import INVARIANTS
from kit.clock import ManualClock
from kit.manual_world import clock_of
from kit.receiver import WEBHOOKS, Receiver, receiver, status
from kit.webhooks import Hook, hook, publish
from kit.world import Team, World, world
from pillarbox.cli import program
from pillarbox.emails.integrity.reconcile import ReconcileResult, examine, reconcile
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.plugin import PeriodicJobs
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.invariants import INVARIANTS as OF_WEBHOOKS

KINDS = (
    "email.scheduled",
    "email.sent",
    "email.delivered",
    "email.bounced",
    "email.delivery_delayed",
    "domain.updated",
)
LONG = timedelta(minutes=5)


@dataclass
class Harbor:
    """A team with three webhooks: all went well, nothing did yet, and one that is disabled."""

    world: World
    team: Team
    at: Receiver
    good: Hook
    failing: Hook
    disabled: Hook

    async def deliver(self) -> None:
        """The engine and the dispatcher do what is due."""
        await self.world.turn()
        dispatcher = self.world.app.need(WebhookDispatcher)
        assert dispatcher is not None
        for _ in range(6):
            clock_of(self.world).advance(0.001)
            await dispatcher.look()
            await dispatcher.idle()

    async def lives(self) -> None:
        """Some of everything happens."""
        await self.team.send(to=["ada@pillarbox.test", "bob@quay.example"])
        await self.team.send(to=["gone@pillarbox.test"])
        await self.team.send(scheduled_at="in 1 hour")
        await publish(self.team)
        await self.deliver()

    async def found(self) -> ReconcileResult:
        return await reconcile(self.world.pool, 100, INVARIANTS)


@asynccontextmanager
async def harbor(database_url: str, folder: Path, **settings: str) -> AsyncIterator[Harbor]:
    async with (
        receiver() as at,
        receiver() as busy,
        world(database_url, folder, clock=ManualClock(), started=False, **WEBHOOKS, **settings) as pillarbox,
    ):
        busy.answers(status(503))
        team = await pillarbox.team()
        hooks = [await hook(team, *KINDS, endpoint=url) for url in (at.url, busy.url, at.url)]
        clock_of(pillarbox).advance(LONG)
        made = Harbor(pillarbox, team, at, *hooks)
        await made.lives()
        await made.disabled.change(status="disabled")
        await made.deliver()
        yield made
        assert pillarbox.app.need(WebhookDispatcher) is not None
        await pillarbox.app.need(WebhookDispatcher).stop(1)
        await pillarbox.app.need(Outbound).close()


async def test_what_is_whole_has_no_gap(database_url: str, tmp_path: Path) -> None:
    async with harbor(database_url, tmp_path) as made:
        assert {event["status"] for event in await made.good.events()} == {"success"}
        assert {event["status"] for event in await made.failing.events()} == {"attempting"}
        kinds = await made.good.kinds()
        assert {"email.scheduled", "email.sent", "email.delivered", "email.bounced", "domain.updated"} == set(
            kinds
        )
        assert (await made.found()).gaps == []


async def test_changing_a_webhook_makes_no_gap(database_url: str, tmp_path: Path) -> None:
    """What happened while it wanted something else, or nothing, is not missing afterwards."""
    async with harbor(database_url, tmp_path) as made:
        await made.good.change(events=["domain.updated"])
        await made.failing.change(status="disabled")
        clock_of(made.world).advance(LONG)
        await made.lives()
        clock_of(made.world).advance(LONG)
        for one in (made.good, made.failing, made.disabled):
            await one.change(events=list(KINDS), status="enabled")
        late = await hook(made.team, *KINDS, endpoint=made.at.url)
        assert (await made.found()).gaps == []
        clock_of(made.world).advance(LONG)
        await made.lives()
        assert len(await late.events()) == 7
        assert (await made.found()).gaps == []


async def test_retention_makes_no_gap(database_url: str, tmp_path: Path) -> None:
    """The log is shorter than the history; a gap in what is left of it is still found."""
    async with harbor(database_url, tmp_path, webhooks_retention_days="1") as made:
        clock_of(made.world).advance(timedelta(hours=23))
        await made.lives()
        clock_of(made.world).advance(timedelta(hours=2))
        [collect] = [one for one in made.world.app.need(PeriodicJobs) if one.kind == "webhooks.retention"]
        assert "0 rows" not in await collect.work()
        assert (await made.found()).gaps == []
        await made.world.pool.execute(
            """
            DELETE FROM webhook_outcomes
             WHERE webhook_id = $1 AND event_id = (SELECT max(event_id::text)::uuid FROM webhook_outcomes
                                                    WHERE webhook_id = $1 AND kind = 'email.delivered')
            """,
            UUID(made.good.id),
        )
        assert {gap.name for gap in (await made.found()).gaps} >= {"event_without_delivery"}


# Damage -------------------------------------------------------------------------------------------------

OUTCOME = "FROM webhook_outcomes WHERE webhook_id = $1 AND kind ="
DAMAGE: list[tuple[str, str, str, set[str]]] = [
    (
        "an outcome that is gone",
        "good",
        f"DELETE {OUTCOME} 'email.delivered'",
        {"event_without_delivery", "body_without_delivery"},
    ),
    (
        "one of the rows of an email to several",
        "good",
        f"DELETE FROM webhook_outcomes WHERE event_id = (SELECT event_id {OUTCOME} 'email.delivered' LIMIT 1)"
        " AND webhook_id = $1",
        {"event_without_delivery", "body_without_delivery"},
    ),
    (
        "the only news of a scheduled email",
        "good",
        f"DELETE {OUTCOME} 'email.scheduled'",
        {"event_without_delivery", "body_without_delivery"},
    ),
    (
        "an open delivery that is gone",
        "failing",
        "DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND kind = 'email.sent'",
        {"event_without_delivery", "body_without_delivery"},
    ),
    (
        "an event that no history tells of",
        "good",
        f"DELETE {OUTCOME} 'domain.updated'",
        {"body_without_delivery"},
    ),
    (
        "every row of a kind, with its bodies",
        "good",
        f"WITH gone AS (DELETE {OUTCOME} 'email.bounced' RETURNING event_id)"
        " DELETE FROM webhook_events WHERE id IN (SELECT event_id FROM gone)",
        {"event_without_delivery"},
    ),
    (
        "a delivery that nothing will ever claim",
        "failing",
        "UPDATE webhook_deliveries SET due_at = 'infinity' WHERE webhook_id = $1",
        {"delivery_out_of_reach"},
    ),
    (
        "a body that cannot be made again",
        "failing",
        "DELETE FROM webhook_events WHERE kind = 'domain.updated' AND $1::uuid IS NOT NULL",
        {"delivery_without_body"},
    ),
    (
        "an event that is open and over",
        "failing",
        "INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id)"
        " SELECT team_id, webhook_id, event_id, kind, at, 'failed', subject_id FROM webhook_deliveries"
        "  WHERE webhook_id = $1 AND kind = 'domain.updated'",
        {"delivery_open_and_ended"},
    ),
    (
        "a success that nobody answered",
        "good",
        "DELETE FROM webhook_attempts WHERE webhook_id = $1",
        {"success_without_attempt"},
    ),
]


@pytest.fixture(scope="module")
def made(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, dict[str, UUID]]]:
    """A database in which all of that has happened, its folder, and the webhooks by name."""
    url, folder = databases.fresh(), tmp_path_factory.mktemp("reconciling")

    async def build() -> dict[str, UUID]:
        async with harbor(url, folder) as found:
            return {"good": UUID(found.good.id), "failing": UUID(found.failing.id)}

    yield url, folder, asyncio.run(build())
    databases.drop(url)


@pytest.mark.parametrize(
    ("whose", "damage", "named"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE]
)
async def test_damage_is_named(
    made: tuple[str, Path, dict[str, UUID]], whose: str, damage: str, named: set[str]
) -> None:
    """Exactly what follows from it, and the webhook."""
    url, _, hooks = made
    conn = await asyncpg.connect(url)
    try:
        await conn.execute("BEGIN")
        await conn.execute(damage, hooks[whose])
        found = await examine(conn, 100, INVARIANTS)
    finally:
        await conn.close()
    assert {gap.name for gap in found.gaps} == named
    assert hooks[whose] in {gap.ids["webhook_id"] for gap in found.gaps}


def test_every_kind_of_gap_has_its_story() -> None:
    assert {invariant.name for invariant in OF_WEBHOOKS} == {name for row in DAMAGE for name in row[3]}


def test_the_command_names_the_webhook(made: tuple[str, Path, dict[str, UUID]]) -> None:
    url, folder, hooks = made

    def run(*more: str) -> tuple[int, Any]:
        place = ("--data", str(folder), "--database-url", url)
        done = CliRunner().invoke(program(), ["verify", "--json", *more, *place])
        return done.exit_code, json.loads(done.stdout)

    async def lose() -> None:
        conn = await asyncpg.connect(url)
        await conn.execute(f"DELETE {OUTCOME} 'email.delivered'", hooks["good"])
        await conn.close()

    assert run()[0] == 0
    asyncio.run(lose())
    code, found = run()
    assert (code, found["ok"]) == (1, False)
    [gap, *_] = [gap for gap in found["gaps"] if gap["name"] == "event_without_delivery"]
    assert str(hooks["good"]) in gap["sentence"]
    assert gap["ids"]["kind"] == "email.delivered"
