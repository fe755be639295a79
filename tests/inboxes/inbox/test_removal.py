"""What a deleted inbox takes with it, and what stays (inboxes.md 3.5)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.brought import INVARIANTS
from kit.inbox_rows import Inbox, an_inbox
from kit.inboxes import create, inbox_domain
from kit.manual_world import manual_world, run_jobs
from kit.searched_inboxes import SearchedInbox
from kit.webhooks import hook
from kit.world import Team, World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.inboxes.inbox import removal
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.storage.blobs import BlobStore

PLAIN = (
    b"From: iris@customer.example\r\nSubject: Refund\r\n"
    b"Content-Disposition: attachment; filename=invoice.txt\r\n\r\nHello\r\n"
)

OF_INBOXES = """
    SELECT table_name FROM information_schema.columns
     WHERE table_schema = current_schema() AND column_name = 'inbox_id'
       AND table_name NOT IN ('api_keys', 'emails', 'oauth_grants')
     ORDER BY table_name
"""

INSERT_DRAFT = """
    INSERT INTO inbox_drafts (team_id, id, inbox_id, thread_id, cc_list, bcc_list, email_id, created_at,
                              updated_at)
    VALUES ($1, $2, $3, $4, '[]', '[]', $5, $6, $6)
"""

INSERT_FILE = """
    INSERT INTO inbox_draft_attachments (team_id, id, draft_id, position, filename, content_type, size, blob)
    VALUES ($1, $2, $3, 0, 'plan.pdf', 'application/pdf', 4, $4)
"""

SETTINGS = """
    INSERT INTO inbox_agents (team_id, inbox_id, id, tone, actions, updated_at)
    VALUES ($1, $2, $3, 'concise_casual', '{}', $4)
"""

POLICY = """
    INSERT INTO inbox_policies (team_id, inbox_id, applies_to, allowed_senders, blocked_senders, blocked_mail,
                                may_write_to, allowed_recipients, blocked_recipients, attachments, reply_only,
                                approval, updated_at)
    VALUES ($1, $2, 'programs', '{}', '{}', 'spam', 'anybody', '{}', '{}', true, false, 'never', $3)
"""

COUNT_THREADS = """
    UPDATE inbox_threads t
       SET drafts = (SELECT count(*) FROM inbox_drafts d
                      WHERE d.team_id = $1 AND d.thread_id = t.id AND d.email_id IS NULL),
           has_attachment = (SELECT bool_or(attachments > 0) FROM inbox_messages m
                              WHERE m.team_id = $1 AND m.thread_id = t.id)
     WHERE t.team_id = $1
"""

COUNT_DRAFTS = "UPDATE inboxes SET drafts = 2 WHERE team_id = $1 AND id = $2"

RELEASED = """
    SELECT (SELECT count(*) FROM received_emails WHERE team_id = $1 AND inboxes IS NULL) AS received,
           (SELECT count(*) FROM emails WHERE team_id = $1 AND inbox_id IS NULL) AS sent
"""

LATE = "INSERT INTO inbox_search_late (team_id, inbox_id, id) VALUES ($1, $2, $3)"

LEFT_LINKS = "SELECT count(*) FROM inbox_thread_labels"


async def a_draft(inbox: Inbox, thread_id: UUID | None, email_id: UUID | None) -> str:
    """A draft with an attachment in the blob store; returns its blob."""
    draft_id, at = inbox.new_id(), inbox.team.world.clock.now()
    blob = f"drafts/{draft_id}"
    await inbox.team.world.app.need(BlobStore).put(blob, b"plan")
    await inbox.team.db.run(INSERT_DRAFT, draft_id, inbox.id, thread_id, email_id, at)
    await inbox.team.db.run(INSERT_FILE, inbox.new_id(), draft_id, blob)
    return blob


AWAITED = """
    INSERT INTO inbox_awaited_messages (team_id, inbox_id, message_key, thread_id, at)
    VALUES ($1, $2, 7, $3, now())
