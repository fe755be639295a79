"""The rules by which the policy of an inbox judges a mail that is sent from it. Pure.

An entry of a list is an address, or a domain: all addresses at exactly that domain.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from pillarbox.emails.permitted_senders import PolicyRefusal
from pillarbox.kernel.security.authentication import Caller

AppliesTo = Literal["programs", "everybody"]
BlockedMail = Literal["spam", "refuse"]
MayWriteTo = Literal["anybody", "contacts", "who_wrote_before", "listed"]
Approval = Literal["never", "unknown_recipients", "suspicious", "always"]

PREFIX: Final = "The policy of this inbox"

UNLISTED: Final = {
    "contacts": "allows mail to contacts of the team alone",
    "who_wrote_before": "allows mail to addresses alone that have written to it",
    "listed": "allows mail to listed recipients alone",
}
"""By `may_write_to`."""


class RecipientRefused(PolicyRefusal):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{PREFIX} {reason}. {address[:100]} is not allowed.")


class RecipientBlocked(PolicyRefusal):
    def __init__(self, address: str) -> None:
        super().__init__(f"{PREFIX} blocks mail to {address[:100]}.")


class AttachmentsRefused(PolicyRefusal):
    def __init__(self) -> None:
        super().__init__(f"{PREFIX} does not allow attachments.")


class NoReply(PolicyRefusal):
    def __init__(self) -> None:
        super().__init__(f"{PREFIX} allows replies alone: `In-Reply-To` must name a message of the inbox.")


class NotInMessage(PolicyRefusal):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"{PREFIX} allows replies to the people of a message alone. {address[:100]} is not one of them."
        )


class ApprovalNeeded(PolicyRefusal):
    def __init__(self) -> None:
        super().__init__(
            f"{PREFIX} wants a person to send this email. "
            "Save it as a draft, which a person can read and send."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPolicy:
    """A policy; without values the one that allows everything."""

    applies_to: str = "programs"
    allowed_senders: Sequence[str] = ()
    blocked_senders: Sequence[str] = ()
    blocked_mail: str = "spam"
    may_write_to: str = "anybody"
    allowed_recipients: Sequence[str] = ()
    blocked_recipients: Sequence[str] = ()
    attachments: bool = True
    messages_per_hour: int | None = None
    messages_per_day: int | None = None
    reply_only: bool = False
    footer: str | None = None
    approval: str = "never"
    updated_at: datetime | None = None

    @property
    def needs_facts(self) -> bool:
        """Whether it depends on who the recipients are."""
        return self.may_write_to in ("contacts", "who_wrote_before") or self.approval == "unknown_recipients"


class RecipientFacts(NamedTuple):
    """The team's knowledge of an address, in the form in which addresses are compared."""

    address: str
    is_contact: bool = False
    has_written: bool = False

    @property
    def is_known(self) -> bool:
        return self.is_contact or self.has_written


def is_person(caller: Caller) -> bool:
    """Return whether a person sends, on the dashboard: neither a key, nor a grant, nor work of the server."""
    return caller.person_id is not None and caller.key_id is None and caller.grant_id is None


def is_listed(address: str, entries: Collection[str]) -> bool:
    """Return whether a list has the address or its domain."""
    return address in entries or address.rpartition("@")[2] in entries


def check_recipients(policy: InboxPolicy, recipients: Sequence[RecipientFacts]) -> None:
    """Raise for the first recipient that may not be written to. A blocked one is so, although allowed."""
    for recipient in recipients:
        if is_listed(recipient.address, policy.blocked_recipients):
            raise RecipientBlocked(recipient.address)
        if not _is_allowed(policy, recipient):
            raise RecipientRefused(recipient.address, UNLISTED[policy.may_write_to])


def _is_allowed(policy: InboxPolicy, recipient: RecipientFacts) -> bool:
    if policy.may_write_to == "anybody" or is_listed(recipient.address, policy.allowed_recipients):
        return True
    if policy.may_write_to == "contacts":
        return recipient.is_contact
    return policy.may_write_to == "who_wrote_before" and recipient.has_written


def check_reply(recipients: Sequence[RecipientFacts], people: Collection[str] | None) -> None:
    """Raise unless the mail answers a message whose people are all of its recipients; `people` is None where
    it answers none of the inbox."""
    if people is None:
        raise NoReply
    for recipient in recipients:
        if recipient.address not in people:
            raise NotInMessage(recipient.address)


def needs_approval(
    policy: InboxPolicy, recipients: Sequence[RecipientFacts], *, is_caused_by_suspicious: bool = False
) -> bool:
    """Return whether a person has to send it."""
    if policy.approval == "always" or (policy.approval == "suspicious" and is_caused_by_suspicious):
        return True
    return policy.approval == "unknown_recipients" and not all(
        recipient.is_known or is_listed(recipient.address, policy.allowed_recipients)
        for recipient in recipients
    )
