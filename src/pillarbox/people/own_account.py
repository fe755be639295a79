"""Changes of people's own account: name, password, second factor, passkeys, sessions.

Each change is recorded in its transaction. Those that give or take a way to log in give the session a new
token (UI-05), and those that make other ways worth less end all other sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.wire.problems import Conflict
from pillarbox.people import account_queries, accounts, sessions
from pillarbox.people.account_queries import AccountState, ShownSession
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.factors import passkey_queries, second_factor
from pillarbox.people.factors.passkey_queries import ShownPasskey
from pillarbox.people.factors.passkeys import Passkeys
from pillarbox.people.factors.second_factor import Enrolment, SecondFactor
from pillarbox.people.passwords import Passwords
from pillarbox.people.sessions import IDLE, SessionOrigin
from pillarbox.people.visitors import Visitor


class SessionEnded(Conflict):
    def __init__(self) -> None:
        super().__init__("You were logged out in the meantime, so nothing was changed. Please log in again.")


class RenewedSession(NamedTuple):
    """Done: the session's new token, and the recovery codes where there are new ones. They cannot be seen
    again."""

    token: str
    codes: Sequence[str] = ()


class AccountOverview(NamedTuple):
    """Everything that somebody sees of the own account."""

    state: AccountState
    passkeys: Sequence[ShownPasskey]
    sessions: Sequence[ShownSession]


@dataclass(frozen=True, slots=True)
class AccountChange:
    """The person who changes their account, when and from where."""

    at: datetime
    visitor: Visitor
    origin: SessionOrigin

    @property
    def actor(self) -> Actor:
        who = self.visitor
        return Actor(
            person_id=who.person_id,
            key_id=None,
            grant_id=None,
            name=who.email,
            address=self.origin.address,
            user_agent=self.origin.user_agent,
        )

    async def record(self, conn: Connection, what: Act, details: Mapping[str, object] | None = None) -> None:
        await record(
            conn,
            self.at,
            what,
            team_id=None,
            actor=self.actor,
            target=self.visitor.email,
            details=details,
        )


@dataclass(frozen=True, slots=True)
class OwnAccount:
    """Changes and shows the account of a visitor."""

    pool: asyncpg.Pool
    passwords: Passwords
    factor: SecondFactor
    passkeys: Passkeys

    async def overview(self, now: datetime, person_id: UUID) -> AccountOverview | None:
        """Return the person's account; None where the person has gone meanwhile."""
        state = await account_queries.state_of(self.pool, person_id)
        if state is None:
            return None
        return AccountOverview(
            state,
            await passkey_queries.of_person(self.pool, person_id),
            await account_queries.sessions_of(self.pool, person_id, now - IDLE, now),
        )

    async def has_second_factor(self, person_id: UUID) -> bool:
        """Return whether the person has a second factor or a passkey."""
        return await account_queries.has_second_factor(self.pool, person_id)

    async def rename(self, acting: AccountChange, name: str | None) -> None:
        async with transaction(self.pool) as conn:
            await accounts.set_name(conn, acting.visitor.person_id, name)
            await acting.record(conn, Act.PERSON_RENAMED, {"name": name})

    async def change_password(self, acting: AccountChange, password: str) -> RenewedSession:
        """Set a new password and end all other sessions (SEC-03). Raises PasswordHashingBusy, and
        SessionEnded."""
        hashed = await self.passwords.hashed(password)
        visitor = acting.visitor
        async with transaction(self.pool) as conn:
            await accounts.set_password(conn, acting.at, visitor.person_id, hashed, keep=visitor.token)
            await acting.record(conn, Act.PASSWORD_CHANGED)
            return await renew_session(conn, acting)

    # The second factor ---------------------------------------------------------------------------

    async def begin_factor(self, acting: AccountChange) -> bool:
        """Make a new seed; False where the person has a second factor already."""
        return await self.factor.begin(self.pool, acting.visitor.person_id)

    async def enrolment(self, visitor: Visitor) -> Enrolment | None:
        """Return the enrolment of the seed that waits; None where none does."""
        return await self.factor.enrolment(self.pool, visitor.person_id, visitor.email)

    async def finish_factor(self, acting: AccountChange, code: str) -> RenewedSession | None:
        """Begin to ask for a code at each login, and end all other sessions. None where the code is wrong, or
        no seed waits."""
        visitor = acting.visitor
        async with transaction(self.pool) as conn:
            codes = await self.factor.finish(conn, acting.at, visitor.person_id, code)
            if codes is None:
                return None
            await sessions.end_all(conn, visitor.person_id, but=visitor.token)
            await acting.record(conn, Act.FACTOR_ADDED)
            return await renew_session(conn, acting, codes)

    async def new_codes(self, acting: AccountChange) -> RenewedSession | None:
        """Replace the recovery codes; None without a second factor."""
        async with transaction(self.pool) as conn:
            codes = await self.factor.new_codes(conn, acting.visitor.person_id)
            if codes is None:
                return None
            await acting.record(conn, Act.RECOVERY_CODES_MADE)
            return await renew_session(conn, acting, codes)

    async def remove_factor(self, acting: AccountChange) -> RenewedSession | None:
        """Remove the second factor, so that the password alone is enough; None where it was."""
        async with transaction(self.pool) as conn:
            if not await second_factor.remove(conn, acting.visitor.person_id):
                return None
            await acting.record(conn, Act.FACTOR_REMOVED)
            return await renew_session(conn, acting)

    # Passkeys ------------------------------------------------------------------------------------

    async def add_passkey(
        self, acting: AccountChange, asked: str, answer: str, name: str
    ) -> RenewedSession | None:
        """Keep what the browser made; None where its answer is not right."""
        person_id = acting.visitor.person_id
        async with transaction(self.pool) as conn:
            if not await self.passkeys.add(conn, acting.at, person_id, asked, answer, name):
                return None
            await acting.record(conn, Act.PASSKEY_ADDED, {"name": name})
            return await renew_session(conn, acting)

    async def remove_passkey(self, acting: AccountChange, passkey_id: bytes) -> bool:
        """Remove a passkey; False where the person has no such one."""
        async with transaction(self.pool) as conn:
            name = await passkey_queries.remove(conn, acting.visitor.person_id, passkey_id)
            if name is not None:
                await acting.record(conn, Act.PASSKEY_REMOVED, {"name": name})
        return name is not None

    # Sessions ------------------------------------------------------------------------------------

    async def end_session(self, acting: AccountChange, session_id: UUID) -> bool:
        """End a session; False where the person has none of that id."""
        async with transaction(self.pool) as conn:
            is_ended = await sessions.end_one(conn, acting.visitor.person_id, session_id)
            if is_ended:
                await acting.record(conn, Act.SESSION_REVOKED)
        return is_ended

    async def log_out_everywhere(self, acting: AccountChange) -> None:
        """End all sessions, this one too."""
        async with transaction(self.pool) as conn:
            ended = await sessions.end_all(conn, acting.visitor.person_id)
            await acting.record(conn, Act.LOGGED_OUT_EVERYWHERE, {"sessions": ended})


async def renew_session(conn: Connection, acting: AccountChange, codes: Sequence[str] = ()) -> RenewedSession:
    """Give the session a new token. Raises SessionEnded: a person who was logged out meanwhile, by another
    password for instance, changes nothing any more."""
    visitor = acting.visitor
    token = await sessions.renew(conn, acting.at, sessions.token_hash(visitor.token), list(visitor.ways))
    if token is None:
        raise SessionEnded
    return RenewedSession(token, codes)
