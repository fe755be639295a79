"""`pillarbox metrics`: the last days in the terminal, and counting the history anew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
import typer

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.terminal.answers import Json, counted, perform, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase, Data, DatabaseUrl
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.kernel.wire.query import Query
from pillarbox.metrics import question, read, wire
from pillarbox.metrics.periods import midnight
from pillarbox.teams.commands.choosing import TeamOption, chosen_teams, one_team
from pillarbox.teams.settings import METRICS_RETENTION_DAYS
from pillarbox.teams.team import Team
from pillarbox.timeline import levels, rebuilding
from pillarbox.timeline.levels import NOBODY
from pillarbox.timeline.rebuilding_queries import Difference
from pillarbox.timeline.rollups import kept_since

group = typer.Typer(
    invoke_without_command=True, help="Show what became of the mail of the last days; count it anew."
)

DAYS = 7
DIFFERENT = 1
SHOWN = (
    ("Accepted", "received"),
    ("Sent", "sent"),
    ("Delivered", "delivered"),
    ("Bounced", "bounced"),
    ("Delayed", "delivery_delayed"),
    ("Failed", "failed"),
    ("Suppressed", "suppressed"),
    ("Complained", "complained"),
    ("Opened", "unique_opened"),
    ("Clicked", "unique_clicked"),
    ("Delivery %", "delivery_rate"),
)

Zone = Annotated[str, typer.Option("--timezone", metavar="NAME", help="Cut the days of this time zone.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only print the differences; exit 1 where there are any.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Differences that are listed.")]


@group.callback()
def show(
    context: typer.Context,
    team: TeamOption = None,
    timezone: Zone = "UTC",
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what became of a team's mail in the last seven days."""
    if context.invoked_subcommand is None:
        perform(
            lambda connected: _show(connected, team, timezone, json=json),
            data=data,
            database_url=database_url,
        )


@group.command()
def rebuild(
    team: TeamOption = None,
    dry_run: DryRun = False,
    limit: Limit = 1000,
    json: Json = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Count the history anew, print the differences to the rollups and set them right.

    May run beside a live server. What retention has removed is left as it was counted.
    """
    perform(
        lambda connected: _rebuild(connected, team, limit, correct=not dry_run, json=json),
        data=data,
        database_url=database_url,
    )


async def _show(connected: CommandDatabase, team_name: str | None, zone: str, *, json: bool) -> int:
    team = await one_team(connected, team_name)
    now = SystemClock().now()
    place = ZoneInfo(question.zone_name(zone))
    first = midnight(now.astimezone(place).date() - timedelta(days=DAYS - 1), place)
    params = {"start_date": iso_style(first), "timezone": place.key, "dimensions": "period"}
    asked = question.read(Query(urlencode(params).encode()), now, _days(connected, team))
    found = read.cut(asked)
    answer = msgspec.json.decode(
        wire.answer(asked, found, await read.rows(connected.pool, team.id, asked, found)), type=wire.Metrics
    )
    if json:
        show_json({"team": team.name, **msgspec.to_builtins(answer)})
        return 0
    rows = [*answer.data, {"period": "Total", **answer.totals}]
    columns = ("Day", *(title for title, _ in SHOWN))
    show_table(columns, [(row["period"], *(row[name] for _, name in SHOWN)) for row in rows])
    return 0


def _days(connected: CommandDatabase, team: Team) -> int:
    """Return for how many days the team's rollups are kept."""
    own = team.metrics_retention_days
    return connected.settings[METRICS_RETENTION_DAYS] if own is None else own


async def _rebuild(
    connected: CommandDatabase, team_name: str | None, limit: int, *, correct: bool, json: bool
) -> int:
    clock = SystemClock()
    found: list[tuple[str, Difference]] = []
    total = 0
    for team in await chosen_teams(connected, team_name):
        since = kept_since(clock.now(), _days(connected, team))
        async for difference in rebuilding.rebuild(
            connected.pool, Ids(clock), team.id, clock.now(), since=since, correct=correct
        ):
            total += 1
            if len(found) < limit:
                found.append((team.name, difference))
    if json:
        listed = [_document(*one) for one in found]
        show_json({"object": "metrics_rebuild", "mended": correct, "total": total, "differences": listed})
    else:
        _show_differences(found, total, correct=correct)
    return DIFFERENT if found and not correct else 0


def _document(team: str, difference: Difference) -> dict[str, Any]:
    return {
        "team": team,
        "start": iso_style(difference.start),
        "rollup": levels.NAMES[difference.level],
        "domain": difference.domain_name,
        "broadcast_id": None if difference.broadcast_id == NOBODY else difference.broadcast_id,
        "metric": difference.metric,
        "was": difference.written,
        "is": difference.counted,
    }


def _show_differences(differences: Sequence[tuple[str, Difference]], total: int, *, correct: bool) -> None:
    if not differences:
        say("The rollups say what the history says.")
        return
    show_table(
        ("Team", "From (UTC)", "Rollup", "Domain", "Metric", "Written", "History"),
        [
            (
                team,
                _minute(difference.start),
                levels.NAMES[difference.level],
                difference.domain_name,
                difference.metric,
                difference.written,
                difference.counted,
            )
            for team, difference in differences
        ],
    )
    listed = (
        f"; the first {counted(len(differences), 'is', 'are')} listed" if len(differences) < total else ""
    )
    say(f"{counted(total, 'difference')}{', set right' if correct else ''}{listed}.")


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"
