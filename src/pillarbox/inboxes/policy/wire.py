"""Shapes of policies on the wire (inboxes.md 3.7); field order is the contract's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, structs

from pillarbox.inboxes.policy.rules import AppliesTo, Approval, BlockedMail, InboxPolicy, MayWriteTo
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.kernel.wire.fields import read_by
from pillarbox.kernel.wire.instants import IsoTime
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.kernel.wire.shapes import from_row
from pillarbox.mail.message.address import AddressError, parse_domain

MOST_LISTED: Final = 500
LONGEST_FOOTER: Final = 500
MOST_MESSAGES: Final = 1_000_000


def entries(value: Any, path: str) -> list[str]:
    """Return the entries of a list in the form in which addresses are compared, each once."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidField(path, "Use an array of addresses and domains.")
    if len(value) > MOST_LISTED:
        raise InvalidField(path, f"Use at most {MOST_LISTED} addresses and domains.")
    return list(dict.fromkeys([_entry(one, path) for one in value]))


def _entry(text: str, path: str) -> str:
    try:
        if "@" in text:
            return email_address(text).address
        return parse_domain(text.strip())
    except NotAnAddress as wrong:
        raise InvalidField(path, wrong.reason) from None
    except AddressError:
        raise InvalidField(path, "Use addresses such as `user@host`, and domains such as `host`.") from None


def footer_text(value: Any, path: str) -> str:
    """Return the footer without the blanks around it."""
    if not isinstance(value, str):
        raise InvalidField(path, "It must be a string.")
    text = value.replace("\r\n", "\n").strip()
    if not 1 <= len(text) <= LONGEST_FOOTER:
        raise InvalidField(path, f"Use 1 to {LONGEST_FOOTER} characters.")
    if any(not (one.isprintable() or one == "\n") for one in text) or "{{{" in text:
        raise InvalidField(path, "It may have no control characters and no placeholders.")
    return text


Entries = Annotated[list[str], Meta(max_length=MOST_LISTED)]
Listed = Annotated[list[str], shown_as(Entries), read_by(entries)]
Footer = Annotated[
    str,
    Meta(extra_json_schema={"minLength": 1, "maxLength": LONGEST_FOOTER}),
    read_by(footer_text),
]
Messages = Annotated[int, Meta(ge=1, le=MOST_MESSAGES)]


class NewPolicy(Struct, kw_only=True):
    """A whole policy: what is left out allows everything."""

    applies_to: AppliesTo = "programs"
    allowed_senders: Listed = field(default_factory=list)
    blocked_senders: Listed = field(default_factory=list)
    blocked_mail: BlockedMail = "spam"
    may_write_to: MayWriteTo = "anybody"
    allowed_recipients: Listed = field(default_factory=list)
    blocked_recipients: Listed = field(default_factory=list)
    attachments: bool = True
    messages_per_hour: Messages | None = None
    messages_per_day: Messages | None = None
    reply_only: bool = False
    footer: Footer | None = None
    approval: Approval = "never"

    def policy(self, now: datetime) -> InboxPolicy:
        """Return the policy as it is stored."""
        return InboxPolicy(**structs.asdict(self), updated_at=now)


class FullPolicy(Struct, kw_only=True):
    """The policy of an inbox. `updated_at` is null where it was never set."""

    object: Literal["inbox_policy"]
    applies_to: Annotated[str, shown_as(AppliesTo)]
    allowed_senders: list[str]
    blocked_senders: list[str]
    blocked_mail: Annotated[str, shown_as(BlockedMail)]
    may_write_to: Annotated[str, shown_as(MayWriteTo)]
    allowed_recipients: list[str]
    blocked_recipients: list[str]
    attachments: bool
    messages_per_hour: int | None
    messages_per_day: int | None
    reply_only: bool
    footer: str | None
    approval: Annotated[str, shown_as(Approval)]
    updated_at: IsoTime | None


def shape(policy: InboxPolicy) -> FullPolicy:
    """Return the policy as answers show it."""
    return from_row(FullPolicy, policy, object="inbox_policy")
