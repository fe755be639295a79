"""Tokens of links by which a recipient of a mail is known (topics.md 4; LST-04, docs/decisions/0064).

A token is base64url of the number of its key and a value that is encrypted and authenticated with it
(AES-SIV, RFC 5297). Nothing in it can be read, changed or made without the key, and no table is asked about
it. The same link is always the same text, so that a mail that is composed again has the same bytes. Tokens do
not expire.

    version 1 | number of the key 2 | SIV 16 | encrypted: team 16, email 16, position 2, topic 16, address
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidTag

from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys

VERSION = 1
PURPOSE = b"pillarbox unsubscribe"
NO_TOPIC = UUID(int=0)
HEAD = 3
FIXED = 50
LONGEST = 1024


class Link(NamedTuple):
    """Which mail to whom: `address` as it is compared."""

    team_id: UUID
    email_id: UUID
    position: int
    topic_id: UUID | None
    address: str


def token(link: Link, key: LinkKey) -> str:
    """The text of a link."""
    topic = link.topic_id or NO_TOPIC
    plain = b"".join(
        (
            link.team_id.bytes,
            link.email_id.bytes,
            link.position.to_bytes(2, "big"),
            topic.bytes,
            link.address.encode(),
        )
    )
    head = bytes((VERSION,)) + key.id.to_bytes(2, "big")
    return urlsafe_b64encode(head + key.cipher.encrypt(plain, [PURPOSE, head])).rstrip(b"=").decode("ascii")


async def read(text: str, keys: LinkKeys) -> Link | None:
    """What a link says; None for anything but a link of this installation in its one spelling."""
    raw = _decoded(text)
    if raw is None or len(raw) < HEAD or raw[0] != VERSION:
        return None
    cipher = await keys.reader(int.from_bytes(raw[1:HEAD], "big"))
    if cipher is None:
        return None
    try:
        plain = cipher.decrypt(raw[HEAD:], [PURPOSE, raw[:HEAD]])
    except InvalidTag:
        return None
    topic = UUID(bytes=plain[34:FIXED])
    return Link(
        UUID(bytes=plain[:16]),
        UUID(bytes=plain[16:32]),
        int.from_bytes(plain[32:34], "big"),
        None if topic == NO_TOPIC else topic,
        plain[FIXED:].decode(),
    )


def _decoded(text: str) -> bytes | None:
    if len(text) > LONGEST or not text.isascii():
        return None
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return None
    return raw if urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") == text else None
