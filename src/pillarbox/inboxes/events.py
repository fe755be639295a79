"""The events of inboxes (webhooks.md 7.5).

Each function makes the reference to one event; whoever makes the change hands it to the publisher in the
same transaction. Its body is made when the event is dispatched (`event_data`): then it shows the inbox, the
thread, the message and the draft as they are, as far as they still exist.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec
from msgspec import Struct

from pillarbox.inboxes.folders import ThreadFolder
from pillarbox.webhooks.publish import Reference

Source = Literal["api", "dashboard", "agent", "system"]
"""The maker of a change."""

API: Final = "api"
SYSTEM: Final = "system"

INBOX_CREATED: Final = "inbox.created"
INBOX_UPDATED: Final = "inbox.updated"
INBOX_DELETED: Final = "inbox.deleted"
THREAD_CREATED: Final = "inbox.thread.created"
EMAIL_RECEIVED: Final = "inbox.email.received"
EMAIL_SENT: Final = "inbox.email.sent"
FOLDER_UPDATED: Final = "inbox.thread.folder.updated"
ASSIGNED: Final = "inbox.thread.assigned"
UNASSIGNED: Final = "inbox.thread.unassigned"
LABELS_UPDATED: Final = "inbox.thread.labels.updated"
DRAFT_CREATED: Final = "inbox.draft.created"
DRAFT_UPDATED: Final = "inbox.draft.updated"
DRAFT_DELETED: Final = "inbox.draft.deleted"
DRAFT_SENT: Final = "inbox.draft.sent"


class ThreadLabel(Struct, frozen=True, kw_only=True):
    """A label as a thread shows it."""

    id: UUID
    name: str
    color: str


class LabelOfInbox(Protocol):
    """A label as events show it."""

    @property
    def id(self) -> UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def color(self) -> str: ...


class InboxOfEvent(NamedTuple):
    """The inbox that an event is about, and who made the change."""

    team_id: UUID
    inbox_id: UUID
    source: Source = API


class ThreadRef(NamedTuple):
    """The thread that an event is about, and who made the change."""

    team_id: UUID
    inbox_id: UUID
    thread_id: UUID
    source: Source = API


class DraftOfEvent(NamedTuple):
    """The draft that an event is about; `thread_id` is that of a reply, or of a draft that was sent."""

    team_id: UUID
    inbox_id: UUID
    draft_id: UUID
    thread_id: UUID | None = None
    source: Source = API


class InboxEventDetail(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of an event that is stored, as JSON: what it is about, and what changed. Its dispatch reads
    the rest of the body."""

    source: Source = API
    inbox_id: UUID
    thread_id: UUID | None = None
    email_id: UUID | None = None
    draft_id: UUID | None = None
    from_: ThreadFolder | None = msgspec.field(name="from", default=None)
    to: ThreadFolder | None = None
    assignee_email: str | None = None
    assigned_by_email: str | None = None
    previous_assignee_email: str | None = None
    added: tuple[ThreadLabel, ...] = ()
    removed: tuple[ThreadLabel, ...] = ()


_encode = msgspec.json.Encoder().encode


def created(ref: InboxOfEvent, instant: datetime) -> Reference:
    """Return the event that the inbox was created."""
    return _of_inbox(INBOX_CREATED, ref, instant)


def updated(ref: InboxOfEvent, instant: datetime) -> Reference:
    """Return the event that the inbox has another name, or another name for recipients."""
    return _of_inbox(INBOX_UPDATED, ref, instant)


def deleted(ref: InboxOfEvent, instant: datetime) -> Reference:
    """Return the event that the inbox is gone, with all that it had."""
    return _of_inbox(INBOX_DELETED, ref, instant)


MessageEvent = Callable[[UUID, datetime, UUID, UUID, UUID], Reference]
"""Makes the reference to an event of a message: team, when, inbox, thread, message."""


def thread_created(
    team_id: UUID, instant: datetime, inbox_id: UUID, thread_id: UUID, email_id: UUID
) -> Reference:
    """Return the event that the first message of a thread arrived or was sent."""
    return _of_message(THREAD_CREATED, team_id, instant, inbox_id, thread_id, email_id)


def email_received(
    team_id: UUID, instant: datetime, inbox_id: UUID, thread_id: UUID, email_id: UUID
) -> Reference:
    """Return the event that a message arrived."""
    return _of_message(EMAIL_RECEIVED, team_id, instant, inbox_id, thread_id, email_id)


def email_sent(
    team_id: UUID, instant: datetime, inbox_id: UUID, thread_id: UUID, email_id: UUID
) -> Reference:
    """Return the event that a message was accepted for sending."""
    return _of_message(EMAIL_SENT, team_id, instant, inbox_id, thread_id, email_id)


