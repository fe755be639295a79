"""Custom headers of what is sent from an inbox (inboxes.md 6.2): those that we write ourselves are refused,
where `POST /emails` drops them in silence."""

from __future__ import annotations

from typing import Final

from pillarbox.emails.requests.parse import MOST_HEADERS
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.mail.message.headers import HeaderError, check_custom_header, is_reserved

INBOX: Final = "X-Pillarbox-Inbox"
"""Names the inbox that a message was sent from."""

OURS: Final = frozenset({"in-reply-to", "references", "reply-to", INBOX.lower()})


def custom_headers(value: object, path: str) -> list[tuple[str, str]]:
    """Return the headers of a request; raises for the first that may not be set."""
    if not isinstance(value, dict):
        raise InvalidField(path, "Use an object of strings.")
    if len(value) > MOST_HEADERS:
        raise InvalidField(path, f"Use at most {MOST_HEADERS} headers.")
    kept: dict[str, tuple[str, str]] = {}
    for name, text in value.items():
        field = f"{path}.{_shown(name)}"
        if not isinstance(text, str):
            raise InvalidField(field, "Use a string.")
        try:
            check_custom_header(name, text)
        except HeaderError as wrong:
            raise InvalidField(field, str(wrong)) from None
        if name.lower() in OURS or is_reserved(name):
            raise InvalidField(field, "This header is set by the service.")
        kept[name.lower()] = (name, text)
    return list(kept.values())


def _shown(name: str) -> str:
    """Return a name that is safe to show in a message."""
    return "".join([one if one.isprintable() and one != "`" else "_" for one in name[:40]])
