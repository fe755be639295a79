"""People who come in by the provider for the first time, without an account that anybody has used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.people import accounts, queries
from pillarbox.people.accounts import clean_name
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.membership import invitations
from pillarbox.people.membership.members import hold
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.openid.provider_subject import ProviderSubject, verified_address
from pillarbox.people.queries import Person
from pillarbox.people.sessions import SessionOrigin
from pillarbox.teams import bootstrap


@dataclass(frozen=True, slots=True)
class NewAccounts:
    """Makes accounts of people who were invited, or whose domain the operator has named."""

    ids: Ids
    policy: OpenIdPolicy

    async def admit(
        self,
        conn: Connection,
        now: datetime,
        origin: SessionOrigin,
        subject: ProviderSubject,
        person: Person | None,
    ) -> UUID:
        """Return the account of a subject with a verified address: the given one, which nobody has used, or a
        new one. Raises OpenIdFailure where nobody has invited the address, and AddressTaken."""
        address, name = verified_address(subject), clean_name(subject.name or "")
        if person is None:
            person_id = await accounts.create(conn, self.ids.stamp(), address, name)
        else:
            person_id = person.id
            await self._take_over(conn, person_id, address)
        actor = Actor(person_id, name=address.shown, address=origin.address, user_agent=origin.user_agent)
        accepted = await invitations.accept_all(conn, now, self.ids, address, actor)
        if person is None and not accepted:
            await self._join_by_domain(conn, now, address, actor)
        await record(conn, now, Act.PERSON_SET_UP, team_id=None, actor=actor, details={"way": "openid"})
        return person_id

    async def _take_over(self, conn: Connection, person_id: UUID, address: EmailAddress) -> None:
        """End the links that were made for an account that nobody has used: whoever has one would set a
        password with it. Raises OpenIdFailure where one was used just now."""
        # In the order in which a link is used: first the link, then the person.
        await accounts.end_links(conn, person_id)
        await queries.lock(conn, person_id)
        person = await queries.person(conn, person_id)
        if person is None or person.disabled_at is not None or invitations.can_log_in(person):
            raise OpenIdFailure(OpenIdReason.STATE, "used meanwhile", address.shown)

    async def _join_by_domain(
        self, conn: Connection, now: datetime, address: EmailAddress, actor: Actor
    ) -> None:
        """Make the acting person a member of the operator's team."""
        if address.address.rpartition("@")[2] not in self.policy.domains:
            raise OpenIdFailure(OpenIdReason.NOT_INVITED, email=address.shown)
        assert actor.person_id is not None
        team_id, role = await self._team(conn, address), self.policy.role
        db = TeamDb(conn, team_id)
        await hold(db)
        await accounts.join(conn, self.ids.stamp(), actor.person_id, address, team_id, role)
        details = {"role": role.value, "way": "openid"}
        await record(
            conn,
            now,
            Act.MEMBER_ADDED,
            team_id=team_id,
            actor=actor,
            target=address.shown,
            details=details,
        )

    async def _team(self, conn: Connection, address: EmailAddress) -> UUID:
        """Return the team that people of the named domains join; raises OpenIdFailure where the setting names
        none, or several."""
        teams = [team for team in await bootstrap.list_teams(conn) if team.status != "disabled"]
        named = self.policy.team
        found = teams[:1] if named is None else [team for team in teams if named in (str(team.id), team.name)]
        if len(found) != 1:
            raise OpenIdFailure(OpenIdReason.NO_TEAM, f"{len(found)} teams fit", address.shown)
        return found[0].id
