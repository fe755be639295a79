"""Texts in links that nobody else can read, make or change, and about which no table is asked (LST-04).

A text is base64url of a version, the number of its key, and what it says, encrypted and authenticated with
that key (AES-SIV, RFC 5297) for one purpose. What says the same is the same text, so that a mail that is
composed again has the same bytes.

    version 1 | number of the key 2 | SIV 16 | encrypted
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64

from cryptography.exceptions import InvalidTag

from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys

VERSION = 1
HEAD = 3
SIV = 16


def sealed(plain: bytes, purpose: bytes, key: LinkKey) -> str:
    """Return the text that stands for `plain`, encrypted with this key."""
    head = bytes((VERSION,)) + key.id.to_bytes(2, "big")
    return urlsafe_b64encode(head + key.cipher.encrypt(plain, [purpose, head])).rstrip(b"=").decode("ascii")


async def opened(text: str, purpose: bytes, keys: LinkKeys, longest: int) -> bytes | None:
    """Return the content of a text; None unless this installation made it for this purpose, byte for byte."""
    raw = _decoded(text, longest)
    if raw is None or len(raw) < HEAD + SIV or raw[0] != VERSION:
        return None
    cipher = await keys.reader(int.from_bytes(raw[1:HEAD], "big"))
    if cipher is None:
        return None
    try:
        return cipher.decrypt(raw[HEAD:], [purpose, raw[:HEAD]])
    except InvalidTag:
        return None


def _decoded(text: str, longest: int) -> bytes | None:
    if len(text) > longest or not text.isascii():
        return None
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return None
    return raw if urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") == text else None
