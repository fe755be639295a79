"""The settings of people."""

from __future__ import annotations

from typing import Any

from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.setting import Setting


def sender(text: str) -> str:
    """Return an address under which mail may be sent: at a name of at least two labels."""
    address = kinds.email_address(text)
    if "." not in address.rpartition("@")[2]:
        raise kinds.WrongValue("is not an email address")
    return address


SYSTEM_SENDER = Setting(
    name="system_sender",
    parse=kinds.optional(sender),
    shape="ADDRESS",
    default="off",
    meaning="Who invitations and links for lost passwords come from: an address of a domain that the "
    "oldest team has verified; `off`: `no-reply` at the host's name.",
)

AUDIT_RETENTION_DAYS = Setting(
    name="audit_retention_days",
    parse=kinds.whole_number(30, 36500),
    shape="DAYS",
    default="365",
    meaning="For how many days the log of acts is kept: who logged in, made a key, deleted a domain.",
)

SETTINGS: tuple[Setting[Any], ...] = (SYSTEM_SENDER, AUDIT_RETENTION_DAYS)
