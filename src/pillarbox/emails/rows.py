"""From a checked email to its rows, and from the same values to the items that the engine is handed.

Nothing here waits: it is the part of accepting that costs Python's time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.delivery.items import (
    UNTIL_FETCHED,
    AttachmentRef,
    Item,
    LoadedEmail,
    OpenRecipient,
    PersonalCopy,
    SigningDomain,
)
from pillarbox.domains.senders import SenderDomain
from pillarbox.emails.outgoing import NewAttachment, OutgoingEmail
from pillarbox.emails.tracked_copies import EmailTracking
from pillarbox.kernel.ids import Ids, Stamp
from pillarbox.kernel.network.web_address import BadUrl, parse_url
from pillarbox.kernel.security.authentication import Caller
from pillarbox.timeline.record import MetricDimensions
from pillarbox.timeline.rules import EventKind, FirstEntry

JOB_FETCH = "email.attachments"
DEFAULT_RETURN_PATH = "send"

Origins = dict[tuple[UUID, str], str]
"""Where addresses of a team are suppressed: why."""

_FREE = (None, None, 0, None)
"""Owner, lease, attempt and first attempt of work that nobody has taken yet."""


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
class PreparedEmail:
    """One email with the ids and instants it will be stored under. `is_immediate` says that its work can
    begin with the commit, `waits_for_files` that it cannot before they have been fetched. `is_handed_over`:
    the engine may take it with the commit; copies with links of their own are made, and mail of a topic is
    judged, when it is claimed.
    `tracking` is what is tracked in it as its domain stands now."""

    caller: Caller
    team_id: UUID
    outgoing: OutgoingEmail
    domain: SenderDomain | None
    id: UUID
    at: datetime
    message_id: str
    targets: list[tuple[int, str, str, str, int]]
    groups: list[str]
    attachments: list[AttachmentRow]
    weight: int
    waits_for_files: bool
    is_immediate: bool
    is_handed_over: bool
    tracking: EmailTracking | None = None


def drafted(
    caller: Caller,
    outgoing: OutgoingEmail,
    domain: SenderDomain | None,
    stamp: Stamp,
    token: str,
    ids: Ids,
    tracking: EmailTracking | None = None,
) -> PreparedEmail:
    """Number the recipients of an email and group them by destination (one work item per domain). With
    a topic, with links of its own, or where the mail is tracked, each has a copy of its own, so each is
    a group."""
    groups: dict[tuple[str, int], int] = {}
    targets = []
    is_alone = outgoing.is_personal or tracking is not None
    for position, (role, mailbox, key, address) in enumerate(outgoing.recipients()):
        grp = groups.setdefault((mailbox.domain, position if is_alone else 0), len(groups))
        targets.append((position, role, key, address, grp))
    attachments = _attachments(outgoing.attachments, ids) if outgoing.attachments else []
    weight = 2048 + 2 * (len(outgoing.html or "") + len(outgoing.text or ""))
    waits_for_files = False
    for row in attachments:
        weight += row.size or 0
        waits_for_files = waits_for_files or row.url is not None
    is_immediate = outgoing.scheduled_at is None and not waits_for_files
    return PreparedEmail(
        caller=caller,
        team_id=caller.team_id,
        outgoing=outgoing,
        domain=domain,
        id=stamp.id,
        at=stamp.at,
        message_id=f"<{token}@{outgoing.sender.domain}>",
        targets=targets,
        groups=[destination for destination, _ in groups],
        attachments=attachments,
        weight=weight,
        waits_for_files=waits_for_files,
        is_immediate=is_immediate,
        is_handed_over=is_immediate and not outgoing.is_personal,
        tracking=tracking,
    )


def _attachments(accepted: Sequence[NewAttachment], ids: Ids) -> list[AttachmentRow]:
    return [
        AttachmentRow(
            id=ids.new(),
            filename=a.filename,
            content_type=a.content_type,
            cid=a.cid,
            size=None if a.data is None else len(a.data),
            data=a.data,
            blob=None,
            url=a.url,
        )
        for a in accepted
    ]


Record = dict[str, Any]

STATES = {kind: kind.value for kind in (EventKind.QUEUED, EventKind.SCHEDULED)}

_json = msgspec.json.Encoder().encode


class ContentSlice(NamedTuple):
    """Contents that one statement stores: their rows, and the bodies, to which `place` of the row points."""

    rows: list[Record]
    html: list[str | None]
    text: list[str | None]


SLICE: Final = 2 * 1024 * 1024
"""Characters of bodies that one statement carries."""

OF_CONTENTS: Final = ("team_id", "id", "created_at", "headers", "attachments", "link_places")


class CommitRows:
    """The rows of a commit, collected email by email: column to value, or in the order of `queries` where
    values are long.

    An email with one recipient has this one and its work in its own row. `html` and `text` are the bodies, in
    the order of `emails`. `judged` are the addresses whose suppression must be known, because their work is
    handed over with the commit; all other work is judged when it is claimed. What is not scheduled is due
    `now`, which is not the time in its id (`kernel.ids`).
    """

    def __init__(self, owner: UUID, now: datetime, lease: timedelta) -> None:
        self.owner = owner
        self.now = now
        self.leased_until = now + lease
        self.emails: list[Record] = []
        self.characters = 0
        self.html: list[str | None] = []
        self.text: list[str | None] = []
        self.recipients: list[Record] = []
        self.deliveries: list[Record] = []
        self.attachments: list[tuple[Any, ...]] = []
        self.fetches: list[tuple[UUID, UUID, datetime, str]] = []
        """Emails whose files are to be fetched: team, email, when, and the first file's host."""
        self.openings: list[FirstEntry] = []
        self.judged: set[tuple[UUID, str]] = set()

    def add(self, draft: PreparedEmail, *, leased: bool) -> None:
        """Add one email; `leased` when this process's engine takes its work with the commit."""
        out, domain, team_id, email_id, at = draft.outgoing, draft.domain, draft.team_id, draft.id, draft.at
        kind = EventKind.QUEUED if out.scheduled_at is None else EventKind.SCHEDULED
        domain_id = domain.id if domain else None
        name = out.sender.domain
        self.html.append(out.html)
        self.text.append(out.text)
        self.characters += len(out.html or "") + len(out.text or "")
        row: Record = {
            "place": len(self.html),
            "team_id": team_id,
            "id": email_id,
            "created_at": at,
            "message_id": draft.message_id,
            "sender": out.sender_text,
            "to_list": out.to_texts,
            "subject": out.subject,
            "key_id": draft.caller.key_id,
            "domain_id": domain_id,
            "domain_name": name,
            "state": STATES[kind],
        }
        self.emails.append(row)
        _add_seldom(row, draft)
        if len(draft.targets) == 1:
            _, row["role"], address, row["mailbox"], _ = draft.targets[0]
            row["address"], row["destination"], row["leased"] = address, draft.groups[0], leased
            if leased:
                self.judged.add((team_id, address))
        else:
            self._add_recipients(draft, STATES[kind], leased=leased)
            self._add_work(draft, leased=leased)
        if draft.attachments:
            self._add_attachments(draft)
        self.openings.append(
            FirstEntry(
                team_id=team_id,
                email_id=email_id,
                kind=kind,
                at=at,
                recipients=len(draft.targets),
                domain_id=domain_id,
                domain_name=name,
                broadcast_id=None,
            )
        )

    @property
    def is_large(self) -> bool:
        """Whether the bodies are more than one statement carries without holding up the event loop."""
        return self.characters > SLICE

    def take_contents(self) -> Iterator[ContentSlice]:
        """Take out the contents in slices, to be stored before the emails in one transaction."""
        taken, size = ContentSlice([], [], []), 0
        for index, row in enumerate(self.emails):
            html, text = self.html[index], self.text[index]
            octets = len(html or "") + len(text or "")
            if taken.rows and size + octets > SLICE:
                yield taken
                taken, size = ContentSlice([], [], []), 0
            size += octets
            taken.html.append(html)
            taken.text.append(text)
            taken.rows.append(
                {**{name: row[name] for name in OF_CONTENTS if name in row}, "place": len(taken.html)}
            )
            row["is_content_stored"] = True
            self.html[index] = self.text[index] = None
        yield taken

    def name_entries(self, ids: Sequence[UUID]) -> None:
        """Give each email the id of its first line of history."""
        for row, entry_id in zip(self.emails, ids, strict=True):
            row["entry_id"] = entry_id

    def _add_recipients(self, draft: PreparedEmail, state: str, *, leased: bool) -> None:
        for position, role, address, mailbox, grp in draft.targets:
            self.recipients.append(
                {
                    "team_id": draft.team_id,
                    "email_id": draft.id,
                    "position": position,
                    "role": role,
                    "address": address,
                    "mailbox": mailbox,
                    "grp": grp,
                    "state": state,
                }
            )
            if leased:
                self.judged.add((draft.team_id, address))

    def _add_work(self, draft: PreparedEmail, *, leased: bool) -> None:
        scheduled, at = draft.outgoing.scheduled_at, draft.at
        due = _due(draft) or self.now
        owner, until, attempt, first = (self.owner, self.leased_until, 1, at) if leased else _FREE
        for grp, destination in enumerate(draft.groups):
            self.deliveries.append(
                {
                    "team_id": draft.team_id,
                    "email_id": draft.id,
                    "grp": grp,
                    "destination": destination,
                    "due_at": due,
                    "owner": owner,
                    "leased_until": until,
                    "attempt": attempt,
                    "released": scheduled is None,
                    "first_attempt_at": first,
                    "created_at": at,
                }
            )

    def _add_attachments(self, draft: PreparedEmail) -> None:
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
            self.fetches.append((draft.team_id, draft.id, self.now, _first_host(draft.attachments)))


