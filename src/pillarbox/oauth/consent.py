"""Decides a request of a program (oauth.md 5.1): each request once, in the browser that it came from, and in
a team where the person may let programs act."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.api_keys import keys
from pillarbox.api_keys.keys import InboxLimit
from pillarbox.kernel.ids import Stamp
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.oauth import authorization, grants, request_queries, scopes, token_queries
from pillarbox.oauth.authorization import Authorization, AuthorizationRequest
from pillarbox.oauth.clients import client_queries, clients
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.oauth.tokens import CODE_LIFETIME
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.roles import TeamAct, TeamRole, may_do


class ConsentTeam(NamedTuple):
    """A team that somebody belongs to."""

    id: UUID
    name: str
    role: TeamRole

    @property
    def lets_programs_act(self) -> bool:
        return may_do(self.role, TeamAct.LET_PROGRAM_ACT)


@dataclass(frozen=True, slots=True)
class ConsentOutcome:
    """Where the browser goes back to the program; or why nothing was decided."""

    location: str | None = None
    is_over: bool = False
    may_not: bool = False
    is_without_inbox: bool = False


class Consent:
    """Writes down what people decide."""

    def __init__(self, pool: asyncpg.Pool, server: Authorization) -> None:
        self._pool = pool
        self._server = server

    async def waiting(
        self, now: datetime, request_id: str, browser: str | None
    ) -> AuthorizationRequest | None:
        """Return the request, while it waits for somebody in this browser."""
        return await authorization.waiting(self._pool, now, request_id, browser)

    async def teams_of(self, person_id: UUID) -> list[ConsentTeam]:
        """Return the teams of a person, by name."""
        teams = await request_queries.teams_of_person(self._pool, person_id)
        return [ConsentTeam(team.team_id, team.name, TeamRole(team.role)) for team in teams]

    async def approve(
        self,
        stamp: Stamp,
        request_id: str,
        browser: str | None,
        person: Actor,
        team_id: UUID,
        inbox: InboxLimit | None = None,
    ) -> ConsentOutcome:
        """Let the program act for the person in a team, or in one inbox of it, and give it a code."""
        assert person.person_id is not None, "somebody approves"
        async with transaction(self._pool) as conn:
            role = await request_queries.lock_member(conn, team_id, person.person_id)
            if role is None or not may_do(TeamRole(role), TeamAct.LET_PROGRAM_ACT):
                return ConsentOutcome(may_not=True)
            if inbox is not None and not await keys.hold_inbox(TeamDb(conn, team_id), inbox.inbox_id):
                return ConsentOutcome(is_without_inbox=True)
            asked = await authorization.decide(conn, stamp.at, request_id, browser)
            if asked is None or not await _take_into_use(conn, stamp.at, asked.client.id):
                return ConsentOutcome(is_over=True)
            if inbox is not None and scopes.FULL_ACCESS not in asked.scopes:
                raise ValueError("a program gets no more than it asks for")
            granted = GrantedAccess.of(asked, inbox)
            code = await _grant(conn, stamp, asked, person.person_id, team_id, granted)
            details: dict[str, object] = {"client_id": asked.client.id, "scopes": list(granted.scopes)}
            if granted.inbox_id is not None:
                details["inbox_id"] = str(granted.inbox_id)
            await record(
                conn,
                stamp.at,
                Act.GRANT_GIVEN,
                team_id=team_id,
                actor=person,
                target=asked.client.name,
                details=details,
            )
        return ConsentOutcome(self._server.answer(asked, code))

    async def deny(
        self, now: datetime, request_id: str, browser: str | None, person: Actor, team_id: UUID | None
    ) -> ConsentOutcome:
        """Tell the program that the person does not want it."""
        async with transaction(self._pool) as conn:
            asked = await authorization.decide(conn, now, request_id, browser)
            if asked is None:
                return ConsentOutcome(is_over=True)
            await record(
                conn,
                now,
                Act.GRANT_DENIED,
                team_id=team_id,
                actor=person,
                target=asked.client.name,
                details={"client_id": asked.client.id},
            )
        text = "the person has refused"
        return ConsentOutcome(self._server.refusal(asked.redirect_uri, asked.state, "access_denied", text))


class GrantedAccess(NamedTuple):
    """The access that the person grants: what the program asked for, or rights in one inbox."""

    scopes: tuple[str, ...]
    inbox_id: UUID | None

    @classmethod
    def of(cls, asked: AuthorizationRequest, inbox: InboxLimit | None) -> GrantedAccess:
        if inbox is None:
            return cls(tuple(asked.scopes), None)
        names = [name for name, right in scopes.INBOX.items() if right in inbox.rights]
        return cls(tuple(names), inbox.inbox_id)


async def _take_into_use(conn: Connection, now: datetime, client_id: str) -> bool:
    """Lock the program and mark it as granted now; False where it may not be used any more."""
    if clients.is_document_url(client_id):
        return True
    if not await client_queries.lock_usable(conn, UUID(client_id)):
        return False
    await client_queries.mark_granted(conn, UUID(client_id), now)
    return True


async def _grant(
    conn: Connection,
    stamp: Stamp,
    asked: AuthorizationRequest,
    person_id: UUID,
    team_id: UUID,
    granted: GrantedAccess,
) -> str:
    """Store the grant with its code, and return the code."""
    ref, code = GrantRef(team_id, stamp.id), clients.new_secret()
    await grants.add(
        conn,
        stamp.at,
        ref,
        client_id=asked.client.id,
        client=asked.client.snapshot(),
        person_id=person_id,
        scopes=granted.scopes,
        inbox_id=granted.inbox_id,
    )
    await token_queries.add_code(
        conn,
        clients.hashed(code),
        ref,
        client_id=asked.client.id,
        redirect_uri=asked.redirect_uri,
        challenge=asked.challenge,
        now=stamp.at,
        expires_at=stamp.at + CODE_LIFETIME,
    )
    return code
