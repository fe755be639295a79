"""From a checked email to its rows, and from the same values to the items that the engine is handed.

Nothing here waits: it is the part of accepting that costs Python's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.delivery.items import HELD, Enclosure, Item, Parcel, Signing, Target
from pillarbox.domains.senders import SenderDomain
from pillarbox.emails.outgoing import Outgoing
from pillarbox.kernel.auth import Caller
from pillarbox.kernel.ids import Ids, Stamp
from pillarbox.timeline.rules import Kind, Opening

JOB_FETCH = "email.attachments"
DEFAULT_RETURN_PATH = "send"

_json = msgspec.json.Encoder().encode


@dataclass(slots=True)
class AttachmentRow:
    """An attachment to be stored; `data` moves to `blob` when it is large."""

    id: UUID
    filename: str
    content_type: str
    cid: str | None
    size: int | None
    data: bytes | None
    blob: str | None
    url: str | None


@dataclass(slots=True)
class Draft:
    """One email with the ids and instants it will be stored under."""

    caller: Caller
    outgoing: Outgoing
    domain: SenderDomain | None
    id: UUID
    at: datetime
    message_id: str
    targets: list[tuple[int, str, str, str, int]]
    groups: list[str]
    attachments: list[AttachmentRow]
    weight: int
    leased: bool = field(default=False)

    @property
    def team_id(self) -> UUID:
        return self.caller.team_id

    @property
    def waits_for_files(self) -> bool:
        return any(row.url is not None for row in self.attachments)

    @property
    def is_immediate(self) -> bool:
        """True when its work can begin with the commit."""
        return self.outgoing.scheduled_at is None and not self.waits_for_files


def drafted(
    caller: Caller, outgoing: Outgoing, domain: SenderDomain | None, stamp: Stamp, token: str, ids: Ids
) -> Draft:
    """Number the recipients and group them by destination (one work item per domain)."""
    groups: dict[str, int] = {}
    targets = []
    for position, (role, mailbox, key) in enumerate(outgoing.recipients()):
        grp = groups.setdefault(mailbox.domain, len(groups))
        targets.append((position, role, key, mailbox.addr_spec, grp))
    attachments = [
        AttachmentRow(
            ids.new(),
            a.filename,
            a.content_type,
            a.cid,
            None if a.data is None else len(a.data),
            a.data,
            None,
            a.url,
        )
        for a in outgoing.attachments
    ]
    bodies = len(outgoing.html or "") + len(outgoing.text or "")
    weight = 2048 + 2 * bodies + sum(len(a.data or b"") for a in outgoing.attachments)
    return Draft(
        caller,
        outgoing,
        domain,
        stamp.id,
        stamp.at,
        f"<{token}@{outgoing.sender.domain}>",
        targets,
        list(groups),
        attachments,
        weight,
    )


class Rows:
    """Columns for one `queries.insert`, gathered email by email."""

    def __init__(self, owner: UUID, leased_until: datetime) -> None:
        self._owner = owner
        self._leased_until = leased_until
        self._emails: list[tuple[Any, ...]] = []
        self._recipients: list[tuple[Any, ...]] = []
        self._work: list[tuple[Any, ...]] = []
        self.attachments: list[tuple[Any, ...]] = []
        self.fetches: list[tuple[UUID, UUID, datetime]] = []
        self.openings: list[Opening] = []

    def add(self, draft: Draft, *, leased: bool) -> None:
        """Add one email; `leased` when this process's engine takes its work with the commit."""
        out, domain = draft.outgoing, draft.domain
        kind = Kind.QUEUED if out.scheduled_at is None else Kind.SCHEDULED
        domain_id = domain.id if domain else None
        self._emails.append(
            (
                draft.team_id,
                draft.id,
                draft.at,
                draft.message_id,
                out.sender_text,
                _texts(out.to_texts),
                _texts(out.cc_texts) if out.cc_texts else None,
                _texts(out.bcc_texts) if out.bcc_texts else None,
                _texts(out.reply_to_texts) if out.reply_to_texts else None,
                out.subject,
                _json([tag._asdict() for tag in out.tags]).decode() if out.tags else None,
                out.scheduled_at,
                out.topic_id,
                draft.caller.key_id,
                domain_id,
                out.sender.domain,
                kind.value,
                out.html,
                out.text,
                _json(out.headers).decode() if out.headers else None,
                len(draft.attachments),
            )
        )
        for target in draft.targets:
            position, role, address, mailbox, grp = target
            self._recipients.append(
                (draft.team_id, draft.id, position, role, address, mailbox, grp, kind.value)
            )
        self._add_work(draft, leased=leased)
        self._add_attachments(draft)
        self.openings.append(
            Opening(
                draft.team_id,
                draft.id,
                kind,
                draft.at,
                len(draft.targets),
                domain_id,
                out.sender.domain,
                None,
            )
        )

    def _add_work(self, draft: Draft, *, leased: bool) -> None:
        scheduled = draft.outgoing.scheduled_at
        due = HELD if draft.waits_for_files else scheduled
        for grp, destination in enumerate(draft.groups):
            self._work.append(
                (draft.team_id, draft.id, grp, destination, due, leased, scheduled is None, draft.at)
            )

    def _add_attachments(self, draft: Draft) -> None:
        for position, row in enumerate(draft.attachments):
            self.attachments.append(
                (
                    draft.team_id,
                    row.id,
                    draft.id,
                    position,
                    row.filename,
                    row.content_type,
                    row.cid,
                    row.size,
                    row.data,
                    row.blob,
                    row.url,
                    draft.at,
                )
            )
        if draft.waits_for_files:
            self.fetches.append((draft.team_id, draft.id, draft.at))

    def columns(self) -> list[Any]:
        emails = list(zip(*self._emails, strict=True))
        recipients = list(zip(*self._recipients, strict=True))
        work = list(zip(*self._work, strict=True))
        return [*emails, *recipients, *work[:-1], self._owner, self._leased_until, work[-1]]


