"""Reading and storing the document of a broadcast, with a revision as templates have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.broadcasts.documents import queries
from pillarbox.broadcasts.store import Broadcasts, found, held
from pillarbox.broadcasts.wire import ChangedBroadcast
from pillarbox.documents import source
from pillarbox.documents.blocks import Document, HtmlDocument
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.documents.team_theme import theme_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Conflict
from pillarbox.mail.html.plain_text import text_of

REVISION = 32


class OtherBroadcastRevision(Conflict):
    """The broadcast has changed since it was read (409)."""

    def __init__(self) -> None:
        super().__init__("The broadcast has changed since you read it. Read it again, then change it.")


@dataclass(frozen=True, slots=True)
class BroadcastDocument:
    """A broadcast's document, and what is made of it."""

    broadcast_id: UUID
    document: Document
    revision: str
    html: str
    text: str | None


@dataclass(frozen=True, slots=True)
class BroadcastDocuments:
    """Reads and stores documents of broadcasts."""

    broadcasts: Broadcasts
    rendering: DocumentRendering

    async def read(self, db: TeamDb, broadcast_id: UUID) -> BroadcastDocument:
        """Return the document of a broadcast; 404 where there is none."""
        content = (await found(db, broadcast_id)).content
        kept = await queries.source(db, broadcast_id)
        html = content.html or ""
        parts = [content.name, content.sender, content.subject, content.reply_to, html, content.text, kept]
        document = source.of_stored(kept, html, content.text)
        if isinstance(document, HtmlDocument) and document.text == await _text_of(html):
            document = HtmlDocument(html=html)
        return BroadcastDocument(
            broadcast_id=broadcast_id,
            document=document,
            revision=sha256(msgspec.json.encode(parts)).hexdigest()[:REVISION],
            html=html,
            text=content.text,
        )

    async def save(
        self,
        db: TeamDb,
        caller: Caller,
        broadcast_id: UUID,
        document: Document,
        fields: Mapping[str, Any],
        revision: str | None,
    ) -> BroadcastDocument:
        """Store the document, what is made of it, and these other fields, which are checked as in PATCH.
        `db` is outside of a transaction: rendering must not hold one."""
        rendered = await self.rendering.render(db.team_id, document, await theme_of(db))
        text = await _text_of(rendered.html) if rendered.text is None else rendered.text
        changed = parse(ChangedBroadcast, {**fields, "html": rendered.html or None, "text": text or None})
        async with db.transaction() as inner:
            await held(inner, broadcast_id)
            if revision is not None and revision != (await self.read(inner, broadcast_id)).revision:
                raise OtherBroadcastRevision
            await self.broadcasts.change(inner, caller, broadcast_id, changed.changes())
            await queries.set_source(inner, broadcast_id, source.stored(document, rendered.html))
            return await self.read(inner, broadcast_id)


async def _text_of(html: str) -> str:
    """Return the text that is made of the HTML. It takes a quarter of a second for each million of octets."""
    return await in_thread_if_large(len(html), text_of, html)
