"""The consequences of a report, as values: events of recipients, and addresses that proved bad."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.receiving.reports.bounce_queries import SentTo
from pillarbox.suppressions.changes import SuppressionCause
from pillarbox.timeline.rules import EventKind, TimelineEntry


@dataclass(slots=True)
class ReportEffects:
    """`causes` count only for recipients whose event of the kind `shown_by` took effect."""

    shown_by: EventKind
    entries: list[TimelineEntry] = field(default_factory=list)
    causes: dict[int, SuppressionCause] = field(default_factory=dict)

    def causes_of(self, taken: Iterable[TimelineEntry]) -> list[SuppressionCause]:
        """Return the addresses to be suppressed, now that it is known which events took effect."""
        shown = {entry.position for entry in taken if entry.kind is self.shown_by}
        return [cause for position, cause in self.causes.items() if position in shown]


def named(recipients: Sequence[SentTo], addresses: Iterable[str | None]) -> SentTo | None:
    """Return the recipient whose address is among those that a report tells about one; none where two are.

    Where none of them is, the only recipient: the signed address already says whose mail it was, and a
    report of a forwarding server names an address that we never wrote to. Of several, none: to guess would
    blame somebody.
    """
    by_address = {recipient.address: recipient for recipient in recipients}
    found = {by_address.get(compared(address)) for address in addresses if address} - {None}
    if found:
        return found.pop() if len(found) == 1 else None
    return recipients[0] if len(recipients) == 1 else None


def compared(address: str) -> str:
    """Return the form in which addresses are compared, also of text that is no address (BNC-08)."""
    try:
        return parse_mailbox(address).key
    except AddressError:
        return address.strip().lower()


def may_be_suppressed(recipient: SentTo, simulators: Collection[str]) -> bool:
    """Return whether the address may be suppressed; those of the simulator never are (suppressions.md 3)."""
    return recipient.address.rpartition("@")[2] not in simulators
