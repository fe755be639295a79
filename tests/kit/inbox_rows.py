"""Inboxes with threads, written as rows: for tests of what is done with them.

async with inbox_world(database_url, tmp_path) as inbox:
    thread = await inbox.thread("Refund", folder="archive", at=1)
    await thread.message("outbound", at=2)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from kit.world import Team, world
from pillarbox.kernel.ids import Ids
from pillarbox.mail.message.threading import id_key
from pillarbox.mail.smtp.intake import ReceivedText
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival
from pillarbox.receiving.receive import MessageReceiver

BEGAN = datetime(2026, 10, 1, 8, tzinfo=UTC)

ELSEWHERE = "elsewhere@harbor.example"
"""An address of no inbox: what comes there joins no thread by itself."""

A_DOMAIN = """
    SELECT id FROM domains WHERE team_id = $1 ORDER BY id LIMIT 1
"""

INSERT_INBOX = """
    INSERT INTO inboxes (team_id, id, name, email_address, domain_id, created_at, updated_at)
    VALUES ($1, $2, $3, $3, $4, $5, $5)
"""

INSERT_ADDRESS = """
    INSERT INTO directory_inboxes (address, team_id, inbox_id, is_forwarded) VALUES ($3, $1, $2, false)
"""

INSERT_LABEL = """
    INSERT INTO inbox_labels (team_id, id, inbox_id, name, name_key, color, created_at)
    VALUES ($1, $2, $3, $4, lower($4), '#E93D82', $5)
"""

INSERT_THREAD = """
    INSERT INTO inbox_threads (team_id, id, inbox_id, subject, folder, messages, inbound, unread,
                               has_attachment, last_message_id, received_at, purge_at, created_at)
    VALUES ($1, $2, $3, $4, $5, 1, $6, $7, false, $8, $9,
            CASE WHEN $5 = 'trash' THEN $9::timestamptz + interval '30 days' END, $9)
"""

INSERT_MESSAGE = """
    INSERT INTO inbox_messages (team_id, inbox_id, id, thread_id, direction, received_at, sender, sender_key,
                                to_list, subject, message_id, message_key, attachments, is_read, is_automatic,
                                searched, marks)
    VALUES ($1, $2, $3, $4, $5, $6, 'Iris Vale <iris@customer.example>', 'iris@customer.example',
            '["help@harbor.example"]', $7, '<' || $9 || '>', $10, 0, $8, false, '',
            (SELECT marks FROM inbox_threads WHERE team_id = $1 AND id = $4))
"""

JOIN = """
    UPDATE inbox_threads
       SET messages = messages + 1, inbound = inbound + $3, unread = unread + $4, last_message_id = $5,
           received_at = greatest(received_at, $6)
     WHERE team_id = $1 AND id = $2
"""

COUNT = """
    UPDATE inboxes i
       SET unread = (SELECT count(*) FROM inbox_threads t
                      WHERE t.team_id = $1 AND t.inbox_id = $2 AND t.folder = 'inbox' AND t.unread > 0),
           drafts = (SELECT count(*) FROM inbox_drafts d
                      WHERE d.team_id = $1 AND d.inbox_id = $2 AND d.email_id IS NULL)
     WHERE i.team_id = $1 AND i.id = $2
"""

KEEP_RECEIVED = """
    UPDATE received_emails SET inboxes = array_append(inboxes, $2) WHERE team_id = $1 AND id = $3
"""

KEEP_SENT = """
    UPDATE emails SET inbox_id = $2 WHERE team_id = $1 AND id = $3
"""

INSERT_TRUST = """
    INSERT INTO message_trust (team_id, email_id, inbox_id, level, reasons, sender_key, domain)
    VALUES ($1, $2, $3, 'unknown', '[{"code": "spam", "detail": {"reason": "x"}}]', $2, 'customer.example')
"""

BECOME = """
    UPDATE inbox_messages SET id = $3, attachments = $4 WHERE team_id = $1 AND id = $2
"""

BECOME_LAST = """
    UPDATE inbox_threads SET last_message_id = $3 WHERE team_id = $1 AND last_message_id = $2
"""

COUNTS = """
    SELECT unread, drafts FROM inboxes WHERE team_id = $1 AND id = $2
