"""Placeholders in the parts of mail (templates.md 5): `{{{NAME}}}`, or `{{{NAME|what stands there without a
value}}}`.

A name is up to 50 letters, digits and underscores, or `contact.` with a path of such words. Exactly three
braces, blanks around the name allowed; the first `|` begins the fallback, which ends at the first `}}}` and
has no line end. Everything else is text. A part is read once, into its placeholders and the texts between
them, and may be rendered often (`rendering.py`). The work is linear in the text, which may be any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

UNSUBSCRIBE_URL = (
    "PILLARBOX_UNSUBSCRIBE_URL",
    "UNSUBSCRIBE_URL",
    "RESEND_UNSUBSCRIBE_URL",
    "SERVICE_UNSUBSCRIBE_URL",
)
"""The words for a recipient's own link; they mean the same (contract decision 22)."""

RESERVED = frozenset((*UNSUBSCRIBE_URL, "FIRST_NAME", "LAST_NAME", "EMAIL", "contact", "this"))
"""Names that no variable may have (templates.md 3)."""

CONTACT_PATH = "contact."
"""How the names of the fields and properties of a contact begin."""

MOST = 1000
"""A part may have so many placeholders."""

_THREE_BRACES = re.compile(r"(?<!\{)\{\{\{(?!\{)")
_WINDOW = 64 * 1024
_NAME = re.compile(r"[ \t]*+(contact(?>(?:\.[A-Za-z0-9_]{1,50}+)+)|[A-Za-z0-9_]{1,50}+)[ \t]*+", re.ASCII)
_LINE_END = re.compile(r"[\r\n]")


class Placeholder(NamedTuple):
    """A placeholder: where it is, its name, the fallback that is written in it, and all of it as written."""

    start: int
    end: int
    name: str
    fallback: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ParsedTemplate:
    """A part of a mail: its placeholders, and the texts before, between and behind them."""

    texts: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]

    @property
    def source(self) -> str:
        """The part as it was written."""
        return (
            "".join([text + found.source for text, found in zip(self.texts, self.placeholders, strict=False)])
            + (self.texts[-1])
        )


def parse(source: str) -> ParsedTemplate:
    """Return the part in pieces."""
    texts: list[str] = []
    found: list[Placeholder] = []
    done = 0
    for each in placeholders(source):
        texts.append(source[done : each.start])
        found.append(each)
        done = each.end
    texts.append(source[done:])
    return ParsedTemplate(tuple(texts), tuple(found))


def placeholders(source: str) -> Iterator[Placeholder]:
    """Yield the placeholders of a text, in order."""
    close = line_end = at = 0
    # One search by an expression would read all of a large text without letting other threads run.
    while (at := source.find("{{{", at)) >= 0:
        braces = _THREE_BRACES.search(source, at, at + _WINDOW)
        if braces is None:
            at += _WINDOW - 2
            continue
        start, at = braces.span()
        begin = _NAME.match(source, at)
        if begin is None:
            continue
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
            fallback = source[at + 1 : close_here].strip(" \t") if close_here > at else None
            at = close_here + 3
            yield Placeholder(start=start, end=at, name=begin[1], fallback=fallback, source=source[start:at])


Span = tuple[int, int]
"""From where to where in a text."""


class LinkPlaces(NamedTuple):
    """Where in the bodies of a mail the placeholders are that a recipient's link takes the place of; known
    where bodies were rendered, as a value in them may look like a placeholder, or spoil one."""

    html: Sequence[Span] = ()
    text: Sequence[Span] = ()


def filled_at(source: str, places: Sequence[Span], value: str) -> str:
    """Return the text with this value in these places."""
    return value.join(between(source, places))


def between(source: str, places: Sequence[Span]) -> Iterator[str]:
    """Yield the text before, between and behind these places, which are in order."""
    done = 0
    for start, end in places:
        yield source[done:start]
        done = end
    yield source[done:]


def filled(source: str, values: Mapping[str, str]) -> str:
    """Return the text with these values in the place of their placeholders; what names none of them stays."""
    parts: list[str] = []
    done = 0
    for found in placeholders(source):
        value = values.get(found.name)
        if value is not None:
            parts += (source[done : found.start], value)
            done = found.end
    return "".join((*parts, source[done:])) if parts else source


def has_too_many(source: str | None) -> bool:
    """Return whether a part has more placeholders than it may have."""
    if source is None or min(source.count("{{{"), source.count("}}}")) <= MOST:
        return False
    return next(islice(placeholders(source), MOST, None), None) is not None


def links(url: str, *, is_html: bool) -> dict[str, str]:
    """Return the recipient's own links by the words that stand for them."""
    return dict.fromkeys(UNSUBSCRIBE_URL, url.replace("&", "&amp;") if is_html else url)
