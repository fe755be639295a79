"""The bodies of a forward: the note, then the original as it was (inboxes.md 6.3). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final

from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.message.headers import DAYS, MONTHS

TITLE: Final = "---------- Forwarded message ----------"

_BODY_START: Final = re.compile(r"<body\b[^<>]{0,2000}>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """A message as it is quoted."""

    sender: str
    at: datetime
    subject: str | None
    to: Sequence[str]
    cc: Sequence[str]
    html: str | None
    text: str | None

    def lines(self) -> list[tuple[str, str]]:
        """Return the header lines that a forward shows above the message, as names and values."""
        t = self.at.astimezone(UTC)
        date = f"{DAYS[t.weekday()]}, {t.day} {MONTHS[t.month - 1]} {t.year} {t.hour:02}:{t.minute:02} UTC"
        found = [
            ("From", self.sender),
            ("Date", date),
            ("Subject", self.subject or ""),
            ("To", ", ".join(self.to)),
        ]
        return [*found, ("Cc", ", ".join(self.cc))] if self.cc else found


def bodies(original: QuotedMessage, html: str | None, text: str | None) -> tuple[str | None, str]:
    """Return the HTML and text of the forward with this note. There is html where the note or the original
    has some."""
    text, html, page = _said(text), _said(html), _said(original.html)
    note = text if text is not None else text_of(html or "")
    quoted = _said(original.text) or text_of(page or "")
    above = "\n".join([TITLE, *[f"{name}: {value}".rstrip() for name, value in original.lines()]])
    plain = f"{note}\n\n{above}\n\n{quoted}" if note.strip() else f"{above}\n\n{quoted}"
    if html is None and page is None:
        return None, plain
    note_html = html or (f"<div>{_as_html(text)}</div>" if text else "")
    head = "<br>\n".join([escape(TITLE), *[_line(name, value) for name, value in original.lines()]])
    shown = page or f"<div>{_as_html(quoted)}</div>"
    return _above(shown, f"{note_html}<br>\n<div>{head}</div><br>\n"), plain


def _said(body: str | None) -> str | None:
    """Return the body, or None where it is blank: many programs add an empty text to their HTML, or the other
    way round."""
    return None if body is None or not body.strip() else body


def _above(html: str, block: str) -> str:
    """Return the page with a block at its top."""
    start = _BODY_START.search(html)
    return block + html if start is None else html[: start.end()] + block + html[start.end() :]


def _line(name: str, value: str) -> str:
    return f"{name}: {escape(value, quote=False)}"


def _as_html(text: str) -> str:
    return escape(text, quote=False).replace("\r\n", "\n").replace("\n", "<br>\n")
