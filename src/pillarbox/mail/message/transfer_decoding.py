"""Content transfer encodings read back (RFC 2045 6), and uuencode: whatever the octets are, octets come out.

Base64 with characters that do not belong there, without padding, or in several padded pieces one after
the other; quoted-printable with escapes that are none; uuencoded lines of a wrong length. An encoding
that is not known leaves the octets as they are.
"""

from __future__ import annotations

import binascii
import re
from itertools import islice

_BASE64_ONLY = bytes(
    set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
)
_MORE_BASE64 = re.compile(rb"[A-Za-z0-9+/=\s]*+")
_PADDING = re.compile(rb"=+[=\s]*")
_UU_BEGIN = re.compile(rb"^begin[ \t]+[0-7]{3,4}[ \t]+([^\r\n]+)\r?\n", re.MULTILINE)

_LINE = re.compile(rb"[^\r\n]+")

PIECE = 1024 * 1024
"""Octets of base64 that are decoded at once."""
MOST_PIECES = 100_000
MOST_LINES = 1_000_000
"""Text behind so many padded pieces of base64 or uuencoded lines is not decoded."""

UUENCODE = ("x-uuencode", "uuencode", "x-uue", "uue")
IDENTITY = ("7bit", "8bit", "binary")


def encoding_named(raw: bytes | None) -> str:
    """Return the encoding that a Content-Transfer-Encoding names, in lower case; 7bit where there is none."""
    if not raw:
        return "7bit"
    words = raw.split(b"(", 1)[0].strip(b" \t\r\n\"';").split()
    return words[0].lower().decode("ascii", "replace") if words else "7bit"


def decoded(raw: bytes, start: int, end: int, encoding: str) -> bytes:
    """Return the octets that stand encoded in `raw` from `start` to `end`, which are not copied
    before decoding."""
    if encoding == "base64":
        return _base64(raw, start, end)
    if encoding == "quoted-printable":
        return binascii.a2b_qp(memoryview(raw)[start:end])
    if encoding in UUENCODE:
        return _uuencoded(raw[start:end])
    return raw[start:end]


def _base64(raw: bytes, start: int, end: int) -> bytes:
    first_pad = raw.find(b"=", start, end)
    if first_pad >= 0 and (rest := raw[first_pad:end].strip(b"=\r\n\t ")):
        # Some programs encode each piece by itself; but what a mailing list added below is not ours.
        if raw.count(b"=", first_pad, end) <= MOST_PIECES and _MORE_BASE64.fullmatch(rest):
            pieces = _PADDING.split(raw[start:end])
            return b"".join([_loose_base64(piece) for piece in pieces])
        end = raw.find(b"\n", first_pad, end) + 1 or end
    out, digits, at = _long_base64(raw, start, end if first_pad < 0 else first_pad)
    rest = digits + raw[at:end]
    try:
        out.append(binascii.a2b_base64(rest))
    except binascii.Error:
        out.append(_loose_base64(rest))
    return b"".join(out)


def _long_base64(raw: bytes, start: int, end: int) -> tuple[list[bytes], bytes, int]:
    """Return most of a long text without padding, decoded in pieces so that other threads run in between. It
    comes as the octets, up to three digits that wait for more, and from where on nothing was read."""
    out: list[bytes] = []
    digits = b""
    while end - start > PIECE:
        digits += raw[start : start + PIECE].translate(None, _BASE64_ONLY)
        whole = len(digits) // 4 * 4
        out.append(binascii.a2b_base64(digits[:whole]))
        digits = digits[whole:]
        start += PIECE
    return out, digits, start


def _loose_base64(text: bytes) -> bytes:
    out, digits, at = _long_base64(text, 0, len(text))
    return b"".join([*out, _short_base64(digits + text[at:])])


def _short_base64(text: bytes) -> bytes:
    digits = text.translate(None, _BASE64_ONLY)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def _uuencoded(text: bytes) -> bytes:
    """Return the lines between `begin` and `end`, or all lines when there is no `begin`."""
    found = _UU_BEGIN.search(text)
    out: list[bytes] = []
    for line in islice(_LINE.finditer(text, found.end() if found else 0), MOST_LINES):
        if line[0] in (b"`", b"end", b" "):
            break
        out.append(_uu_line(line[0]))
    return b"".join(out)


def _uu_line(line: bytes) -> bytes:
    try:
        return binascii.a2b_uu(line)
    except binascii.Error:
        if not 32 <= line[0] <= 96:
            return b""
        # Old writers count wrong or add a checksum: the first character says how much of the line counts.
        octets = (line[0] - 32) & 63
        kept = line[: 1 + (octets * 4 + 2) // 3].ljust(1 + (octets + 2) // 3 * 4)
        try:
            return binascii.a2b_uu(kept)
        except binascii.Error:
            return b""
