"""The HTTP route of previews, an extension of ours (broadcasts.md section 10)."""

from __future__ import annotations

from pillarbox.broadcasts.preview import sending, wire
from pillarbox.broadcasts.preview.composing import Previews
from pillarbox.broadcasts.store import found
from pillarbox.emails.accept import Accept
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.fields import parse


@route(
    "POST",
    "/broadcasts/{broadcast_id}/preview",
    needs=Access.FULL,
    transaction=False,
    body=wire.PreviewBroadcast,
    problems=(403, 404),
    summary="Compose a broadcast for a contact, and send a test copy",
)
async def preview(request: Request, db: TeamDb) -> Reply[wire.ShownPreview]:
    wanted = parse(wire.PreviewBroadcast, request.json())
    contact = wire.address_in("contact", wanted.contact)
    send_to = None if wanted.send_to is None else wire.address_in("send_to", wanted.send_to)
    broadcast = await found(db, request.uuid("broadcast_id"))
    caller, content = request.known, broadcast.content
    previews, wanted_of = request.use(Previews), (db, caller.team_number, broadcast.id, content)
    made = await previews.compose(*wanted_of, contact.address)
    email_id = None
    if send_to is not None:
        plain = await previews.compose(*wanted_of, contact.address, is_tracked=False)
        email_id = await sending.send(request.use(Accept), caller, broadcast.id, content, plain, send_to)
    return Reply(wire.shown(broadcast.id, content.sender, made, email_id))
