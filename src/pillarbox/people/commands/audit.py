"""`pillarbox people audit`: who did what."""

from __future__ import annotations

import json as json_text
from typing import Annotated
from uuid import UUID

import typer

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import Json, perform, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.paging import Page
from pillarbox.people.audit import NO_TEAM
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.audit.queries import AuditEntry
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams

Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many entries, the newest.")
]


def audit(
    team: TeamOption = None,
    limit: Limit = 50,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show who did what, newest first: of one team, or of all teams and of what concerns none."""
    perform(lambda connected: show(connected, team, limit, json=json), data=data, database_url=database_url)


async def show(connected: CommandDatabase, team: str | None, limit: int, *, json: bool) -> int:
    names: dict[UUID, str | None] = {one.id: one.name for one in await chosen_teams(connected, team)}
    if team is None:
        names[NO_TEAM] = None
    rows = [
        (team_id, entry)
        for team_id in names
        for entry in (await audit_queries.page(TeamDb(connected.pool, team_id), Page(limit)))[:limit]
    ]
    rows = sorted(rows, key=lambda row: row[1].id, reverse=True)[:limit]
    if json:
        show_json({"object": "list", "data": [shape(team_id, entry) for team_id, entry in rows]})
        return 0
    show_table(
        ("At", "Team", "What", "On", "Who", "From"),
        [
            (entry.at, names[team_id], entry.what, entry.target, _who(entry), entry.address)
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
