"""The data of the events of inboxes as webhooks carry it (webhooks.md 7.5), in the contract's order.

What an event is about is shown as it is when the event is dispatched, and left out where it does not exist
any more. There is no html and no text in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from pillarbox.inboxes import event_queries, events
from pillarbox.inboxes.event_queries import EventDraft, EventFile, EventMessage, EventThread
from pillarbox.inboxes.events import InboxEventDetail, Source, ThreadLabel
from pillarbox.inboxes.inbox import queries as inbox_queries
from pillarbox.inboxes.inbox.queries import InboxRow
from pillarbox.inboxes.inbox.wire import FullInbox, full
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.webhooks.bodies import EventSubject

NONE: Final = Raw(b"[]")
NULL: Final = Raw(b"null")

FolderName = Literal["inbox", "archive", "spam", "sent", "trash"]
Texts = Annotated[Raw, shown_as(list[str])]


class ThreadData(Struct, kw_only=True):
    object: Annotated[str, shown_as(Literal["inbox_thread"])]
    id: UUID
    subject: str | None
    folder: Annotated[str, shown_as(FolderName)]
    labels: Annotated[Raw, shown_as(list[ThreadLabel])]
    read: bool


class FileData(Struct, kw_only=True):
    id: UUID
    filename: str | None
    size: int


class MessageData(Struct, kw_only=True):
    id: UUID
    direction: Annotated[str, shown_as(Literal["inbound", "outbound"])]
    from_: str = msgspec.field(name="from")
    to: Texts
    cc: Texts
    bcc: Texts
    reply_to: Texts
    subject: str | None
    message_id: str | None
    attachments: list[FileData]
    read: bool
    received_at: IsoTime


class DraftFileData(Struct, kw_only=True):
    """As the JSON of the database has it."""

    id: UUID
    filename: str
    content_type: str
    size: int


class DraftData(Struct, kw_only=True):
    object: Annotated[str, shown_as(Literal["inbox_draft"])]
    id: UUID
    type: Annotated[str, shown_as(Literal["standalone", "reply"])]
    to: Annotated[Raw, shown_as(list[str] | None)]
    cc: Texts
    bcc: Texts
    subject: str | None
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    email_id: UUID | None
    created_at: IsoTime
    updated_at: IsoTime
    attachments: Annotated[Raw, shown_as(list[DraftFileData])]


class InboxEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    inbox: FullInbox | UnsetType = UNSET


class InboxGoneEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID


class MessageEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    thread_id: UUID
    email_id: UUID
    thread: ThreadData | UnsetType = UNSET
    email: MessageData | UnsetType = UNSET


class FolderEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    thread_id: UUID
    from_: FolderName = msgspec.field(name="from")
    to: FolderName
    thread: ThreadData | UnsetType = UNSET


class AssignedEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    thread_id: UUID
    assignee_email: str
    assigned_by_email: str | None
    previous_assignee_email: str | None
    thread: ThreadData | UnsetType = UNSET


class UnassignedEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    thread_id: UUID
    previous_assignee_email: str
    thread: ThreadData | UnsetType = UNSET


class LabelsEvent(Struct, kw_only=True):
    """One label, in one of the two lists."""

    source: Source
    inbox_id: UUID
    thread_id: UUID
    added: Sequence[ThreadLabel]
    removed: Sequence[ThreadLabel]
    thread: ThreadData | UnsetType = UNSET


class DraftEvent(Struct, kw_only=True):
    """Only a reply has a thread; a draft that was deleted is not shown."""

    source: Source
    inbox_id: UUID
    thread_id: UUID | UnsetType = UNSET
    draft_id: UUID
    thread: ThreadData | UnsetType = UNSET
    draft: DraftData | UnsetType = UNSET


class DraftSentEvent(Struct, kw_only=True):
    source: Source
    inbox_id: UUID
    thread_id: UUID
    email_id: UUID
    draft_id: UUID
    thread: ThreadData | UnsetType = UNSET
    email: MessageData | UnsetType = UNSET
    draft: DraftData | UnsetType = UNSET


SHAPES: Final[Mapping[str, type]] = {
    events.INBOX_CREATED: InboxEvent,
    events.INBOX_UPDATED: InboxEvent,
    events.INBOX_DELETED: InboxGoneEvent,
    events.THREAD_CREATED: MessageEvent,
    events.EMAIL_RECEIVED: MessageEvent,
    events.EMAIL_SENT: MessageEvent,
    events.FOLDER_UPDATED: FolderEvent,
    events.ASSIGNED: AssignedEvent,
    events.UNASSIGNED: UnassignedEvent,
    events.LABELS_UPDATED: LabelsEvent,
    events.DRAFT_CREATED: DraftEvent,
    events.DRAFT_UPDATED: DraftEvent,
    events.DRAFT_DELETED: DraftEvent,
    events.DRAFT_SENT: DraftSentEvent,
}
"""The type of the data, by the kind of event."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(InboxEventDetail).decode


