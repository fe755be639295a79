"""Each conversation of the corpus makes the threads that it should, with exact counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from inboxes.arrivals.conversations import CONVERSATIONS, IRIS, Mail
from kit.brought import INVARIANTS
from kit.inbox_mail import InboxMail, inbox_mail
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.threading.join import join
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.webhooks.publish import Publisher

MESSAGES = """
    SELECT id, thread_id FROM inbox_messages WHERE team_id = $1 AND inbox_id = $2 ORDER BY id
"""


def test_the_corpus_is_large_enough() -> None:
    assert len(CONVERSATIONS) >= 60


async def test_conversations_make_the_threads_that_they_should(database_url: str, tmp_path: Path) -> None:
    """inboxes.md 9.4 to 9.7: each in an inbox of its own."""
    async with inbox_mail(database_url, tmp_path) as mail:
        wrong = {}
        for number, (name, conversation) in enumerate(CONVERSATIONS.items()):
            wanted = "".join([one.thread for one in conversation])
            found = await held(mail, f"c{number}@harbor.example", conversation)
            if found != wanted:
                wrong[name] = (wanted, found)
        assert wrong == {}
        assert (await reconcile(mail.team.world.pool, 10, INVARIANTS)).gaps == []


async def held(mail: InboxMail, address: str, conversation: list[Mail]) -> str:
    """Let a conversation take place; the letters of the threads that it made."""
    inbox_id = UUID(await mail.inbox(address))
    letters: dict[UUID, str] = {}
    by_letter: dict[str, UUID] = {}
    known: set[UUID] = set()
    found = ""
    for one in conversation:
        if one.sent:
            await send(mail, inbox_id, address, one, by_letter.get(one.thread))
        else:
            fields = {"text": one.text} if one.text is not None else {}
            answer = await mail.brings(
                address,
                subject=one.subject,
                sender=one.by,
                message_id=one.id,
                answers=one.re,
                references=one.refs,
                headers=one.headers,
                **fields,
            )
            assert answer.startswith("250"), answer
        rows = await mail.team.world.pool.fetch(MESSAGES, mail.team.id, inbox_id)
        new = [row for row in rows if row["id"] not in known]
        known.update(row["id"] for row in new)
        if not new:
            found += "-"
            continue
        [row] = new
        letter = letters.setdefault(row["thread_id"], chr(ord("a") + len(letters)))
        by_letter[letter] = row["thread_id"]
        found += letter
    return found


async def send(mail: InboxMail, inbox_id: UUID, address: str, one: Mail, thread_id: UUID | None) -> None:
    """A message of the inbox to Iris, as sending brings it into its thread."""
    app = mail.team.world.app
    ids, at = app.need(Ids), mail.team.world.clock.now()
    fields: dict[str, Any] = {"subject": one.subject, "message_id": one.id, "thread_id": thread_id}
    message = NewMessage(
        team_id=mail.team.id,
        inbox_id=inbox_id,
        id=ids.new(),
        received_at=at,
        is_inbound=False,
        sender=address,
        sender_key=address,
        to_list=f'["{IRIS}"]',
        searched="",
        **fields,
    )
    async with transaction(mail.team.world.pool) as conn:
        await lock(conn, [(mail.team.id, inbox_id)])
        await join(conn, app.need(Publisher), ids, at, [message])
