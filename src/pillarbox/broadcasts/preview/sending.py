"""Test copies: what a contact would get, sent to somebody who tries it out.

A test copy is an ordinary email of the team. So it is stored and retried as any other, and what becomes of
it can be read; and nothing of it counts for the broadcast: it has no place among the recipients, and metrics
of the broadcast do not know it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.broadcasts.preview.composing import Preview
from pillarbox.emails.accept import Accept
from pillarbox.emails.outgoing import EmailTag, OutgoingEmail
from pillarbox.kernel.security.authentication import Caller
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.mail.message.address import parse_mailbox

TAG: Final = "broadcast_test"
"""The name of the tag that test copies have; its value is the id of the broadcast."""


async def send(
    accept: Accept,
    caller: Caller,
    broadcast_id: UUID,
    content: BroadcastContent,
    preview: Preview,
    to: EmailAddress,
) -> UUID:
    """Accept the test copy, by all rules for mail of this caller; returns its id."""
    checked = await accept.check(caller, _outgoing(broadcast_id, content, preview, to))
    stored: list[UUID] = []

    def note(ids: list[UUID]) -> bytes:
        stored.extend(ids)
        return b"{}"

    await accept.store(caller, [checked], answer=lambda ids: note(list(ids)))
    return stored[0]


def _outgoing(
    broadcast_id: UUID, content: BroadcastContent, preview: Preview, to: EmailAddress
) -> OutgoingEmail:
    email, bodies = preview.email, preview.bodies
    return OutgoingEmail(
        sender_text=content.sender,
        sender=email.sender,
        to_texts=[to.shown],
        to=[parse_mailbox(to.shown)],
        cc_texts=(),
        cc=(),
        bcc_texts=(),
        bcc=(),
        reply_to_texts=content.reply_to or (),
        reply_to=email.reply_to,
        subject=email.subject,
        html=bodies.html,
        text=bodies.text,
        headers=list(bodies.headers),
        attachments=(),
        tags=(EmailTag(TAG, str(broadcast_id)),),
        scheduled_at=None,
    )
