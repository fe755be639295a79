"""Whether mail to an inbox comes from a sender that its policy blocks. Pure."""

from __future__ import annotations

from typing import NamedTuple

from pillarbox.inboxes.policy.rules import is_listed


class SenderRules(NamedTuple):
    """The lists of senders of a policy; an empty `allowed` allows everybody that is not blocked."""

    allowed: frozenset[str]
    blocked: frozenset[str]

    def is_blocked(self, author: str, envelope_sender: str) -> bool:
        """Return whether mail of this author is blocked. One of the two that is blocked is enough, and the
        author alone has to be allowed; "" is no address, as in a bounce."""
        author, envelope_sender = author.lower(), envelope_sender.lower()
        if any(one and is_listed(one, self.blocked) for one in (author, envelope_sender)):
            return True
        return bool(self.allowed) and not is_listed(author, self.allowed)
