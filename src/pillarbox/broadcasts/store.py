"""Making, changing, sending and canceling broadcasts (broadcasts.md sections 2 and 3).

Each operation holds the broadcast's row while it looks and changes, so that operations on one broadcast, and
the beginning of its sending, come one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from pillarbox.broadcasts import content, queries, watch_queries
from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.broadcasts.documents import queries as document_queries
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.plans.plan import BroadcastPlan, revision_of
from pillarbox.broadcasts.prometheus import ENDED
from pillarbox.broadcasts.queries import JOB_START, Broadcast
from pillarbox.broadcasts.statuses import Operation, becomes
from pillarbox.broadcasts.wire import NewBroadcast
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.requests.parse import schedule
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.problems import Conflict, Forbidden, Invalid, MissingField, NotFound
from pillarbox.kernel.work import job_queries
from pillarbox.topics import lookup
from pillarbox.usage.quotas import Quotas

LONGEST_NAME = content.MOST_NAME
COPY = " (copy)"


class WrongState(Forbidden):
    """The broadcast is in a state that forbids the operation."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(REFUSALS[operation])


REFUSALS: dict[Operation, str] = {
    "change": "Only the name of a broadcast can be changed once it is sent, queued, canceled or failed.",
    "delete": "Only draft and scheduled broadcasts can be deleted.",
    "send": "Only draft broadcasts can be sent.",
    "schedule": "Only draft broadcasts can be sent.",
    "cancel": "Only queued or scheduled broadcasts can be canceled.",
}


class PlanFrozen(Forbidden):
    """The broadcast has begun, so its plan cannot be changed."""

    def __init__(self) -> None:
        super().__init__("The plan of a broadcast can be changed only while it is a draft or scheduled.")


class OtherPlan(Conflict):
    """The plan is another one than the one that was read (409)."""

    def __init__(self) -> None:
        super().__init__("The plan has changed since you read it. Read it again, then change it.")


class NotRunning(Forbidden):
    """The broadcast is not being sent, or not in the way that the operation needs."""


