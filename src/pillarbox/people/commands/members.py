"""`pillarbox people` for the members of a team: who belongs to it, and who is invited."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people.audit import OPERATOR
from pillarbox.people.membership import invitations, member_queries
from pillarbox.people.membership import members as changes
from pillarbox.people.membership.invitations import InvitationRefusal
from pillarbox.people.membership.member_queries import Member
from pillarbox.people.membership.members import KeysOfMember, MemberChange, MemberChangeActor
from pillarbox.people.roles import TeamRole
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team

Email = Annotated[str, typer.Argument(metavar="ADDRESS", help="The person's email address.")]
InvitedRole = Annotated[TeamRole, typer.Option("--role", help="What the person may do in the team.")]
NewRole = Annotated[TeamRole, typer.Argument(help="What the person may do in the team from now on.")]
WithKeys = Annotated[
    bool, typer.Option("--delete-keys", help="Delete the API keys that the person has made.")
]
KeepKeys = Annotated[
    bool, typer.Option("--keep-keys", help="Make the API keys that the person has made the team's own.")
]

REFUSED = {
    InvitationRefusal.IS_MEMBER: "{email} belongs to the team {team!r} already.",
    InvitationRefusal.TOO_MANY: "The team {team!r} has had its invitations of today.",
}
BECAME = {
    KeysOfMember.END: "does nothing any more; `pillarbox keys keep {id}` makes it the team's own",
    KeysOfMember.KEEP: "the team's own now",
    KeysOfMember.DELETE: "deleted",
}
NOT_CHANGED = {
    MemberChange.GONE: "{email} does not belong to the team {team!r}.",
    MemberChange.LAST_OWNER: "The team {team!r} needs an owner who can log in.",
}


def invite(
    email: Email,
    team: TeamOption = None,
    role: InvitedRole = TeamRole.MEMBER,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link by which somebody joins a team; it works once, for seven days. No mail is sent."""
    perform(
        lambda connected: make_invitation(connected, email, team, role, json=json),
        data=data,
        database_url=database_url,
    )


def members(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the members of a team, or of all teams."""
    perform(lambda connected: show_members(connected, team, json=json), data=data, database_url=database_url)


def set_role(
    email: Email, role: NewRole, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Give a member of a team another role."""
    perform(lambda connected: change_role(connected, email, team, role), data=data, database_url=database_url)


def remove(
    email: Email,
    team: TeamOption = None,
    delete_keys: WithKeys = False,
    keep_keys: KeepKeys = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Take a person out of a team: its sessions and API keys there, and what it let programs do, end."""
    if delete_keys and keep_keys:
        raise typer.BadParameter("Keys are kept or deleted, not both.", param_hint="--keep-keys")
    made_keys = KeysOfMember.END
    if delete_keys or keep_keys:
        made_keys = KeysOfMember.KEEP if keep_keys else KeysOfMember.DELETE
    perform(
        lambda connected: take_out(connected, email, team, made_keys),
        data=data,
        database_url=database_url,
    )


async def make_invitation(
    connected: CommandDatabase, email: str, team: str | None, role: TeamRole, *, json: bool
) -> int:
    address, ids = address_of(email), Ids(SystemClock())
    owner = await one_team(connected, team)
    made = await invitations.invite(
        TeamDb(connected.pool, owner.id),
        by_operator(),
        ids,
        address,
        role,
        site=connected.settings.public_url,
    )
    if isinstance(made, InvitationRefusal):
        raise CommandRefused(REFUSED[made].format(email=address.shown, team=owner.name))
    if json:
        show_json({"object": "invitation", "id": made.id, "email": address.shown, "url": made.link})
        return 0
    say(f"invitation {made.id}")
    say(f"join {made.link} (works once, for seven days)")
    return 0


async def show_members(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    found = [
        (owner, member)
        for owner in await chosen_teams(connected, team)
        for member in await member_queries.members(TeamDb(connected.pool, owner.id))
    ]
    if json:
        show_json(
            {"object": "list", "data": [{"team_id": owner.id, **shape(member)} for owner, member in found]}
        )
        return 0
    show_table(
        ("Team", "Email", "Name", "Role", "Account", "Last login"),
        [
            (
                owner.name,
                member.email,
                member.name,
                member.role,
                account(member),
                member.last_login_at or "never",
            )
            for owner, member in found
        ],
    )
    return 0


async def change_role(connected: CommandDatabase, email: str, team: str | None, role: TeamRole) -> int:
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    member = await found(db, email, owner.name)
    answer(await changes.set_role(db, by_operator(), member.id, role), member, owner.name)
    say(f"{member.email} is {role.value} of the team {owner.name}.")
    return 0


async def take_out(connected: CommandDatabase, email: str, team: str | None, made_keys: KeysOfMember) -> int:
    owner = await one_team(connected, team)
    db = TeamDb(connected.pool, owner.id)
    member = await found(db, email, owner.name)
    made = [] if member.person_id is None else await changes.keys_of(db, member.person_id)
    answer(await changes.remove(db, by_operator(), member.id, made_keys=made_keys), member, owner.name)
    say(f"{member.email} is out of the team {owner.name}.")
    for key in made:
        say(f"key {key.id} {key.name}: {BECAME[made_keys].format(id=key.id)}")
    return 0


def answer(change: MemberChange, member: Member, team: str) -> None:
    """Refuse what was not done."""
    if change is not MemberChange.DONE:
        raise CommandRefused(NOT_CHANGED[change].format(email=member.email, team=team))


def by_operator() -> MemberChangeActor:
    return MemberChangeActor(OPERATOR, SystemClock().now())


def address_of(text: str) -> EmailAddress:
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is not an email address. {wrong.reason}") from None


def key_of(text: str) -> str:
    """Return the address in the form in which members are compared. That of the first start may be no address
    that mail goes to."""
    try:
        return email_address(text).address
    except NotAnAddress:
        return text.strip().lower()


async def found(db: TeamDb, email: str, team: str) -> Member:
    """Return the member of this address."""
    wanted = key_of(email)
    for member in await member_queries.members(db):
        if key_of(member.email) == wanted:
            return member
    address_of(email)
    raise CommandRefused(NOT_CHANGED[MemberChange.GONE].format(email=email, team=team))


def account(member: Member) -> str:
    if member.is_disabled:
        return "disabled"
    return "none" if member.person_id is None else "active"


def shape(member: Member) -> dict[str, object]:
    """Return a member as JSON."""
    return {
        "email": member.email,
        "name": member.name,
        "role": member.role,
        "person_id": member.person_id,
        "account": account(member),
        "created_at": member.created_at,
        "last_login_at": member.last_login_at,
    }
