"""A team's webhooks cost only that team: bounded portions in a commit queue of its own (architecture 2.5,
2.6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from kit.manual_world import manual_world, relayed_world
from kit.smtp_sink import Sink
from kit.webhooks import hook
from kit.world import Team, World, mail, world
from pillarbox.delivery import settle
from pillarbox.emails import accept
from pillarbox.kernel.work.keyed_commits import KeyedCommits
from pillarbox.teams import bootstrap

ANY_SENDER = {"require_verified_domain": "never"}
KINDS = ("email.scheduled", "email.sent", "email.delivered")
HOOKS = 12
MAILS = 100

# Rows that were written by one transaction, each with how many there are.
PORTIONS = """
    SELECT xmin::text AS portion, count(*) AS rows FROM webhook_deliveries WHERE team_id = $1 GROUP BY 1
"""

QUEUED = """
    SELECT kind, subject_id, position, count(DISTINCT webhook_id) AS webhooks, count(*) AS rows
      FROM webhook_deliveries
     WHERE team_id = $1
     GROUP BY kind, subject_id, position
"""

BLOCK = "LOCK TABLE webhook_deliveries IN SHARE MODE"


async def subscribed(pillarbox: World, hooks: int = HOOKS) -> Team:
    team = await pillarbox.team()
    for _ in range(hooks):
        await hook(team, *KINDS)
    return team


async def batch(team: Team, **fields: Any) -> None:
    answer = await team.post("/emails/batch", [mail(**fields) for _ in range(MAILS)])
    assert answer.status_code == 200, answer.text


async def until_settled(pillarbox: World) -> None:
    async with asyncio.timeout(30):
        while await pillarbox.pool.fetchval("SELECT count(*) FROM deliveries"):
            await pillarbox.turn()


async def test_every_event_is_owed_once_to_each_and_no_portion_is_large(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has never met the team, then one that has."""
    monkeypatch.setattr(settle, "MOST_ROWS", 240)
    async with relayed_world(database_url, tmp_path, **ANY_SENDER) as (pillarbox, _):
        team = await subscribed(pillarbox)
        for _ in range(2):
            await batch(team)
            await until_settled(pillarbox)
        portions = await team.db.source.fetch(PORTIONS, team.id)
        queued = await team.db.source.fetch(QUEUED, team.id)
        assert Counter(row["kind"] for row in queued) == {
            "email.sent": 2 * MAILS,
            "email.delivered": 2 * MAILS,
        }
        assert {(row["webhooks"], row["rows"]) for row in queued} == {(HOOKS, HOOKS)}
        assert max(row["rows"] for row in portions) <= 240


async def test_scheduled_batches_are_portions_of_their_own(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request is one commit; two of them are two where together they are too much."""
    monkeypatch.setattr(accept, "MOST_ROWS", MAILS * HOOKS)
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await subscribed(pillarbox)
        await asyncio.gather(*[batch(team, scheduled_at="in 1 hour") for _ in range(5)])
        portions = await team.db.source.fetch(PORTIONS, team.id)
        assert [row["rows"] for row in portions] == [MAILS * HOOKS] * 5


@pytest.mark.parametrize("scheduled", [True, False])
async def test_nobody_waits_for_the_webhooks_of_another_team(
    database_url: str, tmp_path: Path, *, scheduled: bool
) -> None:
    """The table of deliveries is locked, so whatever writes to it hangs; other teams go on. Theirs goes by
    another transport: a mail server gives all teams together so many connections."""
    fields = {"scheduled_at": "in 1 hour"} if scheduled else {}
    expected = "scheduled" if scheduled else "delivered"
    async with Sink() as sink:
        settings = {"route": f"relay:smtp://127.0.0.1:{sink.port}", "roles": "api,delivery", **ANY_SENDER}
        async with world(database_url, tmp_path, **settings) as pillarbox:
            busy, quiet = await subscribed(pillarbox), await pillarbox.team()
            conn = await asyncpg.connect(database_url)
            async with conn.transaction():
                await conn.execute(BLOCK)
                writing = asyncio.create_task(batch(busy, **fields))
                if not scheduled:
                    await sink.commands("DATA")
                async with asyncio.timeout(10):
                    email = await quiet.send(to="delivered@resend.dev", **fields)
                    while (await quiet.email(email))["last_event"] != expected:
                        await asyncio.sleep(0.02)
                assert await quiet.db.value("SELECT count(*) FROM webhook_deliveries WHERE team_id = $1") == 0
            await conn.close()
            await writing
            await pillarbox.engine.idle()
            rows = await busy.db.source.fetch(QUEUED, busy.id)
            assert sum([row["rows"] for row in rows]) == MAILS * HOOKS * (1 if scheduled else 2)


async def test_commits_of_teams_take_turns_portion_by_portion() -> None:
    """Each team's items are in order; the one who comes second is not behind all that the first has."""
    done: list[str] = []

    async def flush(items: Any) -> list[None]:
        await asyncio.sleep(0)
        done.append("".join(items))
        return [None] * len(items)

    queues: KeyedCommits[str, None] = KeyedCommits(
        flush, kind="test", weigh=lambda _: 1, most_weight=2, at_once=1, most_waiting=100, shared=()
    )
    one, two = UUID(int=1), UUID(int=2)
    waiting = [asyncio.create_task(queues.submit(one, "a")) for _ in range(6)]
    waiting += [asyncio.create_task(queues.submit(two, "b")) for _ in range(4)]
    await asyncio.gather(*waiting)
    assert done == ["aa", "bb", "aa", "bb", "aa"]
    await queues.drain()


async def test_webhooks_that_come_and_go_are_noticed(database_url: str, tmp_path: Path) -> None:
    async with relayed_world(database_url, tmp_path, **ANY_SENDER) as (pillarbox, _):
        team = await pillarbox.team()
        await bootstrap.set_limits(pillarbox.pool, team.id, {"most_webhooks": 100})
        for expected in (0, HOOKS, 0):
            if expected:
                made = [await hook(team, *KINDS) for _ in range(HOOKS)]
            elif await pillarbox.pool.fetchval("SELECT count(*) FROM webhooks"):
                for found in made:
                    await team.call("DELETE", found.path)
            await pillarbox.pool.execute("DELETE FROM webhook_deliveries")
            await batch(team)
            await until_settled(pillarbox)
            rows = await pillarbox.pool.fetchval("SELECT count(*) FROM webhook_deliveries")
            assert rows == 2 * MAILS * expected
