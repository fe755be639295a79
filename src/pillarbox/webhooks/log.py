"""The delivery log of a webhook: the events that it got and its answers (webhooks.md section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.webhooks import log_queries, queries
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from pillarbox.webhooks.log_queries import WebhookFailures
from pillarbox.webhooks.publish import Wake, body_of
from pillarbox.webhooks.queries import LoggedEvent, Webhook
from pillarbox.webhooks.samples import SAMPLES

SCANNED: Final = 20_000
"""Ended events among which failed ones are looked for, the newest of a period."""

FAILED_FOR: Final = timedelta(hours=24)
COUNTED: Final = 500
"""How long a failed event counts, and among how many of the newest ended events of a webhook."""


class WebhookDisabled(Invalid):
    def __init__(self) -> None:
        super().__init__("The webhook is disabled. Enable it before you replay an event.")


@dataclass(frozen=True, slots=True)
class DeliveryLog:
    """Reads the log for as long as it is kept, and queues replays."""

    bodies: WebhookBodies
    ids: Ids
    clock: Clock
    wake: Wake
    days: int

    @property
    def oldest(self) -> UUID:
        """The oldest id that is shown: events before it that have ended are not, whether or not their rows
        exist."""
        return first_id(self.clock.now() - timedelta(days=self.days)) if self.days else UUID(int=0)

    async def event(self, db: TeamDb, webhook: Webhook, event_id: UUID | None) -> LoggedEvent:
        """Return one event as this webhook has it; 404 where it never had it or has it no more."""
        found = await queries.logged_event(db, webhook.id, event_id, self.oldest) if event_id else None
        if found is None:
            raise NotFound("Webhook event")
        return found

    async def body(self, db: TeamDb, event: LoggedEvent) -> bytes:
        """Return the bytes that are sent for it."""
        if event.payload is not None:
            return event.payload
        queued = QueuedEvent(
            event_id=event.event_id,
            kind=event.kind,
            at=event.at,
            subject_id=event.subject_id,
            position=event.position,
            detail=event.detail,
        )
        async with db.transaction() as inner:
            return (await self.bodies.of(inner.connection, db.team_id, [queued]))[event.event_id]

    async def replay(self, db: TeamDb, webhook: Webhook, event: LoggedEvent) -> None:
        """Queue one attempt more; 422 where the webhook takes none."""
        if not await queries.replay(db, webhook.id, event, self.ids.new(), self.clock.now()):
            raise WebhookDisabled
        after_commit(db.connection, self.wake)

    async def failed(
        self,
        db: TeamDb,
        webhook: Webhook,
        *,
        since: datetime | None,
        before: UUID | None = None,
        limit: int,
    ) -> list[LoggedEvent]:
        """Return the newest events that failed, from `since` on and older than the event `before`."""
        lower = self.oldest if since is None else max(self.oldest, first_id(since))
        upper = before or UUID(int=(1 << 128) - 1)
        return await log_queries.failed_events(db, webhook.id, lower, upper, SCANNED, limit)

    async def failures(
        self, db: TeamDb, webhook_ids: Sequence[UUID] | None, now: datetime
    ) -> list[WebhookFailures]:
        """Return how many events of each webhook failed in `FAILED_FOR`, of its newest `COUNTED`. Without
        ids these are the newest hundred webhooks."""
        lower = max(self.oldest, first_id(now - FAILED_FOR))
        return await log_queries.failures(db, webhook_ids, lower, COUNTED)

    async def send_sample(self, db: TeamDb, webhook: Webhook, kind: str) -> UUID:
        """Queue a sample event for this webhook alone; return its id, or raise WebhookDisabled."""
        now = self.clock.now()
        event_id = self.ids.new()
        async with db.transaction() as inner:
            payload = body_of(kind, now, SAMPLES[kind])
            if not await log_queries.insert_event(inner, webhook.id, event_id, kind, now, payload):
                raise WebhookDisabled
            after_commit(inner.connection, self.wake)
        return event_id


def milliseconds_of(attempt_id: UUID, sent_at: datetime) -> int:
    """Return how long an attempt took: its id is made when it ends."""
    ended = attempt_id.int >> 80
    return max(0, ended - round(sent_at.timestamp() * 1000))


async def webhook_of(db: TeamDb, webhook_id: UUID) -> Webhook:
    """Return the webhook, or raise a 404."""
    found = await queries.get(db, webhook_id)
    if found is None:
        raise NotFound("Webhook")
    return found


async def digest_of_webhooks(db: TeamDb, webhook_id: UUID | None) -> str:
    """Return a text that is another one after a change of a webhook's newest deliveries; without a webhook,
    after a change of the state of one."""
    if webhook_id is not None:
        return await log_queries.digest_of_one(db, webhook_id)
    return await log_queries.digest_of_all(db)
