"""Shapes of received mail on the wire (receiving.md 1, 2, 4 and 7); field order is the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pillarbox.inboxes.received_mail import EmailVerdicts
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.mail.authentication.mail_verdicts import (
    DkimVerdict,
    DmarcVerdict,
    MailVerdicts,
    SpamVerdict,
    SpfVerdict,
    bare_verdicts,
)
from pillarbox.receiving.queries import (
    AttachmentPart,
    EventPart,
    ReceivedEmailListRow,
    ReceivedEmailOfEvent,
    ReceivedEmailRow,
    VerdictsRow,
)
from pillarbox.receiving.reading import HtmlFormat
from pillarbox.receiving.rows import ParsedColumns

NONE = Raw(b"[]")

Texts = Annotated[Raw, shown_as(list[str])]


class Embedded(Struct, kw_only=True):
    """An attachment as the email shows it; the disposition is as in the part."""

    id: UUID
    filename: str | None
    content_type: str
    content_disposition: str | None
    content_id: str | None
    size: int


class RawLink(Struct, kw_only=True):
    download_url: str
    expires_at: IsoTime


class ReceivingListItem(Struct, kw_only=True):
    id: UUID
    to: Texts
    from_: str = msgspec.field(name="from")
    created_at: IsoTime
    subject: str
    bcc: Texts
    cc: Texts
    reply_to: Texts
    received_for: Texts
    message_id: str
    attachments: list[Embedded]


class ReceivingList(Struct, kw_only=True):
    """A page of emails. `next` is there where filters were given and more may fit: the value for `after`."""

    object: Literal["list"] = "list"
    has_more: bool
    data: list[ReceivingListItem]
    next: UUID | UnsetType = UNSET


class ReceivingEmail(Struct, kw_only=True):
    object: Literal["email"]
    id: UUID
    to: Texts
    from_: str = msgspec.field(name="from")
    created_at: IsoTime
    subject: str
    html: str | None
    html_format: HtmlFormat
    text: str | None
    headers: dict[str, str]
    bcc: Texts
    cc: Texts
    reply_to: Texts
    received_for: Texts
    message_id: str
    raw: RawLink | None
    attachments: list[Embedded]


class ReceivingAttachmentItem(Struct, kw_only=True):
    """An attachment with its link; what it lacks is left out."""

    id: UUID
    filename: str | UnsetType = UNSET
    size: int
    content_type: str
    content_disposition: Literal["inline", "attachment"]
    content_id: str | UnsetType = UNSET
    download_url: str
    expires_at: IsoTime


class ReceivingAttachment(ReceivingAttachmentItem, kw_only=True, tag_field="object", tag="attachment"):
    """One attachment by itself."""


A = TypeVar("A", bound=ReceivingAttachmentItem)


class EventAttachment(Struct, kw_only=True):
    id: UUID
    filename: str | None
    content_type: str
    content_disposition: str | None
    content_id: str | None


class EventData(Struct, kw_only=True):
    """The data of `email.received`; of mail that retention has removed, only its id."""

    email_id: UUID
    created_at: IsoTime | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    to: Texts | UnsetType = UNSET
    bcc: Texts | UnsetType = UNSET
    cc: Texts | UnsetType = UNSET
    received_for: Texts | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    attachments: list[EventAttachment] | UnsetType = UNSET


class JudgedData(Struct, kw_only=True):
    """The data of `email.judged`; of mail that retention has removed, only its id."""

    email_id: UUID
    spf: SpfVerdict | UnsetType = UNSET
    dkim: list[DkimVerdict] | UnsetType = UNSET
    dmarc: DmarcVerdict | UnsetType = UNSET
    spam: SpamVerdict | UnsetType = UNSET
    automatic: bool | UnsetType | None = UNSET


_verdicts = msgspec.json.Decoder(MailVerdicts).decode
_embedded = msgspec.json.Decoder(list[Embedded]).decode


def listed(row: ReceivedEmailListRow) -> ReceivingListItem:
    return ReceivingListItem(
        id=row.id,
        to=_raw(row.to_list),
        from_=row.sender,
        created_at=iso_style(row.created_at),
        subject=row.subject,
        bcc=_raw(row.bcc_list),
        cc=_raw(row.cc_list),
        reply_to=_raw(row.reply_to_list),
        received_for=_raw(row.received_for),
        message_id=row.message_id,
        attachments=[] if row.attachments is None else _embedded(row.attachments),
    )


def email(
    row: ReceivedEmailRow,
    parsed: ParsedColumns,
    html: str | None,
    html_format: HtmlFormat,
    raw: tuple[str, datetime] | None,
    parts: list[AttachmentPart],
) -> ReceivingEmail:
    return ReceivingEmail(
        object="email",
        id=row.id,
        to=_raw(row.to_list),
        from_=row.sender,
        created_at=iso_style(row.created_at),
        subject=row.subject,
        html=html,
        html_format=html_format,
        text=parsed.text,
        headers=parsed.headers,
        bcc=_raw(row.bcc_list),
        cc=_raw(row.cc_list),
        reply_to=_raw(row.reply_to_list),
        received_for=_raw(row.received_for),
        message_id=row.message_id,
        raw=None if raw is None else RawLink(download_url=raw[0], expires_at=iso_style(raw[1])),
        attachments=[
            Embedded(
                id=p.id,
                filename=p.filename,
                content_type=p.content_type,
                content_disposition=p.disposition,
                content_id=p.content_id,
                size=p.size,
            )
            for p in parts
        ],
    )


def verdicts(row: VerdictsRow) -> EmailVerdicts:
    stored = _stored_verdicts(row)
    return EmailVerdicts(
        object="email_verdicts",
        id=row.id,
        spf=stored.spf,
        dkim=stored.dkim,
        dmarc=stored.dmarc,
        spam=stored.spam,
        automatic=stored.automatic,
    )


def judged_data(row: VerdictsRow) -> JudgedData:
    stored = _stored_verdicts(row)
    return JudgedData(
        email_id=row.id,
        spf=stored.spf,
        dkim=stored.dkim,
        dmarc=stored.dmarc,
        spam=stored.spam,
        automatic=stored.automatic,
    )


def _stored_verdicts(row: VerdictsRow) -> MailVerdicts:
    if row.verdicts is None:
        return bare_verdicts(row.spf, row.dkim, row.dmarc, row.spam_reason)
    return _verdicts(row.verdicts)


def attachment(kind: type[A], part: AttachmentPart, url: str, expires_at: datetime) -> A:
    """Return the attachment in the shape of a list's item, or of a single one (4.1)."""
    return kind(
        id=part.id,
        filename=UNSET if part.filename is None else part.filename,
        size=part.size,
        content_type=part.content_type,
        content_disposition="inline" if part.inline else "attachment",
        content_id=UNSET if part.content_id is None else part.content_id,
        download_url=url,
        expires_at=iso_style(expires_at),
    )


def email_data(row: ReceivedEmailOfEvent, parts: list[EventPart]) -> EventData:
    return EventData(
        email_id=row.id,
        created_at=iso_style(row.created_at),
        from_=row.sender,
        to=_raw(row.to_list),
        bcc=_raw(row.bcc_list),
        cc=_raw(row.cc_list),
        received_for=_raw(row.received_for),
        message_id=row.message_id,
        subject=row.subject,
        attachments=[
            EventAttachment(
                id=p.id,
                filename=p.filename,
                content_type=p.content_type,
                content_disposition=p.disposition,
                content_id=p.content_id,
            )
            for p in parts
        ],
    )


def _raw(text: str | None) -> Raw:
    return NONE if text is None else Raw(text.encode())
