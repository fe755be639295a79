"""`pillarbox domains`: domains without DNS and without the API."""

from __future__ import annotations

from typing import Annotated

import typer

from pillarbox.domains import overview
from pillarbox.domains.commands.choosing import domain_name
from pillarbox.domains.commands.records import (
    Zone,
    check_again,
    create_domain,
    domain_context,
    installation_of,
    rotate_dkim,
    show_dns,
)
from pillarbox.domains.queries import OverviewRow
from pillarbox.domains.trust import trust
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team
from pillarbox.teams.team import Team

group = typer.Typer(no_args_is_help=True, help="List domains, show what they need, and vouch for them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The domain, for example mail.example.com.")]
Create = Annotated[bool, typer.Option("--create", help="Add the domain to the team if it is missing.")]
Tracking = Annotated[
    bool,
    typer.Option("--tracking", help="Vouch for the host of its tracked links as well: that it leads here."),
]

ReturnPath = Annotated[
    str, typer.Option("--return-path", metavar="LABEL", help="Where bounces come, below the domain.")
]
Receiving = Annotated[bool, typer.Option("--receiving", help="Receive mail of the domain as well.")]
OpenTracking = Annotated[bool, typer.Option("--open-tracking", help="See when mails are opened.")]
ClickTracking = Annotated[bool, typer.Option("--click-tracking", help="See which links are followed.")]
TrackingSubdomain = Annotated[
    str | None,
    typer.Option(
        "--tracking-subdomain",
        metavar="LABEL",
        help="The host of tracked links, below the domain.",
        show_default=False,
    ),
]
Tls = Annotated[
    str, typer.Option("--tls", metavar="MODE", help="`opportunistic`, or `enforced`: never in the clear.")
]


@group.command("trust")
def trust_one(
    name: Name,
    team: TeamOption = None,
    create: Create = False,
    tracking: Tracking = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Vouch for a domain: the team may use it at once, whatever DNS says."""
    perform(
        lambda connected: trust_domain(connected, name, team, create=create, tracking=tracking),
        data=data,
        database_url=database_url,
    )


@group.command("create")
def create(
    name: Name,
    team: TeamOption = None,
    return_path: ReturnPath = "send",
    receiving: Receiving = False,
    open_tracking: OpenTracking = False,
    click_tracking: ClickTracking = False,
    tracking_subdomain: TrackingSubdomain = None,
    tls: Tls = "opportunistic",
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Add a domain to a team, and print the records to publish in DNS."""
    wanted = {
        "name": name,
        "custom_return_path": return_path,
        "capabilities": {"receiving": "enabled" if receiving else "disabled"},
        "open_tracking": open_tracking,
        "click_tracking": click_tracking,
        "tracking_subdomain": tracking_subdomain,
        "tls": tls,
    }
    perform(
        lambda connected: create_domain(connected, wanted, team, json=json),
        data=data,
        database_url=database_url,
    )


@group.command("list")
def list_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the domains of one team or of all."""
    perform(lambda connected: show_all(connected, team, json=json), data=data, database_url=database_url)


@group.command("dns")
def dns(
    name: Name,
    team: TeamOption = None,
    zone: Zone = False,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what a domain needs in DNS, as a table and as lines of a zone file."""
    perform(
        lambda connected: show_dns(connected, name, team, json=json, zone=zone),
        data=data,
        database_url=database_url,
    )


@group.command("verify")
def verify(name: Name, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Look for a domain's records now, and on the usual schedule from now on."""
    perform(lambda connected: check_again(connected, name, team), data=data, database_url=database_url)


@group.command("rotate-dkim")
def rotate(name: Name, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Give a domain a new DKIM key, which signs once its record has been seen in DNS."""
    perform(lambda connected: rotate_dkim(connected, name, team), data=data, database_url=database_url)


async def trust_domain(
    connected: CommandDatabase, name: str, team: str | None, *, create: bool, tracking: bool
) -> int:
    owner = await one_team(connected, team)
    wanted = domain_name(name)
    known = [domain.name for domain in await overview.listed(TeamDb(connected.pool, owner.id))]
    if wanted not in known and not create:
        raise CommandRefused(
            f"The team {owner.name!r} has no domain {wanted}; add it with `POST /domains`, or use --create."
        )
    domain = await trust(connected.pool, wanted, owner.id, domain_context(connected), tracking=tracking)
    say(f"{domain.name} is trusted: the team {owner.name} may use it now.")
    return 0


async def show_all(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    here = installation_of(connected)
    found: list[tuple[Team, OverviewRow, str]] = []
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        domains = await overview.listed(db)
        statuses = await overview.statuses(db, domains, here)
        found += [(owner, domain, status) for domain, status in zip(domains, statuses, strict=True)]
    if json:
        show_json({"object": "list", "data": [shape(*row) for row in found]})
        return 0
    show_table(
        ("Id", "Name", "Team", "Status", "May send", "Trusted", "Created"),
        [
            (
                domain.id,
                domain.name,
                owner.name,
                status,
                yes_no(domain.sending and domain.sending_ok),
                yes_no(domain.trusted),
                domain.created_at,
            )
            for owner, domain, status in found
        ],
    )
    return 0


def shape(owner: Team, domain: OverviewRow, status: str) -> dict[str, object]:
    return {
        "id": domain.id,
        "name": domain.name,
        "team_id": owner.id,
        "status": status,
        "may_send": domain.sending and domain.sending_ok,
        "may_receive": domain.receiving and domain.receiving_ok,
        "trusted": domain.trusted,
        "created_at": domain.created_at,
    }


def yes_no(claim: bool) -> str:
    return "yes" if claim else "no"
