"""The text of an HTML mail in which one line stands for each quotation that the mail programs marked.

Mail programs put what they quote into elements of known classes and ids; that says more than the words do.
A `blockquote` that nobody marked may be the author's own indented paragraph, so it stays text, unless an
attribution stands before it or a line is drawn along its side.
"""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborNode

from pillarbox.mail.html import plain_text
from pillarbox.mail.html.hidden_text import HiddenText
from pillarbox.mail.html.plain_text import HostOf
from pillarbox.mail.quotations import history

QUOTED: Final = "\x02"
"""Stands for a quotation; answers may follow it."""
HISTORY: Final = "\x03"
"""Behind it everything is another message."""

DATA = re.compile(r"data:[^\"'>) ]*+")
"""A `data:` address of any length: a pattern with a least length would be tried again at each short one."""
_LONG_DATA: Final = 1000

LONGEST_HTML: Final = 1_000_000
MOST_LOOKED_BEFORE: Final = 50
"""Unmarked quotations of a document for which the text before them is read."""

_QUOTATIONS = frozenset(
    (
        *("gmail_quote", "yahoo_quoted", "protonmail_quote", "tutanota_quote", "zmail_extra", "emailquote"),
        *(
            "blockquote_zmail",
            "quoted-mail",
            "moz-email-headers-table",
            "moz-forward-container",
            "gmail_quote_container",
        ),
    )
)
_ATTRIBUTIONS = frozenset(("moz-cite-prefix", "yahoo-quoted-begin"))
_HEADS = frozenset(
    (
        *(
            "divrplyfwdmsg",
            "outlookmessageheader",
            "appendonsend",
            "stopspelling",
            "ms-outlook-mobile-reference-message",
        ),
        *("mail-editor-reference-message-container", "x_divrplyfwdmsg", "replysplit"),
    )
)
_SIGNATURES = frozenset(
    (
        *(
            "gmail_signature",
            "moz-signature",
            "applemailsignature",
            "ms-outlook-mobile-signature",
            "signature",
        ),
        *(
            "protonmail_signature_block",
            "gmail_signature_prefix",
            "x_signature",
            "lineBreakAtBeginningOfSignature".lower(),
        ),
    )
)
STRONG_MARKS: Final = (
    *("gmail_quote", "yahoo_quoted", "protonmail_quote", "divRplyFwdMsg", "moz-cite-prefix", 'type="cite"'),
    *(
        "OutlookMessageHeader",
        "ms-outlook-mobile-reference-message",
        "mail-editor-reference-message-container",
    ),
)
"""Words of the source that stand only in what a mail program quotes."""


def text_of(html: str, host_of: HostOf | None = None) -> str:
    """Return the text that readers see, with lines `QUOTED` and `HISTORY`, and without signatures that are
    marked as such."""
    source = cut(html)
    return plain_text.text_of(source, instead=_Marks().instead, hidden=HiddenText(source), host_of=host_of)


def whole_text_of(html: str, host_of: HostOf | None = None) -> str:
    """Return all text that readers see, quotations among it."""
    source = cut(html)
    return plain_text.text_of(source, hidden=HiddenText(source), host_of=host_of)


def has_marks(html: str) -> bool:
    """Return whether a mail program marked what it quotes."""
    source = cut(html)
    return any(mark in source for mark in STRONG_MARKS)


def cut(html: str) -> str:
    """Return as much of the source as is read, without the octets of images that stand in it."""
    if len(html) > LONGEST_HTML:
        html = DATA.sub(without_long_data, html)
    return html[:LONGEST_HTML]


def without_long_data(match: re.Match[str]) -> str:
    """Return the readable part of a match of `DATA`."""
    return "data:," if match.end() - match.start() > _LONG_DATA else match[0]


class _Marks:
    """The marks found in one document so far."""

    def __init__(self) -> None:
        self._looked_before = 0

    def instead(self, node: LexborNode) -> str | None:
        """Return the replacement for an element; None where it is read as it is."""
        attributes = node.attributes
        tag = node.tag
        if not attributes and tag != "blockquote":
            return None
        marks = plain_text.marks_of(attributes)
        if not marks.isdisjoint(_HEADS):
            return HISTORY
        if not marks.isdisjoint(_SIGNATURES):
            return ""
        if not marks.isdisjoint(_ATTRIBUTIONS):
            return QUOTED
        if "gmail_attr" in marks:
            return QUOTED if _next_is_quotation(node) else HISTORY
        if tag == "blockquote":
            return QUOTED if self._is_quotation(node, attributes, marks) else None
        if attributes.get("name") == "quote":
            return QUOTED
        if not marks.isdisjoint(_QUOTATIONS) and not _holds_quotations(node):
            return QUOTED
        return None

    def _is_quotation(
        self, node: LexborNode, attributes: dict[str, str | None], marks: frozenset[str]
    ) -> bool:
        style = (attributes.get("style") or "").lower()
        if attributes.get("type") == "cite" or not marks.isdisjoint(_QUOTATIONS) or "border-left" in style:
            return True
        if "cite" in attributes:
            return True
        self._looked_before += 1
        return self._looked_before <= MOST_LOOKED_BEFORE and _stands_behind_attribution(node)


def _next_element(node: LexborNode | None) -> LexborNode | None:
    """Return the next sibling that shows something, if it is an element."""
    for _ in range(4):
        node = node.next if node is not None else None
        if node is None:
            return None
        if node.is_element_node and node.tag != "br":
            return node
        if node.is_text_node and (node.text_content or "").strip():
            return None
    return None


def _next_is_quotation(node: LexborNode) -> bool:
    found = _next_element(node)
    return found is not None and found.tag == "blockquote"


def _holds_quotations(node: LexborNode) -> bool:
    """Return whether the quotation is in an element below this one, so that answers may stand beside it."""
    child = node.child
    for _ in range(200):
        if child is None:
            return False
        if child.is_element_node and (
            child.tag == "blockquote" or "gmail_attr" in plain_text.marks_of(child.attributes)
        ):
            return True
        child = child.next
    return False


def _stands_behind_attribution(node: LexborNode) -> bool:
    """Return whether the text right before the element says who wrote it."""
    before = node.prev
    for _ in range(6):
        if before is None:
            return False
        text = " ".join((before.text(deep=True) or "")[-history.LONGEST_ATTRIBUTION :].split())
        if text:
            return history.attribution([text], 0) is not None and history.names_somebody(text)
        before = before.prev
    return False
