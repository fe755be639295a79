"""Notices to the team: one mail when an endpoint begins to fail, one when it is disabled (section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.work.jobs import Handler, Job, JobFinished
from pillarbox.webhooks import health_queries
from pillarbox.webhooks.health import JOB_DISABLED, JOB_FAILING
from pillarbox.webhooks.health_queries import FailingWebhook

SendToTeam = Callable[[UUID, str, str, str], Awaitable[None]]
"""Accepts a mail to a team: team, subject, text, and a key under which it is accepted once."""

SUBJECTS: Final = {
    JOB_FAILING: "A webhook endpoint does not answer",
    JOB_DISABLED: "A webhook was disabled because its endpoint does not answer",
}
TEXTS: Final = {
    JOB_FAILING: (
        "An event could not be delivered to this webhook, and it is not tried again by itself:",
        "Later events are still tried. If every attempt goes on to fail for five days, the webhook will be "
        "disabled.",
    ),
    JOB_DISABLED: (
        "Every attempt to call this webhook has failed for five days, so it was disabled:",
        "Events that were not delivered can be replayed once the endpoint answers again and the webhook is "
        "enabled (PATCH /webhooks/{id} with the status enabled).",
    ),
}


class Notices:
    """Does the jobs that `health.record` leaves."""

    def __init__(self, pool: asyncpg.Pool, send: SendToTeam) -> None:
        self._pool = pool
        self._send = send

    def handlers(self) -> dict[str, Handler]:
        return {JOB_FAILING: self.run, JOB_DISABLED: self.run}

    async def run(self, job: Job) -> JobFinished:
        """Mail the notice, unless the webhook is gone."""
        failing = await health_queries.failing(TeamDb(self._pool, job.team_id), job.subject_id)
        if failing is not None:
            await self._send(job.team_id, SUBJECTS[job.kind], text_of(job.kind, failing), str(job.id))
        return JobFinished()


def text_of(kind: str, failing: FailingWebhook) -> str:
    """Return the text of a notice."""
    first, last = TEXTS[kind]
    when = iso_style(failing.last_failure_at) if failing.last_failure_at else "unknown"
    answer = f"HTTP status {failing.last_status_code}" if failing.last_status_code else "no HTTP answer"
    facts = f"Endpoint: {failing.endpoint}\nLast failure: {when}\nLast answer: {answer}"
    return f"{first}\n\n{facts}\n\n{last.format(id=failing.id)}\n"
