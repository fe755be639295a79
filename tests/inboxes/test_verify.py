"""`pillarbox verify` counts once more what inboxes count, and finds what is in no place."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from kit.brought import INVARIANTS
from kit.inbox_rows import Inbox
from kit.inboxes import create, inbox_team
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.inboxes.inbox.invariants import INVARIANTS as OF_INBOXES
from pillarbox.inboxes.threads.invariants import INVARIANTS as OF_THREADS

DAMAGE: list[tuple[str, set[str]]] = [
    ("UPDATE inboxes SET unread = unread + 1", {"inbox_counts"}),
    ("UPDATE inboxes SET drafts = 0", {"inbox_counts"}),
    ("UPDATE inbox_threads SET messages = 5", {"thread_counts"}),
    ("UPDATE inbox_threads SET inbound = 1, unread = 1", {"thread_counts"}),
    ("UPDATE inbox_threads SET drafts = 2", {"thread_counts"}),
    ("UPDATE inbox_messages SET is_read = NOT is_read", {"thread_counts"}),
    ("UPDATE inbox_threads SET has_attachment = true", {"thread_newest"}),
    ("UPDATE inbox_threads SET received_at = received_at - interval '1 h'", {"thread_newest"}),
    ("UPDATE inbox_threads SET last_message_id = id", {"thread_newest"}),
    (
        "UPDATE inbox_threads SET folder = 'trash', purge_at = now() + interval '40 days'",
        {"inbox_counts", "thread_kept_too_long"},
    ),
    ("DELETE FROM inbox_messages", {"thread_counts"}),
    ("UPDATE inbox_messages SET thread_id = inbox_id", {"message_without_thread", "thread_counts"}),
    (
        "DELETE FROM inbox_threads",
        {"message_without_thread", "draft_without_thread", "inbox_counts"},
    ),
    ("DELETE FROM inbox_drafts", {"attachment_without_draft", "inbox_counts", "thread_counts"}),
    ("UPDATE inboxes SET domain_id = id", {"inbox_without_domain"}),
    ("DELETE FROM directory_inboxes WHERE is_forwarded", {"inbox_addresses"}),
    ("DELETE FROM directory_inboxes WHERE NOT is_forwarded", {"inbox_addresses"}),
    ("UPDATE directory_inboxes SET address = 'x' || address", {"inbox_addresses"}),
    ("UPDATE directory_inboxes SET inbox_id = team_id", {"inbox_addresses"}),
    ("DELETE FROM inboxes", {"inbox_addresses", "inbox_keys", "rows_without_inbox"}),
]

INSERT_DRAFT = """
    INSERT INTO inbox_drafts (team_id, id, inbox_id, thread_id, reply_to_email_id, cc_list, bcc_list,
                              created_at, updated_at)
    SELECT team_id, $2, inbox_id, id, last_message_id, '[]', '[]', created_at, created_at
      FROM inbox_threads
     WHERE team_id = $1 AND id = $3
"""

COUNT_DRAFT = """
    WITH counted AS (UPDATE inboxes SET drafts = drafts + 1 WHERE team_id = $1)
    UPDATE inbox_threads SET drafts = drafts + 1 WHERE team_id = $1 AND id = $2
"""

INSERT_FILE = """
    INSERT INTO inbox_draft_attachments (team_id, id, draft_id, position, filename, content_type, size, data)
    VALUES ($1, $2, $2, 0, 'plan.pdf', 'application/pdf', 4, 'plan')
"""


async def test_every_count_and_place_is_checked(database_url: str, tmp_path: Path) -> None:
    async with inbox_team(database_url, tmp_path, inbound_domain="in.pillar.example") as team:
        inbox = Inbox(team, UUID(await create(team, forwarding=True)), "help@harbor.example")
        thread = await inbox.thread()
        await thread.message("outbound", at=2)
        await thread.message("inbound", at=3)
        draft_id = inbox.new_id()
        await team.db.run(INSERT_DRAFT, draft_id, thread.id)
        await team.db.run(COUNT_DRAFT, thread.id)
        await team.db.run(INSERT_FILE, draft_id)
        await team.key(inbox_id=str(inbox.id), rights=["read"])
        pool = team.world.pool
        assert (await reconcile(pool, 5, INVARIANTS)).gaps == []
        seen: set[str] = set()
        for damage, expected in DAMAGE:
            async with pool.acquire() as conn:
                undone = conn.transaction()
                await undone.start()
                assert not (await conn.execute(damage)).endswith(" 0"), damage
                found = {one.name for one in OF_INBOXES if await conn.fetch(one.sql, 5, *one.args)}
                await undone.rollback()
            assert found == expected, damage
            seen |= found
        assert seen == {one.name for one in OF_INBOXES}


async def test_labels_and_emails_that_do_not_agree_with_threads_are_named(
    database_url: str, tmp_path: Path
) -> None:
    damage = {
        "label_without_thread": "DELETE FROM inbox_labels",
        "label_elsewhere": "UPDATE inbox_thread_labels SET received_at = received_at - interval '1 h'",
        "message_of_free_email": "UPDATE received_emails SET inboxes = NULL",
    }
    assert damage.keys() == {one.name for one in OF_THREADS}
    async with inbox_team(database_url, tmp_path) as team:
        inbox = Inbox(team, UUID(await create(team)), "help@harbor.example")
        thread = await inbox.thread()
        await thread.received(b"From: iris@customer.example\r\nSubject: Refund\r\n\r\nHello\r\n")
        assert (await thread.put_labels([await inbox.label("Refunds")])).status_code == 200
        pool = team.world.pool
        assert (await reconcile(pool, 5, INVARIANTS)).gaps == []
        for name, statement in damage.items():
            async with pool.acquire() as conn:
                undone = conn.transaction()
                await undone.start()
                assert not (await conn.execute(statement)).endswith(" 0"), statement
                found = {one.name for one in OF_THREADS if await conn.fetch(one.sql, 5, *one.args)}
                await undone.rollback()
            assert found == {name}
