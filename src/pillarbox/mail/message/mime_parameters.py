"""Content-Type and Content-Disposition as they are really written: a value, and parameters behind it.

RFC 2045 5.1 and RFC 2183 for the form, RFC 2231 for continued and encoded parameters, and the mistakes
of twenty years besides: values with blanks and no quotes, quotes that do not end, encoded words and
8-bit text in quotes, Windows paths with unescaped backslashes. At most 64 parameters are read.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from pillarbox.mail.message import charsets, header_text

MOST_PARAMETERS = 64
LONGEST_READ = 16_384
"""Nothing behind this many characters of a value is read."""

_VALUE = re.compile(r"[ \t]*([^\s;()\"]+)")
_PARAMETER = re.compile(r";[ \t]*+([^\s=;\"]{1,80})[ \t]*=[ \t]*(?:\"((?>(?:[^\"\\]|\\.)*))\"|([^;]*+))")
_ESCAPED = re.compile(r"\\([\"\\])")
_SECTION = re.compile(r"([^*]+)\*(?:([0-9]{1,3})(\*)?)?")
_TYPE = re.compile(r"[a-z0-9!#$%&'*+.^_`{|}~-]+/[a-z0-9!#$%&'*+.^_`{|}~-]+")


class ParameterizedValue(NamedTuple):
    """A value in lower case, and its parameters by lower-case name, decoded; the first of a name counts."""

    value: str
    parameters: dict[str, str]

    def get(self, name: str) -> str | None:
        return self.parameters.get(name)


def parse(raw: bytes) -> ParameterizedValue:
    """Return the parameterized value of a raw header; whatever it holds, something is returned."""
    if raw.isascii() and len(raw) <= 128 and b"=?" not in raw:
        return _short(raw)
    return _parse(header_text.unfolded(raw[:LONGEST_READ]), raw)


def content_type(raw: bytes | None) -> ParameterizedValue:
    """Return a Content-Type; text/plain where there is none or it cannot be read (RFC 2045, 5.2)."""
    if raw is None:
        return _PLAIN
    found = parse(raw)
    return found if _TYPE.fullmatch(found.value) else ParameterizedValue("text/plain", found.parameters)


_PLAIN = ParameterizedValue("text/plain", {})


@lru_cache(maxsize=512)
def _short(raw: bytes) -> ParameterizedValue:
    """Return the parsed value of a short header. Most mail repeats the same few values; callers must not
    change the result."""
    return _parse(header_text.unfolded(raw), raw)


def _parse(text: str, raw: bytes) -> ParameterizedValue:
    if charsets.REPLACEMENT in text:
        text = header_text.unfolded(charsets.decode(raw[:LONGEST_READ]).encode())
    found = _VALUE.match(text)
    at = found.end() if found else 0
    return ParameterizedValue(found[1].lower() if found else "", _parameters(text, at))


def _parameters(text: str, index: int) -> dict[str, str]:
    plain: dict[str, str] = {}
    sections: dict[str, dict[int, tuple[str, bool]]] = {}
    for number, found in enumerate(_PARAMETER.finditer(text, index)):
        if number == MOST_PARAMETERS:
            break
        name, value = found[1].lower(), _value(found)
        if "*" not in name:
            plain.setdefault(name, header_text.shown(value))
        elif (section := _SECTION.fullmatch(name)) is not None:
            # `name*` is one encoded value, `name*2` a plain piece, `name*2*` an encoded one (RFC 2231, 3).
            place = int(section[2] or 0)
            is_encoded = section[2] is None or section[3] is not None
            sections.setdefault(section[1], {}).setdefault(place, (value, is_encoded))
    # The encoded form says more than the plain one that stands beside it for old readers.
    plain.update({name: _joined(pieces) for name, pieces in sections.items()})
    return plain


def _value(match: re.Match[str]) -> str:
    quoted, loose = match.groups()[1:]
    if quoted is not None:
        return _ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted
    value = loose.strip(" \t")
    if value.startswith('"'):
        return value.strip('"')
    comment = value.find(" (")
    return value[:comment].rstrip(" \t") if comment > 0 and value.endswith(")") else value


def _joined(pieces: dict[int, tuple[str, bool]]) -> str:
    """Return a continued value: its octets are joined before they are decoded, up to the first
    missing piece."""
    octets = bytearray()
    charset = None
    for place in range(len(pieces)):
        if place not in pieces:
            break
        piece, is_encoded = pieces[place]
        if place == 0 and is_encoded and piece.count("'") >= 2:
            charset, _, piece = piece.split("'", 2)
        octets += unquote_to_bytes(piece) if is_encoded else piece.encode("utf-8", "replace")
    return header_text.clean(charsets.decode(bytes(octets), charset or "utf-8"))
