"""Invitations to a team: a link that works once, for seven days, by mail or printed for the operator.

Whoever opens the link reads the mail of the address. So it makes a person where there is none that can log
in; a person that is there logs in and then joins. An invitation ends with the power of whoever made it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.kernel.wire.email_address import EmailAddress, email_address
from pillarbox.people import accounts, links, queries, sessions
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.mails import SystemMail
from pillarbox.people.membership import invitation_queries, member_queries
from pillarbox.people.membership.invitation_queries import OpenInvitation
from pillarbox.people.membership.members import MemberChangeActor, hold
from pillarbox.people.passwords import Passwords
from pillarbox.people.queries import Person
from pillarbox.people.roles import TeamRole, may_manage
from pillarbox.people.sessions import SessionOrigin

WAY: Final = "invitation"
PATH: Final = "/invitation/"
"""The path of a link, before its token."""

LASTS: Final = links.LIFETIME[links.LinkKind.INVITATION]
A_DAY: Final = timedelta(days=1)
MOST_A_DAY: Final = 50
"""Each is a mail to an address that somebody typed in."""

SUBJECT: Final = "Invitation to the team {team}"
TEXT: Final = """\
{inviter} invites you to the team {team} of the Pillarbox at {site}.

This link works once, until {until} UTC:

{link}

If you expected no invitation, ignore this mail.
"""


class InvitationRefusal(Enum):
    """Why somebody was not invited, or an invitation not ended."""

    NOT_ALLOWED = "not allowed"
    IS_MEMBER = "is a member"
    TOO_MANY = "too many"
    GONE = "gone"


class NewInvitation(NamedTuple):
    """A new invitation with its link, which is nowhere else."""

    id: UUID
    link: str


class OpenedInvitation(NamedTuple):
    """The meaning of a link now. `person` is who has that address and can log in."""

    invitation: OpenInvitation
    person: Person | None


class AcceptedInvitation(NamedTuple):
    """An invitation that was just accepted."""

    team_id: UUID
    email: str
    role: TeamRole


class NoLongerOpen(Exception):  # noqa: N818 - takes back what the transaction did
    """Somebody was faster, or the invitation has just ended."""


class Invitations:
    """Invites people to teams, and lets them join. `site` is the URL of the installation."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        ids: Ids,
        passwords: Passwords,
        mail: SystemMail | None,
        site: str,
        *,
        are_passwords_closed: bool = False,
    ) -> None:
        self._pool = pool
        self._ids = ids
        self._passwords = passwords
        self._mail = mail
        self._site = site
        self._are_passwords_closed = are_passwords_closed

    async def invite(
        self, db: TeamDb, by: MemberChangeActor, address: EmailAddress, role: TeamRole
    ) -> NewInvitation | InvitationRefusal:
        """Invite an address to the team by mail; an earlier invitation of it ends."""
        return await invite(db, by, self._ids, address, role, site=self._site, mail=self._mail)

    async def find(self, now: datetime, token: str) -> OpenedInvitation | None:
        """Return the meaning of the link; None where it does not work (any more)."""
        link = await links.find(self._pool, now, links.LinkKind.INVITATION, token)
        if link is None or link.team_id is None:
            return None
        found = await invitation_queries.open_invitation(
            TeamDb(self._pool, link.team_id), link.invitation_id, now
        )
        if found is None:
            return None
        person = await queries.person_of_address(self._pool, email_address(found.email).address)
        return OpenedInvitation(found, person if person is not None and can_log_in(person) else None)

    async def join(self, now: datetime, token: str, actor: Actor) -> bool:
        """Make the acting person, who has logged in with the address of the invitation, a member."""
        async with transaction(self._pool) as conn:
            taken = await take(conn, now, token)
            if taken is not None:
                await join_invited(conn, now, self._ids, taken, actor)
        return taken is not None

    async def join_newly(
        self,
        now: datetime,
        token: str,
        *,
        name: str | None,
        password: str,
        origin: SessionOrigin,
        replaced: str | None = None,
    ) -> str | None:
        """Make a person of the address of the invitation, and it a member; returns the token of its session.
        None where the link does not work (any more), or somebody can log in with that address by now, or
        passwords let nobody in. Raises
        PasswordHashingBusy."""
        if self._are_passwords_closed:
            return None
        hashed = await self._passwords.hashed(password)
        try:
            return await self._begin(now, token, name, hashed, origin, replaced)
        except NoLongerOpen:
            return None

    async def _begin(
        self,
        now: datetime,
        token: str,
        name: str | None,
        hashed: str,
        origin: SessionOrigin,
        replaced: str | None,
    ) -> str | None:
        async with transaction(self._pool) as conn:
            # First of all: of several who open the link at once, one makes the person.
            taken = await take(conn, now, token)
            if taken is None:
                return None
            address = email_address(taken.email)
            person = await queries.person_of_address(conn, address.address)
            if person is not None and (can_log_in(person) or person.disabled_at is not None):
                raise NoLongerOpen
            person_id = person.id if person else await accounts.create(conn, self._ids.stamp(), address, name)
            actor = Actor(person_id, name=address.shown, address=origin.address, user_agent=origin.user_agent)
            await join_invited(conn, now, self._ids, taken, actor)
            if name is not None:
                await accounts.set_name(conn, person_id, name)
            await accounts.set_password(conn, now, person_id, hashed)
            await record(conn, now, Act.PERSON_SET_UP, team_id=None, actor=actor)
            if replaced is not None:
                await sessions.end(conn, replaced)
            await queries.mark_login(conn, person_id, now)
            return await sessions.begin(conn, now, self._ids.new(), person_id, [WAY], origin)