def _add_seldom(row: Record, draft: PreparedEmail) -> None:
    """Add the columns that most emails leave empty: what is not in the row is NULL."""
    out = draft.outgoing
    for column, texts in (
        ("cc_list", out.cc_texts),
        ("bcc_list", out.bcc_texts),
        ("reply_to_list", out.reply_to_texts),
    ):
        if texts:
            row[column] = texts
    if out.tags:
        row["tags"] = [tag._asdict() for tag in out.tags]
    if out.headers:
        row["headers"] = _json(out.headers).decode()
    if draft.attachments:
        row["attachments"] = len(draft.attachments)
    if out.topic_id is not None:
        row["topic_id"] = out.topic_id
    if out.template_id is not None:
        row["template_id"] = out.template_id
    if out.inbox_id is not None:
        row["inbox_id"] = out.inbox_id
    if out.source is not None:
        row["source"] = out.source
    if out.link_places is not None:
        row["link_places"] = _json(out.link_places).decode()
    if not draft.is_immediate:
        row["scheduled_at"] = out.scheduled_at
        row["due_at"] = _due(draft)


def _due(draft: PreparedEmail) -> datetime | None:
    """Return when the work is due, if not at once."""
    return UNTIL_FETCHED if draft.waits_for_files else draft.outgoing.scheduled_at


