"""`pillarbox people audit`: who did what."""

from __future__ import annotations

import json as json_text
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.kernel.terminal.answers import Json, perform, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.people.audit import NO_TEAM, page_of_all
from pillarbox.people.audit.queries import AuditEntry, AuditFilter
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams

Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many entries, the newest.")
]
What = Annotated[
    str | None,
    typer.Option(
        "--what", metavar="ACT", help="Only this act, or all of its kind: `key`.", show_default=False
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        "--who", metavar="TEXT", help="Only where the actor or what was acted on has it.", show_default=False
    ),
]


def audit(
    team: TeamOption = None,
    what: What = None,
    who: Who = None,
    limit: Limit = 50,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show who did what, newest first: of one team, or of all teams and of what concerns none."""
    perform(
        lambda connected: show(connected, team, what, who, limit, json=json),
        data=data,
        database_url=database_url,
    )


async def show(
    connected: CommandDatabase, team: str | None, what: str | None, who: str | None, limit: int, *, json: bool
) -> int:
    teams = await chosen_teams(connected, team)
    names: dict[UUID, str] = {one.id: one.name for one in teams}
    entry_filter = AuditFilter(None if team is None else teams[0].id, what, who)
    rows = [(entry.team_id, entry) for entry in await page_of_all(connected.pool, entry_filter, limit)]
    if json:
        show_json({"object": "list", "data": [shape(team_id, entry) for team_id, entry in rows]})
        return 0
    show_table(
        ("At", "Team", "What", "On", "Who", "From"),
        [
            (entry.at, names.get(team_id), entry.what, entry.target, _who(entry), entry.address)
            for team_id, entry in rows
        ],
    )
    return 0


def _who(entry: AuditEntry) -> str:
    """Return the actor, with the kind before the name: a key may be called anything."""
    return (
        entry.kind if entry.kind in ("operator", "unknown") else f"{entry.kind} {entry.actor or ''}".strip()
    )


def shape(team_id: UUID, entry: AuditEntry) -> dict[str, object]:
    """Return an entry as JSON."""
    return {
        "id": entry.id,
        "at": entry.at,
        "team_id": None if team_id == NO_TEAM else team_id,
        "what": entry.what,
        "target": entry.target,
        "actor": entry.actor,
        "actor_kind": entry.kind,
        "person_id": entry.person_id,
        "key_id": entry.key_id,
        "grant_id": entry.grant_id,
        "address": entry.address,
        "user_agent": entry.user_agent,
        "details": None if entry.details is None else json_text.loads(entry.details),
    }
