"""Content transfer encodings (RFC 2045 section 6), chosen by content; 8bit and binary are never used."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Literal, NamedTuple

LONGEST_LINE = 998
BASE64_COLUMNS = 76
PIECE = 256 * 1024
_ASCII = bytes(range(128))

Encoding = Literal["7bit", "quoted-printable", "base64"]


class EncodedBody(NamedTuple):
    """A body fit for any SMTP server: ASCII, CRLF line ends only, no NUL, no line over 998 octets."""

    encoding: Encoding
    body: bytes


def encode_text(text: str) -> EncodedBody:
    """Return the text with its line ends made CRLF, in the encoding that suits it best.

    Plain ASCII in lines of legal length stays readable as 7bit; the rest goes out quoted-printable, or
    base64 when that is shorter (mostly scripts other than Latin).
    """
    octets = text.encode("utf-8", "replace")
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    beyond_ascii = 0 if octets.isascii() else len(octets.translate(None, _ASCII))
    if not beyond_ascii and b"\0" not in octets and _has_short_lines(octets):
        return EncodedBody("7bit", octets.replace(b"\n", b"\r\n"))
    # From here on quoted-printable is clearly longer than base64; below it the text stays half readable.
    if beyond_ascii * 4 > len(octets):
        return EncodedBody("base64", base64_lines(octets.replace(b"\n", b"\r\n")))
    return EncodedBody("quoted-printable", b"".join(_quoted_printable(octets)))


def _quoted_printable(octets: bytes) -> Iterator[bytes]:
    """Yield the text in pieces, so that other threads run in between: whole lines, or parts of a line that is
    very long."""
    start, size = 0, len(octets)
    while size - start > 2 * PIECE:
        end = octets.find(b"\n", start + PIECE, start + 2 * PIECE) + 1
        yield binascii.b2a_qp(octets[start : end or start + PIECE], istext=True).replace(b"\n", b"\r\n")
        if not end:
            yield b"=\r\n"
        start = end or start + PIECE
    yield binascii.b2a_qp(octets[start:], istext=True).replace(b"\n", b"\r\n")


def encode_octets(octets: bytes) -> EncodedBody:
    """Return the encoded form of octets that must arrive unchanged."""
    return EncodedBody("base64", base64_lines(octets))


def encode_message(message: bytes) -> EncodedBody | None:
    """Return an attached message as it may stand inside a message/* part, or None if it may not.

    RFC 2046 5.2.1 allows no base64 or quoted-printable there, so only clean 7bit mail passes. Bare LF,
    the line end of stored mail on Unix, becomes CRLF; a bare CR or a NUL is not clean.
    """
    lines = message.replace(b"\r\n", b"\n")
    if not lines.isascii() or b"\r" in lines or b"\0" in lines or not _has_short_lines(lines):
        return None
    return EncodedBody("7bit", lines.replace(b"\n", b"\r\n"))


def base64_lines(octets: bytes) -> bytes:
    """Return Base64 in lines of 76 characters (RFC 2045 6.8)."""
    encoded = binascii.b2a_base64(octets, newline=False)
    if len(encoded) <= BASE64_COLUMNS:
        return encoded
    columns = range(0, len(encoded), BASE64_COLUMNS)
    return b"\r\n".join([encoded[start : start + BASE64_COLUMNS] for start in columns])


def is_clean(octets: bytes) -> bool:
    """Return whether there is no NUL, and no CR or LF but in CRLF (TRAP-08)."""
    # Single octets are found much faster than pairs: without any CR, and then with one before each LF, a
    # clean message is what it was.
    return b"\0" not in octets and octets.replace(b"\r", b"").replace(b"\n", b"\r\n") == octets


def _has_short_lines(octets: bytes) -> bool:
    """Return whether lines are short, from one line end to the last that is in reach; most are
    passed over."""
    start = 0
    while len(octets) - start > LONGEST_LINE:
        end = octets.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            return False
        start = end + 1
    return True
