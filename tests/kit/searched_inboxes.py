"""Inboxes whose messages are searched: written as rows, as joining writes them.

async with searched_world(database_url, tmp_path) as inbox:
    await inbox.add(Mail(subject="Refund", text="Order 88"))
    assert await inbox.found(query="order") == [...]
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from kit.inbox_rows import BEGAN, Inbox, an_inbox
from kit.manual_world import manual_world
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.search.blocks import MessageBlocks
from pillarbox.inboxes.search.searched_text import SearchedMessage, searched_text
from pillarbox.inboxes.threading.join import join
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.kernel.ids import EPOCH, MICROSECOND, Ids, uuid7
from pillarbox.webhooks.publish import Publisher

MOVE = """
    UPDATE inbox_threads
       SET folder = $3, purge_at = CASE WHEN $3 = 'trash' THEN received_at END
     WHERE team_id = $1 AND id = $2
"""


MAKE_DUE = """
    INSERT INTO inbox_search_due (team_id, inbox_id) VALUES ($1, $2) ON CONFLICT DO NOTHING
"""

LEFT = (
    "SELECT count(*) FROM inbox_search_blocks WHERE team_id = $1",
    "SELECT count(*) FROM inbox_search_rows WHERE team_id = $1",
    "SELECT count(*) FROM inbox_search_late WHERE team_id = $1",
    "SELECT count(*) FROM inbox_search_due WHERE team_id = $1",
)


@dataclass(slots=True)
class Mail:
    """A message; `thread` is the place of an earlier one whose thread it joins, where it is sent."""

    subject: str | None = "Refund"
    text: str = ""
    sender: str = "Iris Vale <iris@customer.example>"
    to: Sequence[str] = ("help@harbor.example",)
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    files: Sequence[str] = ()
    at: datetime = BEGAN
    is_inbound: bool = True
    thread: UUID | None = None
    id: UUID = field(default_factory=lambda: UUID(int=0))
    thread_id: UUID = field(default_factory=lambda: UUID(int=0))

    def message(self, inbox: Inbox) -> NewMessage:
        recipients = [*self.to, *self.cc, *self.bcc]
        searched = SearchedMessage(
            subject=self.subject,
            sender=self.sender,
            recipients=recipients,
            filenames=self.files,
            text=self.text,
        )
        return NewMessage(
            team_id=inbox.team.id,
            inbox_id=inbox.id,
            id=self.id,
            received_at=self.at,
            is_inbound=self.is_inbound,
            sender=self.sender,
            sender_key=self.sender,
            to_list=json.dumps(list(self.to)),
            cc_list=json.dumps(list(self.cc)) if self.cc else None,
            bcc_list=json.dumps(list(self.bcc)) if self.bcc else None,
            subject=self.subject,
            message_id=f"<{self.id}@customer.example>",
            attachments=len(self.files),
            searched=searched_text(searched),
            thread_id=None if self.is_inbound else self.thread,
            earlier_ids=() if self.thread is None else (f"{self.thread}@customer.example",),
        )


@dataclass(slots=True)
class SearchedInbox:
    """An inbox, and what was put into it."""

    inbox: Inbox
    mails: list[Mail] = field(default_factory=list)

    async def add(self, *mails: Mail) -> list[Mail]:
        """Put messages into the inbox, in one commit; the ones that answer name the id of an earlier one."""
        app, team = self.inbox.team.world.app, self.inbox.team
        for number, mail in enumerate(mails, len(self.mails)):
            if mail.at == BEGAN:
                mail.at = BEGAN + timedelta(minutes=number)
            if mail.id.int == 0:
                mail.id = uuid7((mail.at - EPOCH) // MICROSECOND, number.to_bytes(8))
        async with team.db.transaction() as db:
            await lock(db.connection, [(team.id, self.inbox.id)])
            joined = await join(
                db.connection,
                app.need(Publisher),
                app.need(Ids),
                team.world.clock.now(),
                [mail.message(self.inbox) for mail in mails],
            )
        for mail, outcome in zip(mails, joined, strict=True):
            mail.thread_id = outcome.thread_id
        self.mails += mails
        return list(mails)

    def blocks(self, *, worth: int = 1, together: int = 16) -> MessageBlocks:
        world = self.inbox.team.world
        return MessageBlocks(world.pool, world.app.need(Ids), worth=worth, together=together)

    async def describe(self, *, worth: int = 1, together: int = 16) -> int:
        """Let blocks describe all messages; returns how many blocks that made."""
        return await self.blocks(worth=worth, together=together).describe(self.inbox.team.db, self.inbox.id)

    async def renew(self) -> int:
        """Let blocks of other versions be described anew; returns how many that made."""
        return await self.blocks().renew()

    async def keep_up(self) -> str:
        """Run one turn of the periodic job."""
        return await self.blocks().keep_up()

    async def due(self) -> None:
        """Let the job look at the inbox."""
        await self.inbox.team.db.run(MAKE_DUE, self.inbox.id)

    async def left(self) -> list[int]:
        """Return the rows that search has: blocks, parts of blocks, late messages, and inboxes that
        are due."""
        return [await self.inbox.team.db.value(sql) for sql in LEFT]

    async def move(self, mail: Mail, folder: str) -> None:
        await self.inbox.team.db.run(MOVE, mail.thread_id, folder)

    async def page(self, **query: Any) -> dict[str, Any]:
        """Return an answer of the search."""
        parameters = urlencode({name.strip("_"): value for name, value in query.items()})
        answer = await self.inbox.get(f"/threads/search?{parameters}")
        assert answer.status_code == 200, answer.text
        return answer.json()  # type: ignore[no-any-return]

    async def found(self, **query: Any) -> list[str | None]:
        """Return the ids of the messages that were found, in the order of their threads."""
        return [item["matched_email_id"] for item in (await self.page(**query))["data"]]

    async def threads(self, **query: Any) -> list[str]:
        return [item["id"] for item in (await self.page(**query))["data"]]


@asynccontextmanager
async def searched_world(database_url: str, folder: Path) -> AsyncIterator[SearchedInbox]:
    """Yield an empty inbox of the only team of a world."""
    async with manual_world(database_url, folder) as pillarbox:
        yield SearchedInbox(await an_inbox(await pillarbox.team()))