"""


async def full_inbox(team: Team, local: str = "help") -> tuple[Inbox, list[str]]:
    """An inbox with some of everything, and the blobs of its drafts."""
    inbox = await an_inbox(team, local)
    label_id = await inbox.label("Late")
    threads = [await inbox.thread(at=number) for number in range(3)]
    await threads[0].received(PLAIN + local.encode(), at=9)
    await threads[1].sent(now=9)
    for thread in threads:
        assert (await thread.put_labels([label_id])).status_code == 200
    blobs = [
        await a_draft(inbox, threads[0].id, None),
        await a_draft(inbox, None, None),
        await a_draft(inbox, threads[1].id, inbox.new_id()),
    ]
    await team.db.run(SETTINGS, inbox.id, inbox.new_id(), team.world.clock.now())
    await team.db.run(POLICY, inbox.id, team.world.clock.now())
    await team.db.run(COUNT_THREADS)
    await team.db.run(COUNT_DRAFTS, inbox.id)
    searched = SearchedInbox(inbox)
    assert await searched.describe() == 1
    await searched.due()
    await team.db.run(LATE, inbox.id, threads[0].messages[0])
    await team.db.run(AWAITED, inbox.id, threads[0].id)
    return inbox, blobs


async def left(pillarbox: World, inbox: Inbox) -> dict[str, int]:
    """How many rows of each table are of the inbox."""
    found = {}
    for row in await pillarbox.pool.fetch(OF_INBOXES):
        name = row["table_name"]
        found[name] = await pillarbox.pool.fetchval(
            f"SELECT count(*) FROM {name} WHERE inbox_id = $1", inbox.id
        )
    return {name: count for name, count in found.items() if count}


async def gaps(pillarbox: World) -> list[str]:
    """What `pillarbox verify` finds of inboxes, but for what tests write as rows by themselves."""
    found = await reconcile(pillarbox.pool, 5, INVARIANTS)
    own = ("inbox_without_domain", "attachment_without_blob")
    return [gap.name for gap in found.gaps if gap.name not in own]


async def deleted(inbox: Inbox) -> None:
    answer = await inbox.team.call("DELETE", inbox.url)
    assert answer.json() == {"object": "inbox", "id": str(inbox.id), "deleted": True}


async def test_an_inbox_is_gone_at_once_and_its_rows_soon(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH", 2)
    monkeypatch.setattr(removal, "DRAFTS", 2)
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        inbox, blobs = await full_inbox(team)
        other, kept = await full_inbox(team, "desk")
        before = await left(pillarbox, other)
        assert set(before) == {row["table_name"] for row in await pillarbox.pool.fetch(OF_INBOXES)}
        await deleted(inbox)
        for path in ("", "/threads", "/labels", "/agent"):
            assert (await inbox.get(path)).status_code == 404
        assert await gaps(pillarbox) == []
        assert await run_jobs(pillarbox) == 1
        assert await left(pillarbox, inbox) == {}
        assert await left(pillarbox, other) == before
        assert await pillarbox.pool.fetchval(LEFT_LINKS) == 3
        assert await gaps(pillarbox) == []
        store = pillarbox.app.need(BlobStore)
        assert [await store.size(blob) for blob in blobs] == [None] * 3
        assert [await store.size(blob) for blob in kept] == [4] * 3


async def test_its_emails_stay_and_are_kept_as_long_as_any_other(pillarbox: World) -> None:
    team = await pillarbox.team()
    inbox, _ = await full_inbox(team)
    assert tuple(await pillarbox.pool.fetchrow(RELEASED, team.id)) == (0, 0)
    await deleted(inbox)
    await run_jobs(pillarbox)
    assert tuple(await pillarbox.pool.fetchrow(RELEASED, team.id)) == (1, 1)
    assert len((await team.get("/emails/receiving")).json()["data"]) == 1
    assert len((await team.get("/emails")).json()["data"]) == 1


async def test_its_address_is_free_at_once_and_the_new_inbox_is_empty(
    database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path, inbound_domain="in.pillar.example") as pillarbox:
        team = await pillarbox.team()
        await inbox_domain(team)
        first = await create(team, forwarding=True)
        inbox = Inbox(team, UUID(first), "help@harbor.example")
        await inbox.thread()
        await deleted(inbox)
        second = await create(team, forwarding=True)
        assert (await team.get(f"/inboxes/{second}/threads")).json()["data"] == []
        shown = (await team.get("/inboxes/help@harbor.example")).json()
        assert (shown["id"], shown["unread"], shown["last_received"]) == (second, 0, None)
        await run_jobs(pillarbox)
        assert (await team.get("/inboxes/help@harbor.example")).json() == shown


async def test_a_removal_that_is_interrupted_goes_on(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH", 1)
    async with manual_world(database_url, tmp_path) as pillarbox:
        team = await pillarbox.team()
        inbox, _ = await full_inbox(team)
        await deleted(inbox)
        dropped = removal.queries.drop_messages
        calls = 0

        async def breaks(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise ConnectionResetError
            return await dropped(*given)

        with monkeypatch.context() as broken:
            broken.setattr(removal.queries, "drop_messages", breaks)
            await run_jobs(pillarbox)
        assert 0 < (await left(pillarbox, inbox))["inbox_messages"] < 5
        assert await gaps(pillarbox) == []
        clock: Any = pillarbox.clock
        for _ in range(5):
            clock.advance(timedelta(hours=1).total_seconds())
            await run_jobs(pillarbox)
        assert await left(pillarbox, inbox) == {}


async def test_who_works_on_it_ends_first(pillarbox: World) -> None:
    inbox = await an_inbox(await pillarbox.team())
    url = f"{inbox.url}/labels"
    answers = await asyncio.gather(
        *(inbox.team.post(url, {"name": f"Label {number}"}) for number in range(4)),
        inbox.team.call("DELETE", inbox.url),
        *(inbox.team.post(url, {"name": f"More {number}"}) for number in range(4)),
        inbox.team.call("PATCH", f"{inbox.url}/agent", {"tone": "concise_casual"}),
    )
    assert {answer.status_code for answer in answers} <= {200, 201, 404}
    assert answers[4].status_code == 200
    assert await gaps(pillarbox) == []


async def test_with_its_domain_go_its_inboxes(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain_id = await inbox_domain(team)
    await inbox_domain(team, "quay.example")
    other = await create(team, "help@quay.example")
    ids = [await create(team, f"help{number}@harbor.example") for number in range(3)]
    hooked = await hook(team, "inbox.deleted", "domain.deleted")
    assert (await team.call("DELETE", f"/domains/{domain_id}")).status_code == 200
    assert [inbox["id"] for inbox in (await team.get("/inboxes")).json()["data"]] == [other]
    told = await hooked.payloads()
    assert [event["type"] for event in told] == [*["inbox.deleted"] * 3, "domain.deleted"]
    assert [event["data"] for event in told[:3]] == [
        {"source": "system", "inbox_id": inbox_id} for inbox_id in sorted(ids)
    ]
    assert await gaps(pillarbox) == []
    assert [await run_jobs(pillarbox) for _ in range(3)] == [2, 1, 0]


async def test_an_inbox_is_not_made_at_a_domain_that_is_being_deleted(pillarbox: World) -> None:
    team = await pillarbox.team()
    domain_id = await inbox_domain(team)
    for number in range(5):
        made, gone = await asyncio.gather(
            team.post("/inboxes", {"email_address": f"help{number}@harbor.example"}),
            team.call("DELETE", f"/domains/{domain_id}"),
        )
        assert gone.status_code == 200
        assert made.status_code in (201, 422), made.text
        assert (await team.get("/inboxes")).json()["data"] == []
        assert await gaps(pillarbox) == []
        domain_id = await inbox_domain(team)


async def test_a_deletion_waits_for_the_lock_of_the_inbox(pillarbox: World) -> None:
    inbox = await an_inbox(await pillarbox.team())
    async with transaction(pillarbox.pool) as conn:
        await conn.execute("SELECT FROM inboxes WHERE id = $1 FOR NO KEY UPDATE", inbox.id)
        gone = asyncio.create_task(inbox.team.call("DELETE", inbox.url))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not await pillarbox.pool.fetchval(waiting):
            await asyncio.sleep(0.01)
        assert not gone.done()
    assert (await gone).status_code == 200
