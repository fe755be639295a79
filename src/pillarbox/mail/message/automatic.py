"""Whether a message was made by a program, for many readers or as an answer: no program answers such mail
(inboxes.md 9.8; RFC 3834, 2)."""

from __future__ import annotations

from typing import Final

from pillarbox.mail.message.parse import ParsedMessage

BULK: Final = frozenset(("bulk", "junk", "list"))


def is_automatic(message: ParsedMessage, mail_from: str) -> bool:
    """Return whether mail is of a null sender (`mail_from` is ""), of a list, in bulk, or submitted by
    a program."""
    if not mail_from or "list-id" in message.named:
        return True
    submitted = (message.first("auto-submitted") or "no").partition(";")[0].partition("(")[0]
    precedence = (message.first("precedence") or "").strip().lower()
    return submitted.strip().lower() != "no" or precedence in BULK