class _Objects(NamedTuple):
    """The rows that the events of one call show, by id."""

    inboxes: Mapping[UUID, InboxRow]
    threads: Mapping[UUID, EventThread]
    messages: Mapping[tuple[UUID, UUID], EventMessage]
    files: Mapping[UUID, Sequence[EventFile]]
    drafts: Mapping[UUID, EventDraft]

    def inbox(self, detail: InboxEventDetail) -> FullInbox | UnsetType:
        found = self.inboxes.get(detail.inbox_id)
        return UNSET if found is None else full(found)

    def thread(self, detail: InboxEventDetail) -> ThreadData | UnsetType:
        found = None if detail.thread_id is None else self.threads.get(detail.thread_id)
        return UNSET if found is None else _thread(found)

    def email(self, detail: InboxEventDetail) -> MessageData | UnsetType:
        found = None if detail.email_id is None else self.messages.get((detail.inbox_id, detail.email_id))
        return UNSET if found is None else _message(found, self.files.get(found.id, ()))

    def draft(self, detail: InboxEventDetail) -> DraftData | UnsetType:
        found = None if detail.draft_id is None else self.drafts.get(detail.draft_id)
        return UNSET if found is None else _draft(found)


async def event_data(conn: Connection, team_id: UUID, subjects: Sequence[EventSubject]) -> list[bytes]:
    """Return the data of these events as JSON."""
    details = [_decode(subject.detail or "{}") for subject in subjects]
    objects = await _objects(TeamDb(conn, team_id), subjects, details)
    return [
        _encode(_data(subject.kind, detail, objects))
        for subject, detail in zip(subjects, details, strict=True)
    ]


async def _objects(
    db: TeamDb, subjects: Sequence[EventSubject], details: Sequence[InboxEventDetail]
) -> _Objects:
    of_inbox = {one.inbox_id for one, subject in zip(details, subjects, strict=True) if _shows_inbox(subject)}
    messages = await event_queries.messages(
        db, {(one.inbox_id, one.email_id) for one in details if one.email_id is not None}
    )
    with_files = {one.id for one in messages.values() if one.attachments}
    return _Objects(
        inboxes=await inbox_queries.some(db, list(of_inbox)) if of_inbox else {},
        threads=await event_queries.threads(
            db, {one.thread_id for one in details if one.thread_id is not None}
        ),
        messages=messages,
        files=await event_queries.files(db, list(with_files)),
        drafts=await event_queries.drafts(db, {one.draft_id for one in details if one.draft_id is not None}),
    )


def _shows_inbox(subject: EventSubject) -> bool:
    return SHAPES[subject.kind] is InboxEvent


def _data(kind: str, detail: InboxEventDetail, objects: _Objects) -> Struct:
    """Return the fields of the shape of this kind, each from the event itself or from what it shows."""
    shape = SHAPES[kind]
    found: dict[str, Any] = {}
    for field in fields(shape):
        name = field.name
        found[name] = getattr(objects, name)(detail) if name in _SHOWN else getattr(detail, name)
    if shape is DraftEvent and detail.thread_id is None:
        found["thread_id"] = UNSET
    if kind == events.DRAFT_DELETED:
        found["draft"] = UNSET
    made: Struct = shape(**found)
    return made


_SHOWN: Final = frozenset({"inbox", "thread", "email", "draft"})


def _thread(row: EventThread) -> ThreadData:
    labels = NONE if row.labels is None else Raw(row.labels.encode())
    return ThreadData(
        object="inbox_thread",
        id=row.id,
        subject=row.subject,
        folder=row.folder,
        labels=labels,
        read=row.unread == 0,
    )


def _message(row: EventMessage, files: Sequence[EventFile]) -> MessageData:
    return MessageData(
        id=row.id,
        direction=row.direction,
        from_=row.sender,
        to=_raw(row.to_list),
        cc=_raw(row.cc_list),
        bcc=_raw(row.bcc_list),
        reply_to=_raw(row.reply_to_list),
        subject=row.subject,
        message_id=row.message_id,
        attachments=[FileData(id=file.id, filename=file.filename, size=file.size) for file in files],
        read=row.is_read,
        received_at=iso_style(row.received_at),
    )


def _draft(row: EventDraft) -> DraftData:
    return DraftData(
        object="inbox_draft",
        id=row.id,
        type="standalone" if row.reply_to_email_id is None else "reply",
        to=_raw(row.to_list, NULL),
        cc=_raw(row.cc_list),
        bcc=_raw(row.bcc_list),
        subject=row.subject,
        thread_id=row.thread_id,
        reply_to_email_id=row.reply_to_email_id,
        email_id=row.email_id,
        created_at=iso_style(row.created_at),
        updated_at=iso_style(row.updated_at),
        attachments=_raw(row.attachments),
    )


def _raw(text: str | None, without: Raw = NONE) -> Raw:
    """Return the JSON that a column holds; `without` where it is null."""
    return without if text is None else Raw(text.encode())
