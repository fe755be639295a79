"""The teams of the installation, with their limits and what they used; blocking them and setting limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pillarbox.dashboard.frame.paging import ROWS, PageLinks
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.installation.choices import all_teams, shell, team_of
from pillarbox.dashboard.installation.facts import InstallationFacts
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.teams import operator_acts
from pillarbox.teams.bootstrap import TeamStatus
from pillarbox.teams.limits import LIMITS, LimitRefusedError, TeamLimitOption, usual
from pillarbox.teams.slugs import slug
from pillarbox.teams.team import Team
from pillarbox.usage.meter import UsageMeter

HERE: Final = "/dashboard/installation/teams"
ONE: Final = f"{HERE}/{{team_id}}"


class LimitField(NamedTuple):
    """A field of the form of limits. `usual` holds where it is empty."""

    name: str
    title: str
    text: str
    usual: str
    wrong: str | None


@screen(
    HERE,
    title="operator.teams",
    words="operator.teams.words",
    for_operators=True,
    navigation=NavigationEntry(group="installation", order=30, icon="teams", keys="T"),
    query={"q": str, "after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """List the teams, the oldest first, a page at a time."""
    q = (visit.request.query.text("q") or "").strip()
    teams = [
        team for team in await all_teams(visit) if q.casefold() in f"{team.name} {team.email}".casefold()
    ]
    rows, paging = _page(teams, visit, q)
    return await visit.draw(
        "installation/teams.html",
        listed=rows,
        paging=paging,
        q=q,
        command=[shell("teams", "list")],
    )


@screen(ONE, title="operator.team", for_operators=True, query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    return await team_page(visit, await _team(visit))


@act(f"{ONE}/block", title="operator.team.block", back=HERE, for_operators=True, confirm=True)
async def block(visit: Visit, _: Form) -> Reply[Html]:
    return await _set_status(visit, TeamStatus.BLOCKED, "team_blocked")


@act(f"{ONE}/unblock", title="operator.team.unblock", back=HERE, for_operators=True, confirm=True)
async def unblock(visit: Visit, _: Form) -> Reply[Html]:
    return await _set_status(visit, TeamStatus.ACTIVE, "team_unblocked")


@act(f"{ONE}/limits", title="operator.team.limits", back=HERE, for_operators=True, confirm=True)
async def set_limits(visit: Visit, form: Form) -> Reply[Html]:
    """Set the limits that were changed."""
    team = await _team(visit)
    typed = {limit.column: form.get(limit.column).strip() for limit in LIMITS}
    wrong: dict[str, str] = {}
    given: dict[str, int | None] = {}
    for limit in LIMITS:
        try:
            number = limit.read(typed[limit.column] or limit.absent)
        except LimitRefusedError:
            wrong[limit.column] = t("operator.team.wrong", most=limit.most)
            continue
        if number != getattr(team, limit.column):
            given[limit.column] = number
    if wrong:
        return await team_page(
            visit, team, status=422, problem=t("operator.team.refused"), typed=typed, wrong=wrong
        )
    if given:
        await operator_acts.set_limits(visit.pool, team, given, visit.actor, visit.request.at)
    return visit.to(f"{HERE}/{team.id}", done="team_limits_set")


async def team_page(
    visit: Visit,
    team: Team,
    *,
    status: int = 200,
    problem: str | None = None,
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, str] | None = None,
) -> Reply[Html]:
    """Show one team; `typed` and `wrong` are of a form that was refused."""
    used = await visit.request.use(UsageMeter).read(visit.pool, team.id)
    team_id = str(team.id)
    return await visit.draw(
        "installation/team.html",
        status=status,
        problem=problem,
        team=team,
        slug=slug(team.number),
        here=f"{HERE}/{team_id}",
        today=used.day_sent + used.day_received,
        month=used.month_sent + used.month_received,
        fields=[_field(visit, team, limit, typed or {}, wrong or {}) for limit in LIMITS],
        command=[
            shell("teams", "show", team_id),
            shell("teams", "unblock" if team.status == TeamStatus.BLOCKED.value else "block", team_id),
            shell("teams", "set", team_id, **{"daily-quota": "1000"}),
            shell("people", "members", team=team_id),
        ],
    )


def _field(
    visit: Visit, team: Team, limit: TeamLimitOption, typed: Mapping[str, str], wrong: Mapping[str, str]
) -> LimitField:
    own = getattr(team, limit.column)
    text = typed.get(limit.column, "" if own is None else str(own))
    settings = visit.request.use(InstallationFacts).settings
    return LimitField(
        name=limit.column,
        title=t(f"limit.{limit.column}"),
        text=text,
        usual=usual(settings, limit),
        wrong=wrong.get(limit.column),
    )


async def _team(visit: Visit) -> Team:
    team = team_of(await all_teams(visit), visit.request.param("team_id"))
    if team is None:
        raise NotFound("Team")
    return team


async def _set_status(visit: Visit, status: TeamStatus, done: str) -> Reply[Html]:
    team = await _team(visit)
    if not await operator_acts.set_status(visit.pool, team, status, visit.actor, visit.request.at):
        return await team_page(visit, team, status=409, problem=t("operator.team.disabled"))
    return visit.to(f"{HERE}/{team.id}", done=done)


def _page(teams: Sequence[Team], visit: Visit, q: str) -> tuple[Sequence[Team], PageLinks]:
    """Return the teams behind or before the one that the address names."""
    ids = [str(team.id) for team in teams]
    after, before = visit.request.query.text("after"), visit.request.query.text("before")
    start = 0
    if after in ids:
        start = ids.index(after) + 1
    elif before in ids:
        start = max(0, ids.index(before) - ROWS)
    rows = teams[start : start + ROWS]
    has_newer, has_older = start > 0, start + ROWS < len(teams)
    return rows, PageLinks(
        with_query(HERE, q=q, before=ids[start]) if has_newer else None,
        with_query(HERE, q=q, after=ids[start + ROWS - 1]) if has_older else None,
    )