def hand_over(draft: Draft, origins: dict[tuple[UUID, int], str], deadline: float) -> list[Item]:
    """The items of an email whose rows were committed with this process as their owner."""
    parcel = parcel_of(draft)
    return [
        Item(
            draft.team_id,
            draft.id,
            grp,
            destination,
            attempt=1,
            tries=0,
            reached=False,
            uncertain=False,
            first_attempt_at=draft.at,
            targets=[
                Target(position, mailbox, address, origins.get((draft.id, position)))
                for position, _, address, mailbox, group in draft.targets
                if group == grp
            ],
            parcel=parcel,
            deadline=deadline,
        )
        for grp, destination in enumerate(draft.groups)
    ]


def parcel_of(draft: Draft) -> Parcel:
    """What composing the email takes."""
    out = draft.outgoing
    return Parcel(
        draft.team_id,
        draft.caller.team_number,
        draft.id,
        draft.message_id,
        out.sender,
        out.to,
        out.cc,
        out.reply_to,
        out.subject,
        draft.at,
        out.html,
        out.text,
        out.headers,
        [
            Enclosure(a.id, a.filename, a.content_type, a.cid, a.data, a.blob, a.size or 0)
            for a in draft.attachments
        ],
        return_path_of(draft.domain, out.sender.domain),
        bool(draft.domain and draft.domain.tls == "enforced"),
        signing_of(draft.domain),
    )


def return_path_of(domain: SenderDomain | None, name: str) -> str:
    """The domain of the envelope sender."""
    return f"{domain.return_path if domain else DEFAULT_RETURN_PATH}.{name}"


def signing_of(domain: SenderDomain | None) -> Signing | None:
    return Signing(*domain.signing) if domain else None


def _texts(texts: Sequence[str]) -> str:
    return _json(texts).decode()