def folder_updated(ref: ThreadRef, instant: datetime, before: ThreadFolder, after: ThreadFolder) -> Reference:
    """Return the event that the thread was moved."""
    return _of_thread(FOLDER_UPDATED, ref, instant, _thread_detail(ref, from_=before, to=after))


def assigned(
    ref: ThreadRef, instant: datetime, assignee: str | None, previous: str | None, by: str | None = None
) -> Reference:
    """Return the event that the thread was assigned to somebody, or with None to nobody; `by` is the person
    who did it, if it was one."""
    if assignee is None:
        detail = _thread_detail(ref, previous_assignee_email=previous)
        return _of_thread(UNASSIGNED, ref, instant, detail)
    detail = _thread_detail(
        ref, assignee_email=assignee, assigned_by_email=by, previous_assignee_email=previous
    )
    return _of_thread(ASSIGNED, ref, instant, detail)


def labels_updated(
    ref: ThreadRef,
    instant: datetime,
    *,
    added: LabelOfInbox | None = None,
    removed: LabelOfInbox | None = None,
) -> Reference:
    """Return the event that one label was put on the thread, or taken off it."""
    detail = _thread_detail(ref, added=_shown(added), removed=_shown(removed))
    return _of_thread(LABELS_UPDATED, ref, instant, detail)


def draft_created(ref: DraftOfEvent, instant: datetime) -> Reference:
    return _of_draft(DRAFT_CREATED, ref, instant)


def draft_updated(ref: DraftOfEvent, instant: datetime) -> Reference:
    return _of_draft(DRAFT_UPDATED, ref, instant)


def draft_deleted(ref: DraftOfEvent, instant: datetime) -> Reference:
    return _of_draft(DRAFT_DELETED, ref, instant)


def draft_sent(ref: DraftOfEvent, instant: datetime, email_id: UUID) -> Reference:
    """Return the event that the draft was accepted for sending as this email, in the thread of `ref`."""
    return _of_draft(DRAFT_SENT, ref, instant, email_id)


def _of_inbox(kind: str, ref: InboxOfEvent, instant: datetime) -> Reference:
    detail = InboxEventDetail(source=ref.source, inbox_id=ref.inbox_id)
    return Reference(
        team_id=ref.team_id,
        kind=kind,
        at=instant,
        subject_id=ref.inbox_id,
        position=None,
        detail=_stored(detail),
    )


def _of_message(
    kind: str, team_id: UUID, instant: datetime, inbox_id: UUID, thread_id: UUID, email_id: UUID
) -> Reference:
    detail = InboxEventDetail(source=SYSTEM, inbox_id=inbox_id, thread_id=thread_id, email_id=email_id)
    return Reference(
        team_id=team_id, kind=kind, at=instant, subject_id=email_id, position=None, detail=_stored(detail)
    )


def _thread_detail(
    ref: ThreadRef,
    *,
    from_: ThreadFolder | None = None,
    to: ThreadFolder | None = None,
    assignee_email: str | None = None,
    assigned_by_email: str | None = None,
    previous_assignee_email: str | None = None,
    added: tuple[ThreadLabel, ...] = (),
    removed: tuple[ThreadLabel, ...] = (),
) -> InboxEventDetail:
    return InboxEventDetail(
        source=ref.source,
        inbox_id=ref.inbox_id,
        thread_id=ref.thread_id,
        from_=from_,
        to=to,
        assignee_email=assignee_email,
        assigned_by_email=assigned_by_email,
        previous_assignee_email=previous_assignee_email,
        added=added,
        removed=removed,
    )


def _of_thread(kind: str, ref: ThreadRef, instant: datetime, detail: InboxEventDetail) -> Reference:
    return Reference(
        team_id=ref.team_id,
        kind=kind,
        at=instant,
        subject_id=ref.thread_id,
        position=None,
        detail=_stored(detail),
    )


def _of_draft(kind: str, ref: DraftOfEvent, instant: datetime, email_id: UUID | None = None) -> Reference:
    detail = InboxEventDetail(
        source=ref.source,
        inbox_id=ref.inbox_id,
        thread_id=ref.thread_id,
        email_id=email_id,
        draft_id=ref.draft_id,
    )
    return Reference(
        team_id=ref.team_id,
        kind=kind,
        at=instant,
        subject_id=ref.draft_id,
        position=None,
        detail=_stored(detail),
    )


def _shown(label: LabelOfInbox | None) -> tuple[ThreadLabel, ...]:
    return () if label is None else (ThreadLabel(id=label.id, name=label.name, color=label.color),)


def _stored(detail: InboxEventDetail) -> str:
    return _encode(detail).decode()
