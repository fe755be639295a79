"""Threads leave the trash for good, and their emails are kept for as long as an inbox has them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from kit.inbox_rows import Inbox, Thread
from pillarbox.emails.retention import EmailRetention
from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.threads.purge import ThreadPurge
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.receiving.retention import ReceivedRetention

PLAIN = b"From: iris@customer.example\r\nSubject: Refund\r\n\r\nHello\r\n"

SECOND = timedelta(seconds=1)

LEFT = """
    SELECT (SELECT count(*) FROM inbox_threads WHERE team_id = $1)
           + (SELECT count(*) FROM inbox_messages WHERE team_id = $1)
           + (SELECT count(*) FROM inbox_thread_labels WHERE team_id = $1)
           + (SELECT count(*) FROM inbox_drafts WHERE team_id = $1)
           + (SELECT count(*) FROM inbox_draft_attachments WHERE team_id = $1)
"""

DRAFT = """
    INSERT INTO inbox_drafts (team_id, id, inbox_id, thread_id, cc_list, bcc_list, created_at, updated_at)
    VALUES ($1, $2, $3, $4, '[]', '[]', now(), now())
"""

DRAFT_FILE = """
    INSERT INTO inbox_draft_attachments (team_id, id, draft_id, position, filename, content_type, size, blob)
    VALUES ($1, $2, $3, 0, 'a.txt', 'text/plain', 2, $4)
"""


class Ahead:
    """A clock that is ahead of another."""

    def __init__(self, clock: Clock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def now(self) -> Any:
        return self._clock.now() + self._by


def purge_in(inbox: Inbox, after: timedelta) -> ThreadPurge:
    """The purge of a process that runs so much later."""
    app = inbox.team.world.app
    received = app.need(ReceivedMailSource)  # type: ignore[type-abstract]
    clock: Any = Ahead(inbox.team.world.clock, after)
    return ThreadPurge(inbox.team.world.pool, clock, app.need(Ids), app.need(BlobStore), received)


async def exists(thread: Thread) -> bool:
    return (await thread.get()).status_code == 200


async def test_a_thread_is_purged_at_thirty_days_and_not_before(inbox: Inbox) -> None:
    thread, kept = await inbox.thread(), await inbox.thread()
    await thread.delete()
    minute = timedelta(minutes=1)
    assert await purge_in(inbox, KEPT_IN_TRASH - minute).purge() == 0
    assert await exists(thread)
    assert await purge_in(inbox, KEPT_IN_TRASH + minute).purge() == 1
    assert not await exists(thread)
    assert await exists(kept)


async def test_the_deadline_is_exact(inbox: Inbox) -> None:
    thread = await inbox.thread()
    await thread.delete()
    due = "SELECT purge_at FROM inbox_threads WHERE team_id = $1"
    deadline = await inbox.team.db.value(due)

    class At:
        """A clock that stands at an instant."""

        def __init__(self, instant: Any) -> None:
            self.instant = instant

        def now(self) -> Any:
            return self.instant

    purge = purge_in(inbox, KEPT_IN_TRASH)
    for instant, purged in ((deadline - SECOND, 0), (deadline, 1)):
        standing: Any = At(instant)
        purge._clock = standing
        assert await purge.purge() == purged


async def test_nothing_of_a_purged_thread_is_left(inbox: Inbox) -> None:
    thread, db, blobs = await inbox.thread(), inbox.team.db, inbox.team.world.app.need(BlobStore)
    await thread.put_labels([await inbox.label("Refunds")])
    received, sent = await thread.received(PLAIN), await thread.sent()
    draft = inbox.new_id()
    await blobs.put("drafts/a", b"hi")
    await db.run(DRAFT, draft, inbox.id, thread.id)
    await db.run(DRAFT_FILE, inbox.new_id(), draft, "drafts/a")
    await db.run("UPDATE inboxes SET drafts = 1 WHERE team_id = $1")
    await thread.delete()
    assert await purge_in(inbox, KEPT_IN_TRASH + SECOND).purge() == 1
    assert await db.value(LEFT) == 0
    assert await inbox.counts() == (0, 0)
    assert await blobs.size("drafts/a") is None
    # The emails stay under their own retention, which counts from now on.
    assert (await inbox.team.get(f"/emails/receiving/{received}")).status_code == 200
    assert (await inbox.team.get(f"/emails/{sent}")).status_code == 200
    assert await db.value("SELECT inboxes FROM received_emails WHERE team_id = $1") is None
    assert await db.value("SELECT inbox_id FROM emails WHERE team_id = $1") is None


async def test_bringing_back_and_purging_at_once_leave_all_or_nothing(inbox: Inbox) -> None:
    threads = [await inbox.thread(at=at) for at in range(20)]
    for thread in threads:
        await thread.delete()
    purges = [purge_in(inbox, KEPT_IN_TRASH + SECOND).purge() for _ in range(3)]
    answers, *counts = await asyncio.gather(
        asyncio.gather(*(thread.patch(folder="inbox") for thread in threads)), *purges
    )
    codes = [answer.status_code for answer in answers]
    assert set(codes) <= {200, 404}
    assert sum(counts) == codes.count(404)
    for thread, code in zip(threads, codes, strict=True):
        assert (await thread.get()).status_code == code
        assert (await thread.get("/emails")).status_code == code
    assert await inbox.counts() == (codes.count(200), 0)


async def test_a_thread_that_was_brought_back_and_deleted_again_has_a_new_deadline(inbox: Inbox) -> None:
    thread = await inbox.thread()
    await thread.delete()
    await inbox.team.db.run(
        "UPDATE inbox_threads SET purge_at = purge_at - interval '30 days' WHERE team_id = $1"
    )
    await thread.patch(folder="archive")
    await thread.delete()
    assert await purge_in(inbox, SECOND).purge() == 0


async def test_emails_of_an_inbox_are_not_removed_by_age(inbox: Inbox) -> None:
    app, team, thread = inbox.team.world.app, inbox.team, await inbox.thread()
    kept = [await thread.received(PLAIN + str(at).encode(), at=at) for at in range(3)]
    sent = await thread.sent(to="delivered@pillarbox.test")
    loose = await (await inbox.thread()).received(PLAIN + b"loose")
    await team.db.run("UPDATE received_emails SET inboxes = NULL WHERE team_id = $1 AND id = $2", UUID(loose))
    await team.db.run("DELETE FROM deliveries WHERE team_id = $1")
    later: Any = Ahead(team.world.clock, timedelta(days=100))
    blobs = app.need(BlobStore)
    received = ReceivedRetention(team.world.pool, later, blobs, days=30)
    emails = EmailRetention(team.world.pool, later, blobs, emails=30, bodies=7)
    assert await received.purge() == 1
    assert await received.clear() == 0
    assert (await emails.purge_bodies(), await emails.purge_emails()) == (0, 0)
    for email_id in kept:
        assert (await thread.get(f"/emails/{email_id}")).json()["text"].startswith("Hello")
    assert (await thread.get(f"/emails/{sent}")).json()["html"] is not None

    await thread.delete()
    assert await purge_in(inbox, KEPT_IN_TRASH + SECOND).purge() == 1
    assert await received.purge() == 3
    assert await emails.purge_emails() == 1
