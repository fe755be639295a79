"""The data of `email.*` events in webhooks (webhooks.md section 7.1), in the contract's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pillarbox.emails import queries
from pillarbox.emails.queries import EmailOfEvent
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.instants import IsoTime, iso_style
from pillarbox.mail.reports.replies import BounceType, SubType
from pillarbox.timeline.rules import EventDetail
from pillarbox.webhooks.bodies import EventSubject
from pillarbox.webhooks.kinds import KINDS

BOUNCED: Final = {
    "Permanent": "The recipient's mail server permanently rejected the message.",
    "Transient": "The recipient's mail server could not take the message in the time there was.",
    "Undetermined": "The recipient's mail server rejected the message.",
}
SUPPRESSED: Final = {
    "previous_bounce": "The recipient is on the suppression list after an earlier bounce.",
    "previous_complaint": "The recipient is on the suppression list after an earlier complaint.",
    "manual": "The recipient was put on the suppression list.",
}
ON_THE_LIST: Final = "OnAccountSuppressionList"
UNKNOWN: Final = "internal_error"
UNDETERMINED: Final = "Undetermined"


class HeaderData(Struct, frozen=True, kw_only=True):
    name: str
    value: str


class BounceData(Struct, frozen=True, kw_only=True):
    diagnostic_code: list[str] = msgspec.field(name="diagnosticCode")
    message: str
    sub_type: Annotated[str, shown_as(SubType)] = msgspec.field(name="subType")
    type: Annotated[str, shown_as(BounceType)]


class ClickData(Struct, frozen=True, rename="camel", kw_only=True):
    ip_address: str
    link: str
    timestamp: IsoTime
    user_agent: str


class FailedData(Struct, frozen=True, kw_only=True):
    reason: str


class SuppressedData(Struct, frozen=True, kw_only=True):
    diagnostic_code: list[str] = msgspec.field(name="diagnosticCode")
    message: str
    reason: str
    type: str


class EmailData(Struct, frozen=True, kw_only=True):
    """What is not known, or not there, is left out; nothing is null."""

    broadcast_id: UUID | UnsetType = UNSET
    created_at: IsoTime | UnsetType = UNSET
    email_id: UUID
    message_id: str | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    to: list[str] | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    template_id: UUID | UnsetType = UNSET
    tags: dict[str, str] | UnsetType = UNSET
    headers: list[HeaderData] | UnsetType = UNSET
    bounce: BounceData | UnsetType = UNSET
    click: ClickData | UnsetType = UNSET
    failed: FailedData | UnsetType = UNSET
    suppressed: SuppressedData | UnsetType = UNSET


OF_RECEIVED: Final = frozenset(("email.received", "email.judged"))
"""Kinds whose data another slice makes."""
SHAPES: Final = {kind: EmailData for kind in KINDS if kind.startswith("email.") and kind not in OF_RECEIVED}
"""The type of the data, by the kind of event."""

_encode = msgspec.json.Encoder().encode
_detail = msgspec.json.Decoder(EventDetail).decode


async def event_data(conn: Connection, team_id: UUID, subjects: Sequence[EventSubject]) -> list[bytes]:
    """Return the data of these events as JSON; of an email that retention has removed, only what the
    event says."""
    emails = await queries.event_emails(TeamDb(conn, team_id), {subject.id for subject in subjects})
    return [_encode(_data(subject, emails.get(subject.id))) for subject in subjects]


def _data(subject: EventSubject, email: EmailOfEvent | None) -> EmailData:
    detail = EventDetail() if subject.detail is None else _detail(subject.detail)
    shown = _DETAILS[subject.kind](detail) if subject.kind in _DETAILS else {}
    if email is None:
        return EmailData(email_id=subject.id, **shown)
    return EmailData(
        broadcast_id=email.broadcast_id or UNSET,
        created_at=iso_style(email.created_at),
        email_id=subject.id,
        message_id=email.message_id,
        from_=email.sender,
        to=email.mailboxes if subject.position is None else [email.mailboxes[subject.position]],
        subject=email.subject,
        template_id=email.template_id or UNSET,
        tags=_tags(email.tags),
        headers=_headers(email.headers),
        **shown,
    )


def _tags(text: str | None) -> dict[str, str] | UnsetType:
    return UNSET if text is None else {tag["name"]: tag["value"] for tag in msgspec.json.decode(text)}


def _headers(text: str | None) -> list[HeaderData] | UnsetType:
    return (
        UNSET
        if text is None
        else [HeaderData(name=name, value=value) for name, value in msgspec.json.decode(text)]
    )


def _bounce(detail: EventDetail) -> dict[str, Any]:
    kind = detail.bounce.type if detail.bounce else "Undetermined"
    sub_type = detail.bounce.sub_type if detail.bounce else "Undetermined"
    return {
        "bounce": BounceData(
            diagnostic_code=_diagnosis(detail),
            message=BOUNCED.get(kind, BOUNCED["Undetermined"]),
            sub_type=sub_type,
            type=kind,
        )
    }


def _click(detail: EventDetail) -> dict[str, Any]:
    click = detail.click
    if click is None:
        return {}
    return {
        "click": ClickData(
            ip_address=click.ip_address,
            link=click.link,
            timestamp=iso_style(click.timestamp),
            user_agent=click.user_agent,
        )
    }


def _failed(detail: EventDetail) -> dict[str, Any]:
    return {"failed": FailedData(reason=detail.reason or UNKNOWN)}


def _suppressed(detail: EventDetail) -> dict[str, Any]:
    reason = detail.suppressed or "manual"
    message = SUPPRESSED.get(reason, SUPPRESSED["manual"])
    return {
        "suppressed": SuppressedData(
            diagnostic_code=_diagnosis(detail), message=message, reason=reason, type=ON_THE_LIST
        )
    }


def _diagnosis(detail: EventDetail) -> list[str]:
    """Return the server's reply in the form of a delivery status notification (RFC 3464, 2.3.6)."""
    return [f"smtp; {detail.reply}"] if detail.reply else []


_DETAILS = {
    "email.bounced": _bounce,
    "email.clicked": _click,
    "email.failed": _failed,
    "email.suppressed": _suppressed,
}
