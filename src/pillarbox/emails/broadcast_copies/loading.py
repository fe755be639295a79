"""Copies as the engine needs them: the same when they are made and when they are claimed again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import CopyBodies, LoadedEmail
from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails.broadcast_copies.parts import KnownParts, SharedBodies, SharedParts
from pillarbox.emails.broadcast_copies.personal import PersonalValues
from pillarbox.emails.copies import unsubscribe_fields
from pillarbox.emails.rows import return_path_of, signing_of
from pillarbox.emails.tracked_copies import TrackedCopies, is_tracked
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken, token
from pillarbox.mail.html.links import Tracker
from pillarbox.mail.message.address import Mailbox
from pillarbox.timeline.record import MetricDimensions

TOGETHER = 8


class SharedBy(NamedTuple):
    """The columns that are equal in the rows of all copies of a broadcast."""

    team_id: UUID
    team_number: int
    broadcast_id: UUID
    content_id: UUID
    topic_id: UUID | None
    domain_id: UUID | None
    domain_name: str


class CopyRow(NamedTuple):
    """The values of one copy's rows: `address` is compared, `mailbox` is in the envelope."""

    id: UUID
    created_at: datetime
    address: str
    mailbox: Mailbox
    personal: PersonalValues


def message_id_of(email_id: UUID, domain_name: str) -> str:
    """Return the Message-ID of a copy, which is not stored; `complete_emails` says the same."""
    return f"<{email_id.hex}@{domain_name}>"


@dataclass(frozen=True, slots=True)
class _CopyMaking:
    """Makes the bodies of one copy, in the thread that composes it."""

    shared: SharedBodies
    personal: PersonalValues
    link: LinkToken
    key: LinkKey
    public_url: str
    tracker: Tracker | None

    def bodies(self) -> CopyBodies:
        url = f"{self.public_url}/unsubscribe/{token(self.link, self.key)}"
        made = self.shared.made(self.personal.values, url, self.tracker)
        return made._replace(headers=unsubscribe_fields((), url))


class CopyLoader:
    """Loads copies."""

    def __init__(
        self,
        senders: Senders,
        keys: LinkKeys,
        tracked: TrackedCopies,
        public_url: str,
        *,
        domain_required: bool,
    ) -> None:
        self._senders = senders
        self._keys = keys
        self._tracked = tracked
        self._public_url = public_url
        self._domain_required = domain_required
        self._known = KnownParts()

    async def parts(self, conn: Connection, team_id: UUID, content_id: UUID) -> SharedParts:
        """Return the parts that copies share; LookupError where the content is gone."""
        return await self._known.of(conn, team_id, content_id)

    async def load(self, shared: SharedBy, parts: SharedParts, rows: Sequence[CopyRow]) -> list[LoadedEmail]:
        """Load these copies of one broadcast."""
        domain = await self._senders.find(shared.team_id, shared.domain_name)
        refusal = refusal_of(shared.domain_id, domain, domain_required=self._domain_required)
        found = []
        for place, row in enumerate(rows):
            if place % TOGETHER == TOGETHER - 1:
                # What else the process does goes on meanwhile.
                await asyncio.sleep(0)
            found.append(await self._loaded(shared, parts, row, domain, refusal))
        return found

    async def _loaded(
        self,
        shared: SharedBy,
        parts: SharedParts,
        row: CopyRow,
        domain: SenderDomain | None,
        refusal: str | None,
    ) -> LoadedEmail:
        link = LinkToken(
            team_id=shared.team_id, email_id=row.id, position=0, topic_id=shared.topic_id, address=row.address
        )
        key = await self._keys.maker(row.created_at)
        tracker = await self._tracker(shared.team_id, parts, row, domain)
        making = _CopyMaking(
            shared=parts.bodies,
            personal=row.personal,
            link=link,
            key=key,
            public_url=self._public_url,
            tracker=tracker,
        )
        subject = row.personal.subject
        return LoadedEmail(
            team_id=shared.team_id,
            team_number=shared.team_number,
            email_id=row.id,
            message_id=message_id_of(row.id, shared.domain_name),
            sender=parts.sender,
            to=[row.mailbox],
            cc=(),
            reply_to=parts.reply_to,
            subject=parts.subject.source if subject is None else subject,
            date=row.created_at,
            html=None,
            text=None,
            headers=(),
            attachments=(),
            return_path=return_path_of(domain, shared.domain_name),
            tls_required=bool(domain and domain.tls == "enforced"),
            signing=signing_of(domain),
            dimensions=MetricDimensions(shared.domain_id, shared.domain_name, shared.broadcast_id),
            refusal=refusal,
            contact_id=row.personal.contact,
            make=making.bodies,
            shared=parts.octets,
        )

    async def _tracker(
        self, team_id: UUID, parts: SharedParts, row: CopyRow, domain: SenderDomain | None
    ) -> Tracker | None:
        html = None if parts.bodies.html is None else "html"
        if not is_tracked(domain, html):
            return None
        tracking = await self._tracked.of(domain, html, (), row.created_at)
        return None if tracking is None else tracking.recipient(team_id, row.id, 0)


def refusal_of(domain_id: UUID | None, domain: SenderDomain | None, *, domain_required: bool) -> str | None:
    """Return why mail that was accepted for a domain may not leave any more (emails.md section 6)."""
    if domain_id is None:
        return None
    # A domain of that name that was added later is another one.
    if domain is None or domain.id != domain_id or not domain.sending:
        return "domain_not_verified"
    if domain_required and not domain.may_send:
        return "domain_not_verified"
    return None
