"""HTTP routes of documents, extensions of ours (broadcasts.md section 12)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from pillarbox.broadcasts.documents.storing import REVISION, BroadcastDocument, BroadcastDocuments
from pillarbox.documents.source import builtins_of, document_of
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse

LARGEST: Final = 10 * 1024 * 1024
DocumentJson = Annotated[Any, Meta(extra_json_schema={"type": "object", "additionalProperties": True})]


class PutBroadcastDocument(Struct, kw_only=True):
    """A document, and other fields of its broadcast; what is not named stays."""

    document: DocumentJson
    revision: Annotated[str, Meta(max_length=REVISION)] | None = None
    name: str | None = None
    from_: str | None = msgspec.field(name="from", default=None)
    subject: str | None = None
    reply_to: str | list[str] | None = None


class ShownBroadcastDocument(Struct, kw_only=True):
    object: Literal["broadcast_document"]
    broadcast_id: UUID
    revision: str
    document: DocumentJson
    html: str
    text: str | None


@route(
    "GET",
    "/broadcasts/{broadcast_id}/document",
    needs=Access.FULL,
    summary="Retrieve the document of a broadcast",
)
async def show(request: Request, db: TeamDb) -> Reply[ShownBroadcastDocument]:
    documents = request.use(BroadcastDocuments)
    return Reply(_shown(await documents.read(db, request.uuid("broadcast_id"))))


@route(
    "PUT",
    "/broadcasts/{broadcast_id}/document",
    needs=Access.FULL,
    transaction=False,
    limit=LARGEST,
    body=PutBroadcastDocument,
    problems=(403, 409),
    summary="Store the document of a broadcast",
)
async def put(request: Request, db: TeamDb) -> Reply[ShownBroadcastDocument]:
    body = parse(PutBroadcastDocument, request.json())
    given = {"name": body.name, "from": body.from_, "subject": body.subject, "reply_to": body.reply_to}
    stored = await request.use(BroadcastDocuments).save(
        db,
        request.known,
        request.uuid("broadcast_id"),
        document_of(body.document),
        {name: value for name, value in given.items() if value is not None},
        body.revision,
    )
    return Reply(_shown(stored))


def _shown(stored: BroadcastDocument) -> ShownBroadcastDocument:
    return ShownBroadcastDocument(
        object="broadcast_document",
        broadcast_id=stored.broadcast_id,
        revision=stored.revision,
        document=builtins_of(stored.document),
        html=stored.html,
        text=stored.text,
    )
