"""Messages that join a thread of an inbox as mail does, and the purge of a process whose clock is ahead."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from kit.inbox_rows import Inbox, Thread, known_as
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.threading.join import join
from pillarbox.inboxes.threading.new_messages import JoinedThread, NewMessage
from pillarbox.inboxes.threads.purge import ThreadPurge
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.webhooks.publish import Publisher


class ClockAhead:
    """A clock that is ahead of the one of the inbox."""

    def __init__(self, inbox: Inbox, by: timedelta) -> None:
        self._clock = inbox.team.world.clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def boottime(self) -> float:
        return self._clock.boottime()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def purge_after(inbox: Inbox, later: timedelta) -> int:
    """Purge what is over its time so much later; returns how many threads."""
    app = inbox.team.world.app
    received = app.need(ReceivedMailSource)  # type: ignore[type-abstract]
    clock = ClockAhead(inbox, later)
    return await ThreadPurge(
        inbox.team.world.pool, clock, app.need(Ids), app.need(BlobStore), received
    ).purge()


async def arrives(thread: Thread, *, is_spam: bool = False) -> JoinedThread:
    """Let an answer to the first message of the thread come in."""
    return await _joins(thread, is_inbound=True, is_spam=is_spam)


async def leaves(thread: Thread) -> JoinedThread | None:
    """Let an answer be sent; return None where the thread is gone."""
    try:
        return await _joins(thread, is_inbound=False)
    except NotFound:
        return None


async def _joins(thread: Thread, *, is_inbound: bool, is_spam: bool = False) -> JoinedThread:
    inbox = thread.inbox
    app, clock, team_id = inbox.team.world.app, inbox.team.world.clock, inbox.team.id
    message_id = inbox.new_id()
    async with transaction(inbox.team.world.pool) as conn:
        await lock(conn, [(team_id, inbox.id)])
        message = NewMessage(
            team_id=team_id,
            inbox_id=inbox.id,
            id=message_id,
            received_at=clock.now(),
            is_inbound=is_inbound,
            sender="Iris Vale <iris@customer.example>",
            sender_key="iris@customer.example",
            to_list='["help@harbor.example"]',
            subject="Re: Refund",
            message_id=f"<{known_as(message_id)[0]}>",
            searched="",
            thread_id=None if is_inbound else thread.id,
            earlier_ids=(known_as(thread.messages[0])[0],),
            names_earlier=True,
            is_spam=is_spam,
        )
        [joined] = await join(conn, app.need(Publisher), app.need(Ids), clock.now(), [message])
    return joined
