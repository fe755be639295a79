"""Values of attributes as they are written in HTML, and what they mean (HTML 13.2.5.72 and following).

They differ from text in one rule: a named reference without its semicolon is none where `=`, a letter or a
digit follows, so that `?a=1&copy=2` keeps its `&copy`.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5

_REFERENCE = re.compile(r"&(?:#([0-9]+);?|#[xX]([0-9A-Fa-f]+);?|([A-Za-z][A-Za-z0-9]*+)(;?))")
_LONGEST_NAME = max(map(len, html5))
_LAST = 0x10FFFF
_REPLACEMENT = "\ufffd"
_WINDOWS = range(0x80, 0xA0)
"""Numbers that mean what they mean in windows-1252."""


def decoded(value: str) -> str:
    """Return the value with its character references decoded; never raises."""
    if "\r" in value:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
    if "&" in value:
        value = _REFERENCE.sub(lambda found: _meant(found, value), value)
    return value.replace("\x00", _REPLACEMENT) if "\x00" in value else value


def encoded(value: str) -> str:
    """Return the value as it may stand between quotes of both kinds, and also without any if it has
    no blanks."""
    return (
        value.replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("'", "&#39;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )


def _meant(match: re.Match[str], value: str) -> str:
    decimal, hexadecimal, name, semicolon = match.groups()
    if decimal is not None:
        return _character(decimal, 10)
    if hexadecimal is not None:
        return _character(hexadecimal, 16)
    if semicolon and (character := html5.get(f"{name};")) is not None:
        return character
    for length in range(min(len(name), _LONGEST_NAME), 1, -1):
        character = html5.get(name[:length])
        if character is not None:
            rest = name[length:]
            follows = rest[:1] or semicolon or value[match.end() : match.end() + 1]
            if follows == "=" or (follows.isascii() and follows.isalnum()):
                return match[0]
            return character + rest + semicolon
    return match[0]


def _character(digits: str, base: int) -> str:
    digits = digits.lstrip("0")
    number = int(digits, base) if digits and len(digits) <= 8 else 0 if not digits else _LAST + 1
    if number == 0 or number > _LAST or 0xD800 <= number <= 0xDFFF:
        return _REPLACEMENT
    return unescape(f"&#{number};") if number in _WINDOWS else chr(number)
