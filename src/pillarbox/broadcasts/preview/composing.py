"""The mail that a contact would get: made by the same code as the copies that are sent.

Two things differ. It has an id of its own, under which there is no email, so nothing that is done with it
counts. And its links to unsubscribe belong to nobody: who tries one out is told that it is not valid, and
the contact stays what it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from pillarbox.broadcasts import copying_queries
from pillarbox.broadcasts.content import BroadcastContent
from pillarbox.broadcasts.preview import queries
from pillarbox.broadcasts.preview.queries import PreviewContact
from pillarbox.delivery.composing import Composer, EmailUnsendable, OpensSealed
from pillarbox.delivery.items import CopyBodies, LoadedEmail
from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails.broadcast_copies.content_queries import CopyContent
from pillarbox.emails.broadcast_copies.loading import CopyLoader, CopyRow, SharedBy
from pillarbox.emails.broadcast_copies.parts import SharedParts, parts_of
from pillarbox.emails.broadcast_copies.personal import NeededValues, PersonalValues
from pillarbox.emails.tracked_copies import EmailTracking, TrackedCopies
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread, in_thread_if_large
from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys
from pillarbox.kernel.wire.problems import Invalid, NotFound
from pillarbox.mail.message.address import parse_mailbox
from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.placeholders.contact_values import ContactValues, Scalar

KEY_BITS: Final = 256

_properties = msgspec.json.Decoder(dict[str, Scalar]).decode


class Preview(NamedTuple):
    """A composed mail: what it was made of, its bodies, and the message as it would be sent."""

    contact_id: UUID
    email: LoadedEmail
    bodies: CopyBodies
    message: bytes


class DeadLinkKeys(LinkKeys):
    """A key that nobody keeps: its links look like others, and lead nowhere."""

    def __init__(self) -> None:
        self._key = LinkKey(1, AESSIV(AESSIV.generate_key(KEY_BITS)))

    async def maker(self, accepted_at: datetime) -> LinkKey:
        return self._key


class UntrackedCopies(TrackedCopies):
    """Tracks nothing: a test copy is tracked as the email that it becomes."""

    async def of(
        self,
        domain: SenderDomain | None,
        html: str | None,
        headers: Sequence[tuple[str, str]],
        accepted_at: datetime,
    ) -> EmailTracking | None:
        return None


class Previews:
    """Composes previews. `keys` make the links that are tracked."""

    def __init__(
        self,
        *,
        ids: Ids,
        senders: Senders,
        keys: LinkKeys,
        public_url: str,
        ring: OpensSealed,
        threads: Executor,
    ) -> None:
        self._ids = ids
        self._senders = senders
        dead = DeadLinkKeys()
        tracked, untracked = TrackedCopies(keys, public_url), UntrackedCopies(keys, public_url)
        self._tracked = CopyLoader(senders, dead, tracked, public_url, domain_required=False)
        self._untracked = CopyLoader(senders, dead, untracked, public_url, domain_required=False)
        self._composer = Composer(ring, _no_blobs, threads)

    async def compose(
        self,
        db: TeamDb,
        team_number: int,
        broadcast_id: UUID,
        content: BroadcastContent,
        address: str,
        *,
        is_tracked: bool = True,
    ) -> Preview:
        """Return the mail that the contact of this address would get; 404 where there is none. It is tracked
        as its domain says, unless it is not to be."""
        contact = await queries.recipient(db, address)
        if contact is None:
            raise NotFound("Contact")
        parts = await in_thread_if_large(_octets(content), _parts, content)
        personal = await _personal(db, parts, contact)
        domain = await self._senders.find(db.team_id, content.domain)
        stamp = self._ids.stamp()
        shared = SharedBy(
            team_id=db.team_id,
            team_number=team_number,
            broadcast_id=broadcast_id,
            content_id=stamp.id,
            topic_id=content.topic_id,
            domain_id=None if domain is None else domain.id,
            domain_name=content.domain,
        )
        row = CopyRow(
            id=stamp.id,
            created_at=stamp.at,
            address=contact.address,
            mailbox=parse_mailbox(contact.email),
            personal=personal,
        )
        loader = self._tracked if is_tracked else self._untracked
        [email] = await loader.load(shared, parts, [row])
        return Preview(contact.id, email, *await self._made(email))

    async def _made(self, email: LoadedEmail) -> tuple[CopyBodies, bytes]:
        if email.make is None:
            raise ValueError("a copy of a broadcast has bodies that are made")
        bodies = await in_thread(email.make)
        try:
            wire = await self._composer.wire(email)
        except EmailUnsendable as wrong:
            raise Invalid(f"The broadcast cannot be composed: {wrong}") from None
        if isinstance(wire, LongContent):
            raise ValueError("a copy of a broadcast has no attachments")
        return bodies, wire.octets


def _octets(content: BroadcastContent) -> int:
    return len(content.html or "") + len(content.text or "")


def _parts(content: BroadcastContent) -> SharedParts:
    return parts_of(
        CopyContent(
            sender=content.sender,
            reply_to_list=None if content.reply_to is None else msgspec.json.encode(content.reply_to),
            subject=content.subject,
            preview_text=content.preview_text,
            html=content.html,
            text=content.text,
        )
    )


async def _personal(db: TeamDb, parts: SharedParts, contact: PreviewContact) -> PersonalValues:
    needed = NeededValues(parts)
    properties: Sequence[copying_queries.Property] = ()
    if needed.properties:
        properties = await copying_queries.properties(db.source, db.team_id, needed.properties)
    own = _properties(contact.properties)
    values = ContactValues(
        email=contact.email,
        first_name=contact.first_name,
        last_name=contact.last_name,
        properties={known.key: own.get(str(known.number)) for known in properties},
        fallbacks={known.key: known.fallback for known in properties},
    )
    return needed.of(contact.id, values)


async def _no_blobs(name: str) -> AsyncIterator[bytes]:
    """Yield nothing: a broadcast has no attachments."""
    pieces: Sequence[bytes] = ()
    for piece in pieces:
        yield piece
