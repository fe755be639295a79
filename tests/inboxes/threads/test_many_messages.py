"""A thread with any number of messages: what is done with it stays small (docs/decisions/0091)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from inboxes.threads.test_purge import purge_in
from kit.brought import INVARIANTS
from kit.inbox_arrivals import arrives
from kit.inbox_rows import Inbox, Thread, an_inbox
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.query_plans import plan, rows_read
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.inboxes.threads import purge, queries
from pillarbox.kernel.postgres.database import transaction

OVER = KEPT_IN_TRASH + timedelta(seconds=1)

MANY = 3000

GROW = """
    WITH more AS (
        INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender,
                                    sender_key, to_list, attachments, is_read, is_automatic, searched)
        SELECT team_id, inbox_id, gen_random_uuid(), id, 'inbound', created_at, 'x', 'x', '[]', 0, false,
               false, ''
          FROM inbox_threads, generate_series(1, $3::integer)
         WHERE team_id = $1 AND id = $2
    )
    UPDATE inbox_threads
       SET messages = messages + $3, inbound = inbound + $3, unread = unread + $3
     WHERE team_id = $1 AND id = $2
"""

MESSAGES = "SELECT count(*) FROM inbox_messages WHERE team_id = $1"

UNTOUCHED = "SELECT count(DISTINCT xmin::text) FROM inbox_messages WHERE team_id = $1 AND thread_id = $2"


async def grown(inbox: Inbox, messages: int = MANY) -> Thread:
    """A thread with as many messages more, none of them read."""
    thread = await inbox.thread()
    await inbox.team.db.run(GROW, thread.id, messages)
    return thread


async def gaps(inbox: Inbox) -> list[str]:
    """What `pillarbox verify` finds, but for what the rows of the kit have not."""
    found = await reconcile(inbox.team.world.pool, 5, INVARIANTS)
    return [gap.name for gap in found.gaps if gap.name not in ("inbox_without_domain", "inbox_addresses")]


async def read_of(thread: Thread) -> list[bool]:
    return [email["read"] for email in (await thread.get("/emails?limit=100")).json()["data"]]


async def test_marking_writes_no_message(inbox: Inbox) -> None:
    thread = await grown(inbox)
    db = inbox.team.db
    before = await db.value(UNTOUCHED, thread.id)
    for is_read in (True, False, True):
        assert (await thread.patch(read=is_read)).json()["read"] is is_read
        assert set(await read_of(thread)) == {is_read}
        assert await inbox.counts() == (int(not is_read), 0)
        assert await inbox.listed(f"?read={str(is_read).lower()}") == [str(thread.id)]
        assert await inbox.listed(f"?read={str(not is_read).lower()}") == []
        assert await gaps(inbox) == []
    assert await db.value(UNTOUCHED, thread.id) == before
    async with transaction(inbox.team.world.pool) as conn:
        steps = await plan(conn, queries.MARK, (inbox.team.id, thread.id, 0, True))
    assert max(rows_read(steps)) <= 1


async def test_what_comes_after_marking_is_unread(inbox: Inbox) -> None:
    thread = await inbox.thread()
    await thread.message("outbound", at=1)
    await thread.patch(read=True)
    late = await thread.message("inbound", at=-1)
    await thread.message("outbound", at=3)
    assert await read_of(thread) == [False, True, True, True]
    assert (await thread.get(f"/emails/{late}")).json()["read"] is False
    # One is unread already, so the others stay read.
    assert (await thread.patch(read=False)).json()["read"] is False
    assert await read_of(thread) == [False, True, True, True]
    assert await gaps(inbox) == []
    await thread.patch(read=True)
    await thread.patch(read=False)
    assert await read_of(thread) == [False, False, True, True]
    assert await gaps(inbox) == []


async def test_marking_while_mail_comes_in_loses_neither(inbox: Inbox) -> None:
    thread = await inbox.thread()
    for is_read in (True, False) * 4:
        await asyncio.gather(*(arrives(thread) for _ in range(5)), thread.patch(read=is_read))
        shown = await read_of(thread)
        assert (await thread.get()).json()["read"] is all(shown)
        assert await inbox.counts() == (int(not all(shown)), 0)
        assert await gaps(inbox) == []
    last = await thread.patch(read=True)
    assert last.json()["read"] is True
    await arrives(thread)
    shown = await read_of(thread)
    assert (len(shown), shown.count(False)) == (42, 1)


async def test_a_large_thread_is_gone_at_once_and_its_messages_soon(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "AT_ONCE", 100)
    async with manual_world(database_url, tmp_path) as pillarbox:
        inbox = await an_inbox(await pillarbox.team())
        thread, db = await grown(inbox, 450), inbox.team.db
        sent = await thread.sent(now=99)
        await thread.put_labels([await inbox.label("Refunds")])
        await thread.delete()
        assert await purge_in(inbox, OVER).purge() == 1
        assert await db.value(MESSAGES) == 352
        for path in ("", "/emails", f"/emails/{sent}", f"/emails/{sent}/attachments"):
            assert (await thread.get(path)).status_code == 404, path
        reply = {"text": "Hello", "to": "iris@customer.example"}
        assert (await inbox.team.post(f"{thread.url}/emails/{sent}/reply", reply)).status_code == 404
        draft = {"thread_id": str(thread.id), "reply_to_email_id": sent, **reply}
        assert (await inbox.team.post(f"{inbox.url}/drafts", draft)).status_code == 404
        assert await gaps(inbox) == []
        clock_of(pillarbox).advance(OVER.total_seconds())
        assert await run_jobs(pillarbox) == 1
        assert await db.value(MESSAGES) == 0
        assert await db.value("SELECT inbox_id FROM emails WHERE team_id = $1") is None
        assert await gaps(inbox) == []
        assert await run_jobs(pillarbox) == 0


async def test_a_removal_that_dies_goes_on(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "AT_ONCE", 100)
    async with manual_world(database_url, tmp_path) as pillarbox:
        inbox = await an_inbox(await pillarbox.team())
        thread, db = await grown(inbox, 450), inbox.team.db
        await thread.delete()
        assert await purge_in(inbox, OVER).purge() == 1
        removal: Any = pillarbox.app.need(purge.ThreadPurge)
        batch = removal._messages

        async def dies_at_the_third(*given: Any) -> Any:
            gone = await batch(*given)
            if await given[0].value(MESSAGES) < 200:
                raise asyncio.CancelledError
            return gone

        monkeypatch.setattr(removal, "_messages", dies_at_the_third)
        job: Any = type("Job", (), {"team_id": inbox.team.id, "subject_id": thread.id})()
        with pytest.raises(asyncio.CancelledError):
            await removal.remove(job)
        assert await db.value(MESSAGES) == 251
        assert await gaps(inbox) == []
        monkeypatch.undo()
        clock_of(pillarbox).advance(OVER.total_seconds())
        assert await run_jobs(pillarbox) == 1
        assert await db.value(MESSAGES) == 0
