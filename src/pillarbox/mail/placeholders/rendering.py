"""Rendering the parts of mail: values take the place of placeholders (templates.md 5).

One pass: a value is never searched again. What a value may do depends on where it comes from (`ValueOrigin`)
and on the part that it goes into (`RenderTarget`). Rendering raises for no text and takes time linear in
what it writes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Final, NamedTuple

from pillarbox.mail.message.encoded_words import FORBIDDEN
from pillarbox.mail.placeholders.parsing import ParsedTemplate, Placeholder, Span

LONGEST_SUBJECT: Final = 998
"""Code points; what is longer is cut off."""

GREATEST_PLAIN: Final = Decimal("1e21")
LEAST_PLAIN: Final = Decimal("1e-6")
"""From here to there a number is printed without exponent."""

_NOT_IN_SUBJECT: Final = re.compile(f"{FORBIDDEN.pattern}+")


class RenderTarget(Enum):
    """Where a value goes."""

    HTML = "html"
    TEXT = "text"
    SUBJECT = "subject"


class ValueOrigin(Enum):
    """Where a value comes from: from the sender itself, who may pass HTML; from contacts and events, so from
    people that the sender does not know; or from us, who make the URLs by which people unsubscribe."""

    SENDER = "sender"
    OTHERS = "others"
    OWN_URL = "own_url"


class Value(NamedTuple):
    """The value that replaces a placeholder."""

    text: str
    origin: ValueOrigin


EMPTY: Final = Value("", ValueOrigin.SENDER)

Lookup = Callable[[Placeholder], Value | None]
"""The value for a placeholder; None where it stays as it is written."""


def rendered(parsed: ParsedTemplate, lookup: Lookup, part: RenderTarget) -> str:
    """Return the part with its values."""
    if not parsed.placeholders:
        text = parsed.texts[0]
    else:
        pieces = [parsed.texts[0]]
        for found, behind in zip(parsed.placeholders, parsed.texts[1:], strict=True):
            value = lookup(found)
            pieces.append(found.source if value is None else written(value, part))
            pieces.append(behind)
        text = "".join(pieces)
    return text[:LONGEST_SUBJECT] if part is RenderTarget.SUBJECT else text


def partly_rendered(
    parsed: ParsedTemplate, lookup: Lookup, part: RenderTarget
) -> tuple[str, tuple[Span, ...]]:
    """Return the part with its values, and where in it the placeholders are that stay as they are written."""
    pieces = [parsed.texts[0]]
    at, places = len(parsed.texts[0]), []
    for found, behind in zip(parsed.placeholders, parsed.texts[1:], strict=True):
        value = lookup(found)
        text = found.source if value is None else written(value, part)
        if value is None:
            places.append((at, at + len(text)))
        pieces += (text, behind)
        at += len(text) + len(behind)
    return "".join(pieces), tuple(places)


def written(value: Value, part: RenderTarget) -> str:
    """Return the value as it stands in this part."""
    text, origin = value
    if part is RenderTarget.HTML:
        if origin is ValueOrigin.OTHERS:
            return html.escape(text)
        return text if origin is ValueOrigin.SENDER else text.replace("&", "&amp;")
    return _NOT_IN_SUBJECT.sub(" ", text) if part is RenderTarget.SUBJECT else text


def inline_fallback(placeholder: Placeholder) -> Value | None:
    """Return the fallback that the placeholder itself has."""
    return None if placeholder.fallback is None else Value(placeholder.fallback, ValueOrigin.SENDER)


def printed(value: str | float | bool) -> str:
    """Return a value as it is written in mail: numbers as the shortest decimal that reads back to the same
    double, without exponent from 1e-6 up to below 1e21."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    number = Decimal(repr(float(value)))
    if not number.is_finite():
        return str(float(value))
    if number == 0:
        return "0"
    if LEAST_PLAIN <= abs(number) < GREATEST_PLAIN:
        plain = f"{number:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    sign, digits, _ = number.normalize().as_tuple()
    first, rest = digits[0], "".join(map(str, digits[1:]))
    exponent = number.adjusted()
    mantissa = f"{'-' if sign else ''}{first}{'.' if rest else ''}{rest}"
    return f"{mantissa}e{exponent:+d}"
