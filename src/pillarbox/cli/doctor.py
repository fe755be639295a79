"""`pillarbox doctor`: can this machine deliver and receive?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pillarbox.doctor.checks import Check, Level, is_healthy
from pillarbox.doctor.domain import domain_checks
from pillarbox.doctor.examination import CheckedInstallation, examined
from pillarbox.doctor.outside import OutsideWorld
from pillarbox.doctor.real_world import document, listeners_of, outside_of
from pillarbox.domains import lookup, overview
from pillarbox.domains.commands.choosing import domain_name
from pillarbox.domains.commands.records import installation_of
from pillarbox.kernel.postgres import connection_limits
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import CommandRefused, Json, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.keyring import columns
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams

PROBLEMS = 1
NOT_EXAMINED = 2

MARKS = {Level.OK: "ok", Level.WARNING: "warning", Level.PROBLEM: "PROBLEM", Level.SKIPPED: "-"}

Domain = Annotated[
    str | None,
    typer.Argument(metavar="[DOMAIN]", help="Look at this domain's records too.", show_default=False),
]


def command(
    domain: Domain = None,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Find out whether this machine can deliver and receive mail, and what to do where it cannot.

    May run beside a live server; nothing is changed, no mail is sent. Status 0: no problem; 1: problems;
    2: it could not be examined.
    """
    perform(
        lambda connected: examine(connected, domain, team, json=json),
        data=data,
        database_url=database_url,
        failed=NOT_EXAMINED,
        with_any_ring=True,
    )


async def examine(connected: CommandDatabase, name: str | None, team: str | None, *, json: bool) -> int:
    outside = outside_of(connected.settings)
    if name is not None:
        name = domain_name(name)
    records = [] if name is None else await of_domain(connected, outside, name, team)
    checks = [*await examined(installation_to_check(connected), outside), *records]
    if json:
        show_json(document(name, checks))
    else:
        show(checks)
    return 0 if is_healthy(checks) else PROBLEMS


def installation_to_check(connected: CommandDatabase) -> CheckedInstallation:
    settings = connected.settings
    return CheckedInstallation(
        settings,
        connected.pool,
        running=connected.listeners is not None,
        listeners=listeners_of(settings, connected.listeners or ()),
        connections=connection_limits.of_machine(settings),
        sealed=columns(),
    )


async def of_domain(
    connected: CommandDatabase, outside: OutsideWorld, name: str, team: str | None
) -> list[Check]:
    """Return the checks of the domain, for each team that has it."""
    here = installation_of(connected)
    checks: list[Check] = []
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        for row in await overview.listed(db):
            domain = await lookup.get(db, row.id) if row.name == name else None
            if domain is not None:
                public_url = connected.settings.public_url
                checks += await domain_checks(outside, db, domain, here, public_url)
    if not checks:
        raise CommandRefused(
            f"No team has the domain {name}; `pillarbox domains list` shows those there are."
        )
    return checks


def show(checks: Sequence[Check]) -> None:
    show_table(
        ("Result", "What", "Found"), [(MARKS[check.level], check.title, check.found) for check in checks]
    )
    steps = [check for check in checks if check.step and check.level is not Level.OK]
    if steps:
        say()
        say("What to do:")
    for check in steps:
        say(f"- {check.title}: {check.step}")
        if check.expected and check.level is not Level.SKIPPED:
            say(f"  expected: {check.expected}")
