"""Tokens of links and pictures that recipients of mail follow and see (emails.md 8; TRK-02, TRK-03).

They are texts of `sealed_links`, and do not expire. A link and a picture have purposes of their own. What
is encrypted:

    team 16 | email 16 | position 2 | number of the link 2 | where it leads
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys
from pillarbox.kernel.security.sealed_links import opened, sealed

CLICK = b"pillarbox click"
OPEN = b"pillarbox open"
RECIPIENT = 34
FIXED = 36
LONGEST_URL = 3000
"""Octets as they stand in the header `Location`, where one that is not ASCII takes three; links to longer
ones stay as they are. Many proxies take no request line of more than 8 kilobytes, and no head of an answer
of more than 4."""
LONGEST = 16_384
"""Characters of a token that is read."""
MOST_NUMBER = 0xFFFF
_NOT_ASCII = re.compile(rb"[\x80-\xff]")


class TrackedRecipient(NamedTuple):
    """One recipient of a mail."""

    team_id: UUID
    email_id: UUID
    position: int


class TrackedLink(NamedTuple):
    """A link in it: where it leads, and which of the mail it is."""

    recipient: TrackedRecipient
    number: int
    url: str


def link_token(recipient: TrackedRecipient, number: int, url: str, key: LinkKey) -> str | None:
    """Return the token of a link; None where it would be too long."""
    target = url.encode("utf-8", "replace")
    if len(target) + 2 * len(_NOT_ASCII.findall(target)) > LONGEST_URL:
        return None
    which = min(number, MOST_NUMBER).to_bytes(2, "big")
    return sealed(b"".join((_bytes(recipient), which, target)), CLICK, key)


def open_token(recipient: TrackedRecipient, key: LinkKey) -> str:
    """Return the token of a picture."""
    return sealed(_bytes(recipient), OPEN, key)


async def read_link(text: str, keys: LinkKeys) -> TrackedLink | None:
    """Return the content of a link's token; None for anything else."""
    plain = await opened(text, CLICK, keys, LONGEST)
    if plain is None:
        return None
    return TrackedLink(
        _recipient(plain), int.from_bytes(plain[RECIPIENT:FIXED], "big"), plain[FIXED:].decode()
    )


async def read_open(text: str, keys: LinkKeys) -> TrackedRecipient | None:
    """Return the recipient of a picture's token; None for anything else."""
    plain = await opened(text, OPEN, keys, LONGEST)
    return None if plain is None else _recipient(plain)


def _bytes(recipient: TrackedRecipient) -> bytes:
    team_id, email_id, position = recipient
    return b"".join((team_id.bytes, email_id.bytes, position.to_bytes(2, "big")))


def _recipient(plain: bytes) -> TrackedRecipient:
    return TrackedRecipient(
        UUID(bytes=plain[:16]), UUID(bytes=plain[16:32]), int.from_bytes(plain[32:RECIPIENT], "big")
    )
