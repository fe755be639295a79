"""Placeholders of templates, kept safe while a text is made into something else.

Each one becomes a short mark of characters that nobody types, which goes through Markdown, MJML and the
cleaning of HTML unchanged. Afterwards the placeholder comes back; in HTML its fallback is escaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from pillarbox.mail.placeholders.parsing import Placeholder, placeholders

MARK: Final = "\ua66e"
"""A letter of one manuscript of 1429. MRML leaves it alone, unlike characters of private use."""
_MARKS: Final = re.compile(f"[{MARK}\\0]")
_MARK: Final = re.compile(f"{MARK}([0-9]{{1,6}}){MARK}")
UNSUBSCRIBE: Final = "{{{UNSUBSCRIBE_URL}}}"
_ALLOWED: Final = re.compile(r"(?:https?://|mailto:|tel:)\S+|#[\w-]*", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[\s\0\\]")


class KeptPlaceholders:
    """The placeholders of one document, in the order in which they were met."""

    def __init__(self) -> None:
        self._kept: list[Placeholder] = []

    def marked(self, text: str) -> str:
        """Return the text with marks in place of its placeholders."""
        text = _MARKS.sub("", text)
        pieces: list[str] = []
        done = 0
        for placeholder in placeholders(text):
            pieces += (text[done : placeholder.start], f"{MARK}{len(self._kept)}{MARK}")
            self._kept.append(placeholder)
            done = placeholder.end
        return "".join((*pieces, text[done:]))

    def in_html(self, text: str) -> str:
        """Return the HTML with its placeholders; their fallbacks are escaped."""
        return _MARK.sub(lambda mark: self._source(mark, is_html=True), text)

    def in_text(self, text: str) -> str:
        """Return the plain text with its placeholders as they were written."""
        return _MARK.sub(lambda mark: self._source(mark, is_html=False), text)

    def link(self, address: str) -> str | None:
        """Return the address of a marked link, as it may stand in a mail; None where it may not.

        It leads to the web, to a mailbox, to a telephone, or begins with a placeholder that has no other
        fallback.
        """
        address = address.strip()
        if not address or _BLANKS.search(address):
            return None
        if (first := _MARK.match(address)) is None:
            return address if _ALLOWED.fullmatch(address) else None
        index = int(first[1])
        if index >= len(self._kept):
            return None
        fallback = self._kept[index].fallback
        return address if not fallback or _ALLOWED.fullmatch(fallback) else None

    def _source(self, mark: re.Match[str], *, is_html: bool) -> str:
        index = int(mark[1])
        if index >= len(self._kept):
            return ""
        placeholder = self._kept[index]
        if placeholder.fallback is None or not is_html:
            return placeholder.source
        return f"{{{{{{{placeholder.name}|{escape(placeholder.fallback)}}}}}}}"
