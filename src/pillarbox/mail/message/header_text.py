"""Decodes a received header for people: unfolded, decoded, valid Unicode (receiving.md 2.2).

Reading is tolerant where `encoded_words` is strict: encoded words inside quotes, with blanks in them, or
without white space between them; in charsets of the whole WHATWG list or in none; with characters divided
between words. RFC 2047 forbids all of that, and all of it is in real mail.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from pillarbox.mail.message import charsets

_WORD = re.compile(r"=\?([A-Za-z0-9_.:()+-]{1,40})(?:\*[A-Za-z0-9-]{0,40})?\?([QqBb])\?([^?\r\n]*+)\?=")
"""`?` in the text of a word is not allowed and does not occur; so the search is linear."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_BLANKS = " \t\r\n"


def decoded(raw: bytes) -> str:
    """Return the text of a raw header value: unfolded, encoded words decoded, what is broken U+FFFD."""
    text = raw.decode("utf-8", "replace").strip(_BLANKS)
    if text.isprintable() and "=?" not in text:
        return text
    return shown(unfolded(raw))


def unfolded(raw: bytes) -> str:
    """Return the value on one line, one blank for each fold, its encoded words still encoded.

    Octets that are no UTF-8 are U+FFFD.
    """
    text = raw.decode("utf-8", "replace")
    if "\n" in text:
        text = " ".join([line.strip(_BLANKS) for line in text.split("\n")])
    return text.strip(_BLANKS)


def shown(text: str) -> str:
    """Return `text` with its encoded words decoded and without control characters."""
    if "=?" in text:
        text = words_decoded(text)
    return text if text.isprintable() else clean(text)


def clean(text: str) -> str:
    """Return `text` with line ends as blanks and other control characters as U+FFFD (INB-04)."""
    return _CONTROLS.sub(charsets.REPLACEMENT, text.replace("\r\n", " ").replace("\n", " "))


def words_decoded(text: str) -> str:
    """Return `text` with its RFC 2047 encoded words decoded; white space between two of them is
    dropped (6.2)."""
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    # Characters are divided between words, so adjacent words of one charset are joined before decoding.
    held, charset = b"", ""
    end = 0
    for found in _WORD.finditer(text):
        between = text[end : found.start()]
        end = found.end()
        label = found[1].lower()
        adjacent = charset != "" and not between.strip(_BLANKS)
        if not adjacent or label != charset:
            if charset:
                yield charsets.decode(held, charset)
            if not adjacent:
                yield between
            held, charset = b"", label
        held += _octets(found[2], found[3])
    if charset:
        yield charsets.decode(held, charset)
    yield text[end:]


def _octets(kind: str, encoded: str) -> bytes:
    if kind in "Qq":
        octets = encoded.encode("utf-8", "replace")
        return binascii.a2b_qp(octets.replace(b" ", b"_"), header=True)
    digits = _NOT_BASE64.sub("", encoded)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))
