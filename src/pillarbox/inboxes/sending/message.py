"""One email of an inbox, as the door for outgoing mail takes it (`emails.accept`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pillarbox.emails.outgoing import NewAttachment, OutgoingEmail
from pillarbox.inboxes.sending.header_rules import INBOX
from pillarbox.inboxes.sending.queries import SendingInbox
from pillarbox.inboxes.sending.recipients import Recipients
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.message.address import Mailbox, parse_mailbox

_PLAIN: Final = frozenset(" !#$%&'*+-./=?^_`{|}~[]")


async def outgoing(
    inbox: SendingInbox,
    recipients: Recipients,
    subject: str,
    html: str | None,
    text: str | None,
    headers: Sequence[tuple[str, str]],
    attachments: Sequence[NewAttachment],
) -> OutgoingEmail:
    """Return a message of the inbox; one that has html alone gets a text that is made from it."""
    html, text = _said(html), _said(text)
    if text is None and html is not None:
        text = await in_thread_if_large(len(html), text_of, html) or None
    sender_text, sender = sender_of(inbox)
    to, cc, bcc = recipients
    return OutgoingEmail(
        sender_text=sender_text,
        sender=sender,
        to_texts=[one.text for one in to],
        to=[one.mailbox for one in to],
        cc_texts=[one.text for one in cc],
        cc=[one.mailbox for one in cc],
        bcc_texts=[one.text for one in bcc],
        bcc=[one.mailbox for one in bcc],
        reply_to_texts=(),
        reply_to=(),
        subject=subject,
        html=html,
        text=text,
        headers=[*headers, (INBOX, str(inbox.id))],
        attachments=attachments,
        tags=(),
        scheduled_at=None,
        inbox_id=inbox.id,
    )


def sender_of(inbox: SendingInbox) -> tuple[str, Mailbox]:
    """Return the sender as it is shown, and as it goes on the wire."""
    address = inbox.email_address
    if not inbox.from_name:
        return address, parse_mailbox(address)
    text = f"{_quoted(inbox.from_name)} <{address}>"
    return text, parse_mailbox(text)


def _quoted(name: str) -> str:
    """Return a display name, in quotes where it must be."""
    if all(one.isalnum() or one in _PLAIN for one in name) and "=?" not in name:
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _said(body: str | None) -> str | None:
    return None if body is None or not body.strip() else body
