"""Logging in by more than a password: the second factor after it, or a passkey in place of both.

A session of somebody who has a second factor is pending until it is given, for `PENDING_FOR`. Codes of the
phone can be guessed, so tries are counted for each person; recovery codes cannot, and are counted for each
place that they come from: who knows a password and tries codes does not keep the owner out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Source, transaction
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.people import queries, sessions
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.factors import totp
from pillarbox.people.factors.passkeys import PasskeyChallenge, Passkeys
from pillarbox.people.factors.second_factor import Factor, SecondFactor
from pillarbox.people.logins import LoginRefused, TooManyTries, network_of
from pillarbox.people.session_queries import PersonSession
from pillarbox.people.sessions import SessionOrigin, SessionStage
from pillarbox.people.visitors import Visitor

PENDING_FOR: Final = timedelta(minutes=10)
HOUR: Final = 3600.0
MOST_TRIES: Final = 10
CHALLENGE_WINDOW: Final = 300.0
MOST_CHALLENGES: Final = 60
PASSKEY: Final = "passkey"


class FullSession(NamedTuple):
    """A full session by its new token; `factor` is how the second factor was given."""

    token: str
    factor: Factor | None = None


@dataclass(frozen=True, slots=True)
class FactorLogins:
    """Lets people in."""

    pool: asyncpg.Pool
    ids: Ids
    windows: Windows
    factor: SecondFactor
    passkeys: Passkeys
    are_passkeys_closed: bool = False

    async def pending(self, now: datetime, token: str | None) -> PersonSession | None:
        """Return the session that waits for its second factor; None where it does not wait any more."""
        found = await sessions.find(self.pool, now, token)
        if (
            found is None
            or found.stage != SessionStage.PENDING.value
            or now - found.confirmed_at > PENDING_FOR
        ):
            return None
        return found

    async def give(
        self, now: datetime, pending: PersonSession, code: str, origin: SessionOrigin
    ) -> FullSession | TooManyTries | LoginRefused:
        """Give the second factor of a pending session."""
        is_short = len("".join(code.split())) <= totp.DIGITS
        kind = "code" if is_short else f"recovery code from {network_of(origin.address)}"
        window = key_for(f"{kind} of {pending.person_id}")
        taken = self.windows.take(window, MOST_TRIES, HOUR)
        if not taken.allowed:
            return TooManyTries(taken.reset)
        async with transaction(self.pool) as conn:
            factor = await self.factor.accept(conn, now, pending.person_id, code)
            actor = Actor(
                person_id=pending.person_id,
                key_id=None,
                grant_id=None,
                name=pending.email,
                address=origin.address,
                user_agent=origin.user_agent,
            )
            if factor is None:
                await record(conn, now, Act.LOGIN_FAILED, team_id=None, actor=actor, details={"way": "code"})
                return LoginRefused()
            ways = [*pending.ways, factor.value]
            token = await sessions.renew(conn, now, pending.hash, ways)
            if token is None:
                return LoginRefused()
            await queries.mark_login(conn, pending.person_id, now)
            if factor is Factor.RECOVERY:
                await record(conn, now, Act.RECOVERY_CODE_USED, team_id=None, actor=actor)
            await record(conn, now, Act.LOGIN_SUCCEEDED, team_id=None, actor=actor, details={"ways": ways})
        self.windows.give_back(window)
        return FullSession(token, factor)

    async def ask_for_passkey(self, now: datetime, origin: SessionOrigin) -> PasskeyChallenge | TooManyTries:
        """Return the challenge for the browser of somebody who is not logged in."""
        refused = self._too_many(f"passkeys from {network_of(origin.address)}")
        return refused or await self.passkeys.ask_to_log_in(self.pool, now)

    async def ask_to_confirm(self, now: datetime, visitor: Visitor) -> PasskeyChallenge | TooManyTries:
        """Return the challenge for the browser of a visitor who confirms their identity."""
        refused = self._too_many(f"passkeys of {visitor.person_id}")
        return refused or await self.passkeys.ask_to_confirm(self.pool, now, visitor.person_id)

    async def ask_for_new(self, now: datetime, visitor: Visitor) -> PasskeyChallenge | TooManyTries:
        """Return the challenge for the browser of a visitor that makes a passkey."""
        refused, who = self._too_many(f"passkeys of {visitor.person_id}"), visitor
        return refused or await self.passkeys.ask_for_new(self.pool, now, who.person_id, who.email, who.name)

    async def by_passkey(
        self, now: datetime, asked: str, answer: str, origin: SessionOrigin, replaced: str | None = None
    ) -> FullSession | LoginRefused:
        """Log in the person whose passkey has signed; the session of the token `replaced` ends with it."""
        async with transaction(self.pool) as conn:
            person_id = await self.passkeys.log_in(conn, now, asked, answer)
            if person_id is None or await self._is_closed_for(conn, person_id):
                return LoginRefused()
            if replaced is not None:
                await sessions.end(conn, replaced)
            session_id = self.ids.stamp().id
            token = await sessions.begin(conn, now, session_id, person_id, [PASSKEY], origin)
            person = await queries.person(conn, person_id)
            if token is None or person is None:
                return LoginRefused()
            await queries.mark_login(conn, person_id, now)
            actor = Actor(
                person_id=person_id,
                key_id=None,
                grant_id=None,
                name=person.email,
                address=origin.address,
                user_agent=origin.user_agent,
            )
            await record(
                conn, now, Act.LOGIN_SUCCEEDED, team_id=None, actor=actor, details={"ways": [PASSKEY]}
            )
        return FullSession(token)

    async def confirm(
        self, now: datetime, visitor: Visitor, asked: str, answer: str
    ) -> FullSession | LoginRefused:
        """Confirm the visitor's session, with a new token, where a passkey of theirs has signed."""
        async with transaction(self.pool) as conn:
            if not await self.passkeys.confirm(conn, now, visitor.person_id, asked, answer):
                return LoginRefused()
            token = await sessions.renew(
                conn, now, sessions.token_hash(visitor.token), with_way(visitor.ways, PASSKEY)
            )
        return LoginRefused() if token is None else FullSession(token)

    async def _is_closed_for(self, source: Source, person_id: UUID) -> bool:
        """Return whether a provider is the only way in for the person."""
        if not self.are_passkeys_closed:
            return False
        person = await queries.person(source, person_id)
        return person is None or not person.may_use_password

    def _too_many(self, what: str) -> TooManyTries | None:
        """Count a challenge and return a refusal above the limit: each is stored as a row for some
        minutes."""
        taken = self.windows.take(key_for(what), MOST_CHALLENGES, CHALLENGE_WINDOW)
        return None if taken.allowed else TooManyTries(taken.reset)


def with_way(ways: tuple[str, ...], way: str) -> list[str]:
    """Return the ways, with another one."""
    return list(dict.fromkeys((*ways, way)))
