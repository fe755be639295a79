"""`pillarbox people`: who logs in; for the operator, who needs no account."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Connection, TeamDb, transaction
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    counted,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people import accounts, audit, links, queries, sessions
from pillarbox.people.audit import OPERATOR, Act
from pillarbox.people.commands import audit as audit_command
from pillarbox.people.commands import members
from pillarbox.people.factors import passkey_queries, second_factor
from pillarbox.people.openid import openid_queries
from pillarbox.people.queries import Person
from pillarbox.people.roles import TeamRole
from pillarbox.teams.commands.choosing import TeamOption, one_team

group = typer.Typer(
    no_args_is_help=True, help="Make and list people who log in, help them back in, shut them out."
)

group.command("invite")(members.invite)
group.command("members")(members.members)
group.command("set-role")(members.set_role)
group.command("remove")(members.remove)
group.command("audit")(audit_command.audit)

Email = Annotated[str, typer.Argument(metavar="ADDRESS", help="The person's email address.")]
NewAddress = Annotated[
    str, typer.Argument(metavar="NEW-ADDRESS", help="The address that the person logs in with from now on.")
]
RoleOption = Annotated[TeamRole, typer.Option("--role", help="What the person may do in the team.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What the person is called.")]

Removal = Annotated[bool, typer.Option("--remove", help="The person is an operator no longer.")]

PasswordRemoval = Annotated[bool, typer.Option("--remove", help="The person may use no password any longer.")]

Factors = Annotated[
    bool,
    typer.Option("--factors", help="Also remove the second factor, the recovery codes and the passkeys."),
]


@group.command("create")
def create(
    email: Email,
    name: Name = None,
    team: TeamOption = None,
    role: RoleOption = TeamRole.OWNER,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a person of a team, and print the link by which it sets up its account. Of somebody who has not
    set up yet, print another link."""
    perform(
        lambda connected: make(connected, email, name, team, role, json=json),
        data=data,
        database_url=database_url,
    )


