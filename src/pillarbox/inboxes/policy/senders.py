"""Whether mail to an inbox comes from a sender that its policy blocks. Pure."""

from __future__ import annotations

from typing import NamedTuple

from pillarbox.inboxes.policy.rules import is_listed
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address


class SenderRules(NamedTuple):
    """The lists of senders of a policy; an empty `allowed` allows everybody that is not blocked."""

    allowed: frozenset[str]
    blocked: frozenset[str]

    def is_blocked(self, author: str, envelope_sender: str) -> bool:
        """Return whether mail of this author is blocked. One of the two that is blocked is enough, and the
        author alone has to be allowed; "" is no address, as in a bounce."""
        author, envelope_sender = compared(author), compared(envelope_sender)
        if any(one and is_listed(one, self.blocked) for one in (author, envelope_sender)):
            return True
        return bool(self.allowed) and not is_listed(author, self.allowed)


def compared(address: str) -> str:
    """Return the address of a message in the form that lists have, whatever spelling stood there; of what is
    no address the small letters."""
    try:
        return email_address(address).address
    except NotAnAddress:
        return address.lower()
