"""The fields that an inbox keeps of a message, beside those of every received email. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

import msgspec

from pillarbox.inboxes.search.searched_text import SearchedMessage, searched_text
from pillarbox.inboxes.threading.new_messages import NewMessage
from pillarbox.inboxes.trust.message_facts import MessageSigns, signs_of
from pillarbox.mail.authentication.mail_verdicts import MailVerdicts
from pillarbox.mail.message import header_text
from pillarbox.mail.message.automatic import is_automatic
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.mail.message.threading import earlier_ids
from pillarbox.receiving.arrival import Arrival
from pillarbox.receiving.store_queries import ReceivedRow

BODY_OCTETS = 16
"""Of the hash by which two messages with one Message-ID are the same."""

_json = msgspec.json.Encoder().encode


class MessageFields(msgspec.Struct, frozen=True):
    """The same for all inboxes that get a message."""

    sender_key: str
    message_id: str | None
    is_automatic: bool
    earlier_ids: tuple[str, ...]
    names_earlier: bool
    body_key: bytes
    searched: str
    signs: MessageSigns

    @classmethod
    def of(cls, message: ParsedMessage, arrival: Arrival, verdicts: MailVerdicts) -> MessageFields:
        mailboxes = message.authors.mailboxes
        addresses = [mailbox.address for mailbox in mailboxes if "@" in mailbox.address]
        named = message.named
        return cls(
            clean(addresses[0].lower() if addresses else message.author.lower()),
            None if message.message_id is None else clean(message.message_id),
            is_automatic(message, arrival.mail_from),
            earlier_ids(message.in_reply_to, message.references),
            "in-reply-to" in named or "references" in named,
            sha256(memoryview(message.raw)[message.root.content_start :]).digest()[:BODY_OCTETS],
            searched_text(
                SearchedMessage(
                    subject=message.subject,
                    sender=message.author,
                    recipients=[str(one) for one in (*message.to, *message.cc)],
                    filenames=[one.filename for one in message.attachments if one.filename],
                    text=message.text,
                    html=message.html,
                )
            ),
            signs_of(message, arrival.mail_from, verdicts),
        )

    def message(self, row: ReceivedRow, inbox_id: UUID, recipients: Sequence[str]) -> NewMessage:
        """Return the message of an inbox that has these addresses of the envelope."""
        return NewMessage(
            team_id=row.team_id,
            inbox_id=inbox_id,
            id=row.id,
            received_at=row.created_at,
            is_inbound=True,
            sender=row.sender,
            sender_key=self.sender_key,
            to_list=_json(recipients).decode(),
            cc_list=row.cc_list,
            reply_to_list=row.reply_to_list,
            subject=row.subject or None,
            message_id=self.message_id,
            attachments=row.attachments,
            is_automatic=self.is_automatic,
            searched=self.searched,
            earlier_ids=self.earlier_ids,
            names_earlier=self.names_earlier,
            body_key=self.body_key,
            is_spam=row.spam_reason is not None,
            signs=self.signs,
        )


def clean(text: str) -> str:
    """Return the text without NUL and half characters, which the database does not take."""
    return text if text.isprintable() else header_text.clean(text)
