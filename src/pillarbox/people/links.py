"""Links that work once: for setting up an account, for another password, for an invitation.

What is stored is the hash of the token. A link is used by one guarded statement, in the transaction of what
it is for, so of several at once exactly one counts.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from enum import Enum
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.people import queries, sessions
from pillarbox.people.queries import PersonLink


class LinkKind(Enum):
    """The purpose of a link."""

    SET_UP = "set_up"
    INVITATION = "invitation"
    PASSWORD = "password"  # noqa: S105 - a kind of link


LIFETIME: Final = {
    LinkKind.SET_UP: timedelta(days=7),
    LinkKind.INVITATION: timedelta(days=7),
    LinkKind.PASSWORD: timedelta(minutes=30),
}

TOKEN_BYTES: Final = 24
"""192 bits: the link of the first start fits into a line of a terminal."""

BY_OPERATOR: Final = timedelta(hours=24)
"""How long a link for another password works that the operator hands on."""


async def make(
    conn: Connection,
    now: datetime,
    kind: LinkKind,
    *,
    person_id: UUID | None = None,
    team_id: UUID | None = None,
    invitation_id: UUID | None = None,
    lifetime: timedelta | None = None,
) -> str:
    """Make a link and return its token, which is stored nowhere else."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    until = now + (lifetime or LIFETIME[kind])
    link = PersonLink(person_id, team_id, invitation_id)
    await queries.insert_link(conn, sessions.token_hash(token), kind.value, link, now, until)
    return token


async def find(source: Source, now: datetime, kind: LinkKind, token: str) -> PersonLink | None:
    """Return the person, team or invitation of the link; None where there is no such link, or it was used, or
    is too old."""
    return await queries.find_link(source, sessions.token_hash(token), kind.value, now)


async def use(conn: Connection, now: datetime, kind: LinkKind, token: str) -> PersonLink | None:
    """Return the same and use the link up: after the commit it does not work any more."""
    return await queries.use_link(conn, sessions.token_hash(token), kind.value, now)
