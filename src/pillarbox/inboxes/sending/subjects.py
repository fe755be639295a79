"""Subjects of replies and forwards (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from typing import Final

from pillarbox.emails.requests.parse import MOST_SUBJECT
from pillarbox.mail.message.encoded_words import FORBIDDEN

REPLY: Final = "Re: "
FORWARD: Final = "Fwd: "


def prefixed(prefix: str, subject: str | None) -> str:
    """Return the subject of the thread with the prefix, unless it begins with that in any case. Characters
    that a subject may not hold (others wrote it) become blanks."""
    plain = FORBIDDEN.sub(" ", subject or "").strip()
    found = plain if plain.lower().startswith(prefix.strip().lower()) else prefix + plain
    return found[:MOST_SUBJECT].strip()
