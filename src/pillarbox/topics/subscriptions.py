"""The subscriptions of contacts to topics (topics.md section 2): their choice, else the topic's default.

Nothing is copied into contacts when a topic is made, so the default works for contacts that come later. The
rule in SQL, wherever a statement needs it: `coalesce(choice.subscription, topic.default_subscription)`; who
has unsubscribed from everything gets nothing besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection
from pillarbox.topics import queries


class TopicAddress(NamedTuple):
    """Mail of a topic to an address, in the form in which addresses are compared."""

    team_id: UUID
    topic_id: UUID
    address: str


async def refused(conn: Connection, topic_addresses: Sequence[TopicAddress]) -> set[TopicAddress]:
    """Return those of these mails, of several teams, that must not be sent. Their addresses have unsubscribed
    from everything, have left the topic, or never joined one that people must join. Addresses without a
    contact get the topic's default. A deleted topic counts as it was when it was deleted: its mail that is
    still waiting honours what people chose. Nobody gets mail of a topic that is not known at all.

    A deleted topic counts as it was when it was deleted: its mail that is still to go out honours what people
    chose. Of a topic that is not known at all nobody gets mail.
    """
    if not topic_addresses:
        return set()
    columns = [list(column) for column in zip(*topic_addresses, strict=True)]
    return {TopicAddress(*found) for found in await queries.refused(conn, *columns)}
