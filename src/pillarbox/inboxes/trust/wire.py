"""Shapes of the trust of a message on the wire (inboxes.md 6.6); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from pillarbox.inboxes.trust.queries import StoredTrust
from pillarbox.inboxes.trust.reasons import KINDS, SENTENCES, Level

Kind = Literal["list", "bulk", "auto_reply", "delivery_report", "calendar", "verification_code"]


Detail = Annotated[Any, Meta(extra_json_schema={"type": "object"})]


class TrustReasonItem(Struct, kw_only=True):
    code: str
    message: str
    detail: Detail


class EmailTrust(Struct, kw_only=True):
    object: Literal["email_trust"]
    id: UUID
    level: Level
    kinds: list[Kind]
    reasons: list[TrustReasonItem]


class _StoredReason(Struct, kw_only=True):
    code: str
    detail: dict[str, Any] = {}


_reasons = msgspec.json.Decoder(list[_StoredReason]).decode


def email_trust(email_id: UUID, stored: StoredTrust) -> EmailTrust:
    """Return the trust of a message as the API shows it. A code that this version does not know is left
    out."""
    reasons = [reason for reason in _reasons(stored.reasons) if reason.code in SENTENCES]
    return EmailTrust(
        object="email_trust",
        id=email_id,
        level=msgspec.convert(stored.level, Level),
        kinds=[msgspec.convert(reason.code, Kind) for reason in reasons if reason.code in KINDS],
        reasons=[
            TrustReasonItem(code=reason.code, message=SENTENCES[reason.code], detail=reason.detail)
            for reason in reasons
        ],
    )
