"""The log of acts of all teams, and of what concerns none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pillarbox.dashboard.frame.filter_fields import day_range
from pillarbox.dashboard.frame.paging import ROWS, PageLinks
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.installation.choices import all_teams, names_of, shell, team_of
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Invalid
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people import audit
from pillarbox.people.audit.queries import AuditFilter, EntryOfTeam

HERE: Final = "/dashboard/installation/acts"
FILTERS: Final = ("team", "what", "who", "since", "until")


@screen(
    HERE,
    title="operator.acts",
    words="operator.acts.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=60, icon="acts", keys="A"),
    query={**dict.fromkeys(FILTERS, str), "after": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    given = {name: visit.request.query.text(name) for name in FILTERS}
    teams = await all_teams(visit)
    names = names_of(teams)
    problem = None
    try:
        days = day_range(given["since"], given["until"])
        chosen = AuditFilter(
            team_id=_team_id(visit, given["team"]),
            what=given["what"],
            who=given["who"],
            since=days.since,
            until=days.until,
        )
    except Invalid as wrong:
        chosen, problem = AuditFilter(), wrong.message
    after = _cursor(visit.request.query.text("after"))
    found = await audit.find_of_all(visit.pool, chosen, ROWS, after=after)
    older = None
    if found.following is not None:
        at, entry_id = found.following
        older = with_query(HERE, **given, after=f"{at.isoformat()}~{entry_id}")
    team = team_of(teams, given["team"])
    return await visit.draw(
        "installation/acts.html",
        status=200 if problem is None else 422,
        problem=problem,
        entries=[_entry(entry, names) for entry in found.entries],
        paging=PageLinks(None, older),
        given=given,
        is_filtered=any(given.values()),
        team_names={str(team.id): team.name for team in teams},
        kinds={kind: kind for kind in sorted({act.value.partition(".")[0] for act in audit.Act})},
        command=[
            shell(
                "people", "audit", team=str(team.id) if team else None, what=given["what"], who=given["who"]
            )
        ],
    )


def _team_id(visit: Visit, text: str | None) -> UUID | None:
    return UUID(text) if text and well_formed(text) else None


def _cursor(text: str | None) -> tuple[datetime, UUID] | None:
    """Return the entry that the page begins behind; None where the address names none that can be read."""
    instant, _, entry_id = (text or "").partition("~")
    if not well_formed(entry_id):
        return None
    try:
        at = datetime.fromisoformat(instant)
    except ValueError:
        return None
    return (at, UUID(entry_id)) if at.tzinfo else None


def _entry(entry: EntryOfTeam, names: Mapping[UUID, str]) -> dict[str, Any]:
    details = json.loads(entry.details) if entry.details else {}
    return {
        "at": entry.at,
        "what": entry.what,
        "target": entry.target,
        "team": names.get(entry.team_id),
        "team_id": str(entry.team_id) if entry.team_id in names else None,
        "kind": entry.kind,
        "actor": entry.actor,
        "address": entry.address,
        "user_agent": entry.user_agent,
        "details": [f"{name}: {value}" for name, value in details.items()],
    }
