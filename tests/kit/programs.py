"""Programs that a person lets act in a team: rows as an approval leaves them, and access tokens.

The whole way by a browser is in `oauth/`; here is what tests of everything behind it need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from kit.world import Team
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.oauth import access_tokens, grants
from pillarbox.oauth.bearer.tokens import BearerTokens
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.oauth.grants import Reason
from pillarbox.oauth.keys import SigningKeys
from pillarbox.people.roles import TeamRole

CLIENT_ID = "2f6d2d3e-0f2b-4d7d-9a57-3b1f5c9a7e10"
CLIENT = {"name": "Quill", "logo_uri": None}
BOTH = ("full_access", "emails:send")


@dataclass(slots=True)
class Program:
    """A program with a grant, and the team as it sees it by its access token."""

    team: Team
    ref: GrantRef
    person_id: UUID
    scopes: Sequence[str]
    acting: Team

    @property
    def token(self) -> str:
        return self.acting.token

    async def revoke(self, reason: Reason = Reason.FROM_DASHBOARD) -> None:
        pillarbox = self.team.world
        assert await grants.revoke(pillarbox.pool, pillarbox.clock.now(), self.ref, reason)
        self.forget()

    def forget(self) -> None:
        """Have what the process remembers of the grant asked for again."""
        self.team.world.app.need(BearerTokens).forget(self.team.id)


async def a_member(team: Team, role: TeamRole = TeamRole.MEMBER, email: str | None = None) -> UUID:
    """Store somebody who is in the team."""
    person_id, now = uuid4(), team.world.clock.now()
    address = email or f"{role.value}-{person_id.hex[:8]}@people.example"
    await team.world.pool.execute(
        "INSERT INTO people (id, email, email_key, name, created_at) VALUES ($1, $2, $2, $3, $4)",
        person_id,
        address,
        role.value.title(),
        now,
    )
    await team.world.pool.execute(
        "INSERT INTO team_members (team_id, id, email, created_at, person_id, role)"
        " VALUES ($1, $2, $3, $4, $5, $6)",
        team.id,
        uuid4(),
        address,
        now,
        person_id,
        role.value,
    )
    return person_id


async def a_grant(
    team: Team,
    person_id: UUID,
    scopes: Sequence[str] = BOTH,
    *,
    name: str = "Quill",
    client_id: str = CLIENT_ID,
) -> GrantRef:
    """Store what the person allowed a program to do."""
    stamp = team.world.app.need(Ids).stamp()
    ref = GrantRef(team.id, stamp.id)
    async with transaction(team.world.pool) as conn:
        await grants.add(
            conn,
            stamp.at,
            ref,
            client_id=client_id,
            client={**CLIENT, "name": name},
            person_id=person_id,
            scopes=scopes,
        )
    return ref


async def a_token(
    team: Team,
    ref: GrantRef,
    person_id: UUID,
    scopes: Sequence[str] = BOTH,
    client_id: str = CLIENT_ID,
) -> str:
    """Return an access token as the token endpoint gives it."""
    app = team.world.app
    return await access_tokens.issue(
        app.need(SigningKeys),
        team.world.clock.now(),
        issuer=app.kit.settings.public_url,
        person_id=person_id,
        client_id=client_id,
        scopes=scopes,
        team_id=ref.team_id,
        grant_id=ref.id,
    )


async def program(
    team: Team,
    scopes: Sequence[str] = ("full_access",),
    role: TeamRole = TeamRole.MEMBER,
    name: str = "Quill",
    person_id: UUID | None = None,
) -> Program:
    """Return a program that this person, or somebody with this role, lets act for the team."""
    person_id = person_id or await a_member(team, role)
    ref = await a_grant(team, person_id, scopes, name=name)
    token = await a_token(team, ref, person_id, scopes)
    return Program(team=team, ref=ref, person_id=person_id, scopes=scopes, acting=team.using(token))
