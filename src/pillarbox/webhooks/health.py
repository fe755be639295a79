"""Applies the results of attempts to a webhook: its failure clock, its end, and the notices to the team.

`record` applies the rule of `failure_clock` in the transaction that settles the attempts. An endpoint that is
well and answers costs no write. The notices are jobs of that same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.work.job_queries import NewJob, add_several
from pillarbox.webhooks import health_queries
from pillarbox.webhooks.failure_clock import AttemptEnd, HealthVerdict, Key, WebhookHealth, judged

log = get("webhooks")

JOB_FAILING = "webhook.failing"
JOB_DISABLED = "webhook.disabled"


async def record(conn: Connection, results: Sequence[AttemptEnd], ids: Ids) -> set[Key]:
    """Let these results count, in the transaction that settles them; returns what it disabled."""
    by_webhook = _by_webhook(results)
    if not by_webhook:
        return set()
    suspects = await health_queries.health(conn, list(by_webhook), lock=False)
    changing = [key for key, health in suspects.items() if _changes(health, judged(health, by_webhook[key]))]
    if not changing:
        return set()
    locked = await health_queries.health(conn, changing, lock=True)
    verdicts = {key: judged(health, by_webhook[key]) for key, health in locked.items()}
    disabled = await health_queries.set_health(conn, verdicts)
    await _queue_notices(conn, verdicts, disabled, ids)
    return disabled


def _by_webhook(results: Sequence[AttemptEnd]) -> dict[Key, list[AttemptEnd]]:
    ordered = sorted(results, key=lambda r: (r.team_id, r.webhook_id, r.at, r.event_id))
    return {key: list(group) for key, group in groupby(ordered, key=lambda r: (r.team_id, r.webhook_id))}


def _changes(health: WebhookHealth, verdict: HealthVerdict) -> bool:
    return verdict.health != health or verdict.disable


async def _queue_notices(
    conn: Connection, verdicts: Mapping[Key, HealthVerdict], disabled: set[Key], ids: Ids
) -> None:
    """Queue one mail when a webhook begins to fail, one when it is disabled; where both are due only the
    second."""
    notices = [(JOB_DISABLED, key) for key in disabled]
    notices += [
        (JOB_FAILING, key) for key, verdict in verdicts.items() if verdict.notify and key not in disabled
    ]
    jobs = []
    for kind, (team_id, webhook_id) in sorted(notices):
        log.warning(kind, team=team_id, webhook=webhook_id)
        jobs.append(NewJob(team_id=team_id, id=ids.new(), kind=kind, subject_id=webhook_id, due_at=ids.now()))
    if jobs:
        await add_several(conn, jobs)
