"""HTTP routes that answer and forward the messages of a thread (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from typing import Final

from pillarbox.emails.requests import parse
from pillarbox.emails.wire import EmailId
from pillarbox.inboxes import paths
from pillarbox.inboxes.sending import wire
from pillarbox.inboxes.sending.send import InboxSender, SendCall, ThreadMessage
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, InboxRight, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire import fields

EMAIL: Final = "/inboxes/{inbox}/threads/{thread_id}/emails/{email_id}"
LARGEST: Final = 50 * 1024 * 1024


@route(
    "POST",
    f"{EMAIL}/reply",
    needs=Access.FULL,
    inbox_rights=(InboxRight.SEND,),
    limit=LARGEST,
    idempotent=True,
    named=paths.BY_ADDRESS,
    transaction=False,
    body=wire.ReplyIn,
    problems=(404,),
    summary="Reply to an email of a thread",
)
async def reply(request: Request, db: TeamDb) -> Reply[EmailId]:
    body = request.json()
    size = parse.octets_to_read(request.size, [body])
    wanted = await in_thread_if_large(size, fields.parse, wire.ReplyIn, body)
    answer = wanted.request()
    return Reply(
        await request.use(InboxSender).reply(db, call_of(request), await _place(request, db), answer)
    )


@route(
    "POST",
    f"{EMAIL}/forward",
    needs=Access.FULL,
    inbox_rights=(InboxRight.READ, InboxRight.SEND),
    limit=LARGEST,
    idempotent=True,
    named=paths.BY_ADDRESS,
    transaction=False,
    body=wire.ForwardIn,
    problems=(404,),
    summary="Forward an email of a thread",
)
async def forward(request: Request, db: TeamDb) -> Reply[EmailId]:
    body = request.json()
    size = parse.octets_to_read(request.size, [body])
    wanted = await in_thread_if_large(size, fields.parse, wire.ForwardIn, body)
    answer = wanted.request()
    return Reply(
        await request.use(InboxSender).forward(db, call_of(request), await _place(request, db), answer)
    )


def call_of(request: Request) -> SendCall:
    """Return the caller, with the request's idempotency key and record."""
    return SendCall(request.known, request.idempotency, request.asked, request.is_client_gone)


async def _place(request: Request, db: TeamDb) -> ThreadMessage:
    """Return the message that the path names; whether it is there is not known yet."""
    inbox_id = await paths.inbox_of(request, db)
    return ThreadMessage(inbox_id, request.uuid("thread_id"), request.uuid("email_id"))
