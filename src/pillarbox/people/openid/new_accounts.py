"""People who come in by the provider for the first time, without an account that anybody has used.

They are accepted by the invitation whose link they opened, and by no other: whoever invites an address learns
nothing of the person by it. The domain of the address counts with an invitation as well as without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
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
from pillarbox.people.openid.joined_team import joined_team
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.openid.provider_subject import ProviderSubject, verified_address
from pillarbox.people.queries import Person
from pillarbox.people.sessions import SessionOrigin


class AdmittedPerson(NamedTuple):
    """Somebody who came in; `invited_to` is the team whose invitation was accepted."""

    person_id: UUID
    invited_to: UUID | None


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
        invitation: str | None,
    ) -> AdmittedPerson:
        """Admit a subject with a verified address to the given account, which nobody has used, or to a new
        one. `invitation` is the token of the link that the login came from. Raises OpenIdFailure where
        neither that nor the domain lets the address in, and AddressTaken."""
        address, name = verified_address(subject), clean_name(subject.name or "")
        # In the order in which an invitation is accepted elsewhere: its link, the team, the person.
        taken = None
        if invitation is not None:
            taken = await invitations.take_for(conn, now, invitation, address)
        team_id = None
        if person is None:
            team_id = await self._team(conn, address, is_invited=taken is not None)
        if person is None:
            person_id = await accounts.create(conn, self.ids.stamp(), address, name)
        else:
            person_id = person.id
            await self._take_over(conn, person_id, address)
        actor = Actor(person_id, name=address.shown, address=origin.address, user_agent=origin.user_agent)
        if taken is not None:
            await invitations.join_invited(conn, now, self.ids, taken, actor, way="openid")
        invited_to = None if taken is None else taken.team_id
        if team_id is not None and team_id != invited_to:
            await self._join_by_domain(conn, now, team_id, address, actor)
        await record(conn, now, Act.PERSON_SET_UP, team_id=None, actor=actor, details={"way": "openid"})
        return AdmittedPerson(person_id, invited_to)

    async def _take_over(self, conn: Connection, person_id: UUID, address: EmailAddress) -> None:
        """End the links that were made for an account that nobody has used: whoever has one would set a
        password with it. Raises OpenIdFailure where one was used just now."""
        # In the order in which a link is used: first the link, then the person.
        await accounts.end_links(conn, person_id)
        await queries.lock(conn, person_id)
        person = await queries.person(conn, person_id)
        if person is None or person.disabled_at is not None or invitations.can_log_in(person):
            raise OpenIdFailure(OpenIdReason.STATE, "used meanwhile", address.shown)

    async def _team(self, conn: Connection, address: EmailAddress, *, is_invited: bool) -> UUID | None:
        """Return the team that the domain of the address leads to; None where it leads to none and the person
        is invited. Raises OpenIdFailure where the person is not."""
        is_named = address.address.rpartition("@")[2] in self.policy.domains
        team_id = await joined_team(conn, self.policy) if is_named else None
        if team_id is None and not is_invited:
            reason = OpenIdReason.NO_TEAM if is_named else OpenIdReason.NOT_INVITED
            raise OpenIdFailure(reason, email=address.shown)
        return team_id

    async def _join_by_domain(
        self, conn: Connection, now: datetime, team_id: UUID, address: EmailAddress, actor: Actor
    ) -> None:
        """Make the acting person a member of the operator's team."""
        assert actor.person_id is not None
        db, role = TeamDb(conn, team_id), self.policy.role
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
