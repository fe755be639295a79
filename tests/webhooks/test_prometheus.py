"""The Prometheus metrics of the dispatcher (OPS-06)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kit.clock import ManualClock
from kit.receiver import WEBHOOKS, receiver, status
from kit.webhooks import hook, publish
from kit.world import world
from pillarbox.kernel.work.queue_counts import QueueCounts
from pillarbox.webhooks.dispatch import prometheus
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.queue_metrics import COUNTING


async def test_attempts_and_outcomes_are_counted(database_url: str, tmp_path: Path) -> None:
    def counts() -> list[float]:
        attempts = [prometheus.ATTEMPTS.value((name,)) for name in ("2xx", "5xx", "none")]
        return [*attempts, *[prometheus.OUTCOMES.value((name,)) for name in ("success", "retry", "failed")]]

    clock = ManualClock()
    async with (
        receiver() as at,
        world(
            database_url, tmp_path, clock=clock, started=False, webhooks_retries="5s", **WEBHOOKS
        ) as pillarbox,
    ):
        team = await pillarbox.team()
        await hook(team, endpoint=at.url)
        await hook(team, endpoint="http://127.0.0.1:1/")
        dispatcher = pillarbox.app.need(WebhookDispatcher)
        assert dispatcher is not None
        before = counts()
        at.answers(status(500), status(200))
        await publish(team)
        for _ in range(2):
            clock.advance(timedelta(seconds=5, milliseconds=1))
            await dispatcher.look()
            await dispatcher.idle()
        assert [after - was for after, was in zip(counts(), before, strict=True)] == [1, 1, 2, 1, 2, 1]
        await dispatcher.stop(0)


@pytest.mark.parametrize("most", [10_000, 3])
async def test_the_queue_is_counted_or_sampled(database_url: str, tmp_path: Path, most: int) -> None:
    clock = ManualClock()
    async with world(database_url, tmp_path, clock=clock, started=False, **WEBHOOKS) as pillarbox:
        team = await pillarbox.team()
        await hook(team)
        await publish(team, *["domain.updated"] * 6)
        clock.advance(30)
        await team.db.run(
            "UPDATE webhook_deliveries SET due_at = due_at + interval '1 hour' WHERE team_id = $1"
            " AND event_id IN (SELECT event_id FROM webhook_deliveries WHERE team_id = $1 LIMIT 2)"
        )
        metrics = QueueCounts(pillarbox.pool, clock, replace(COUNTING, most=most))
        await metrics.count()
        assert metrics.items == {"due": 4, "waiting": 2, "leased": 0}
        assert 29 < metrics.oldest["waiting"] < 31
