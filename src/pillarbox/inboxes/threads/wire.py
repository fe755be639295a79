"""Shapes of threads on the wire (inboxes.md section 2); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from pillarbox.inboxes.events import ThreadLabel
from pillarbox.inboxes.threads.list_filter import FolderName
from pillarbox.inboxes.threads.list_queries import ListedThread
from pillarbox.inboxes.threads.queries import StoredThread
from pillarbox.inboxes.threads.thread_labels import labels_of
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import IsoTime, iso_style

NONE = Raw(b"[]")

Texts = Annotated[Raw, shown_as(list[str])]

MOST_SET = 100
MOST_ADDED = 10


class ThreadItem(Struct, kw_only=True):
    id: UUID
    subject: str | None
    from_: str = msgspec.field(name="from")
    to: Texts
    cc: Texts
    bcc: Texts
    labels: list[ThreadLabel]
    message_count: int
    has_attachment: bool
    has_draft: bool
    read: bool
    received_at: IsoTime
    email_count: int
    folder: FolderName


class ThreadList(Struct, kw_only=True):
    """One page of threads. `change` is there where the request may wait (`wait`)."""

    object: Literal["list"] = "list"
    has_more: bool
    data: list[ThreadItem]
    change: str | UnsetType = UNSET


class Thread(Struct, kw_only=True):
    """The summary of a thread."""

    object: Literal["inbox_thread"]
    id: UUID
    subject: str | None
    folder: FolderName
    labels: list[ThreadLabel]
    read: bool


class ThreadDeleted(Struct, kw_only=True):
    object: Literal["inbox_thread"]
    id: UUID
    deleted: bool


class ThreadAssignee(Struct, kw_only=True):
    object: Literal["inbox_thread"]
    id: UUID
    assignee_email: str | None


class ThreadLabels(Struct, kw_only=True):
    """All labels of a thread."""

    object: Literal["list"]
    data: list[ThreadLabel]


class ThreadChange(Struct, kw_only=True):
    """At least one of them; null is refused."""

    min_properties: ClassVar[int] = 1

    read: bool | UnsetType = UNSET
    folder: Literal["inbox", "archive", "spam", "trash"] | UnsetType = UNSET
    label_id: UUID | UnsetType = UNSET


class AddedLabels(Struct, kw_only=True):
    labels: Annotated[list[str], Meta(min_length=1, max_length=MOST_ADDED)]


class SetLabels(Struct, kw_only=True):
    labels: Annotated[list[str], Meta(max_length=MOST_SET)]


class Assigned(Struct, kw_only=True):
    email: str


def item(row: ListedThread) -> ThreadItem:
    return ThreadItem(
        id=row.id,
        subject=row.subject,
        from_=row.sender,
        to=raw(row.to_list),
        cc=raw(row.cc_list),
        bcc=raw(row.bcc_list),
        labels=labels_of(row.labels),
        message_count=row.messages,
        has_attachment=row.has_attachment,
        has_draft=row.drafts > 0,
        read=row.unread == 0,
        received_at=iso_style(row.received_at),
        email_count=row.messages,
        folder=row.folder,
    )


def thread(row: StoredThread) -> Thread:
    return Thread(
        object="inbox_thread",
        id=row.id,
        subject=row.subject,
        folder=row.folder,
        labels=labels_of(row.labels),
        read=row.unread == 0,
    )


def all_labels(row: StoredThread) -> ThreadLabels:
    return ThreadLabels(object="list", data=labels_of(row.labels))


def raw(text: str | None) -> Raw:
    """Return a list that the database keeps as JSON."""
    return NONE if text is None else Raw(text.encode())
