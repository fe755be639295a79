"""The scopes of programs (oauth.md 1). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pillarbox.kernel.security.authentication import InboxRight
from pillarbox.oauth.failures import InvalidScope

FULL_ACCESS: Final = "full_access"
SEND: Final = "emails:send"

SUPPORTED: Final = (FULL_ACCESS, SEND)

INBOX: Final = {f"inbox:{right.value}": right for right in InboxRight}
"""Scopes of a grant for one inbox. The person who approves gives them; a program cannot ask for them."""


def parsed(text: str) -> tuple[str, ...]:
    """Return the scopes of a text with spaces, each once, in its order."""
    return tuple(dict.fromkeys(text.split(" "))) if text else ()


def subset(text: str | None, allowed: Sequence[str], whose: str) -> tuple[str, ...]:
    """Return the scopes that a request names, or all that are allowed where it names none; raises
    InvalidScope."""
    if not text:
        return tuple(allowed)
    wanted = tuple(name for name in parsed(text) if name)
    if not wanted or any(name not in allowed for name in wanted):
        raise InvalidScope(f"scope: only {' and '.join(allowed)} can be asked for by {whose}")
    return wanted
