"""`pillarbox broadcasts`: which there are, how far they are; send, cancel, pause and resume them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Final
from uuid import UUID

import typer

from pillarbox.broadcasts import copy_counts_queries, overview_queries, queries, watch_queries
from pillarbox.broadcasts.commands.progress import follow
from pillarbox.broadcasts.overview_queries import BroadcastOverview
from pillarbox.broadcasts.queries import JOB_START, JOB_WATCH
from pillarbox.broadcasts.store import Broadcasts
from pillarbox.domains.senders import Senders
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.requests.schedule import ScheduleError, parse_schedule
from pillarbox.emails.settings import verified_domain_required
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    as_id,
    counted,
    instant,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.work import job_queries
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team
from pillarbox.teams.team import Team
from pillarbox.usage.quotas import Quotas

BY_OPERATOR: Final = "Paused by the operator."

group = typer.Typer(
    no_args_is_help=True, help="Look at broadcasts, preview, send, cancel, pause and resume them."
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the broadcast.", show_default=False)]
Following = Annotated[bool, typer.Option("--follow", help="Wait until it is over, and show how far it is.")]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="WHEN", help="Schedule it, as `in 1 hour`.", show_default=False),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why, for whoever looks.", show_default=False)
]


@group.command("list")
def show_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the broadcasts of a team."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


@group.command("show")
def show(
    broadcast: Id,
    following: Following = False,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show a broadcast, what became of its copies, and why it is paused or failed."""

    async def work(_: CommandDatabase, db: TeamDb, _owner: Team, broadcast_id: UUID) -> int:
        if following:
            await follow(db, broadcast_id)
        return await shown(db, broadcast_id, json=json)

    with_broadcast(work, broadcast, team, data=data, database_url=database_url)