@group.command("list")
def list_all(json: Json = False, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """List the people with their teams."""
    perform(lambda connected: show_all(connected, json=json), data=data, database_url=database_url)


@group.command("reset")
def reset(
    email: Email, factors: Factors = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Print a link by which a person chooses another password; it works once, for a day."""
    perform(
        lambda connected: new_link(connected, email, factors=factors), data=data, database_url=database_url
    )


@group.command("revoke-sessions")
def revoke_sessions(email: Email, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Log a person out everywhere."""
    perform(lambda connected: log_out(connected, email), data=data, database_url=database_url)


@group.command("set-address")
def set_address(email: Email, new: NewAddress, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Give a person another address to log in with. It is logged out everywhere, and links that were mailed
    to the address of before do not work any more."""
    perform(lambda connected: move(connected, email, new), data=data, database_url=database_url)


@group.command("disable")
def disable(email: Email, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Shut a person out: it is logged out everywhere and cannot log in any more."""
    perform(lambda connected: shut_out(connected, email), data=data, database_url=database_url)


@group.command("enable")
def enable(email: Email, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Let a person log in again."""
    perform(lambda connected: let_in(connected, email), data=data, database_url=database_url)


@group.command("operator")
def operator(
    email: Email, remove: Removal = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Make a person an operator of the installation, or no longer one: operators see its screens."""
    perform(
        lambda connected: make_operator(connected, email, is_operator=not remove),
        data=data,
        database_url=database_url,
    )


@group.command("password-login")
def password_login(
    email: Email, remove: PasswordRemoval = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Let a person log in by password and passkey where `--oidc-only` lets nobody else, or no longer."""
    perform(
        lambda connected: let_use_password(connected, email, may_use_password=not remove),
        data=data,
        database_url=database_url,
    )


@group.command("unlink")
def unlink(email: Email, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Remove what joins a person to the OpenID Connect provider, and log them out everywhere. Whoever
    logs in there with their address next gives the account's password once."""
    perform(lambda connected: part(connected, email), data=data, database_url=database_url)


async def make(
    connected: CommandDatabase, email: str, name: str | None, team: str | None, role: TeamRole, *, json: bool
) -> int:
    address, ids = address_of(email), Ids(SystemClock())
    wanted = await one_team(connected, team)
    async with transaction(connected.pool) as conn:
        person = await queries.person_of_address(conn, address.address)
        if person is not None and person.password is not None:
            raise CommandRefused(f"{address.shown} has an account already.")
        if person is None:
            person_id = await accounts.create(conn, ids.stamp(), address, accounts.clean_name(name or ""))
            at = ids.now()
            await audit.record(
                conn, at, Act.PERSON_CREATED, team_id=None, actor=OPERATOR, target=address.shown
            )
        else:
            person_id = person.id
        if await accounts.join(conn, ids.stamp(), person_id, address, wanted.id, role):
            details = {"role": role.value}
            await audit.record_command(TeamDb(conn, wanted.id), Act.MEMBER_ADDED, address.shown, details)
        token = await links.make(conn, ids.now(), links.LinkKind.SET_UP, person_id=person_id)
    link = f"{connected.settings.public_url}/set-up/{token}"
    if json:
        show_json({"object": "person", "id": person_id, "email": address.shown, "set_up_url": link})
        return 0
    say(f"person {person_id}")
    say(f"set-up {link} (works once, for seven days)")
    return 0


async def show_all(connected: CommandDatabase, *, json: bool) -> int:
    people = await queries.every_person(connected.pool, Ids(SystemClock()).now())
    teams: dict[UUID, list[tuple[str, str]]] = {}
    for person_id, team, role in await queries.every_membership(connected.pool):
        teams.setdefault(person_id, []).append((team, role))
    if json:
        show_json({"object": "list", "data": [shape(one, teams.get(one.id, [])) for one in people]})
        return 0
    show_table(
        ("Id", "Email", "Name", "State", "Factors", "Sessions", "Last login", "Teams"),
        [
            (
                one.id,
                one.email,
                one.name,
                f"{state(one)}, operator" if one.is_operator else state(one),
                factors(one),
                one.sessions,
                one.last_login_at,
                ", ".join(f"{team} ({role})" for team, role in teams.get(one.id, [])),
            )
            for one in people
        ],
    )
    return 0


async def new_link(connected: CommandDatabase, email: str, *, factors: bool) -> int:
    person = await found(connected, email)
    if person.disabled_at is not None:
        raise CommandRefused(f"{person.email} is disabled.")
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        token = await links.make(
            conn, at, links.LinkKind.PASSWORD, person_id=person.id, lifetime=links.BY_OPERATOR
        )
        if factors:
            await forget_factors(conn, at, person)
        await audit.record(
            conn, at, Act.PASSWORD_LINK_ASKED, team_id=None, actor=OPERATOR, target=person.email
        )
    say(f"reset {connected.settings.public_url}/password/reset/{token} (works once, for a day)")
    return 0


async def forget_factors(conn: Connection, now: datetime, person: Person) -> None:
    """Let the person log in by password alone again, and end their sessions."""
    removed = {Act.FACTOR_REMOVED: await second_factor.remove(conn, person.id)}
    removed[Act.PASSKEY_REMOVED] = await passkey_queries.remove_all(conn, person.id) > 0
    await sessions.end_all(conn, person.id)
    for act, is_done in removed.items():
        if is_done:
            await audit.record(conn, now, act, team_id=None, actor=OPERATOR, target=person.email)


async def log_out(connected: CommandDatabase, email: str) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        ended = await sessions.end_all(conn, person.id)
        await audit.record(
            conn, at, Act.LOGGED_OUT_EVERYWHERE, team_id=None, actor=OPERATOR, target=person.email
        )
    say(f"{person.email}: {counted(ended, 'session')} ended.")
    return 0


async def move(connected: CommandDatabase, email: str, new: str) -> int:
    person, address = await found(connected, email), address_of(new)
    if address.address == address_of(person.email).address:
        raise CommandRefused(f"{person.email} is the address already.")
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await queries.lock(conn, person.id) is None:
            raise CommandRefused(f"{person.email} is disabled.")
        try:
            await accounts.set_address(conn, person.id, address)
        except accounts.AddressTaken:
            raise CommandRefused(f"There is a person with the address {address.shown} already.") from None
        details = {"address": address.shown}
        await audit.record(
            conn, at, Act.ADDRESS_CHANGED, team_id=None, actor=OPERATOR, target=person.email, details=details
        )
    say(f"{person.email} logs in with {address.shown} from now on.")
    return 0


async def shut_out(connected: CommandDatabase, email: str) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await accounts.disable(conn, at, person.id):
            await audit.record(
                conn, at, Act.PERSON_DISABLED, team_id=None, actor=OPERATOR, target=person.email
            )
    say(f"{person.email} is disabled.")
    return 0


async def let_in(connected: CommandDatabase, email: str) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await accounts.enable(conn, person.id):
            await audit.record(
                conn, at, Act.PERSON_ENABLED, team_id=None, actor=OPERATOR, target=person.email
            )
    say(f"{person.email} may log in.")
    return 0


async def make_operator(connected: CommandDatabase, email: str, *, is_operator: bool) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await queries.set_operator(conn, person.id, is_operator=is_operator):
            act = Act.OPERATOR_ADDED if is_operator else Act.OPERATOR_REMOVED
            await audit.record(conn, at, act, team_id=None, actor=OPERATOR, target=person.email)
    say(f"{person.email} is {'an' if is_operator else 'no'} operator of this installation.")
    return 0


async def let_use_password(connected: CommandDatabase, email: str, *, may_use_password: bool) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await openid_queries.set_password_use(conn, person.id, may_use_password=may_use_password):
            act = Act.PASSWORD_LOGIN_ALLOWED if may_use_password else Act.PASSWORD_LOGIN_ENDED
            await audit.record(conn, at, act, team_id=None, actor=OPERATOR, target=person.email)
    how = "may always log in by password" if may_use_password else "logs in by password as all others do"
    say(f"{person.email} {how}.")
    return 0


async def part(connected: CommandDatabase, email: str) -> int:
    person = await found(connected, email)
    at = Ids(SystemClock()).now()
    async with transaction(connected.pool) as conn:
        if await openid_queries.unlink_all(conn, person.id):
            await sessions.end_all(conn, person.id)
            await audit.record(
                conn, at, Act.OPENID_REMOVED, team_id=None, actor=OPERATOR, target=person.email
            )
    say(f"{person.email} is joined to no account of a provider.")
    if person.password is None:
        say("There is no password: `pillarbox people reset` prints a link for one.")
    return 0


def address_of(text: str) -> EmailAddress:
    try:
        return email_address(text)
    except NotAnAddress as wrong:
        raise CommandRefused(f"{text!r} is not an email address. {wrong.reason}") from None


async def found(connected: CommandDatabase, email: str) -> Person:
    """Return the person of this address."""
    person = await queries.person_of_address(connected.pool, address_of(email).address)
    if person is None:
        raise CommandRefused(f"There is nobody with the address {email}.")
    return person


def state(listed_person: queries.ListedPerson) -> str:
    if listed_person.disabled_at is not None:
        return "disabled"
    has_way = listed_person.has_password or listed_person.passkeys or listed_person.openid_links
    return "active" if has_way else "not set up"


def factors(listed_person: queries.ListedPerson) -> str:
    found = [
        *(["password"] if listed_person.has_password else []),
        *(["codes"] if listed_person.has_totp else []),
        *([counted(listed_person.passkeys, "passkey")] if listed_person.passkeys else []),
        *(["openid"] if listed_person.openid_links else []),
        *(["password always"] if listed_person.may_use_password else []),
    ]
    return ", ".join(found)


def shape(listed_person: queries.ListedPerson, teams: list[tuple[str, str]]) -> dict[str, object]:
    """Return a person as JSON."""
    return {
        "id": listed_person.id,
        "email": listed_person.email,
        "name": listed_person.name,
        "state": state(listed_person),
        "is_operator": listed_person.is_operator,
        "has_password": listed_person.has_password,
        "has_totp": listed_person.has_totp,
        "passkeys": listed_person.passkeys,
        "openid_links": listed_person.openid_links,
        "may_use_password": listed_person.may_use_password,
        "sessions": listed_person.sessions,
        "created_at": listed_person.created_at,
        "last_login_at": listed_person.last_login_at,
        "teams": [{"name": team, "role": role} for team, role in teams],
    }
