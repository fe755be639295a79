"""`pillarbox queue pause|resume|drop`: holding mail back, letting it go again, giving it up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.delivery.commands.words import in_conditions
from pillarbox.delivery.items import EVERY_TEAM
from pillarbox.delivery.queue import operator_acts, operator_view, overview_queries, pausing
from pillarbox.delivery.queue.operator_view import part_in, scope_words
from pillarbox.delivery.queue.overview import QueueFilter
from pillarbox.delivery.queue.pausing_queries import EVERYWHERE, PausedScope, PauseScope
from pillarbox.domains.commands.choosing import domain_name
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.terminal.answers import CommandRefused, counted, instant, perform, say
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.terminal.questions import confirm
from pillarbox.people.audit import OPERATOR
from pillarbox.teams.commands.choosing import TeamOption, one_team

Destination = Annotated[
    str | None,
    typer.Option("--domain", metavar="DOMAIN", help="Mail to this domain.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All mail of all teams.")]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; `queue` shows it.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

DROPPED = ("retry", "scheduled", "fetching", "paused", "due", "quarantined")
"""Conditions that a drop ends; what is being worked on is left alone."""


def pause(
    team: TeamOption = None,
    domain: Destination = None,
    everything: All = False,
    reason: Reason = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Hold mail back: of a team, to a domain, or all of it.

    Mail is still accepted. What is on the wire is finished; nothing else begins after about a second.
    """
    perform(
        lambda connected: pause_scope(connected, team, domain, reason, everything=everything),
        data=data,
        database_url=database_url,
    )


def resume(
    team: TeamOption = None,
    domain: Destination = None,
    everything: All = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let go what a pause with the same options holds back; with --all, lift every pause."""
    perform(
        lambda connected: resume_scope(connected, team, domain, everything=everything),
        data=data,
        database_url=database_url,
    )


def drop(
    team: TeamOption = None,
    domain: Destination = None,
    everything: All = False,
    yes: Yes = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Give up all mail that waits, scheduled mail too: its recipients end `failed`. There is no way back.

    What a delivery process holds is left alone; pause first, so that nothing leaves meanwhile.
    """
    perform(
        lambda connected: drop_scope(connected, team, domain, everything=everything, yes=yes),
        data=data,
        database_url=database_url,
    )


async def scope_of(
    connected: CommandDatabase, team: str | None, domain: str | None, *, everything: bool
) -> PauseScope:
    """Return the scope that the options name; CommandRefused unless they name one, or all mail by `--all`."""
    if everything == bool(team or domain):
        raise CommandRefused("Name a --team, a --domain or both; or --all for all mail of all teams.")
    return PauseScope(
        EVERY_TEAM if team is None else (await one_team(connected, team)).id,
        EVERYWHERE if domain is None else domain_name(domain),
    )


async def pause_scope(
    connected: CommandDatabase, team: str | None, domain: str | None, reason: str | None, *, everything: bool
) -> int:
    scope = await scope_of(connected, team, domain, everything=everything)
    is_new = await operator_acts.pause(connected.pool, scope, reason, OPERATOR, SystemClock().now())
    say(f"{'Paused' if is_new else 'Already paused'}: {scope_words(scope, await names_of(connected))}.")
    return 0


async def resume_scope(
    connected: CommandDatabase, team: str | None, domain: str | None, *, everything: bool
) -> int:
    scope = await scope_of(connected, team, domain, everything=everything)
    names = await names_of(connected)
    if everything:
        lifted = await operator_acts.resume_all(connected.pool, OPERATOR, SystemClock().now())
        say(f"{counted(lifted, 'pause is', 'pauses are')} lifted.")
        return 0
    lifted_one = await operator_acts.resume(connected.pool, scope, OPERATOR, SystemClock().now())
    pauses = await operator_view.pauses_of(connected.pool, QueueFilter())
    enclosing = pausing.enclosing_pause(pauses, scope)
    if not lifted_one and enclosing is None:
        raise CommandRefused("Nothing is paused there.")
    if lifted_one:
        say(f"Resumed: {scope_words(scope, names)}.")
    if enclosing is not None:
        say(f"It is still held back, because {scope_words(enclosing.scope, names)} is paused.")
    return 0


async def drop_scope(
    connected: CommandDatabase, team: str | None, domain: str | None, *, everything: bool, yes: bool
) -> int:
    from pillarbox.timeline.plugin import timeline_of

    scope = await scope_of(connected, team, domain, everything=everything)
    part = part_in(scope)
    clock = SystemClock()
    before = await overview_queries.totals(connected.pool, part, clock.now())
    if not before.items:
        raise CommandRefused("Nothing waits there.")
    waiting = in_conditions(before, DROPPED)
    if waiting and not yes:
        confirm(f"Drop {waiting}? The recipients end `failed`.")
    dropped = await operator_acts.drop(connected.pool, timeline_of(clock), part, OPERATOR, clock.now)
    say(f"{counted(dropped, 'item is', 'items are')} dropped.")
    if left := (await overview_queries.totals(connected.pool, part, clock.now())).items:
        say(f"{counted(left, 'item is', 'items are')} left: delivery processes held them.")
    return 0


async def pauses_in_words(connected: CommandDatabase, pauses: Sequence[PausedScope]) -> list[str]:
    """Return one line for each pause."""
    names = await names_of(connected)
    return [
        f"Paused since {instant(found.since)}: {scope_words(found.scope, names)}."
        + (f" Reason: {found.reason.rstrip('.')}." if found.reason else "")
        for found in pauses
    ]


def pause_shapes(pauses: Sequence[PausedScope]) -> list[dict[str, object]]:
    """Return the pauses for machines; what is None does not narrow the pause."""
    return [
        {
            "team_id": part_in(found.scope).team_id,
            "destination": part_in(found.scope).destination,
            "reason": found.reason,
            "paused_at": found.since,
        }
        for found in pauses
    ]


async def names_of(connected: CommandDatabase) -> dict[UUID, str]:
    from pillarbox.teams import bootstrap

    return {team.id: team.name for team in await bootstrap.list_teams(connected.pool)}
