"""`pillarbox keys`: API keys without the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.api_keys import keys, queries
from pillarbox.api_keys.keys import InboxLimit
from pillarbox.api_keys.queries import ShownKey
from pillarbox.directory import inboxes as directory
from pillarbox.domains.commands.choosing import one_domain
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.inbox_keys import named as inbox_named
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import InboxRight, Permission
from pillarbox.kernel.terminal.answers import CommandRefused, Json, as_id, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act, record_command
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team
from pillarbox.teams.team import Team

group = typer.Typer(no_args_is_help=True, help="Make, list, keep, suspend, resume and delete API keys.")

LONGEST_NAME = 50


class PermissionName(StrEnum):
    full_access = "full_access"
    sending_access = "sending_access"


Name = Annotated[str, typer.Argument(metavar="NAME", help="What the key is called.")]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, from `pillarbox keys list`.")]
PermissionOption = Annotated[PermissionName, typer.Option("--permission", help="What the key may do.")]
DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="DOMAIN",
        help="The only domain that the key may send from (with sending_access).",
        show_default=False,
    ),
]


InboxOption = Annotated[
    str | None,
    typer.Option(
        "--inbox",
        metavar="ADDRESS_OR_ID",
        help="The only inbox that the key is for (with --rights).",
        show_default=False,
    ),
]
RightsOption = Annotated[
    str | None,
    typer.Option(
        "--rights",
        metavar="LIST",
        help="What the key may do in its inbox, separated by commas: read, label, draft, send.",
        show_default=False,
    ),
]


@group.command("create")
def create(
    name: Name,
    team: TeamOption = None,
    permission: PermissionOption = PermissionName.full_access,
    domain: DomainOption = None,
    inbox: InboxOption = None,
    rights: RightsOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print its token, which is shown only now."""
    wanted = WantedAccess(Permission(permission.value), domain, inbox, rights)
    perform(
        lambda connected: make(connected, name, team, wanted, json=json),
        data=data,
        database_url=database_url,
    )


@group.command("list")
def list_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List keys, newest first, of one team or of all."""
    perform(lambda connected: show_all(connected, team, json=json), data=data, database_url=database_url)


@group.command("suspend")
def suspend(key: KeyId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Refuse a key from the next second on, until it is resumed."""
    perform(
        lambda connected: change(connected, key, keys.suspend, Act.KEY_SUSPENDED, "suspended", "active"),
        data=data,
        database_url=database_url,
    )


