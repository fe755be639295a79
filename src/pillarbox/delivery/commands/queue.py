"""`pillarbox queue`: what waits to be delivered and why; and trying it now.

Holding mail back and dropping it are in `queue_control`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.delivery.commands import queue_control
from pillarbox.delivery.commands.words import in_conditions, reason_in_words, why
from pillarbox.delivery.queue import operator_acts, operator_view, overview_queries
from pillarbox.delivery.queue.operator_view import QueueView
from pillarbox.delivery.queue.overview import QueueFilter, QueueGroup, Totals, WaitingItem
from pillarbox.domains.commands.choosing import domain_name
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    as_id,
    as_json,
    counted,
    perform,
    say,
    show_json,
    show_table,
    span,
    stopped,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.people.audit import OPERATOR
from pillarbox.teams.commands.choosing import TeamOption, one_team

group = typer.Typer(
    invoke_without_command=True,
    help="Show what waits to be delivered and why; retry it now, hold it back, drop it.",
)
group.command("pause")(queue_control.pause)
group.command("resume")(queue_control.resume)
group.command("drop")(queue_control.drop)

MOST_GROUPS = 50
ROWS_AT_A_TIME = 200
NOT_RETRIED = ("working", "scheduled", "fetching", "paused")
"""Conditions that a retry does not end."""

Destination = Annotated[
    str | None,
    typer.Option("--domain", metavar="DOMAIN", help="Only mail to this domain.", show_default=False),
]
EmailOption = Annotated[
    str | None, typer.Option("--email", metavar="ID", help="Only this email.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Show every item, not only the totals of each destination.")]


@group.callback()
def show(
    context: typer.Context,
    team: TeamOption = None,
    domain: Destination = None,
    email: EmailOption = None,
    everything: All = False,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what waits to be delivered: where it goes, why it waits, when the next attempt is."""
    if context.invoked_subcommand is not None:
        if any((team, domain, email, everything, json, data, database_url)):
            raise stopped(f"Put the options behind `queue {context.invoked_subcommand}`.", 2)
        return

    async def work(connected: CommandDatabase) -> int:
        part = await part_of(connected, team, domain, email)
        return await (show_as_json if json else show_to_people)(connected, part, everything)

    perform(work, data=data, database_url=database_url)


