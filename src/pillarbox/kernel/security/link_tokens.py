"""Tokens of links by which a recipient of a mail is known (topics.md 4; LST-04, docs/decisions/0086).

They are texts of `sealed_links`, and do not expire. What is encrypted:

    team 16 | email 16 | position 2 | topic 16 | address
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.security.link_keys import LinkKey, LinkKeys
from pillarbox.kernel.security.sealed_links import opened, sealed

PURPOSE = b"pillarbox unsubscribe"
NO_TOPIC = UUID(int=0)
FIXED = 50
LONGEST = 1024


class LinkToken(NamedTuple):
    """Which mail to whom: `address` as it is compared."""

    team_id: UUID
    email_id: UUID
    position: int
    topic_id: UUID | None
    address: str


def token(link: LinkToken, key: LinkKey) -> str:
    """Return the text of a link."""
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
    return sealed(plain, PURPOSE, key)


async def read(text: str, keys: LinkKeys) -> LinkToken | None:
    """Return the content of a link; None for anything but a link of this installation in its one spelling."""
    plain = await opened(text, PURPOSE, keys, LONGEST)
    if plain is None:
        return None
    topic = UUID(bytes=plain[34:FIXED])
    return LinkToken(
        team_id=UUID(bytes=plain[:16]),
        email_id=UUID(bytes=plain[16:32]),
        position=int.from_bytes(plain[32:34], "big"),
        topic_id=None if topic == NO_TOPIC else topic,
        address=plain[FIXED:].decode(),
    )