async def take(conn: Connection, now: datetime, token: str) -> AcceptedInvitation | None:
    """Take the invitation behind the link, which works once."""
    link = await links.use(conn, now, links.LinkKind.INVITATION, token)
    if link is None or link.team_id is None:
        return None
    db = TeamDb(conn, link.team_id)
    await hold(db)
    found = await invitation_queries.accept(db, link.invitation_id, now)
    return None if found is None else AcceptedInvitation(link.team_id, found.email, TeamRole(found.role))


async def take_for(
    conn: Connection, now: datetime, token: str, address: EmailAddress
) -> AcceptedInvitation | None:
    """Take the invitation behind the link where it is for this address; leave any other open."""
    link = await links.find(conn, now, links.LinkKind.INVITATION, token)
    if link is None or link.team_id is None:
        return None
    found = await invitation_queries.open_invitation(TeamDb(conn, link.team_id), link.invitation_id, now)
    if found is None or email_address(found.email).address != address.address:
        return None
    return await take(conn, now, token)


async def join_invited(
    conn: Connection, now: datetime, ids: Ids, taken: AcceptedInvitation, actor: Actor, way: str | None = None
) -> None:
    """Make the acting person a member by an invitation that was taken."""
    assert actor.person_id is not None
    address = email_address(taken.email)
    await accounts.join(conn, ids.stamp(), actor.person_id, address, taken.team_id, taken.role)
    details = {"role": taken.role.value, **({} if way is None else {"way": way})}
    db = TeamDb(conn, taken.team_id)
    await MemberChangeActor(actor, now).record(db, Act.INVITATION_ACCEPTED, taken.email, details)


async def invite(
    db: TeamDb,
    by: MemberChangeActor,
    ids: Ids,
    address: EmailAddress,
    role: TeamRole,
    *,
    site: str,
    mail: SystemMail | None = None,
) -> NewInvitation | InvitationRefusal:
    """Invite an address to the team, by mail if there is any; an earlier invitation of it ends."""
    async with db.transaction() as inner:
        await hold(inner)
        acting = await by.role(inner)
        if acting is None or not may_manage(acting, role):
            return InvitationRefusal.NOT_ALLOWED
        if await invitation_queries.is_member(inner, address.address):
            return InvitationRefusal.IS_MEMBER
        # What the address has is lost: only whoever might take it away may put something else there.
        held = await invitation_queries.roles_of_address(inner, address.shown, by.at)
        if not all(may_manage(acting, TeamRole(one)) for one in held):
            return InvitationRefusal.NOT_ALLOWED
        if await invitation_queries.invited_since(inner, by.at - A_DAY) >= MOST_A_DAY:
            return InvitationRefusal.TOO_MANY
        made = await _store(inner, by, ids.new(), address, role, site)
        if mail is not None:
            await _send(inner, by, mail, address, made, site)
        await by.record(inner, Act.INVITATION_MADE, address.shown, {"role": role.value})
    return made


async def _store(
    db: TeamDb, by: MemberChangeActor, invitation_id: UUID, address: EmailAddress, role: TeamRole, site: str
) -> NewInvitation:
    await invitation_queries.end_earlier(db, address.shown, by.at)
    await invitation_queries.invite(
        db,
        invitation_id,
        address.shown,
        role.value,
        by.actor.person_id,
        by.at,
        by.at + LASTS,
    )
    token = await links.make(
        db.connection, by.at, links.LinkKind.INVITATION, team_id=db.team_id, invitation_id=invitation_id
    )
    return NewInvitation(invitation_id, f"{site}{PATH}{token}")


async def _send(
    db: TeamDb,
    by: MemberChangeActor,
    mail: SystemMail,
    address: EmailAddress,
    new_invitation: NewInvitation,
    site: str,
) -> None:
    team = one_line(await member_queries.team_name(db))
    text = TEXT.format(
        inviter=one_line(by.actor.name or ""),
        team=team,
        site=site,
        until=f"{by.at + LASTS:%Y-%m-%d %H:%M}",
        link=new_invitation.link,
    )
    await mail.send(db.connection, by.at, to=address.shown, subject=SUBJECT.format(team=team), text=text)


async def end(db: TeamDb, by: MemberChangeActor, invitation_id: UUID) -> InvitationRefusal | None:
    """End an invitation that nobody has accepted yet."""
    async with db.transaction() as inner:
        await hold(inner)
        acting = await by.role(inner)
        role = await invitation_queries.invitation_role(inner, invitation_id, by.at)
        if role is None:
            return InvitationRefusal.GONE
        if acting is None or not may_manage(acting, TeamRole(role)):
            return InvitationRefusal.NOT_ALLOWED
        email = await invitation_queries.end_invitation(inner, invitation_id, by.at)
        await by.record(inner, Act.INVITATION_REVOKED, email)
    return None


def can_log_in(person: Person) -> bool:
    """Return whether somebody has set up this account: otherwise a person who reads its mail may."""
    return person.password is not None or person.last_login_at is not None


def one_line(text: str) -> str:
    """Return a name as it may stand in a mail, so that no invited person takes it for more than a name."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:100]