@group.command("retry")
def retry(
    team: TeamOption = None,
    domain: Destination = None,
    email: EmailOption = None,
    everything: queue_control.All = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Try now what waits for its next attempt or was put aside: the named part, else (or with --all) all.

    Paused mail stays paused, mail that a process works on is left alone, and scheduled mail is not sent
    before its time.
    """
    if everything and (team or domain or email):
        raise stopped("Either --all, or --team, --domain and --email.", 2)
    perform(lambda connected: try_now(connected, team, domain, email), data=data, database_url=database_url)


async def part_of(
    connected: CommandDatabase, team: str | None, domain: str | None, email: str | None
) -> QueueFilter:
    team_id = None if team is None else (await one_team(connected, team)).id
    return QueueFilter(
        team_id,
        None if domain is None else domain_name(domain),
        None if email is None else as_id(email, "an email"),
    )


async def show_to_people(connected: CommandDatabase, part: QueueFilter, everything: bool) -> int:
    now = SystemClock().now()
    found = await operator_view.view(connected.pool, part, now, MOST_GROUPS)
    for line in await queue_control.pauses_in_words(connected, found.pauses):
        say(line)
    if found.held:
        say(f"All mail waits. {found.held}")
    if not found.totals.items:
        say("Nothing waits.")
        return 0
    names = await queue_control.names_of(connected)
    if everything:
        await show_items(connected, part, names, now)
    else:
        show_destinations(found, names, now)
    say()
    say(summary(found.totals, now))
    if found.totals.due and not found.processes:
        say("No delivery process runs: start `pillarbox serve` with the role delivery.")
    return 0


def show_destinations(queue: QueueView, names: dict[UUID, str], now: datetime) -> None:
    show_table(
        ("Destination", "Team", "Waiting", "Attempts", "Next attempt", "Oldest", "Why"),
        [
            (
                queue_group.destination,
                names.get(queue_group.team_id, queue_group.team_id),
                queue_group.items,
                queue_group.tries,
                when(queue_group.next_attempt_at, now),
                now - queue_group.oldest,
                group_words(queue_group),
            )
            for queue_group in queue.groups
        ],
    )
    if queue.has_more:
        say(f"… and smaller ones; --all shows everything, --domain one of them (first {MOST_GROUPS} shown).")


async def show_items(
    connected: CommandDatabase, part: QueueFilter, names: dict[UUID, str], now: datetime
) -> None:
    rows: list[Sequence[object]] = []
    async with transaction(connected.pool) as conn:
        async for item in overview_queries.items(conn, part, now):
            rows.append(item_row(item, names, now))
            if len(rows) == ROWS_AT_A_TIME:
                item_table(rows)
                rows.clear()
    if rows:
        item_table(rows)


def item_table(rows: Sequence[Sequence[object]]) -> None:
    show_table(("Id", "Destination", "Team", "Attempts", "Next attempt", "Age", "Why", "Last answer"), rows)


def item_row(item: WaitingItem, names: dict[UUID, str], now: datetime) -> Sequence[object]:
    answer = " ".join(text for text in (item.last_host and f"{item.last_host}:", item.last_reply) if text)
    return (
        item.email_id,
        item.destination,
        names.get(item.team_id, item.team_id),
        item.tries,
        when(item.next_attempt_at, now),
        now - item.created_at,
        why(item, now),
        answer or None,
    )


async def show_as_json(connected: CommandDatabase, part: QueueFilter, everything: bool) -> int:
    """Print one document; with all items it is written as the rows come, so its size does not matter."""
    now = SystemClock().now()
    found = await operator_view.view(connected.pool, part, now, MOST_GROUPS)
    document: dict[str, object] = {
        "object": "queue",
        "totals": found.totals._asdict(),
        "delivery_processes": found.processes,
        "paused": queue_control.pause_shapes(found.pauses),
        "held": found.held,
        "destinations": [queue_group._asdict() for queue_group in found.groups],
        "has_more_destinations": found.has_more,
    }
    if not everything:
        show_json(document)
        return 0
    sys.stdout.write(as_json(document).removesuffix("\n}") + ',\n  "items": [')
    async with transaction(connected.pool) as conn:
        separator = "\n"
        async for item in overview_queries.items(conn, part, now):
            sys.stdout.write(separator + as_json(item_shape(item, now)))
            separator = ",\n"
    sys.stdout.write("\n  ]\n}\n")
    return 0


def item_shape(item: WaitingItem, now: datetime) -> dict[str, object]:
    """Return an item for machines; `why` is for people, `reason` as it is stored."""
    return {
        "email_id": item.email_id,
        "team_id": item.team_id,
        "group": item.grp,
        "destination": item.destination,
        "condition": item.condition,
        "why": why(item, now),
        "attempts": item.tries,
        "uncertain": item.uncertain,
        "next_attempt_at": item.next_attempt_at,
        "first_attempt_at": item.first_attempt_at,
        "last_host": item.last_host,
        "last_reply": item.last_reply,
        "reason": item.reason,
        "created_at": item.created_at,
    }


async def try_now(connected: CommandDatabase, team: str | None, domain: str | None, email: str | None) -> int:
    part = await part_of(connected, team, domain, email)
    now = SystemClock().now()
    before = await overview_queries.totals(connected.pool, part, now)
    if not before.items and part != QueueFilter():
        raise CommandRefused("Nothing waits there.")
    moved = await operator_acts.retry(connected.pool, part, OPERATOR, now)
    say(f"{counted(moved, 'item is', 'items are')} tried now.")
    if left := in_conditions(await overview_queries.totals(connected.pool, part, now), NOT_RETRIED):
        say(f"Left as they are: {left}.")
    return 0


def summary(totals: Totals, now: datetime) -> str:
    """Return the totals in one line."""
    age = f"; the oldest is {span(now - totals.oldest)} old" if totals.oldest else ""
    items, places = counted(totals.items, "item"), counted(totals.destinations, "destination")
    return f"{items} for {places}: {in_conditions(totals)}{age}."


def group_words(queue_group: QueueGroup) -> str:
    """Return why the items of a destination wait; the most frequent reason where there are several."""
    reason = reason_in_words(queue_group.reason)
    return f"{in_conditions(queue_group)}. {reason}" if reason else f"{in_conditions(queue_group)}."


def when(instant: datetime | None, now: datetime) -> str:
    """Return `now`, `in 4 m 10 s`, or `-`."""
    if instant is None:
        return "-"
    return "now" if instant <= now else f"in {span(instant - now)}"


async def team_names(connected: CommandDatabase) -> dict[UUID, str]:
    return await queue_control.names_of(connected)
