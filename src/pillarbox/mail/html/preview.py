"""The text that mail programs show beside the subject: a block at the beginning of the body that is not seen
in the
mail itself (broadcasts.md 7)."""

from __future__ import annotations

import html
import re
from typing import Final

FILLED_TO: Final = 150
"""Characters: behind a shorter text programs would show the beginning of the mail."""

_FILLER: Final = "&#847;&zwnj; "
_NEXT: Final = re.compile(r"<(?:(!--)|body(?=[ \t\n\f\r/>]))", re.IGNORECASE)
_TAG_END: Final = re.compile(r"""(?>(?:[^"'>]++|"[^"]*+"|'[^']*+'|["'])*)>""")


def block(text: str) -> str:
    """Return the HTML of the block for this text; "" for none."""
    text = " ".join(text.split())
    if not text:
        return ""
    filler = _FILLER * max(0, FILLED_TO - len(text))
    return (
        '<div style="display:none;max-height:0;overflow:hidden;mso-hide:all" aria-hidden="true">'
        f"{html.escape(text)}{filler}</div>"
    )


def place(source: str) -> int:
    """Return where the block belongs in an HTML document: behind its `<body>` that is no comment, else at
    its beginning."""
    at = 0
    while (found := _NEXT.search(source, at)) is not None:
        if found[1]:
            end = source.find("-->", found.end())
            if end < 0:
                return 0
            at = end + 3
        else:
            tag = _TAG_END.match(source, found.end())
            return tag.end() if tag else 0
    return 0
