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
LONGEST_SEEN: Final = 4096
LONGEST_HIDDEN: Final = 8192

_MAY_HIDE: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0|mso-hide|\shidden[\s=>]|<!--"
    r"|(?:font-size|line-height|height|width)\s*:\s*[01](?:[^\d.]|\.\d)|font\s*:\s*[01]|size=[\"']?[01][\"'\s>]"
    r"|(?:left|right|top|text-indent|margin[a-z-]*)\s*:\s*-\d{2}|clip(?:-path)?\s*:|#fff|white|(?:title|alt|aria-\w+)="
    r"|[\u200b-\u200f\u202a-\u202e\u2060-\u2069\U000e0000-\U000e007f]",
    re.IGNORECASE,
)


def hidden_reasons(html: str | None, text: str | None, seen: str) -> Iterator[TrustReason]:
    """Yield the reasons of a message with these bodies; `seen` is the beginning of what people see of it."""
    source = (html or "")[:LONGEST_HTML]
    if _MAY_HIDE.search(source) or _MAY_HIDE.search(text or "", 0, LONGEST_HTML):
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
