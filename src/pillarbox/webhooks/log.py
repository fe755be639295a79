"""The delivery log of a webhook: the events that it got and its answers (webhooks.md section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.webhooks import queries
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from pillarbox.webhooks.publish import Wake
from pillarbox.webhooks.queries import LoggedEvent, Webhook


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
        """No event before this id that has ended is shown any more, whether or not its rows are there."""
        return first_id(self.clock.now() - timedelta(days=self.days)) if self.days else UUID(int=0)

    async def event(self, db: TeamDb, webhook: Webhook, event_id: UUID | None) -> LoggedEvent:
        """One event as this webhook has it; 404 where it never had it or has it no more."""
        found = await queries.logged_event(db, webhook.id, event_id, self.oldest) if event_id else None
        if found is None:
            raise NotFound("Webhook event")
        return found

    async def body(self, db: TeamDb, event: LoggedEvent) -> bytes:
        """The bytes that are sent for it."""
        if event.payload is not None:
            return event.payload
        queued = QueuedEvent(
            event.event_id, event.kind, event.at, event.subject_id, event.position, event.detail
        )
        async with db.transaction() as inner:
            return (await self.bodies.of(inner.connection, db.team_id, [queued]))[event.event_id]

    async def replay(self, db: TeamDb, webhook: Webhook, event: LoggedEvent) -> None:
        """Queue one attempt more; 422 where the webhook takes none."""
        if not await queries.replay(db, webhook.id, event, self.ids.new(), self.clock.now()):
            raise WebhookDisabled
        after_commit(db.connection, self.wake)


async def webhook_of(db: TeamDb, webhook_id: UUID) -> Webhook:
    """The webhook, or 404."""
    found = await queries.get(db, webhook_id)
    if found is None:
        raise NotFound("Webhook")
    return found
