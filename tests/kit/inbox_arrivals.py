"""Messages that join a thread of an inbox, and the purge of a process whose clock is ahead."""

from __future__ import annotations

from datetime import datetime, timedelta

from kit.inbox_rows import INSERT_MESSAGE, Inbox, Thread
from pillarbox.inboxes.folders import Folder, after_inbound, after_outbound
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.received_mail import ReceivedMail
from pillarbox.inboxes.threads import queries
from pillarbox.inboxes.threads.purge import ThreadPurge
from pillarbox.kernel.storage.blobs import BlobStore


class ClockAhead:
    """A clock that is ahead of the one of the inbox."""

    def __init__(self, inbox: Inbox, by: timedelta) -> None:
        self._clock = inbox.team.world.clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def boot(self) -> float:
        return self._clock.boot()


async def purge_after(inbox: Inbox, later: timedelta) -> int:
    """Purge what is over its time so much later; returns how many threads."""
    app = inbox.team.world.app
    received = app.need(ReceivedMail)  # type: ignore[type-abstract]
    purge = ThreadPurge(inbox.team.world.pool, ClockAhead(inbox, later), app.need(BlobStore), received)
    return await purge.purge()
