"""The kinds of a message: of a list, in bulk, of a program, for a calendar, with a code. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from pillarbox.inboxes.trust.reasons import TrustReason
from pillarbox.inboxes.trust.verification_codes import LONGEST_READ, verification_code
from pillarbox.mail.message.automatic import BULK
from pillarbox.mail.message.parse import ParsedMessage

_REPLIES: Final = ("x-autoreply", "x-autorespond", "x-autoreply-from")
LONGEST_HEAD: Final = 64 * 1024
LONGEST_HTML: Final = 16 * 1024
"""Of the head, in which styles stand, and of the body, in whose beginning a code stands."""
_STYLE: Final = re.compile(r"<(style|script|title)\b[^<>]*>[^<]*</\1", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^<>]*>")


def kind_reasons(message: ParsedMessage, mail_from: str) -> Iterator[TrustReason]:
    """Yield the kinds of the message."""
    named = message.named
    if "list-id" in named:
        yield TrustReason("list", {"list_id": (message.first("list-id") or "")[:255]})
    precedence = (message.first("precedence") or "").strip().lower()
    if precedence in BULK - {"list"} or ("list-unsubscribe" in named and "list-post" not in named):
        yield TrustReason("bulk")
    root = message.root
    is_report = root.content_type == "multipart/report" and (
        root.parameters.get("report-type", "").lower() in ("delivery-status", "disposition-notification")
    )
    if is_report or any(part.content_type == "message/delivery-status" for part in root.leaves()):
        yield TrustReason("delivery_report")
    elif _is_reply(message):
        yield TrustReason("auto_reply")
    calendars = [part for part in root.leaves() if part.content_type == "text/calendar"]
    if calendars:
        method = calendars[0].parameters.get("method", "").strip().upper()[:32]
        yield TrustReason("calendar", {"method": method or None})
    found = verification_code(message.subject, beginning(message))
    if found is not None:
        yield TrustReason("verification_code", {"code": found.code, "valid_for_seconds": found.valid_for})


def _is_reply(message: ParsedMessage) -> bool:
    submitted = (message.first("auto-submitted") or "no").partition(";")[0].partition("(")[0].strip().lower()
    if submitted == "auto-replied" or any(name in message.named for name in _REPLIES):
        return True
    return (message.first("precedence") or "").strip().lower() == "auto_reply"


def beginning(message: ParsedMessage) -> str:
    """Return the beginning of what the message says."""
    text = message.text
    if text is not None and not text.isspace() and text:
        return text[:LONGEST_READ]
    html = message.html
    return _text_of(html) if html else ""


def _text_of(html: str) -> str:
    """Return the words at the beginning of an HTML body, well enough to find a code."""
    start = max(html.lower().find("<body", 0, LONGEST_HEAD), 0)
    words = _TAG.sub(" ", _STYLE.sub(" ", html[start : start + LONGEST_HTML]))
    return " ".join(unescape(words).split())[:LONGEST_READ]
