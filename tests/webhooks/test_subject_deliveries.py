"""The webhook events of an email are found among many, and few are looked through."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import asyncpg
import pytest

from kit.query_plans import plan, rows_read
from kit.webhooks import hook
from kit.world import World
from pillarbox.timeline import history
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.subjects.deliveries import SCANNED, deliveries_of, ranges_of
from pillarbox.webhooks.subjects.queries import DELIVERIES

MANY = 30_000
FILL = """
    INSERT INTO webhook_outcomes (team_id, webhook_id, event_id, kind, at, status, subject_id)
    SELECT $1, $2, (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, 'x', now(),
           'success', $3
      FROM generate_series(1, $4::integer) AS n
"""


async def test_each_webhook_shows_what_it_was_told_of_an_email(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    await team.domain("harbor.example")
    for endpoint in ("https://a.example/in", "https://b.example/in"):
        await hook(team, "email.sent", "email.delivered", "email.scheduled", endpoint=endpoint)
    ids = [await team.send(subject=f"No {n}") for n in range(5)]
    scheduled = await team.send(scheduled_at="in 2 hours")
    await pillarbox.turn()
    log = pillarbox.app.need(DeliveryLog)
    for email_id, kinds in ((ids[2], ["email.sent", "email.delivered"]), (scheduled, ["email.scheduled"])):
        lines = await history.events(team.db, UUID(email_id), 100)
        found = await deliveries_of(team.db, log, UUID(email_id), [line.id for line in lines])
        assert sorted({one.kind for one in found}) == sorted(kinds)
        assert len(found) == 2 * len(kinds)
        assert {one.endpoint for one in found} == {"https://a.example/in", "https://b.example/in"}


def test_ranges_do_not_overlap() -> None:
    lines = [UUID(int=(milliseconds << 80) + 5) for milliseconds in (1000, 1000, 1050, 5000, 99_000)]
    ranges = ranges_of(lines)
    assert all(start < end for start, end in ranges)
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    assert all(any(start <= line < end for start, end in ranges) for line in lines)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_few_events_are_looked_through(database_url: str, mode: str) -> None:
    conn = await asyncpg.connect(database_url)
    team, webhook, email = UUID(int=1), UUID(int=2), UUID(int=3)
    try:
        await conn.execute(
            "INSERT INTO webhooks (team_id, id, created_at, endpoint, events, secrets, secret_ends)"
            " VALUES ($1, $2, now(), 'x', '{}', '{a}', '{now}')",
            team,
            webhook,
        )
        await conn.execute(FILL, team, webhook, UUID(int=4), MANY)
        await conn.execute("VACUUM ANALYZE")
        await conn.execute(f"SET plan_cache_mode = {mode}")
        lines = [UUID(int=(milliseconds << 80) + 5) for milliseconds in (500, 15_000)]
        starts, ends = ("{" + ",".join(map(str, c)) + "}" for c in zip(*ranges_of(lines), strict=True))
        args = (team, email, starts, ends, UUID(int=0), 100, SCANNED)
        assert max(rows_read(await plan(conn, DELIVERIES, args))) <= len(lines) * SCANNED
    finally:
        await conn.close()
