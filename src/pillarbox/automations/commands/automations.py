"""`pillarbox automations`: which there are, what their steps are, and how far their runs are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer

from pillarbox.automations import overview_queries, queries
from pillarbox.automations.graphs import normal
from pillarbox.automations.graphs.graph import Graph
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import (
    CommandRefused,
    Json,
    as_id,
    instant,
    perform,
    say,
    show_json,
    show_table,
)
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team

RUN_STATUSES: Final = ("running", "completed", "failed", "cancelled")

group = typer.Typer(no_args_is_help=True, help="Look at automations and their runs, and simulate one.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the automation.", show_default=False)]
Statuses = Annotated[
    list[str] | None,
    typer.Option(
        "--status", metavar="STATUS", help="Only these; may be given several times.", show_default=False
    ),
]
Most = Annotated[int, typer.Option("--limit", min=1, max=1000, help="So many of the newest.")]


@group.command("list")
def show_all(
    team: TeamOption = None, json: Json = False, data: Data = None, database_url: DatabaseUrl = None
) -> None:
    """List the automations of a team, with how many runs of each are in each state."""
    perform(lambda connected: listed(connected, team, json=json), data=data, database_url=database_url)


@group.command("show")
def show(
    automation: Id,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show an automation step by step: where each leads, how many runs wait there and have failed there."""
    perform(
        lambda connected: shown(connected, team, automation, json=json), data=data, database_url=database_url
    )


@group.command("runs")
def runs(
    automation: Id,
    status: Statuses = None,
    limit: Most = 20,
    team: TeamOption = None,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the newest runs of an automation: whose they are, when they go on, and what they failed for."""
    perform(
        lambda connected: runs_of(connected, team, automation, status, limit, json=json),
        data=data,
        database_url=database_url,
    )


async def of_team(connected: CommandDatabase, team: str | None, automation: str) -> tuple[TeamDb, UUID]:
    """Return the team that has this automation, and its id."""
    automation_id = as_id(automation, "an automation")
    for owner in await chosen_teams(connected, team):
        db = TeamDb(connected.pool, owner.id)
        if await queries.get(db, automation_id) is not None:
            return db, automation_id
    raise CommandRefused(f"There is no automation {automation_id}.")


async def listed(connected: CommandDatabase, team: str | None, *, json: bool) -> int:
    """Print them, the newest first."""
    owner = await one_team(connected, team)
    found = await overview_queries.every(TeamDb(connected.pool, owner.id))
    if json:
        show_json({"object": "list", "data": [asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Name", "Status", "Running", "Completed", "Failed", "Cancelled", "Created"),
            [
                (
                    *(one.id, one.name, one.status, f"{one.running:,}", f"{one.completed:,}"),
                    *(f"{one.failed:,}", f"{one.cancelled:,}", one.created_at),
                )
                for one in found
            ],
        )
    else:
        say(f"The team {owner.name!r} has no automations.")
    return 0


async def shown(connected: CommandDatabase, team: str | None, automation: str, *, json: bool) -> int:
    """Print one with the steps of its newest graph, in the order in which runs reach them."""
    db, automation_id = await of_team(connected, team, automation)
    found = await queries.get(db, automation_id)
    [summary] = [one for one in await overview_queries.every(db) if one.id == automation_id]
    assert found is not None
    graph = await found.graph()
    known = {one.position: one for one in await overview_queries.steps(db, automation_id, found.version)}
    if json:
        counts = [
            {"key": graph.steps[one.position].key, "waiting": one.waiting, "failed": one.failed}
            for one in known.values()
        ]
        steps, connections = normal.steps(graph), normal.connections(graph)
        show_json({**asdict(summary), "steps": steps, "connections": connections, "runs": counts})
        return 0
    since = "" if summary.enabled_at is None else f" since {instant(summary.enabled_at)}"
    say(f"Name     {found.name}")
    say(f"Id       {found.id}")
    say(f"Status   {found.status}{since}")
    say(f"Version  {found.version}")
    say(
        f"Runs     {summary.running:,} running, {summary.completed:,} completed, "
        f"{summary.failed:,} failed, {summary.cancelled:,} cancelled"
    )
    say()
    rows = []
    for position in graph.order:
        step, one = graph.steps[position], known.get(position)
        counts_of = ("0", "0", None) if one is None else (f"{one.waiting:,}", f"{one.failed:,}", one.due_at)
        words = says(graph, position), leads(graph, position)
        rows.append((step.key, step.type, *words, *counts_of))
    show_table(("Step", "Type", "Does", "Leads to", "Waiting", "Failed", "Next due"), rows)
    return 0


async def runs_of(
    connected: CommandDatabase,
    team: str | None,
    automation: str,
    statuses: list[str] | None,
    limit: int,
    *,
    json: bool,
) -> int:
    """Print the newest runs."""
    wrong = sorted(set(statuses or ()) - set(RUN_STATUSES))
    if wrong:
        raise CommandRefused(f"{wrong[0]!r} is no status of a run. Use {', '.join(RUN_STATUSES)}.")
    db, automation_id = await of_team(connected, team, automation)
    found = await overview_queries.runs(db, automation_id, statuses or None, limit)
    if json:
        show_json({"object": "list", "data": [asdict(one) for one in found]})
    elif found:
        show_table(
            ("Id", "Contact", "Event", "Status", "Started", "Ended", "Goes on", "Error"),
            [
                (
                    *(one.id, one.contact, one.event, one.status, one.created_at, one.completed_at),
                    *(one.due_at, one.error or one.trouble),
                )
                for one in found
            ],
        )
    else:
        say("There are no such runs.")
    return 0


def says(graph: Graph, position: int) -> str:
    """Return a step's main setting as a short text: the event, duration, template or segment, else its config
    as JSON."""
    config = normal.config(graph.steps[position].config)
    match graph.steps[position].type:
        case "trigger" | "wait_for_event":
            return str(config["event_name"])
        case "delay":
            return str(config["duration"])
        case "send_email":
            return _template(config)
        case "add_to_segment":
            return str(config["segment_id"])
        case _:
            return msgspec.json.encode(config).decode() if config else ""


def _template(config: normal.Json) -> str:
    """Return the id or alias of the template that a step sends."""
    template = config["template"]
    return str(template["id"]) if isinstance(template, dict) else ""


def leads(graph: Graph, position: int) -> str:
    """Return the keys of the steps that a step leads to, each with its outcome where there are several."""
    step = graph.steps[position]
    ways = []
    for outcome in step.outcomes:
        keys = ", ".join(graph.steps[target].key for target in graph.following(position, outcome))
        if keys:
            ways.append(keys if outcome == "default" else f"{outcome}: {keys}")
    return "; ".join(ways)