def hand_over(draft: PreparedEmail, origins: Origins, deadline: float) -> list[Item]:
    """Return the items of an email whose rows were committed with this process as their owner."""
    email = loaded_email_of(draft)
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
                OpenRecipient(
                    position,
                    mailbox,
                    address,
                    origins.get((draft.team_id, address)),
                    copy=_copy(draft, position),
                )
                for position, _, address, mailbox, group in draft.targets
                if group == grp
            ],
            email=email,
            deadline=deadline,
            alone=len(draft.groups) == 1,
        )
        for grp, destination in enumerate(draft.groups)
    ]


def _copy(draft: PreparedEmail, position: int) -> PersonalCopy | None:
    if draft.tracking is None:
        return None
    return PersonalCopy(tracker=draft.tracking.recipient(draft.team_id, draft.id, position))


def loaded_email_of(draft: PreparedEmail) -> LoadedEmail:
    """Return the email as composing it needs it."""
    out = draft.outgoing
    return LoadedEmail(
        team_id=draft.team_id,
        team_number=draft.caller.team_number,
        email_id=draft.id,
        message_id=draft.message_id,
        sender=out.sender,
        to=out.to,
        cc=out.cc,
        reply_to=out.reply_to,
        subject=out.subject,
        date=draft.at,
        html=out.html,
        text=out.text,
        headers=out.headers,
        attachments=[
            AttachmentRef(
                id=a.id,
                filename=a.filename,
                content_type=a.content_type,
                cid=a.cid,
                data=a.data,
                blob=a.blob,
                size=a.size or 0,
            )
            for a in draft.attachments
        ],
        return_path=return_path_of(draft.domain, out.sender.domain),
        tls_required=bool(draft.domain and draft.domain.tls == "enforced"),
        signing=signing_of(draft.domain),
        dimensions=MetricDimensions(draft.domain.id if draft.domain else None, out.sender.domain, None),
    )


def return_path_of(domain: SenderDomain | None, name: str) -> str:
    """Return the domain of the envelope sender."""
    return f"{domain.return_path if domain else DEFAULT_RETURN_PATH}.{name}"


def signing_of(domain: SenderDomain | None) -> SigningDomain | None:
    return SigningDomain(*domain.signing) if domain else None


def _first_host(rows: Sequence[AttachmentRow]) -> str:
    """Return the host of the first file that is fetched; "" where its URL has none that can be called."""
    url = next((row.url for row in rows if row.url is not None), "")
    try:
        return parse_url(url).host
    except BadUrl:
        return ""
