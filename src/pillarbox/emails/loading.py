"""Emails as the engine needs them when it claims work, checked once more (architecture 2.5).

The engine may not import this slice: it is given `EmailLoader.load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from uuid import UUID

import msgspec

from pillarbox.delivery.items import AttachmentRef, LoadedEmail, OpenRecipient, PersonalCopy, SealedText
from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails import work_queries as queries
from pillarbox.emails.broadcast_copies.loading import CopyLoader, CopyRow, SharedBy, refusal_of
from pillarbox.emails.broadcast_copies.personal import decode
from pillarbox.emails.copies import TopicCopies, TopicRules
from pillarbox.emails.own_mail.sealed_queries import SEALED_MAILS
from pillarbox.emails.rows import return_path_of, signing_of
from pillarbox.emails.tracked_copies import EmailTracking, TrackedCopies, is_tracked
from pillarbox.emails.work_queries import StoredEmail, StoredTarget
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.message.address import Mailbox, parse_mailbox
from pillarbox.mail.placeholders.parsing import LinkPlaces
from pillarbox.people.roles import ACTING_ROLES
from pillarbox.suppressions.erased_addresses import ORIGIN as ERASED
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.timeline.record import MetricDimensions

TOPIC_OPT_OUT = "topic_opt_out"

Loaded = dict[UUID, tuple[LoadedEmail, dict[int, list[OpenRecipient]]] | None]


class EmailLoader:
    """Loads emails for the engine."""

    def __init__(
        self,
        senders: Senders,
        topics: TopicRules,
        copies: TopicCopies,
        tracked: TrackedCopies,
        broadcasts: CopyLoader,
        *,
        domain_required: bool,
        erased: ErasedAddresses | None = None,
    ) -> None:
        self._senders = senders
        self._topics = topics
        self._copies = copies
        self._tracked = tracked
        self._broadcasts = broadcasts
        self._domain_required = domain_required
        self._erased = erased

    async def load(self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], limit: int) -> Loaded:
        """Load each email with the open recipients of each group; None for those that would come after more
        than `limit` octets."""
        found = await queries.emails(conn, team_id, email_ids, limit, ACTING_ROLES)
        rows = [row for row in found if row.bodies is not None]
        targets: dict[UUID, dict[int, list[OpenRecipient]]] = {}
        people = await self._targets(conn, team_id, email_ids)
        for person in people:
            groups = targets.setdefault(person.email_id, {})
            groups.setdefault(person.grp, []).append(
                OpenRecipient(person.position, person.mailbox, person.address, person.origin)
            )
        attachments = await self._attachments(conn, team_id, rows)
        loaded: Loaded = dict.fromkeys([row.id for row in found])
        if copies := [row for row in rows if row.broadcast_id is not None]:
            found_copies = await self._load_copies(conn, team_id, copies, people)
            loaded |= {one: (email, targets.get(one, {})) for one, email in found_copies.items()}
            rows = [row for row in rows if row.broadcast_id is None]
        tracking_of: dict[UUID, EmailTracking | None] = {}
        for row in rows:
            domain = await self._senders.find(team_id, row.domain_name)
            email = _loaded_email(team_id, row, domain, attachments.get(row.content_id, []))
            email.refusal = self._refusal(row, domain)
            if row.sealed is not None:
                email.sealed = SealedText(row.sealed, SEALED_MAILS.context(row.id))
            loaded[row.id] = (email, targets.get(row.id, {}))
            if is_tracked(domain, email.html):
                tracking_of[row.id] = await self._tracked.of(
                    domain, email.html, email.headers, row.created_at
                )
        if personal := [row for row in rows if _is_personal(row, loaded[row.id])]:
            await self._personalize(conn, team_id, personal, loaded)
        for email_id, tracking in tracking_of.items():
            if tracking is not None:
                _track(team_id, email_id, tracking, targets.get(email_id, {}))
        return loaded

    async def _targets(
        self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID]
    ) -> list[StoredTarget]:
        """Return the open recipients of these emails; those of people who were erased are suppressed."""
        people = await queries.targets(conn, team_id, email_ids)
        if self._erased is None or not any(person.has_erased for person in people):
            return people
        gone = await self._erased.found_among(conn, team_id, {person.address for person in people})
        return [
            person._replace(origin=person.origin or ERASED) if person.address in gone else person
            for person in people
        ]

    async def _load_copies(
        self, conn: Connection, team_id: UUID, rows: Sequence[StoredEmail], people: Sequence[StoredTarget]
    ) -> dict[UUID, LoadedEmail]:
        """Load copies of broadcasts. Whether somebody still wants one is asked when it is about to
        be sent."""
        personal = {person.email_id: person for person in people}
        together: dict[SharedBy, list[CopyRow]] = {}
        for row in rows:
            own = personal.get(row.id)
            if own is not None:
                assert row.broadcast_id is not None, "it is a copy of a broadcast"
                assert own.personal is not None, "a copy of a broadcast has values"
                shared = SharedBy(
                    team_id=team_id,
                    team_number=row.team_number,
                    broadcast_id=row.broadcast_id,
                    content_id=row.content_id,
                    topic_id=row.topic_id,
                    domain_id=row.domain_id,
                    domain_name=row.domain_name,
                )
                mailbox = parse_mailbox(own.mailbox)
                copy = CopyRow(
                    id=row.id,
                    created_at=row.created_at,
                    address=own.address,
                    mailbox=mailbox,
                    personal=decode(own.personal),
                )
                together.setdefault(shared, []).append(copy)
        found: dict[UUID, LoadedEmail] = {}
        for shared, copies in together.items():
            parts = await self._broadcasts.parts(conn, team_id, shared.content_id)
            emails = await self._broadcasts.load(shared, parts, copies)
            found |= {email.email_id: email for email in emails}
        return found

    async def _personalize(
        self, conn: Connection, team_id: UUID, rows: Sequence[StoredEmail], loaded: Loaded
    ) -> None:
        """Give each recipient its own copy, and say of mail of a topic whether it wants it."""
        wanted: list[tuple[LoadedEmail, dict[int, list[OpenRecipient]], StoredEmail]] = []
        for row in rows:
            found = loaded[row.id]
            if found is not None:
                wanted.append((*found, row))
        mails = {
            (team_id, row.topic_id, target.address)
            for _, groups, row in wanted
            for targets in groups.values()
            for target in targets
            if row.topic_id is not None
        }
        refused = await self._topics.refused(conn, list(mails))
        for email, groups, row in wanted:
            for grp, targets in groups.items():
                groups[grp] = [
                    target._replace(refusal=TOPIC_OPT_OUT)
                    if (team_id, row.topic_id, target.address) in refused
                    else target._replace(
                        copy=await self._copies.of(email, target, row.topic_id, row.created_at)
                    )
                    for target in targets
                ]

    async def _attachments(
        self, conn: Connection, team_id: UUID, rows: Sequence[StoredEmail]
    ) -> dict[UUID, list[AttachmentRef]]:
        wanted = [row.content_id for row in rows if row.attachments]
        found: dict[UUID, list[AttachmentRef]] = {}
        if wanted:
            for content_id, attachment in await queries.attachments(conn, team_id, wanted):
                found.setdefault(content_id, []).append(attachment)
        return found

    def _refusal(self, row: StoredEmail, domain: SenderDomain | None) -> str | None:
        """Return why an email that was accepted may not leave any more (emails.md section 6)."""
        if row.scheduled_at is not None and row.key_id is not None and row.key_status != "active":
            return "api_key_not_active"
        return refusal_of(row.domain_id, domain, domain_required=self._domain_required)


def _is_personal(row: StoredEmail, email_and_values: tuple[LoadedEmail, object] | None) -> bool:
    """Return whether each recipient has a link of its own in it."""
    places = None if email_and_values is None else email_and_values[0].link_places
    return row.topic_id is not None or (places is not None and any(places))


def _track(
    team_id: UUID, email_id: UUID, tracking: EmailTracking, groups: dict[int, list[OpenRecipient]]
) -> None:
    """Give the links of a recipient to everybody who is alone in its group. Others share one message: their
    mail was accepted when tracking was not active."""
    for grp, targets in groups.items():
        if len(targets) == 1:
            [target] = targets
            copy = target.copy or PersonalCopy()
            copy.tracker = tracking.recipient(team_id, email_id, target.position)
            groups[grp] = [target._replace(copy=copy)]


def _loaded_email(
    team_id: UUID, row: StoredEmail, domain: SenderDomain | None, attachments: Sequence[AttachmentRef]
) -> LoadedEmail:
    sender = _sender(row.sender)
    html, text = row.bodies or (None, None)
    return LoadedEmail(
        team_id=team_id,
        team_number=row.team_number,
        email_id=row.id,
        message_id=row.message_id,
        sender=sender,
        to=_mailboxes(row.to_list),
        cc=_mailboxes(row.cc_list),
        reply_to=_mailboxes(row.reply_to_list),
        subject=row.subject,
        date=_date(row.created_at, row.scheduled_at),
        html=html,
        text=text,
        headers=_headers(row.headers),
        attachments=attachments,
        return_path=return_path_of(domain, row.domain_name),
        tls_required=bool(domain and domain.tls == "enforced"),
        signing=signing_of(domain),
        dimensions=MetricDimensions(row.domain_id, row.domain_name, row.broadcast_id),
        link_places=_link_places(row.link_places),
    )


_sender = lru_cache(maxsize=1024)(parse_mailbox)


def _date(created: datetime, scheduled: datetime | None) -> datetime:
    """Return the Date header: acceptance, or the time a scheduled mail was meant for (MSG-04)."""
    return max(created, scheduled) if scheduled else created


def _mailboxes(text: str | None) -> list[Mailbox]:
    return [parse_mailbox(item) for item in msgspec.json.decode(text)] if text else []


def _link_places(text: str | None) -> LinkPlaces | None:
    return LinkPlaces(*msgspec.json.decode(text)) if text else None


def _headers(text: str | None) -> list[tuple[str, str]]:
    return [(name, value) for name, value in msgspec.json.decode(text)] if text else []
