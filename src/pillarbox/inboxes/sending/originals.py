"""The message that is replied to or forwarded, as far as its answer needs it.

A message of an inbox is a received email or a sent one. The slice `receiving` is above this one and gives
what is read of the first (`ReceivedOriginals`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from pillarbox.emails.inbox_mail import originals as sent
from pillarbox.emails.requests import attachment_input
from pillarbox.inboxes.sending.queries import RepliedMessage
from pillarbox.inboxes.sending.recipients import MessageAddressees
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import Invalid, InvalidAttachment, InvalidField
from pillarbox.mail.message.header_block import message_ids

MOST_ATTACHED: Final = 25 * 1024 * 1024
"""The most octets that the attachments of one message of an inbox may have together."""

_texts = msgspec.json.Decoder(list[str]).decode


class AttachedByPath(InvalidField):
    def __init__(self) -> None:
        super().__init__(
            "attachments", "An attachment of the original was given by `path` and cannot be forwarded."
        )


class ForwardTooLarge(InvalidAttachment):
    def __init__(self) -> None:
        super().__init__("Invalid `attachments` field. All of it may have 25 MB, with those of the original.")


class TooManyAttached(InvalidAttachment):
    def __init__(self) -> None:
        super().__init__(
            "Invalid `attachments` field. "
            f"Use at most {attachment_input.MOST} attachments, with those of the original."
        )


class ContentGone(Invalid):
    def __init__(self) -> None:
        super().__init__("The content of this email is not stored any more, so it cannot be forwarded.")


class ReceivedFields(NamedTuple):
    """Header fields of a received email: lists of addresses, and as they stood there the other two."""

    to: Sequence[str]
    cc: Sequence[str]
    reply_to: Sequence[str]
    references: str | None
    in_reply_to: str | None


class OriginalFile(NamedTuple):
    """An attachment with its octets."""

    filename: str
    content_type: str
    cid: str | None
    data: bytes


class OriginalContent(NamedTuple):
    """The bodies of a message, with its attachments. The html names its images by their Content-ID."""

    html: str | None
    text: str | None
    files: Sequence[OriginalFile]


class ReceivedOriginals(Protocol):
    """Received emails that are answered."""

    async def fields(self, db: TeamDb, email_id: UUID) -> ReceivedFields | None:
        """Return the header fields; None where the email was not received, or is gone."""
        ...

    async def size(self, db: TeamDb, email_id: UUID) -> int | None:
        """Return how many octets the message has; None where it was not received, or is gone."""
        ...

    def turn(
        self, team_id: UUID, size: int, is_gone: Callable[[], bool]
    ) -> AbstractAsyncContextManager[None]:
        """Hold the memory for reading a message of that size. Raises ServerOverloaded, and ClientGone where
        the client has left."""
        ...

    async def content(self, db: TeamDb, email_id: UUID, limit: int) -> OriginalContent | None:
        """Return bodies and attachments; None where they are gone. Raises ValueError where the attachments
        have more than `limit` octets together. The caller holds a `turn`."""
        ...

    async def refuse_above(self, db: TeamDb, email_id: UUID) -> None:
        """Raise a 403 where its content is kept from the team."""
        ...


@dataclass(frozen=True, slots=True)
class AnsweredMessage:
    """Whom a message names, and which it belongs to."""

    addressed: MessageAddressees
    references: Sequence[str]
    message_id: str | None
    was_received: bool


class Originals:
    """Reads the messages that are answered."""

    def __init__(self, received: ReceivedOriginals, blobs: BlobStore) -> None:
        self.received = received
        self._blobs = blobs

    async def original(self, db: TeamDb, target: RepliedMessage) -> AnsweredMessage:
        """Return whom the message names and the ids it refers to, without its content. An email that is gone
        gives no Reply-To and no references."""
        fields = await self.received.fields(db, target.id) if target.is_inbound else None
        if fields is not None:
            found = MessageAddressees(
                is_inbound=True, sender=target.sender, to=fields.to, cc=fields.cc, reply_to=fields.reply_to
            )
            before = message_ids(fields.references or "") or message_ids(fields.in_reply_to or "")
            return AnsweredMessage(found, before, target.message_id, was_received=True)
        written = await sent.fields(db, target.id)
        found = MessageAddressees(
            is_inbound=target.is_inbound,
            sender=target.sender,
            to=texts_of(target.to_list),
            cc=texts_of(target.cc_list),
            reply_to=texts_of(written.reply_to_list),
        )
        return AnsweredMessage(
            found, message_ids(written.references or ""), target.message_id, was_received=False
        )

    async def content(
        self, db: TeamDb, target: RepliedMessage, *, was_received: bool, limit: int
    ) -> OriginalContent:
        """Return the bodies and attachments; ForwardTooLarge above `limit` octets, ContentGone where they are
        gone. The caller holds a `turn`."""
        if was_received:
            try:
                found = await self.received.content(db, target.id, limit)
            except ValueError:
                raise ForwardTooLarge from None
        else:
            found = await self._sent(db, target.id, limit)
        if found is None:
            raise ContentGone
        return found

    async def _sent(self, db: TeamDb, email_id: UUID, limit: int) -> OriginalContent | None:
        bodies, files = await sent.bodies(db, email_id), await sent.files(db, email_id)
        if bodies is None:
            return None
        if any(file.url is not None for file in files):
            raise AttachedByPath
        if sum([file.size or 0 for file in files]) > limit:
            raise ForwardTooLarge
        found = [
            OriginalFile(
                file.filename, file.content_type, file.cid, await sent.octets(db, self._blobs, file.id)
            )
            for file in files
        ]
        return OriginalContent(bodies.html, bodies.text, found)


def texts_of(text: str | None) -> list[str]:
    """Return a list of texts that the database keeps as JSON."""
    return [] if text is None else _texts(text)
