"""Writes the mail of this installation itself: its sender, and a body of text alone."""

from __future__ import annotations

from typing import Final

from pillarbox.emails.outgoing import EmailTag, OutgoingEmail
from pillarbox.mail.message.address import Mailbox, parse_mailbox

NAME: Final = "Pillarbox"
LOCAL: Final = "no-reply"


def own_sender(hostname: str, address: str | None = None) -> Mailbox:
    """Return the sender with this address, else one of this host; raise AddressError where the address
    is none."""
    # An address of a host without a domain is none that could be read again.
    domain = hostname if "." in hostname else f"{hostname}.localdomain"
    mailbox = parse_mailbox(address or f"{LOCAL}@{domain}")
    return Mailbox(mailbox.local, mailbox.domain, NAME)


def plain_mail(
    sender: Mailbox, to: str, subject: str, text: str, tags: tuple[EmailTag, ...] = ()
) -> OutgoingEmail:
    """Return mail that programs do not answer (RFC 3834, 5); raise AddressError where `to` is no address."""
    return OutgoingEmail(
        sender_text=f"{NAME} <{sender.addr_spec}>",
        sender=sender,
        to_texts=[to],
        to=[parse_mailbox(to)],
        cc_texts=(),
        cc=(),
        bcc_texts=(),
        bcc=(),
        reply_to_texts=(),
        reply_to=(),
        subject=subject,
        html=None,
        text=text,
        headers=[("Auto-Submitted", "auto-generated")],
        attachments=(),
        tags=tags,
        scheduled_at=None,
    )