@group.command("resume")
def resume(key: KeyId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Accept a suspended key again."""
    perform(
        lambda connected: change(connected, key, keys.resume, Act.KEY_RESUMED, "active", "suspended"),
        data=data,
        database_url=database_url,
    )


@group.command("keep")
def keep(key: KeyId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Make a key the team's own: it stays when the person or the program that made it goes."""
    perform(lambda connected: keep_for_team(connected, key), data=data, database_url=database_url)


@group.command("delete")
def delete(key: KeyId, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Delete a key for good."""
    perform(lambda connected: remove(connected, key), data=data, database_url=database_url)


@dataclass(frozen=True, slots=True)
class WantedAccess:
    """The access that the options give the new key."""

    permission: Permission
    domain: str | None
    inbox: str | None
    rights: str | None


async def make(
    connected: CommandDatabase, name: str, team: str | None, access: WantedAccess, *, json: bool
) -> int:
    if not 1 <= len(name.strip()) <= LONGEST_NAME:
        raise CommandRefused(f"A key's name has 1 to {LONGEST_NAME} characters.")
    if access.domain is not None and access.permission is not Permission.SENDING:
        raise CommandRefused("--domain needs --permission sending_access.")
    if (access.inbox is None) != (access.rights is None):
        raise CommandRefused("--inbox and --rights come together.")
    if access.inbox is not None and access.domain is not None:
        raise CommandRefused("A key is for one domain or for one inbox, not for both.")
    owner = await one_team(connected, team)
    async with TeamDb(connected.pool, owner.id).transaction() as db:
        domain_id = None if access.domain is None else await one_domain(db, access.domain)
        inbox = await inbox_limit(db, access)
        made = await keys.create(
            db, Ids(SystemClock()), name=name, permission=access.permission, domain_id=domain_id, inbox=inbox
        )
        details = keys.details(made.id, access.permission, inbox)
        await record_command(db, Act.KEY_CREATED, name, details)
    if json:
        show_json({"object": "api_key", "id": made.id, "team_id": owner.id, "token": made.token})
        return 0
    say(f"key {made.id} of team {owner.name}")
    say(f"api key {made.token} (shown only now; keep it)")
    return 0


async def inbox_limit(db: TeamDb, access: WantedAccess) -> InboxLimit | None:
    """Return the inbox and the rights that the options name; None without them."""
    if access.inbox is None or access.rights is None:
        return None
    named = [word.strip() for word in access.rights.split(",")]
    known = [right.value for right in InboxRight]
    if wrong := [word for word in named if word not in known]:
        raise CommandRefused(f"There is no right {wrong[0]!r}; the rights are {', '.join(known)}.")
    try:
        name = inbox_named(access.inbox)
    except Problem as refused:
        raise CommandRefused(f"{access.inbox!r} is no inbox: {refused.message}") from None
    inbox_id = await directory.id_of(db, name) if isinstance(name, str) else name
    if inbox_id is None or not await queries.hold_inbox(db, inbox_id):
        raise CommandRefused(f"The team has no inbox {access.inbox!r}.")
    return InboxLimit(inbox_id, frozenset([InboxRight(word) for word in named]))


async def show_all(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    found = [
        (owner, key)
        for owner in await chosen_teams(connected, team)
        for key in await keys.listed(TeamDb(connected.pool, owner.id))
    ]
    if json:
        show_json({"object": "list", "data": [shape(owner, key) for owner, key in found]})
        return 0
    show_table(
        (
            "Id",
            "Name",
            "Team",
            "Starts with",
            "Permission",
            "Domain or inbox",
            "Acts for",
            "Status",
            "Last used",
        ),
        [
            (
                key.id,
                key.name,
                owner.name,
                key.display,
                " ".join(key.rights or [key.permission]),
                key.inbox or key.inbox_id or key.domain_id,
                "the team" if key.is_of_team else key.maker,
                key.status,
                key.last_used_at or "never",
            )
            for owner, key in found
        ],
    )
    return 0


async def change(
    connected: CommandDatabase,
    key: str,
    move: Callable[[TeamDb, UUID], Awaitable[bool]],
    act: Act,
    after: str,
    before: str,
) -> int:
    """Move a key to another status; one that is there already is no error."""
    db, key_id = await owned(connected, key)
    async with db.transaction() as inner:
        is_moved = await move(inner, key_id)
        if is_moved:
            await record_command(inner, act, await queries.name_of(inner, key_id), {"id": key_id})
    if not is_moved:
        (status,) = [found.status for found in await keys.listed(db) if found.id == key_id]
        if status != after:
            raise CommandRefused(f"The key is {status}, not {before}.")
    say(f"The key {key_id} is {after}.")
    return 0


async def keep_for_team(connected: CommandDatabase, key: str) -> int:
    db, key_id = await owned(connected, key)
    async with db.transaction() as inner:
        if await keys.keep(inner, key_id):
            await record_command(inner, Act.KEY_KEPT, await keys.named(inner, key_id), {"id": key_id})
    say(f"The key {key_id} is the team's own.")
    return 0


async def remove(connected: CommandDatabase, key: str) -> int:
    db, key_id = await owned(connected, key)
    async with db.transaction() as inner:
        await record_command(inner, Act.KEY_DELETED, await keys.named(inner, key_id), {"id": key_id})
        await keys.delete(inner, key_id)
    say(f"The key {key_id} is deleted.")
    return 0


async def owned(connected: CommandDatabase, key: str) -> tuple[TeamDb, UUID]:
    """Return the key's id and the view of its team."""
    key_id = as_id(key, "a key")
    team_id = await queries.owner_of(connected.pool, key_id)
    if team_id is None:
        raise CommandRefused(f"There is no key {key_id}.")
    return TeamDb(connected.pool, team_id), key_id


def shape(owner: Team, key: ShownKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "team_id": owner.id,
        "display": key.display,
        "permission": key.permission,
        "domain_id": key.domain_id,
        "inbox_id": key.inbox_id,
        "rights": key.rights,
        "acts_for": None if key.is_of_team else key.maker,
        "status": key.status,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
    }
