"""Setting up an account by a link: the owner of a new installation, or somebody whom the operator made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.wire.email_address import EmailAddress, email_address
from pillarbox.people import accounts, audit, links, queries, sessions
from pillarbox.people.audit import Act, Actor
from pillarbox.people.passwords import Passwords
from pillarbox.people.roles import TeamRole
from pillarbox.people.sessions import SessionOrigin

WAY = "set_up"


@dataclass(frozen=True, slots=True)
class SetUpLink:
    """Whom a link is for; without an address it is for whoever opens it, who gives one."""

    email: str | None
    name: str | None
    is_closed: bool = False
    """Whether a provider is the only way in for whom the link is for."""


class SetUp:
    """Makes accounts of links."""

    def __init__(
        self, pool: asyncpg.Pool, ids: Ids, passwords: Passwords, *, are_passwords_closed: bool = False
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._passwords = passwords
        self._are_passwords_closed = are_passwords_closed

    async def find(self, now: datetime, token: str) -> SetUpLink | None:
        """Return whom the link is for; None where it does not work (any more)."""
        link = await links.find(self._pool, now, links.LinkKind.SET_UP, token)
        if link is None:
            return None
        if link.person_id is None:
            return SetUpLink(None, None, self._are_passwords_closed)
        person = await queries.person(self._pool, link.person_id)
        if person is None or person.disabled_at is not None:
            return None
        is_closed = self._are_passwords_closed and not person.may_use_password
        return SetUpLink(person.email, person.name, is_closed)

    async def finish(
        self,
        now: datetime,
        token: str,
        *,
        email: EmailAddress | None,
        name: str | None,
        password: str,
        origin: SessionOrigin,
        replaced: str | None = None,
    ) -> str | None:
        """Set up the account and return the token of its first session; None where the link does not work
        (any more). `email` counts where the link names nobody. Raises PasswordHashingBusy, and AddressTaken
        where another person has that address."""
        found = await self.find(now, token)
        if found is None or found.is_closed:
            return None
        hashed = await self._passwords.hashed(password)
        async with transaction(self._pool) as conn:
            link = await links.use(conn, now, links.LinkKind.SET_UP, token)
            if link is None:
                return None
            person_id = link.person_id
            if person_id is None:
                if email is None:
                    raise ValueError("the link names nobody, and neither does the form")
                person_id = await accounts.create(conn, self._ids.stamp(), email, name)
            person = await queries.person(conn, person_id)
            if person is None or person.disabled_at is not None:
                return None
            if link.team_id is not None:
                address = email_address(person.email)
                await accounts.join(conn, self._ids.stamp(), person_id, address, link.team_id, TeamRole.OWNER)
            if name is not None:
                await accounts.set_name(conn, person_id, name)
            await accounts.set_password(conn, now, person_id, hashed)
            await self._record(conn, now, person_id, person.email, origin)
            if replaced is not None:
                await sessions.end(conn, replaced)
            await queries.mark_login(conn, person_id, now)
            return await sessions.begin(conn, now, self._ids.new(), person_id, [WAY], origin)

    async def _record(
        self, conn: Connection, now: datetime, person_id: UUID, email: str, o: SessionOrigin
    ) -> None:
        actor = Actor(person_id=person_id, name=email, address=o.address, user_agent=o.user_agent)
        await audit.record(conn, now, Act.PERSON_SET_UP, team_id=None, actor=actor)
