"""Sends replies, forwards and drafts of inboxes (inboxes.md 6.2, 6.3 and 7.4).

What is sent is accepted by `emails.accept` like any other mail. In the same transaction, under the lock of
the inbox, it joins its thread: no email of an inbox is without its message, and none is queued for a thread
that is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import structs

from pillarbox.emails.accept import Accept
from pillarbox.emails.commits import TransactionHook
from pillarbox.emails.outgoing import NewAttachment, OutgoingEmail
from pillarbox.emails.requests import attachment_input
from pillarbox.emails.requests.attachment_input import BLOCKED, BlockedFile
from pillarbox.emails.rows import PreparedEmail
from pillarbox.inboxes.locking import lock
from pillarbox.inboxes.sending import forwarded, queries, recipients, references
from pillarbox.inboxes.sending.answers import ReplyRequest, TooManyRecipients
from pillarbox.inboxes.sending.joined import OutboundJoining, SentMessagePlace
from pillarbox.inboxes.sending.message import outgoing
from pillarbox.inboxes.sending.originals import (
    MOST_ATTACHED,
    OriginalContent,
    Originals,
    TooManyAttached,
    texts_of,
)
from pillarbox.inboxes.sending.queries import RepliedMessage, SendingInbox
from pillarbox.inboxes.sending.recipients import MOST, InboxAddresses, Recipients
from pillarbox.inboxes.sending.subjects import FORWARD, REPLY, prefixed
from pillarbox.kernel.http.idempotency import Idempotency
from pillarbox.kernel.observability.request_log import RequestRecord
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.problems import Invalid, NotFound, RateLimited
from pillarbox.kernel.work.team_turns import IsGone, never
from pillarbox.mail.message.attachments import clean_filename, parse_content_type
from pillarbox.mail.message.headers import HeaderError, content_id

ANY_TYPE: Final = "application/octet-stream"


class NobodyToAnswer(Invalid):
    def __init__(self) -> None:
        super().__init__("There is nobody to reply to: every recipient is this inbox, or is no address.")


class AutomaticMessage(Invalid):
    def __init__(self) -> None:
        super().__init__(
            "This email was sent automatically, and answering it may begin a loop. Set `allow_automatic` to "
            "`true` to reply all the same."
        )


class RepliesTooFast(RateLimited):
    def __init__(self, what: str, limit: int) -> None:
        super().__init__(
            f"At most {limit} replies may be sent {what} within ten minutes.", {"retry-after": "600"}
        )


REPLY_WINDOW: Final = timedelta(minutes=10)
MOST_IN_THREAD: Final = 20
MOST_TO_ADDRESS: Final = 30
MOST_IN_INBOX: Final = 1000
"""Replies of an inbox within the window: two programs that answer each other end here."""


@dataclass(frozen=True, slots=True)
class SendCall:
    """The caller of a send, and the request that its answer is kept for."""

    caller: Caller
    idempotency: Idempotency | None = None
    asked: RequestRecord | None = None
    is_gone: IsGone = never


@dataclass(frozen=True, slots=True)
class ThreadMessage:
    """A message of a thread of an inbox."""

    inbox_id: UUID
    thread_id: UUID
    email_id: UUID


Before = Callable[[TeamDb, PreparedEmail], Awaitable[None]]
"""The work under the lock before the message joins; given its email. Raises to refuse."""


class InboxSender:
    """Sends from inboxes."""

    def __init__(self, accept: Accept, originals: Originals, joining: OutboundJoining) -> None:
        self._accept = accept
        self.originals = originals
        self._joining = joining

    async def reply(self, db: TeamDb, call: SendCall, place: ThreadMessage, answer: ReplyRequest) -> bytes:
        """Send a reply to a message; returns the answer to the request."""
        inbox, subject, target = await self._found(db, place)
        if target.is_automatic and target.is_inbound and not answer.allows_automatic:
            raise AutomaticMessage
        original = await self.originals.original(db, target)
        own = InboxAddresses([inbox.email_address, inbox.receiving_address])
        to = recipients.reply(original.addressed, own, to_all=answer.to_all, cc=answer.cc, bcc=answer.bcc)
        if not to.to:
            raise NobodyToAnswer
        if len(to) > MOST:
            raise TooManyRecipients
        fields = references.answering(original.references, original.message_id)
        mail = await outgoing(
            inbox,
            to,
            answer.subject or prefixed(REPLY, subject),
            answer.html,
            answer.text,
            [*fields, *answer.headers],
            answer.attachments,
        )
        addresses = [named.mailbox.addr_spec.lower() for named in to.to]

        async def within_bounds(inside: TeamDb, email: PreparedEmail) -> None:
            await _refuse_loop(inside, place, email.at, addresses)

        return await self._sent(db, call, place, mail, within_bounds)

    async def forward(self, db: TeamDb, call: SendCall, place: ThreadMessage, answer: ReplyRequest) -> bytes:
        """Send a message on, with its attachments; returns the answer to the request."""
        inbox, subject, target = await self._found(db, place)
        received = self.originals.received
        if call.caller.is_metered:
            await received.refuse_above(db, target.id)
        size = await received.size(db, target.id) if target.is_inbound else None
        async with received.turn(db.team_id, size or MOST_ATTACHED, call.is_gone):
            original = await self.originals.original(db, target)
            room = MOST_ATTACHED - sum([len(one.data or b"") for one in answer.attachments])
            content = await self.originals.content(db, target, was_received=original.was_received, limit=room)
            quoted = forwarded.QuotedMessage(
                sender=target.sender,
                at=target.received_at,
                subject=target.subject,
                to=original.addressed.to or texts_of(target.to_list),
                cc=original.addressed.cc,
                html=content.html,
                text=content.text,
            )
            octets = len(content.html or "") + len(content.text or "")
            html, text = await in_thread_if_large(octets, forwarded.bodies, quoted, answer.html, answer.text)
            files = [*answer.attachments, *_attached(content)]
            if len(files) > attachment_input.MOST:
                raise TooManyAttached
            mail = await outgoing(
                inbox,
                Recipients(answer.to, answer.cc, answer.bcc),
                answer.subject or prefixed(FORWARD, subject),
                html,
                text,
                [*references.referring(original.references, original.message_id), *answer.headers],
                files,
            )
            return await self._sent(db, call, place, mail)

    async def store(
        self,
        db: TeamDb,
        call: SendCall,
        mail: OutgoingEmail,
        outbound: SentMessagePlace,
        answer: Callable[[UUID], bytes],
        before: Before,
    ) -> bytes:
        """Accept a message of an inbox, let it join its thread, and do `before` in the same transaction."""
        checked = await self._accept.check(call.caller, mail)

        async def work(conn: Connection, drafts: Sequence[PreparedEmail]) -> None:
            inside = TeamDb(conn, db.team_id)
            if not await lock(conn, [(db.team_id, outbound.inbox_id)]):
                raise NotFound("Inbox")
            [draft] = drafts
            await before(inside, draft)
            await self._joining.join(inside, outbound, draft)

        return await self._accept.store(
            call.caller,
            [checked],
            idempotency=call.idempotency,
            answer=lambda ids: answer(ids[0]),
            asked=call.asked,
            hook=TransactionHook(outbound.inbox_id, work),
        )

    async def _found(
        self, db: TeamDb, place: ThreadMessage
    ) -> tuple[SendingInbox, str | None, RepliedMessage]:
        """Return the inbox, the subject of the thread, and the message; 404 where one of them is not
        there."""
        inbox = await queries.inbox(db, place.inbox_id)
        if inbox is None:
            raise NotFound("Inbox")
        subject = await queries.thread_subject(db, place.inbox_id, place.thread_id)
        if subject is None:
            raise NotFound("Thread")
        target = await queries.target(db, place.inbox_id, place.thread_id, place.email_id)
        if target is None:
            raise NotFound("Email")
        return inbox, subject[0], target

    async def _sent(
        self,
        db: TeamDb,
        call: SendCall,
        place: ThreadMessage,
        mail: OutgoingEmail,
        before: Before | None = None,
    ) -> bytes:
        async def still_there(inside: TeamDb, email: PreparedEmail) -> None:
            if not await queries.has_message(inside, place.inbox_id, place.thread_id, place.email_id):
                raise NotFound("Email")
            if before is not None:
                await before(inside, email)

        outbound = SentMessagePlace(place.inbox_id, place.thread_id)
        return await self.store(
            db,
            call,
            structs.replace(mail, answered_id=place.email_id),
            outbound,
            lambda email_id: b'{"id":"%s"}' % str(email_id).encode(),
            still_there,
        )


async def _refuse_loop(db: TeamDb, place: ThreadMessage, now: datetime, addresses: Sequence[str]) -> None:
    """Raise where so many replies went out lately that two programs seem to answer each other."""
    sent = await queries.lately_sent(
        db, place.inbox_id, place.thread_id, now - REPLY_WINDOW, addresses, MOST_IN_INBOX
    )
    if sent.in_thread >= MOST_IN_THREAD:
        raise RepliesTooFast("in one thread", MOST_IN_THREAD)
    if sent.to_them >= MOST_TO_ADDRESS:
        raise RepliesTooFast("from an inbox to one address", MOST_TO_ADDRESS)
    if sent.in_inbox >= MOST_IN_INBOX:
        raise RepliesTooFast("from one inbox", MOST_IN_INBOX)


def _attached(content: OriginalContent) -> list[NewAttachment]:
    """Return the attachments of a message that is forwarded. One of a kind that is never sent is refused; a
    type or a Content-ID that cannot be written is left out."""
    found = []
    for file in content.files:
        name = clean_filename(file.filename)
        extension = name.rpartition(".")[2].lower() if "." in name else ""
        if extension in BLOCKED:
            raise BlockedFile("attachments", extension)
        found.append(
            NewAttachment(
                filename=name,
                content_type=_type(file.content_type),
                cid=_cid(file.cid),
                data=file.data,
                url=None,
            )
        )
    return found


def _type(content_type: str) -> str:
    try:
        return parse_content_type(content_type)
    except ValueError:
        return ANY_TYPE


def _cid(cid: str | None) -> str | None:
    try:
        if cid:
            content_id(cid)
    except HeaderError:
        return None
    return cid or None
