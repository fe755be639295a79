"""`pillarbox domains dns`, `domains verify` and `domains rotate-dkim`: what a domain needs in DNS, a look
at it now, and a new signing key, published before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import typer

from pillarbox.domains import keys, overview, queries
from pillarbox.domains.checks import report, start
from pillarbox.domains.commands.choosing import domain_name
from pillarbox.domains.context import DomainContext
from pillarbox.domains.create import add, prepared
from pillarbox.domains.dns.zone import ZoneLine, snippet
from pillarbox.domains.installation import MailInstallation
from pillarbox.domains.names import relative
from pillarbox.domains.queries import Domain
from pillarbox.domains.wire import NewDomain
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.kernel.wire.fields import parse
from pillarbox.people.audit import Act, record_command
from pillarbox.teams.commands.choosing import chosen_teams, one_team
from pillarbox.teams.team import Team
from pillarbox.webhooks.publish import Publisher

Zone = Annotated[bool, typer.Option("--zone", help="Print the zone file's lines alone.")]


class TeamDomain(NamedTuple):
    """A domain with the team that has it."""

    team: Team
    domain: Domain
    db: TeamDb


async def team_domain(connected: CommandDatabase, text: str, team: str | None) -> TeamDomain:
    """Return the domain of that name; where several teams have it, one must be named."""
    name = domain_name(text)
    found = []
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        for row in await overview.listed(db):
            domain = await queries.get(db, row.id) if row.name == name else None
            if domain is not None:
                found.append(TeamDomain(owner, domain, db))
    if not found:
        raise CommandRefused(
            f"No team has the domain {name}; `pillarbox domains list` shows those there are."
        )
    if len(found) > 1:
        names = ", ".join(f"{one.team.name} ({one.team.id})" for one in found)
        raise CommandRefused(f"Several teams have the domain {name}; name one with --team: {names}.")
    return found[0]


async def create_domain(
    connected: CommandDatabase, values: Mapping[str, object], team: str | None, *, json: bool
) -> int:
    owner = await one_team(connected, team)
    db, context = TeamDb(connected.pool, owner.id), domain_context(connected)
    new = {name: value for name, value in values.items() if value is not None}
    domain, key = await prepared(db, parse(NewDomain, new), context)
    async with db.transaction() as inner:
        await add(inner, domain, key, context)
        await record_command(inner, Act.DOMAIN_CREATED, domain.name, {"id": str(domain.id)})
    lines = await lines_of(connected, TeamDomain(owner, domain, db))
    if json:
        show_json(
            {
                "object": "domain",
                "id": domain.id,
                "name": domain.name,
                "team": {"id": owner.id, "name": owner.name},
                "records": [shape(line) for line in lines],
            }
        )
        return 0
    say(f"{domain.name} belongs to {owner.name}. Publish these records:")
    say()
    show_lines(lines)
    say()
    say(f"`pillarbox domains verify {domain.name}` looks for them when they are there.")
    return 0


async def show_dns(connected: CommandDatabase, name: str, team: str | None, *, json: bool, zone: bool) -> int:
    lines = await lines_of(connected, await team_domain(connected, name, team))
    if json:
        show_json({"object": "list", "data": [shape(line) for line in lines]})
    elif zone:
        say_lines(snippet(lines))
    else:
        show_lines(lines)
    return 0


def show_lines(lines: Sequence[ZoneLine]) -> None:
    """Print records as a table, and as lines of a zone file."""
    show_table(
        ("Record", "Type", "Name", "Value", "Priority", "Status"),
        [(one.purpose, one.type, one.owner, one.value, one.priority, one.status) for one in lines],
    )
    say()
    say_lines(snippet(lines))


async def lines_of(connected: CommandDatabase, team_domain: TeamDomain) -> list[ZoneLine]:
    here, now = installation_of(connected), SystemClock().now()
    return await report.lines_of(team_domain.db, team_domain.domain, here, now)


async def check_again(connected: CommandDatabase, name: str, team: str | None) -> int:
    found = await team_domain(connected, name, team)
    async with found.db.transaction() as inner:
        await start.begin(inner, found.domain.id, domain_context(connected))
    say(f"The records of {found.domain.name} are looked for now.")
    if connected.listeners is None:
        say("No server runs here: it happens as soon as one does.")
    say(f"`pillarbox doctor {found.domain.name}` shows what DNS has, and the next step.")
    return 0


async def rotate_dkim(connected: CommandDatabase, name: str, team: str | None) -> int:
    found = await team_domain(connected, name, team)
    rotation = await keys.rotate(found.db, found.domain.id, domain_context(connected))
    key = rotation.key
    owner = relative(f"{key.selector}._domainkey", found.domain.name)
    if rotation.new:
        await record_command(found.db, Act.DOMAIN_KEY_ROTATED, found.domain.name, {"selector": key.selector})
    else:
        say(f"A key of {found.domain.name} waits for its record already; it stays as it is.")
    say("Publish this record, and leave the present one where it is:")
    say()
    say(f"  {owner}  TXT  p={key.public_key}")
    say()
    say("The new key signs as soon as a check has seen the record. Until then the old one does.")
    say(f"`pillarbox domains dns {found.domain.name}` shows how long the old record is needed after that.")
    return 0


def domain_context(connected: CommandDatabase) -> DomainContext:
    """Return the parts that changing a domain needs, for a command."""
    ids = Ids(SystemClock())
    return DomainContext(installation_of(connected), connected.key_ring(), ids, Publisher(ids))


def installation_of(connected: CommandDatabase) -> MailInstallation:
    """Return the installation's own names and values in records, from the settings."""
    from pillarbox.domains.plugin import installation

    return installation(connected.settings)


def say_lines(text: str) -> None:
    for line in text.splitlines():
        say(line)


def shape(line: ZoneLine) -> dict[str, object]:
    return {
        "record": line.purpose,
        "type": line.type,
        "name": line.owner,
        "value": line.value,
        "priority": line.priority,
        "status": None if line.status == "-" else line.status,
        "note": line.note or None,
    }
