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
from pillarbox.mail.deception.invisible import HIDING
from pillarbox.mail.html.hidden_text import colors_in, differ

LONGEST_HTML: Final = 128 * 1024
LONGEST_SEEN: Final = 2048
LONGEST_HIDDEN: Final = 8192

IN_PLACE: Final = 8192
"""Characters of each body in which hidden words are looked for on the event loop."""
STYLED_IN_PLACE: Final = 512
"""The same, where each rule of `<style>` may be compared with each element."""

_MARKS: Final = (
    *("display:none", "visibility:", "opacity", "filter:", "mso-hide", "hidden", "<!--", "clip"),
    *("scale", "translate", "transparent", "rgba(", "hsla(", "line-height:0", "width:0", "width:1p"),
    *("height:0", "height:1p", "height:.", "size=0", 'size="0', "color:#fff", "color:white"),
    *("/*", "\\"),
)
# Each begins with letters: so the search goes from one place where these are to the next.
_STYLES: Final = (
    re.compile(
        r"font(?:-size:(?:0|\.|1(?:\.[0-9]*)?p|[0-5]?[0-9](?:\.[0-9]*)?%)"
        r"|:[^;\"'{}<>]{0,60}?(?<![0-9.])(?:0|1p|\.))"
    ),
    re.compile(
        r":(?:(?<=left:)|(?<=right:)|(?<=top:)|(?<=bottom:)|(?<=indent:)|(?<=margin:))[^;\"'{}<>]{0,40}?"
        r"(?:-[0-9.]|(?<![0-9])[1-9](?:[0-9]{3}|[0-9]{2}\.?[0-9]{0,9}(?:r?em|in|[cm]m|pc|v)))"
    ),
    re.compile(
        r"&(?:#0*(?:820[3-7]|823[4-8]|828[89]|829[0-7]|91[78][0-9]{3})"
        r"|#x0*(?:20(?:0[b-f]|2[a-e]|6)|e0)|zw|lrm|rlm|zero|negative)"
    ),
)
"""Lengths and characters, in lower case without blanks."""
_ODD_STYLE: Final = re.compile(r"style=[\"'][^\"'<>]*?&(?!quot;|amp;|apos;|#39;)")
"""A style that is written so that others than a browser do not read it."""
_LONG_ATTRIBUTES: Final = tuple(
    [re.compile(rf"{name}=[\"'][^\"'<>]{{60}}") for name in ("title", "alt", "aria-[a-z]{1,20}")]
)
_COLORS: Final = tuple(
    [
        re.compile(rf"{name}\s{{0,9}}[:=]\s{{0,9}}[\"']?\s{{0,9}}([^;\"'<>{{}}]{{3,100}})")
        for name in ("color", "background", "text")
    ]
)
_MOST_COLORS: Final = 40


def is_costly(html: str | None, text: str | None) -> bool:
    """Return whether looking for hidden words may take longer than other work on an event loop may wait."""
    if html and (len(html) > IN_PLACE or (len(html) > STYLED_IN_PLACE and "<style" in html.lower())):
        return True
    return text is not None and len(text) > IN_PLACE and (bool(html) or _has_unseen(text))


def may_hide(source: str) -> bool:
    """Return whether words may be hidden in the HTML of a message."""
    if not source.isascii() and HIDING.search(source):
        return True
    lowered = source.lower()
    plain = _without_blanks(lowered)
    return (
        any(mark in plain for mark in _MARKS)
        or any(style.search(plain) is not None for style in _STYLES)
        or ("&" in plain and _ODD_STYLE.search(plain) is not None)
        or any(attribute.search(lowered) is not None for attribute in _LONG_ATTRIBUTES)
        or _has_near_colors(lowered)
    )


def _without_blanks(text: str) -> str:
    for blank in " \t\n\r\f":
        text = text.replace(blank, "")
    return text


def _has_near_colors(lowered: str) -> bool:
    """Return whether letters may have the colour of what is behind them. What has no colour is black on
    white."""
    before, behind = {"black"}, {"white"}
    for pattern in _COLORS:
        for found in pattern.finditer(lowered):
            prefix = lowered[max(0, found.start() - 11) : found.start()]
            is_ground = found[0].startswith("background") or prefix.endswith(("background-", "bg"))
            (behind if is_ground else before).add(found[1])
    if len(before) + len(behind) > _MOST_COLORS:
        return True
    grounds = {one for value in behind for one in colors_in(value)}
    letters = {one for value in before for one in colors_in(value)}
    return any(not differ(one, other) for one in letters for other in grounds)


def hidden_reasons(html: str | None, text: str | None, seen: str) -> Iterator[TrustReason]:
    """Yield the reasons of a message with these bodies; `seen` is the beginning of what people see of it."""
    source = (html or "")[:LONGEST_HTML]
    shown = instructions(seen[:LONGEST_SEEN])
    # Words for a machine may stand in the plain text alone, which most people do not see.
    if may_hide(source) or (shown and source and text) or _has_unseen(text):
        hidden = hidden_text(source, text)
        if hidden.kinds:
            characters = sum([words.characters for words in hidden.kinds.values()])
            yield TrustReason("hidden_text", {"kinds": list(hidden.kinds), "characters": characters})
            found = instructions(hidden.all_text[:LONGEST_HIDDEN])
            if found:
                yield TrustReason("hidden_instructions", {"codes": sorted({one.code for one in found})})
    if shown:
        yield TrustReason("instructions", {"codes": sorted({one.code for one in shown})})


def _has_unseen(text: str | None) -> bool:
    return text is not None and not text.isascii() and HIDING.search(text, 0, LONGEST_HTML) is not None
