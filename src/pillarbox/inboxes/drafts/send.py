"""Sends drafts (inboxes.md 7.4): the draft becomes an email, once, in the transaction that accepts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec
from msgspec import structs

from pillarbox.emails.outgoing import NewAttachment, OutgoingEmail
from pillarbox.emails.requests import parse
from pillarbox.emails.rows import PreparedEmail
from pillarbox.inboxes import events
from pillarbox.inboxes.drafts import queries, wire
from pillarbox.inboxes.drafts.attachments import DraftFiles
from pillarbox.inboxes.drafts.changes import AlreadySent, found, refuse_change
from pillarbox.inboxes.drafts.queries import StoredDraft
from pillarbox.inboxes.events import DraftOfEvent
from pillarbox.inboxes.sending import queries as sending_queries
from pillarbox.inboxes.sending import references
from pillarbox.inboxes.sending.joined import SentMessagePlace
from pillarbox.inboxes.sending.message import outgoing
from pillarbox.inboxes.sending.recipients import NamedRecipient, Recipients
from pillarbox.inboxes.sending.send import InboxSender, SendCall
from pillarbox.inboxes.sending.subjects import REPLY, prefixed
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.webhooks.publish import Publisher

_encode = msgspec.json.Encoder().encode


class DraftIncomplete(Invalid):
    """Something is missing without which a draft cannot be sent."""


class DraftSending:
    """Sends drafts."""

    def __init__(self, ids: Ids, publisher: Publisher, sending: InboxSender, files: DraftFiles) -> None:
        self._ids = ids
        self._publisher = publisher
        self._sending = sending
        self._files = files

    async def send(
        self,
        db: TeamDb,
        call: SendCall,
        inbox_id: UUID,
        draft_id: UUID,
        body: Callable[[], wire.SendDraft] = wire.SendDraft,
        source: events.Source = events.API,
    ) -> bytes:
        """Send a draft; returns the answer to the request. `body` is called once the draft can be sent."""
        draft = await found(db, inbox_id, draft_id)
        if draft.email_id is not None:
            raise AlreadySent
        _refuse_unready(draft)
        own_headers = body().headers or ()
        size = sum([file.size for file in wire.files_of(draft.attachments)])
        dropped: list[str | None] = []
        async with self._files.read(db, draft_id, size, call.is_gone) as attachments:
            mail = await self._mail(db, inbox_id, draft, own_headers, attachments)
            is_new = draft.thread_id is None
            thread_id = draft.thread_id or self._ids.new()

            async def mark(inside: TeamDb, email: PreparedEmail) -> None:
                # The time of the email, so that events in the order of their time are in this order too.
                if not await queries.sent(inside, inbox_id, draft, email.id, email.at):
                    await refuse_change(inside, inbox_id, draft_id)
                if attachments:
                    dropped.extend(await queries.empty_files(inside, draft_id))
                ref = DraftOfEvent(
                    team_id=db.team_id,
                    inbox_id=inbox_id,
                    draft_id=draft_id,
                    thread_id=thread_id,
                    source=source,
                )
                await self._publisher.refer(inside.connection, [events.draft_sent(ref, email.at, email.id)])

            answer = await self._sending.store(
                db,
                call,
                mail,
                SentMessagePlace(inbox_id, thread_id, is_new),
                lambda email_id: _encode(
                    wire.DraftSent(object="inbox_draft", id=draft_id, thread_id=thread_id, email_id=email_id)
                ),
                mark,
            )
        await self._files.forget(db.source, dropped)
        return answer

    async def _mail(
        self,
        db: TeamDb,
        inbox_id: UUID,
        draft: StoredDraft,
        headers: Sequence[tuple[str, str]],
        attachments: Sequence[NewAttachment],
    ) -> OutgoingEmail:
        """Return the email that the draft becomes."""
        inbox = await sending_queries.inbox(db, inbox_id)
        if inbox is None:
            raise NotFound("Inbox")
        content = draft.content
        subject, fields = content.subject, list[tuple[str, str]]()
        if draft.thread_id is not None and draft.reply_to_email_id is not None:
            target = await sending_queries.target(db, inbox_id, draft.thread_id, draft.reply_to_email_id)
            thread = await sending_queries.thread_subject(db, inbox_id, draft.thread_id)
            if target is None or thread is None:
                raise NotFound("Draft")
            original = await self._sending.originals.original(db, target)
            fields = references.answering(original.references, original.message_id)
            subject = subject or prefixed(REPLY, thread[0])
        to = Recipients(_named("to", content.to or ()), _named("cc", content.cc), _named("bcc", content.bcc))
        subject = parse.subject_text(subject or "")
        mail = await outgoing(
            inbox, to, subject, content.html, content.text, [*fields, *headers], attachments
        )
        return structs.replace(mail, answered_id=draft.reply_to_email_id)


def _refuse_unready(draft: StoredDraft) -> None:
    content = draft.content
    if not content.to:
        raise DraftIncomplete("A draft needs at least one recipient in `to` before it can be sent.")
    if not content.subject and draft.reply_to_email_id is None:
        raise DraftIncomplete("A draft needs a `subject` before it can be sent.")
    if not (content.html or "").strip() and not (content.text or "").strip():
        raise DraftIncomplete("A draft needs `html` or `text` before it can be sent.")


def _named(field: str, texts: Sequence[str]) -> list[NamedRecipient]:
    """Parse addresses that were checked when the draft was stored."""
    found, mailboxes = parse.mailboxes(field, list(texts))
    return [NamedRecipient(text, mailbox) for text, mailbox in zip(found, mailboxes, strict=True)]
