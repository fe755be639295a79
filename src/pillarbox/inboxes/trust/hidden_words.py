"""Reasons about words that people do not see, and about words that address a machine. Pure.

Reading HTML as its readers see it costs several times what all other rules cost together, so it is done where
something in the source may hide words. Of the text as people see it the beginning is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pillarbox.inboxes.trust.reasons import TrustReason
from pillarbox.mail.deception.hidden_text import hidden_text
from pillarbox.mail.deception.instructions import instructions

LONGEST_HTML: Final = 128 * 1024
LONGEST_SEEN: Final = 2048
LONGEST_HIDDEN: Final = 8192

_MARKS: Final = (
    *("display:none", "visibility:", "opacity:0", "opacity:.", "mso-hide", "hidden", "<!--", "clip"),
    *(
        "font-size:0",
        "font-size:1p",
        "font:0",
        "font:1p",
        "line-height:0",
        "height:0",
        "height:1p",
        "width:0",
    ),
    *("width:0", "left:-", "right:-", "top:-", "indent:-", "margin:-", "color:#fff", "color:white", "size=0"),
    'size="0',
)
"""Parts of styles and tags, in lower case without blanks, one of which is in most ways of hiding words."""
_LONG_ATTRIBUTE: Final = re.compile(r"(?:title|alt|aria-[a-z]{1,20})=[\"'][^\"'<>]{60}")
_UNSEEN: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\U000e0000-\U000e007f]")


def _may_hide(source: str) -> bool:
    """Return whether words may be hidden in a body."""
    if not source.isascii() and _UNSEEN.search(source):
        return True
    plain = source.lower().replace(" ", "")
    return any(mark in plain for mark in _MARKS) or _LONG_ATTRIBUTE.search(source) is not None


def hidden_reasons(html: str | None, text: str | None, seen: str) -> Iterator[TrustReason]:
    """Yield the reasons of a message with these bodies; `seen` is the beginning of what people see of it."""
    source = (html or "")[:LONGEST_HTML]
    if _may_hide(source) or (
        text is not None and not text.isascii() and _UNSEEN.search(text, 0, LONGEST_HTML)
    ):
        hidden = hidden_text(source, text)
        if hidden.kinds:
            characters = sum([words.characters for words in hidden.kinds.values()])
            yield TrustReason("hidden_text", {"kinds": list(hidden.kinds), "characters": characters})
            found = instructions(hidden.all_text[:LONGEST_HIDDEN])
            if found:
                yield TrustReason("hidden_instructions", {"codes": sorted({one.code for one in found})})
    shown = instructions(seen[:LONGEST_SEEN])
    if shown:
        yield TrustReason("instructions", {"codes": sorted({one.code for one in shown})})