@group.command("send")
def send(
    broadcast: Id,
    instant: At = None,
    following: Following = False,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Send a draft, or schedule it."""

    async def work(connected: CommandDatabase, db: TeamDb, owner: Team, broadcast_id: UUID) -> int:
        refuse_wrong_time(instant)
        async with db.transaction() as inside:
            await store(connected).send(inside, operator(owner), broadcast_id, instant)
        return await told(db, broadcast_id, following=following)

    with_broadcast(work, broadcast, team, data=data, database_url=database_url)


@group.command("cancel")
def cancel(
    broadcast: Id, team: TeamOption = None, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """Cancel one that is scheduled, which becomes a draft, or one that is being sent."""

    async def work(connected: CommandDatabase, db: TeamDb, _: Team, broadcast_id: UUID) -> int:
        async with db.transaction() as inside:
            await store(connected).cancel(inside, broadcast_id)
        return await told(db, broadcast_id)

    with_broadcast(work, broadcast, team, data=data, database_url=database_url)


@group.command("pause")
def pause(
    broadcast: Id,
    reason: Reason = None,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Begin no more copies of one that is being sent, until it is resumed. Those that have begun go on."""

    async def work(_: CommandDatabase, db: TeamDb, _owner: Team, broadcast_id: UUID) -> int:
        now = SystemClock().now()
        if not await watch_queries.pause(db, broadcast_id, reason or BY_OPERATOR, now):
            raise CommandRefused("Only a broadcast that is being sent can be paused, and only once.")
        return await told(db, broadcast_id)

    with_broadcast(work, broadcast, team, data=data, database_url=database_url)


@group.command("resume")
def resume(
    broadcast: Id,
    following: Following = False,
    team: TeamOption = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let a paused broadcast go on, or one whose work has ended its process several times. What bounced
    before does not stop it again."""

    async def work(_: CommandDatabase, db: TeamDb, _owner: Team, broadcast_id: UUID) -> int:
        now = SystemClock().now()
        async with db.transaction() as inside:
            is_paused = await watch_queries.resume(inside, broadcast_id, now)
            if not is_paused and not await queries.is_given_up(inside, broadcast_id):
                raise CommandRefused("The broadcast is not paused.")
            found = await overview_queries.one(inside, broadcast_id)
            is_begun = found is not None and found.resolved_at is not None
            kind = JOB_WATCH if is_begun else JOB_START
            await job_queries.restart(inside, Ids(SystemClock()).new(), kind, broadcast_id, now, now)
        return await told(db, broadcast_id, following=following)

    with_broadcast(work, broadcast, team, data=data, database_url=database_url)


Work = Callable[[CommandDatabase, TeamDb, Team, UUID], Awaitable[int]]
"""The work of a command on one broadcast of this team."""


def with_broadcast(
    work: Work, broadcast: str, team: str | None, *, data: str | None, database_url: str | None
) -> None:
    """Do the work with the broadcast of this id, and exit with its status."""

    async def found(connected: CommandDatabase) -> int:
        broadcast_id = as_id(broadcast, "a broadcast")
        db, owner = await of_team(connected, team, broadcast_id)
        return await work(connected, db, owner, broadcast_id)

    perform(found, data=data, database_url=database_url)


def refuse_wrong_time(instant: str | None) -> None:
    """Raise CommandRefused, with the name of the option, where `--at` is no time to send at."""
    if not instant:
        return
    try:
        parse_schedule(instant, SystemClock().now())
    except ScheduleError as wrong:
        raise CommandRefused(f"Invalid `--at` option. {wrong}") from None


async def of_team(connected: CommandDatabase, team: str | None, broadcast_id: UUID) -> tuple[TeamDb, Team]:
    """Return the team that has this broadcast."""
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        if await overview_queries.one(db, broadcast_id) is not None:
            return db, owner
    raise CommandRefused(f"There is no broadcast {broadcast_id}.")


def store(connected: CommandDatabase) -> Broadcasts:
    """Return the store of broadcasts as requests have it. It wakes no jobs: those of a running server look
    for due work."""
    clock, settings = SystemClock(), connected.settings
    senders = PermittedSenders(
        Senders(connected.pool, clock),
        frozenset(settings[SIMULATOR_DOMAINS]),
        verified_domain_required(settings),
    )
    quotas = Quotas(clock, lambda team, daily, monthly: None)
    return Broadcasts(Ids(clock), senders, quotas, lambda: None)


def operator(team: Team) -> Caller:
    """Return a caller who may do everything for the team, within its quotas."""
    return Caller(
        team.id,
        team.number,
        None,
        Permission.FULL,
        daily_quota=team.daily_quota,
        monthly_quota=team.monthly_quota,
    )


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them, the newest first."""
    owner = await one_team(connected, team)
    found = await overview_queries.every(TeamDb(connected.pool, owner.id))
    if json:
        show_json({"object": "list", "data": [asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Name", "Subject", "Status", "Recipients", "Created", "Scheduled", "Sent"),
            [
                (
                    one.id,
                    one.name,
                    one.subject,
                    one.condition,
                    None if one.recipients is None else f"{one.recipients:,}",
                    one.created_at,
                    one.scheduled_at,
                    one.sent_at,
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no broadcasts.")
    return 0


async def told(db: TeamDb, broadcast_id: UUID, *, following: bool = False) -> int:
    """Say in one line what it is now; once it is over, where somebody wants to wait for that."""
    if following:
        await follow(db, broadcast_id)
    found = await overview_queries.one(db, broadcast_id)
    assert found is not None, "it was there just now"
    say(in_words(found))
    return 0


def in_words(broadcast_overview: BroadcastOverview) -> str:
    """Return the result in words, such as `The broadcast ID is sent.`"""
    said = f"The broadcast {broadcast_overview.id} is {broadcast_overview.condition}"
    if broadcast_overview.status == "scheduled" and broadcast_overview.scheduled_at is not None:
        said += f" for {instant(broadcast_overview.scheduled_at)}"
    reason = broadcast_overview.paused_for or broadcast_overview.failed_for
    return f"{said}: {reason}" if reason else f"{said}."


async def shown(db: TeamDb, broadcast_id: UUID, *, json: bool) -> int:
    """Print one with what became of its copies."""
    found = await overview_queries.one(db, broadcast_id)
    if found is None:
        raise CommandRefused(f"There is no broadcast {broadcast_id}.")
    copies = await overview_queries.copies(db, broadcast_id)
    so_far = None
    if found.queued_at is not None:
        so_far = await copy_counts_queries.since_start(db, broadcast_id, found.queued_at)
    if json:
        figured = None if so_far is None else asdict(so_far)
        show_json({**asdict(found), "copies": asdict(copies), "counts": figured})
        return 0
    say(in_words(found))
    if found.recipients is not None:
        say(
            f"{counted(found.recipients, 'recipient')}: {copies.made:,} made, {copies.skipped:,} skipped, "
            f"{copies.waiting:,} waiting."
        )
    if so_far is not None:
        named = asdict(so_far).items()
        show_table([name.capitalize() for name, _ in named], [[f"{number:,}" for _, number in named]])
    return 0