"""


@dataclass(slots=True)
class Inbox:
    """An inbox of a team; `made` numbers what it has."""

    team: Team
    id: UUID
    address: str

    @property
    def url(self) -> str:
        return f"/inboxes/{self.id}"

    def new_id(self) -> UUID:
        return self.team.world.app.need(Ids).new()

    async def label(self, name: str) -> str:
        label_id = self.new_id()
        at = self.team.world.clock.now()
        await self.team.db.run(INSERT_LABEL, label_id, self.id, name, at)
        return str(label_id)

    async def thread(
        self,
        subject: str | None = "Refund",
        *,
        folder: str = "inbox",
        at: float = 0,
        direction: str = "inbound",
        is_read: bool = False,
    ) -> Thread:
        """Store a thread with one message, so many minutes after the beginning."""
        thread = Thread(inbox=self, id=self.new_id(), messages=[])
        inbound = int(direction == "inbound")
        unread = 0 if is_read else inbound
        message_id, when = self.new_id(), BEGAN + timedelta(minutes=at)
        row = (thread.id, self.id, subject, folder, inbound, unread, message_id, when)
        await self.team.db.run(INSERT_THREAD, *row)
        await self.team.db.run(
            INSERT_MESSAGE,
            self.id,
            message_id,
            thread.id,
            direction,
            when,
            subject,
            not unread,
            *known_as(message_id),
        )
        thread.messages.append(message_id)
        await self.team.db.run(COUNT, self.id)
        return thread

    async def counts(self) -> tuple[int, int]:
        """Return the numbers of unread threads and drafts."""
        row = await self.team.world.pool.fetchrow(COUNTS, self.team.id, self.id)
        return row["unread"], row["drafts"]

    async def get(self, path: str) -> httpx.Response:
        return await self.team.get(f"{self.url}{path}")

    async def listed(self, query: str = "") -> list[str]:
        """Return the ids of a page of threads."""
        answer = await self.get(f"/threads{query}")
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["data"]]


@dataclass(slots=True)
class Thread:
    """A thread of an inbox."""

    inbox: Inbox
    id: UUID
    messages: list[UUID]

    @property
    def url(self) -> str:
        return f"{self.inbox.url}/threads/{self.id}"

    async def get(self, path: str = "") -> httpx.Response:
        return await self.inbox.team.get(f"{self.url}{path}")

    async def patch(self, **wanted: Any) -> httpx.Response:
        return await self.inbox.team.call("PATCH", self.url, wanted)

    async def delete(self, path: str = "") -> httpx.Response:
        return await self.inbox.team.call("DELETE", f"{self.url}{path}")

    async def put_labels(self, labels: Sequence[str]) -> httpx.Response:
        return await self.inbox.team.call("PUT", f"{self.url}/labels", {"labels": list(labels)})

    async def message(self, direction: str = "inbound", *, at: float = 1, is_read: bool = False) -> UUID:
        """Store one more message, so many minutes after the beginning."""
        message_id, when = self.inbox.new_id(), BEGAN + timedelta(minutes=at)
        inbound = int(direction == "inbound")
        unread = 0 if is_read else inbound
        team = self.inbox.team
        row = (self.inbox.id, message_id, self.id, direction, when, "Re: Refund", not unread)
        row += known_as(message_id)
        await team.db.run(INSERT_MESSAGE, *row)
        await team.db.run(JOIN, self.id, inbound, unread, message_id, when)
        await team.db.run(COUNT, self.inbox.id)
        self.messages.append(message_id)
        return message_id

    async def received(self, raw: bytes, *, at: float = 1) -> str:
        """Store one more message, which is a received email."""
        team = self.inbox.team
        arrival = Arrival(
            client="",
            helo="",
            protocol="LMTP",
            tls=None,
            mail_from="",
            recipients=(AcceptedRecipient(team.id, ELSEWHERE),),
        )
        outcome = await team.world.app.need(MessageReceiver).take(arrival, ReceivedText(raw, None, len(raw)))
        email_id = outcome.ids[0]
        await team.db.run(KEEP_RECEIVED, self.inbox.id, email_id)
        await self._become(await self.message("inbound", at=at), email_id, raw.count(b"Content-Disposition"))
        await team.db.run(INSERT_TRUST, email_id, self.inbox.id)
        return str(email_id)

    async def sent(self, *, at: float = 1, **fields: Any) -> str:
        """Store one more message, which is a sent email."""
        team = self.inbox.team
        email_id = await team.send(**fields)
        await team.db.run(KEEP_SENT, self.inbox.id, UUID(email_id))
        message_id = await self.message("outbound", at=at)
        await self._become(message_id, UUID(email_id), len(fields.get("attachments", ())))
        return email_id

    async def _become(self, message_id: UUID, email_id: UUID, attachments: int) -> None:
        await self.inbox.team.db.run(BECOME, message_id, email_id, attachments)
        await self.inbox.team.db.run(BECOME_LAST, message_id, email_id)
        self.messages[-1] = email_id


def known_as(message_id: UUID) -> tuple[str, int]:
    """Return the Message-ID of a message without brackets, and how it is looked up."""
    name = f"{message_id}@customer.example"
    return name, id_key(name)


async def an_inbox(team: Team, local: str = "help") -> Inbox:
    """Make an empty inbox, of the first domain of the team whatever its address is."""
    address = f"{local}@harbor.example"
    inbox = Inbox(team, team.world.app.need(Ids).new(), address)
    domain_id = await team.db.value(A_DOMAIN)
    if domain_id is None:
        name = f"{uuid4().hex[:8]}.example"
        domain_id = UUID((await team.post("/domains", {"name": name})).json()["id"])
    await team.db.run(INSERT_INBOX, inbox.id, address, domain_id, BEGAN)
    await team.db.run(INSERT_ADDRESS, inbox.id, address)
    return inbox


@asynccontextmanager
async def inbox_world(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[Inbox]:
    """Yield an empty inbox of the only team of a world."""
    async with world(database_url, folder, started=False, **settings) as pillarbox:
        yield await an_inbox(await pillarbox.team())
