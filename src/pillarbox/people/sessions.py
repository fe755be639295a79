"""Sessions of people: rows by the hash of the token in a cookie (UI-05, docs/decisions/0106).

A session ends after `IDLE` without use and `LONGEST` after it began, and where its person has begun `MOST`
others that were used later. Whatever gives a session more power gives it a new token, so that a token that
somebody planted before is worth nothing (session fixation).
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import Connection, Source
from pillarbox.people import session_queries as queries
from pillarbox.people.session_queries import NewSession, PersonSession

IDLE: Final = timedelta(hours=24)
LONGEST: Final = timedelta(days=30)
CONFIRMED_FOR: Final = timedelta(minutes=10)
"""For so long after a proof of who somebody is no other one is asked for."""

PENDING_FOR: Final = timedelta(minutes=10)
"""For so long a second factor may be given after the password."""

TOUCH: Final = timedelta(minutes=1)
"""How exactly it is known when a session was used."""

LONGEST_TOKEN: Final = 100
LONGEST_AGENT: Final = 300


class SessionStage(Enum):
    """`PENDING`: the password was right, and a second factor is still to be given."""

    PENDING = "pending"
    FULL = "full"


MOST: Final = {SessionStage.PENDING: 10, SessionStage.FULL: 50}
"""So many sessions a person has; of more, those end that were not used for the longest time."""


class SessionOrigin(NamedTuple):
    """Where a request comes from, as lists of sessions show it."""

    address: str | None
    user_agent: str | None


def new_token() -> str:
    """Return 256 random bits, as text for a cookie."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> bytes:
    """Return the stored hash of a token."""
    return sha256(token.encode("utf-8", "replace")).digest()


def form_token(token: str) -> str:
    """Return the token that forms of this session carry: it cannot be known without the session's (UI-06)."""
    return urlsafe_b64encode(hmac.digest(token.encode(), b"pillarbox form", "sha256")[:24]).decode("ascii")


async def begin(
    conn: Connection,
    now: datetime,
    session_id: UUID,
    person_id: UUID,
    ways: Sequence[str],
    origin: SessionOrigin,
    *,
    stage: SessionStage = SessionStage.FULL,
    team_id: UUID | None = None,
) -> str | None:
    """Begin a session and return its token; None where the person is gone or disabled."""
    token = new_token()
    agent = origin.user_agent[:LONGEST_AGENT] if origin.user_agent else None
    session = NewSession(
        hash=token_hash(token),
        id=session_id,
        person_id=person_id,
        stage=stage.value,
        ways=list(ways),
        team_id=team_id,
        created_at=now,
        ends_at=now + (LONGEST if stage is SessionStage.FULL else PENDING_FOR),
        address=origin.address,
        user_agent=agent,
    )
    if not await queries.begin(conn, session):
        return None
    await _end_beyond(conn, person_id, stage, token)
    return token


async def find(
    source: Source, now: datetime, token: str | None, *, is_used: bool = True
) -> PersonSession | None:
    """Return the session behind a cookie, of whichever stage; None where it has ended.

    `is_used` says whether the person uses it now: what asks by itself does not keep a session alive.
    """
    if not token or len(token) > LONGEST_TOKEN:
        return None
    found = await queries.session(source, token_hash(token), now - IDLE, now)
    if is_used and found is not None and now - found.used_at > TOUCH:
        await queries.mark_used(source, found.hash, now)
    return found


async def renew(conn: Connection, now: datetime, hash_: bytes, ways: Sequence[str]) -> str | None:
    """Give the session of a person who has just proved who they are a new token: it is full and confirmed
    from now on. None where it has ended meanwhile."""
    token = new_token()
    person_id = await queries.renew(conn, hash_, token_hash(token), list(ways), now, LONGEST)
    if person_id is None:
        return None
    await _end_beyond(conn, person_id, SessionStage.FULL, token)
    return token


async def look_at(source: Source, token: str, team_id: UUID) -> None:
    """Show that team in pages of this session from now on, as long as the person belongs to it."""
    await queries.look_at(source, token_hash(token), team_id)


async def end(source: Source, token: str) -> UUID | None:
    """End the session of a cookie; returns whose it was."""
    return await queries.end(source, token_hash(token))


async def end_one(source: Source, person_id: UUID, session_id: UUID) -> bool:
    """End one session of the person; False where there is none of that id."""
    return await queries.end_one(source, person_id, session_id)


async def end_all(source: Source, person_id: UUID, *, but: str | None = None) -> int:
    """End all sessions of the person, but the one of that token; returns how many there were."""
    kept = None if but is None else token_hash(but)
    return await queries.end_all(source, person_id, kept)


async def _end_beyond(conn: Connection, person_id: UUID, stage: SessionStage, newest: str) -> None:
    await queries.end_beyond(conn, person_id, stage.value, token_hash(newest), MOST[stage] - 1)
