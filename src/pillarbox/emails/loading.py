"""Emails as the engine needs them when it claims work, checked once more (architecture 2.5).

The engine may not import this slice: it is given `EmailLoader.load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.delivery.items import AttachmentRef, LoadedEmail, OpenRecipient, PersonalCopy, SealedText
from pillarbox.domains.senders import SenderDomain, Senders
from pillarbox.emails.broadcast_copies.loading import CopyLoader, CopyRow, SharedBy, refusal_of
from pillarbox.emails.broadcast_copies.personal import decode
from pillarbox.emails.copies import TopicCopies, TopicRules
from pillarbox.emails.own_mail.sealed_queries import SEALED_MAILS
from pillarbox.emails.rows import return_path_of, signing_of
from pillarbox.emails.tracked_copies import EmailTracking, TrackedCopies, is_tracked
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.message.address import Mailbox, parse_mailbox
from pillarbox.mail.placeholders.parsing import LinkPlaces
from pillarbox.people.roles import ACTING_ROLES
from pillarbox.timeline.record import MetricDimensions

# The older ones first, as long as those before them have less than $3 octets together.
EMAILS = """
    SELECT e.id, e.created_at, e.message_id, e.sender, e.to_list, e.cc_list, e.reply_to_list, e.subject,
           e.scheduled_at, e.key_id, e.domain_id, e.domain_name, e.broadcast_id, c.headers, c.attachments,
           e.content_id, e.topic_id, c.link_places, t.number AS team_number,
           CASE WHEN e.broadcast_id IS NOT NULL THEN row(NULL::text, NULL::text)
                WHEN coalesce(sum(s.octets) OVER earlier, 0) < $3 THEN row(c.html, c.text) END AS bodies,
           (SELECT CASE WHEN k.created_by IS NULL OR k.is_kept THEN k.status
                        WHEN EXISTS (SELECT FROM team_members m
                                       JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
                                      WHERE m.team_id = k.team_id AND m.person_id = k.created_by
                                        AND m.role = ANY ($4::text[]))
                             AND (k.grant_id IS NULL
                                  OR (SELECT g.revoked_at IS NULL
                                         FROM oauth_grants g
                                        WHERE g.team_id = k.team_id AND g.id = k.grant_id))
                        THEN k.status ELSE 'inactive' END
              FROM api_keys k
             WHERE k.team_id = e.team_id AND k.id = e.key_id AND e.scheduled_at IS NOT NULL) AS key_status,
           (SELECT m.text FROM sealed_mails m WHERE m.team_id = e.team_id AND m.email_id = e.id) AS sealed
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
      JOIN teams t ON t.id = e.team_id
     CROSS JOIN LATERAL (
           SELECT CASE WHEN e.broadcast_id IS NULL
                       THEN coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0)
                            + CASE WHEN c.attachments > 0
                                   THEN (SELECT coalesce(sum(a.size), 0) FROM attachments a
                                          WHERE a.team_id = c.team_id AND a.content_id = c.id
                                            AND a.blob IS NULL)
                                   ELSE 0 END
                       ELSE 0 END AS octets) AS s
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
    WINDOW earlier AS (ORDER BY e.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
"""

TARGETS = """
    SELECT r.email_id, r.grp, r.position, r.mailbox, r.address, s.origin, r.personal
      FROM recipients r
      LEFT JOIN suppressions s ON s.team_id = r.team_id AND s.address = r.address
     WHERE r.team_id = $1 AND r.email_id = ANY ($2::uuid[])
       AND r.state IN ('queued', 'scheduled', 'sent', 'delivery_delayed')
     ORDER BY r.email_id, r.position
"""

TOPIC_OPT_OUT = "topic_opt_out"

ATTACHMENTS = """
    SELECT content_id, id, filename, content_type, cid, size, data, blob
      FROM attachments
     WHERE team_id = $1 AND content_id = ANY ($2::uuid[])
     ORDER BY content_id, position
"""

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
    ) -> None:
        self._senders = senders
        self._topics = topics
        self._copies = copies
        self._tracked = tracked
        self._broadcasts = broadcasts
        self._domain_required = domain_required

    async def load(self, conn: Connection, team_id: UUID, email_ids: Sequence[UUID], limit: int) -> Loaded:
        """Each email with the open recipients of each group; None for those that would come
        after more than `limit` octets."""
        found = await conn.fetch(EMAILS, team_id, email_ids, limit, ACTING_ROLES)
        rows = [row for row in found if row["bodies"] is not None]
        targets: dict[UUID, dict[int, list[OpenRecipient]]] = {}
        people = await conn.fetch(TARGETS, team_id, email_ids)
        for row in people:
            groups = targets.setdefault(row["email_id"], {})
            groups.setdefault(row["grp"], []).append(
                OpenRecipient(row["position"], row["mailbox"], row["address"], row["origin"])
            )
        attachments = await self._attachments(conn, team_id, rows)
        loaded: Loaded = dict.fromkeys([row["id"] for row in found])
        if copies := [row for row in rows if row["broadcast_id"] is not None]:
            found_copies = await self._load_copies(conn, team_id, copies, people)
            loaded |= {one: (email, targets.get(one, {})) for one, email in found_copies.items()}
            rows = [row for row in rows if row["broadcast_id"] is None]
        tracking_of: dict[UUID, EmailTracking | None] = {}
        for row in rows:
            domain = await self._senders.find(team_id, row["domain_name"])
            email = _loaded_email(team_id, row, domain, attachments.get(row["content_id"], []))
            email.refusal = self._refusal(row, domain)
            if row["sealed"] is not None:
                email.sealed = SealedText(row["sealed"], SEALED_MAILS.context(row["id"]))
            loaded[row["id"]] = (email, targets.get(row["id"], {}))
            if is_tracked(domain, email.html):
                tracking_of[row["id"]] = await self._tracked.of(
                    domain, email.html, email.headers, row["created_at"]
                )
        if personal := [row for row in rows if _is_personal(row, loaded[row["id"]])]:
            await self._personalize(conn, team_id, personal, loaded)
        for email_id, tracking in tracking_of.items():
            if tracking is not None:
                _track(team_id, email_id, tracking, targets.get(email_id, {}))
        return loaded

    async def _load_copies(
        self, conn: Connection, team_id: UUID, rows: Sequence[Any], people: Sequence[Any]
    ) -> dict[UUID, LoadedEmail]:
        """Copies of broadcasts. Whether somebody still wants one is asked when it is about to be sent."""
        personal = {row["email_id"]: row for row in people}
        together: dict[SharedBy, list[CopyRow]] = {}
        for row in rows:
            own = personal.get(row["id"])
            if own is not None:
                columns = ("broadcast_id", "content_id", "topic_id", "domain_id", "domain_name")
                shared = SharedBy(team_id, row["team_number"], *[row[name] for name in columns])
                mailbox = parse_mailbox(own["mailbox"])
                copy = CopyRow(row["id"], row["created_at"], own["address"], mailbox, decode(own["personal"]))
                together.setdefault(shared, []).append(copy)
        found: dict[UUID, LoadedEmail] = {}
        for shared, copies in together.items():
            parts = await self._broadcasts.parts(conn, team_id, shared.content_id)
            emails = await self._broadcasts.load(shared, parts, copies)
            found |= {email.email_id: email for email in emails}
        return found

    async def _personalize(
        self, conn: Connection, team_id: UUID, rows: Sequence[Any], loaded: Loaded
    ) -> None:
        """Give each recipient its own copy, and say of mail of a topic whether it wants it."""
        wanted: list[tuple[LoadedEmail, dict[int, list[OpenRecipient]], Any]] = []
        for row in rows:
            found = loaded[row["id"]]
            if found is not None:
                wanted.append((*found, row))
        mails = {
            (team_id, row["topic_id"], target.address)
            for _, groups, row in wanted
            for targets in groups.values()
            for target in targets
            if row["topic_id"] is not None
        }
        refused = await self._topics.refused(conn, list(mails))
        for email, groups, row in wanted:
            for grp, targets in groups.items():
                groups[grp] = [
                    target._replace(refusal=TOPIC_OPT_OUT)
                    if (team_id, row["topic_id"], target.address) in refused
                    else target._replace(
                        copy=await self._copies.of(email, target, row["topic_id"], row["created_at"])
                    )
                    for target in targets
                ]

    async def _attachments(
        self, conn: Connection, team_id: UUID, rows: Sequence[Any]
    ) -> dict[UUID, list[AttachmentRef]]:
        wanted = [row["content_id"] for row in rows if row["attachments"]]
        found: dict[UUID, list[AttachmentRef]] = {}
        if wanted:
            for row in await conn.fetch(ATTACHMENTS, team_id, wanted):
                found.setdefault(row["content_id"], []).append(
                    AttachmentRef(
                        row["id"],
                        row["filename"],
                        row["content_type"],
                        row["cid"],
                        row["data"],
                        row["blob"],
                        row["size"] or 0,
                    )
                )
        return found

    def _refusal(self, row: Any, domain: SenderDomain | None) -> str | None:
        """Why an email that was accepted may not leave any more (emails.md section 6)."""
        if row["scheduled_at"] is not None and row["key_id"] is not None and row["key_status"] != "active":
            return "api_key_not_active"
        return refusal_of(row["domain_id"], domain, domain_required=self._domain_required)


def _is_personal(row: Any, email_and_values: tuple[LoadedEmail, object] | None) -> bool:
    """Whether each recipient has a link of its own in it."""
    places = None if email_and_values is None else email_and_values[0].link_places
    return row["topic_id"] is not None or (places is not None and any(places))


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
    team_id: UUID, row: Any, domain: SenderDomain | None, attachments: Sequence[AttachmentRef]
) -> LoadedEmail:
    sender = _sender(row["sender"])
    html, text = row["bodies"]
    return LoadedEmail(
        team_id,
        row["team_number"],
        row["id"],
        row["message_id"],
        sender,
        _mailboxes(row["to_list"]),
        _mailboxes(row["cc_list"]),
        _mailboxes(row["reply_to_list"]),
        row["subject"],
        _date(row["created_at"], row["scheduled_at"]),
        html,
        text,
        _headers(row["headers"]),
        attachments,
        return_path_of(domain, row["domain_name"]),
        bool(domain and domain.tls == "enforced"),
        signing_of(domain),
        MetricDimensions(row["domain_id"], row["domain_name"], row["broadcast_id"]),
        link_places=_link_places(row["link_places"]),
    )


_sender = lru_cache(maxsize=1024)(parse_mailbox)


def _date(created: datetime, scheduled: datetime | None) -> datetime:
    """The Date header: acceptance, or the time a scheduled mail was meant for (MSG-04)."""
    return max(created, scheduled) if scheduled else created


def _mailboxes(text: str | None) -> list[Mailbox]:
    return [parse_mailbox(item) for item in msgspec.json.decode(text)] if text else []


def _link_places(text: str | None) -> LinkPlaces | None:
    return LinkPlaces(*msgspec.json.decode(text)) if text else None


def _headers(text: str | None) -> list[tuple[str, str]]:
    return [(name, value) for name, value in msgspec.json.decode(text)] if text else []
