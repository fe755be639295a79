"""Copies of mail for single recipients (not those of broadcasts: `broadcast_copies/`): each has its own link,
in headers and bodies (emails.md 9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.delivery.items import LoadedEmail, OpenRecipient, PersonalCopy
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken, token
from pillarbox.mail.placeholders.parsing import links

MailOfTopic = tuple[UUID, UUID, str]
"""Mail of a topic to an address, as addresses are compared: team, topic, address."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Which topics a team has, and which mail of them must not go out; a higher slice provides it."""

    live: Callable[[TeamDb, Collection[UUID]], Awaitable[set[UUID]]]
    refused: Callable[[Connection, Sequence[MailOfTopic]], Awaitable[AbstractSet[MailOfTopic]]]


FIELD = "List-Unsubscribe"
POST_FIELD = "List-Unsubscribe-Post"
ONE_CLICK = "List-Unsubscribe=One-Click"


class TopicCopies:
    """Makes the copies of mail that has a topic, or links of its recipients."""

    def __init__(self, keys: LinkKeys, public_url: str) -> None:
        self._keys = keys
        self._public_url = public_url

    async def of(
        self, email: LoadedEmail, target: OpenRecipient, topic_id: UUID | None, accepted_at: datetime
    ) -> PersonalCopy:
        """Return the copy of one recipient, the same each time. Its link is about the topic, or about all
        mail where there is none; the header fields for it belong to mail of a topic."""
        link = LinkToken(
            team_id=email.team_id,
            email_id=email.email_id,
            position=target.position,
            topic_id=topic_id,
            address=target.address,
        )
        url = f"{self._public_url}/unsubscribe/{token(link, await self._keys.maker(accepted_at))}"
        fields = () if topic_id is None else unsubscribe_fields(email.headers, url)
        return PersonalCopy(fields, links(url, is_html=True), links(url, is_html=False))


def unsubscribe_fields(given: Sequence[tuple[str, str]], url: str) -> Sequence[tuple[str, str]]:
    """Return the fields of RFC 2369 and RFC 8058 for this link; none where the sender has given the
    first itself."""
    names = {name.lower() for name, _ in given}
    if FIELD.lower() in names:
        return ()
    fields = ((FIELD, f"<{url}>"), (POST_FIELD, ONE_CLICK))
    return [field for field in fields if field[0].lower() not in names]