@dataclass(frozen=True, slots=True)
class Broadcasts:
    """The requests' operations on broadcasts. `wake`, called after the commit, starts jobs that are due."""

    ids: Ids
    senders: PermittedSenders
    quotas: Quotas
    wake: Callable[[], None]

    async def create(self, db: TeamDb, caller: Caller, new: NewBroadcast) -> UUID:
        """Create a draft, or with `send` one that is sent or scheduled at once: all of it or nothing."""
        wanted, scheduled_at = new.broadcast_content(), self._schedule(new.scheduled_at)
        if new.scheduled_at and not new.send:
            raise Invalid("Use `scheduled_at` only with `send`.")
        plan = None if new.plan is None else new.plan.broadcast_plan()
        await _refer(db, wanted, None)
        stamp = self.ids.stamp()
        await queries.insert(db, Broadcast(stamp.id, wanted, "draft", stamp.at))
        if plan is not None:
            await plan_queries.put(db, stamp.id, plan)
        if new.send:
            await self._send(db, caller, stamp.id, wanted, scheduled_at)
        return stamp.id

    async def change(self, db: TeamDb, caller: Caller, broadcast_id: UUID, fields: dict[str, Any]) -> None:
        """Change these fields, which are named as a content has them."""
        before = await held(db, broadcast_id)
        after = content.changed(before.content, fields)
        if becomes("change", before.status) is None:
            if replace(after, name=before.content.name) != before.content:
                raise WrongState("change")
            await queries.rename(db, broadcast_id, after.name)
            return
        await _refer(db, after, before.content)
        if before.status == "scheduled" and after.sender != before.content.sender:
            await self.senders.find(db.team_id, after.domain, caller.domain_id)
        other_topic = after.topic_id != before.content.topic_id
        await queries.update(db, broadcast_id, after, other_topic=other_topic)

    async def delete(self, db: TeamDb, broadcast_id: UUID) -> None:
        broadcast = await held(db, broadcast_id)
        _allow("delete", broadcast)
        await job_queries.remove(db, broadcast_id)
        await plan_queries.remove(db, broadcast_id)
        await queries.remove(db, broadcast_id)

    async def send(self, db: TeamDb, caller: Caller, broadcast_id: UUID, when: str | None) -> None:
        """Queue a draft, or schedule it. Of several at once one does, the others find no draft any more."""
        scheduled_at = self._schedule(when)
        broadcast = await held(db, broadcast_id)
        _allow("send" if scheduled_at is None else "schedule", broadcast)
        if broadcast.content.segment_id is None:
            raise MissingField("segment_id")
        await self._send(db, caller, broadcast_id, broadcast.content, scheduled_at)

    async def cancel(self, db: TeamDb, broadcast_id: UUID) -> None:
        """Cancel the broadcast: no copy is begun later than `delivery.copies.VALID_SECONDS` after the
        commit."""
        after = await queries.cancel(db, broadcast_id)
        if after is None:
            await found(db, broadcast_id)
            raise WrongState("cancel")
        await job_queries.remove(db, broadcast_id)
        if after == "canceled":
            after_commit(db.connection, _count_canceled)

    async def duplicate(self, db: TeamDb, broadcast_id: UUID) -> UUID:
        """Create a draft with the same content; return its id."""
        original = (await held(db, broadcast_id)).content
        name = None if original.name is None else original.name[: LONGEST_NAME - len(COPY)] + COPY
        stamp = self.ids.stamp()
        await queries.insert(db, Broadcast(stamp.id, replace(original, name=name), "draft", stamp.at))
        if (plan := await plan_queries.get(db, broadcast_id)) is not None:
            await plan_queries.put(db, stamp.id, plan)
        if (kept := await document_queries.source(db, broadcast_id)) is not None:
            await document_queries.set_source(db, stamp.id, kept)
        return stamp.id

    async def plan(
        self, db: TeamDb, broadcast_id: UUID, plan: BroadcastPlan | None, revision: str | None = None
    ) -> None:
        """Give a draft, or one that is scheduled, this plan in the place of its own, or none; 409 where its
        own has another revision than the one that is named."""
        broadcast = await held(db, broadcast_id)
        if becomes("change", broadcast.status) is None:
            raise PlanFrozen
        if revision is not None and revision != revision_of(await plan_queries.get(db, broadcast_id)):
            raise OtherPlan
        if plan is None:
            await plan_queries.remove(db, broadcast_id)
        else:
            await plan_queries.put(db, broadcast_id, plan)

    async def pause(self, db: TeamDb, broadcast_id: UUID, reason: str) -> None:
        """Pause a broadcast that is being sent."""
        if not await watch_queries.pause(db, broadcast_id, reason, self.ids.now()):
            await found(db, broadcast_id)
            raise NotRunning("Only broadcasts that are being sent and not paused can be paused.")

    async def resume(self, db: TeamDb, broadcast_id: UUID) -> None:
        """Resume a broadcast that is paused, by whomever."""
        if not await watch_queries.resume(db, broadcast_id, self.ids.now()):
            await found(db, broadcast_id)
            raise NotRunning("Only broadcasts that are paused can be resumed.")

    async def choose_winner(self, db: TeamDb, broadcast_id: UUID, variant: int) -> None:
        """End the A/B test of a broadcast: all who are left get this variant."""
        if not await plan_queries.choose_winner(db, broadcast_id, variant):
            await found(db, broadcast_id)
            raise NotRunning("The broadcast has no A/B test that runs with this variant.")

    async def _send(
        self,
        db: TeamDb,
        caller: Caller,
        broadcast_id: UUID,
        what: BroadcastContent,
        scheduled_at: datetime | None,
    ) -> None:
        await self.senders.find(db.team_id, what.domain, caller.domain_id)
        now = self.ids.now()
        if caller.is_metered and (problem := await self.quotas.used_up(db.connection, db.team_id, now)):
            raise problem
        queued_at = now if scheduled_at is None else None
        await queries.queue(
            db, broadcast_id, scheduled_at=scheduled_at, queued_at=queued_at, key_id=caller.key_id
        )
        due = scheduled_at or now
        await job_queries.restart(db, self.ids.new(), JOB_START, broadcast_id, due, now)
        after_commit(db.connection, self.wake)

    def _schedule(self, text: str | None) -> datetime | None:
        """Return the time to send at; None for now."""
        now = self.ids.now()
        at = schedule(text, now)
        return None if at is None or at <= now else at


def _count_canceled() -> None:
    ENDED.add(1, ("canceled",))


async def found(db: TeamDb, broadcast_id: UUID) -> Broadcast:
    """Return the broadcast, or raise a 404."""
    broadcast = await queries.get(db, broadcast_id)
    if broadcast is None:
        raise NotFound("Broadcast")
    return broadcast


async def held(db: TeamDb, broadcast_id: UUID) -> Broadcast:
    """Return the broadcast, locked until the transaction ends, or raise a 404."""
    await queries.hold(db, broadcast_id)
    return await found(db, broadcast_id)


def _allow(operation: Operation, broadcast: Broadcast) -> None:
    if becomes(operation, broadcast.status) is None:
        raise WrongState(operation)


async def _refer(db: TeamDb, broadcast_content: BroadcastContent, before: BroadcastContent | None) -> None:
    """Raise a 404 for a segment or a topic that the change adds and that does not exist."""
    segment_id, topic_id = broadcast_content.segment_id, broadcast_content.topic_id
    is_new = before is None or segment_id != before.segment_id
    if segment_id is not None and is_new and not await queries.segment_exists(db, segment_id):
        raise NotFound("Segment")
    is_new = before is None or topic_id != before.topic_id
    if topic_id is not None and is_new and not await lookup.exists(db, topic_id):
        raise NotFound("Topic")
