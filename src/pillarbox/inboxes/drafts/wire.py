"""Shapes of drafts on the wire (inboxes.md sections 2 and 7); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import fields

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.emails.requests import attachment_input
from pillarbox.emails.requests.parse import MOST_SUBJECT
from pillarbox.inboxes.drafts import fields as draft_fields
from pillarbox.inboxes.drafts.fields import DraftContent
from pillarbox.inboxes.drafts.queries import DraftAttachmentFile, ListedDraft, StoredDraft
from pillarbox.inboxes.sending import answers
from pillarbox.inboxes.sending.header_rules import custom_headers
from pillarbox.inboxes.sending.recipients import MOST
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import Rules, read_by
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.mail.html.plain_text import text_of

SNIPPET: Final = 140

Texts = Annotated[Raw, shown_as(list[str])]
SomeTexts = Annotated[Raw, shown_as(list[str] | None)]
DraftType = Literal["standalone", "reply"]
Addresses = str | Annotated[list[str], Meta(max_length=MOST)]

NULL: Final = Raw(b"null")

T = TypeVar("T")


class HalfAReply(Invalid):
    def __init__(self) -> None:
        super().__init__("Use `thread_id` and `reply_to_email_id` together, or neither of them.")


class ReplyTo(NamedTuple):
    """The message that a draft answers."""

    thread_id: UUID
    email_id: UUID


class FileIn(Struct, kw_only=True):
    """`content` or `path` must be there; where both are, `content` counts. `path` is downloaded at once."""

    content: str | list[Annotated[int, Meta(ge=0, le=255)]] | None = None
    path: Annotated[str, Meta(max_length=attachment_input.MOST_URL)] | None = None
    filename: Annotated[str, Meta(max_length=attachment_input.MOST_NAME)] | None = None
    content_type: str | None = None


GivenFiles = Annotated[list[FileIn], Meta(max_length=attachment_input.MOST)]
GivenSubject = Annotated[str, Meta(max_length=MOST_SUBJECT)]

To = Annotated[Sequence[str] | None, shown_as(Addresses | None), read_by(draft_fields.to)]
Copied = Annotated[Sequence[str], shown_as(Addresses | None), read_by(draft_fields.copied)]
Subject = Annotated[str | None, shown_as(GivenSubject | None), read_by(draft_fields.subject)]
Body = Annotated[str | None, shown_as(str | None), read_by(draft_fields.body)]
Files = Annotated[Sequence[NewAttachment], shown_as(GivenFiles | None), read_by(draft_fields.attachments)]


class DraftMembers(Struct, kw_only=True):
    """The fields that a request gives of a draft; UNSET where it gives none."""

    rules: ClassVar[Rules] = {"text": answers.check_size}

    to: To | UnsetType = UNSET
    cc: Copied | UnsetType = UNSET
    bcc: Copied | UnsetType = UNSET
    subject: Subject | UnsetType = UNSET
    html: Body | UnsetType = UNSET
    text: Body | UnsetType = UNSET
    attachments: Files | UnsetType = UNSET

    def over(self, before: DraftContent) -> DraftContent:
        """Return the content with these fields. Html or text replaces both: what is not given is cleared."""
        html, text = before.html, before.text
        if self.html is not UNSET or self.text is not UNSET:
            html, text = _or(self.html, None), _or(self.text, None)
        return DraftContent(
            to=_or(self.to, before.to),
            cc=_or(self.cc, before.cc),
            bcc=_or(self.bcc, before.bcc),
            subject=_or(self.subject, before.subject),
            html=html,
            text=text,
        )


class DraftChange(DraftMembers, kw_only=True):
    """Null clears. Html or text replaces both."""

    min_properties: ClassVar[int] = 1

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        names = [field.encode_name for field in fields(DraftChange)]
        if not any(name in body for name in names):
            raise Invalid(f"Use at least one of {', '.join([f'`{name}`' for name in names])}.")


class NewDraft(DraftMembers, kw_only=True):
    """`thread_id` and `reply_to_email_id` come together."""

    min_properties: ClassVar[int] = 1

    thread_id: UUID | None = None
    reply_to_email_id: UUID | None = None

    def reply_to(self) -> ReplyTo | None:
        """Return the message that the draft answers."""
        if self.thread_id is None and self.reply_to_email_id is None:
            return None
        if self.thread_id is None or self.reply_to_email_id is None:
            raise HalfAReply
        return ReplyTo(self.thread_id, self.reply_to_email_id)


class SendDraft(Struct, kw_only=True):
    headers: Annotated[list[tuple[str, str]], shown_as(dict[str, str]), read_by(custom_headers)] | None = None


class DraftFile(Struct, kw_only=True):
    id: UUID
    filename: str
    content_type: str
    size: int


class Draft(Struct, kw_only=True):
    object: Literal["inbox_draft"]
    id: UUID
    type: DraftType
    to: SomeTexts
    cc: Texts
    bcc: Texts
    subject: str | None
    html: str | None
    text: str | None
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    email_id: UUID | None
    created_at: IsoTime
    updated_at: IsoTime
    attachments: list[DraftFile]


class DraftItem(Struct, kw_only=True):
    id: UUID
    type: DraftType
    to: SomeTexts
    cc: Texts
    bcc: Texts
    subject: str | None
    snippet: str | None
    thread_id: UUID | None
    reply_to_email_id: UUID | None
    updated_at: IsoTime
    attachments: list[DraftFile]


class DraftRef(Struct, kw_only=True):
    object: Literal["inbox_draft"]
    id: UUID


class DraftDeleted(Struct, kw_only=True):
    object: Literal["inbox_draft"]
    id: UUID
    deleted: Literal[True]


class DraftSent(Struct, kw_only=True):
    object: Literal["inbox_draft"]
    id: UUID
    thread_id: UUID
    email_id: UUID


class LinkedFile(Struct, kw_only=True):
    """An attachment with its link."""

    object: Literal["attachment"]
    id: UUID
    filename: str
    size: int
    content_type: str
    content_disposition: Literal["attachment"]
    content_id: None
    download_url: str
    expires_at: IsoTime


_files = msgspec.json.Decoder(list[DraftFile]).decode


def draft(row: StoredDraft) -> Draft:
    return Draft(
        object="inbox_draft",
        id=row.id,
        type=type_of(row.reply_to_email_id),
        to=_raw(row.to_list),
        cc=_raw(row.cc_list),
        bcc=_raw(row.bcc_list),
        subject=row.subject,
        html=row.html,
        text=row.text,
        thread_id=row.thread_id,
        reply_to_email_id=row.reply_to_email_id,
        email_id=row.email_id,
        created_at=iso_style(row.created_at),
        updated_at=iso_style(row.updated_at),
        attachments=files_of(row.attachments),
    )


def listed(row: ListedDraft) -> DraftItem:
    return DraftItem(
        id=row.id,
        type=type_of(row.reply_to_email_id),
        to=_raw(row.to_list),
        cc=_raw(row.cc_list),
        bcc=_raw(row.bcc_list),
        subject=row.subject,
        snippet=snippet(row.text, row.html),
        thread_id=row.thread_id,
        reply_to_email_id=row.reply_to_email_id,
        updated_at=iso_style(row.updated_at),
        attachments=files_of(row.attachments),
    )


def linked(file: DraftAttachmentFile, url: str, expires_at: datetime) -> LinkedFile:
    return LinkedFile(
        object="attachment",
        id=file.id,
        filename=file.filename,
        size=file.size,
        content_type=file.content_type,
        content_disposition="attachment",
        content_id=None,
        download_url=url,
        expires_at=iso_style(expires_at),
    )


def type_of(reply_to_email_id: UUID | None) -> DraftType:
    return "standalone" if reply_to_email_id is None else "reply"


def files_of(text: Any) -> list[DraftFile]:
    """Return the attachments from the JSON that the database makes."""
    return [] if text is None else _files(text)


def snippet(text: str | None, html: str | None) -> str | None:
    """Return the beginning of a draft on one line; None where it says nothing."""
    said = text if text is not None and text.strip() else text_of(html or "")
    return " ".join(said.split())[:SNIPPET].rstrip() or None


def _raw(text: str | None) -> Raw:
    return NULL if text is None else Raw(text.encode())


def _or(value: T | UnsetType, otherwise: T) -> T:
    return otherwise if isinstance(value, UnsetType) else value
