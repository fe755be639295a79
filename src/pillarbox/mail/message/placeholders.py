"""Placeholders in the bodies of mail: `{{{NAME}}}`, or `{{{NAME|what stands there without a value}}}`.

Exactly three braces, blanks around the name allowed; a fallback ends at the first `}}}` and has no line end.
One pass: a value is never searched again. What names no value that is given stays as it is. The work is
linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

UNSUBSCRIBE_URL = (
    "PILLARBOX_UNSUBSCRIBE_URL",
    "UNSUBSCRIBE_URL",
    "RESEND_UNSUBSCRIBE_URL",
    "SERVICE_UNSUBSCRIBE_URL",
)
"""The words for a recipient's own link; they mean the same (contract decision 22)."""

MOST = 1000
"""A part may have so many placeholders."""

_BEGIN = re.compile(r"(?<!\{)\{\{\{[ \t]*([A-Za-z0-9_]{1,50})[ \t]*")
_LINE_END = re.compile(r"[\r\n]")


class Found(NamedTuple):
    """A placeholder: where it is, and its name."""

    start: int
    end: int
    name: str


def placeholders(source: str) -> Iterator[Found]:
    """The placeholders of a text, in order."""
    close = line_end = at = 0
    while (begin := _BEGIN.search(source, at)) is not None:
        at = begin.end()
        if not source.startswith("|", at):
            close_here = at if source.startswith("}}}", at) else -1
        else:
            if close < at:
                close = source.find("}}}", at)
                if close < 0:
                    # No fallback ends any more.
                    close = len(source)
            if line_end < at:
                found = _LINE_END.search(source, at)
                line_end = len(source) if found is None else found.start()
            close_here = close if close < len(source) and close < line_end else -1
        if close_here >= 0 and not source.startswith("}", close_here + 3):
            at = close_here + 3
            yield Found(begin.start(), at, begin[1])


def filled(source: str, values: Mapping[str, str]) -> str:
    """The text with these values in the place of their placeholders."""
    if "{{{" not in source:
        return source
    parts: list[str] = []
    done = 0
    for found in placeholders(source):
        value = values.get(found.name)
        if value is not None:
            parts += (source[done : found.start], value)
            done = found.end
    return "".join((*parts, source[done:])) if parts else source


def has_too_many(source: str | None) -> bool:
    """Whether a part has more placeholders than it may have."""
    if source is None or source.count("{{{") <= MOST:
        return False
    return sum(1 for _ in placeholders(source)) > MOST


def links(url: str, *, is_html: bool) -> dict[str, str]:
    """What the words for a recipient's own link stand for."""
    return dict.fromkeys(UNSUBSCRIBE_URL, url.replace("&", "&amp;") if is_html else url)
