"""The HTTP route of the trust of a message (inboxes.md 6.6)."""

from __future__ import annotations

from pillarbox.inboxes.messages.routes import message_of
from pillarbox.inboxes.trust import queries, wire
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import NotFound

TRUST = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}/trust"


@route(
    "GET",
    TRUST,
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ,),
    summary="Retrieve what is known about the sender of an email of a thread",
)
async def show(request: Request, db: TeamDb) -> Reply[wire.EmailTrust]:
    inbox_id, row = await message_of(request, db)
    stored = await queries.get(db, inbox_id, row.id) if row.is_inbound else None
    if stored is None:
        raise NotFound("Trust")
    return Reply(wire.email_trust(row.id, stored))
