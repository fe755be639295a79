"""The team that is looked at: which one, what it is called, and leaving it."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form, form, see_other
from pillarbox.dashboard.teams.current_team import REFUSED, by, done_text, draw_team, team_db
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people import sessions
from pillarbox.people.membership import members
from pillarbox.people.membership.invitations import one_line
from pillarbox.people.membership.members import LONGEST_TEAM_NAME, MemberChange
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

HERE = "/team"
DONE = {"renamed": "team.renamed", "switched": "team.switched", "left": "team.left", "joined": "team.joined"}


@screen(
    HERE,
    title="team.title",
    words="team.words",
    navigation=NavigationEntry(group="team", order=10, icon="settings"),
    query={"done": str},
    without_team=True,
)
async def show(visit: Visit) -> Reply[Html]:
    """Show the current team."""
    return await team_page(visit.request, visit.visitor, notice=done_text(visit.request, DONE))


@form("POST", "/team/switch", summary="Look at another team")
async def switch(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    pool, wanted = request.use(asyncpg.Pool), fields.get("team")
    teams = await members.teams_of(pool, visitor.person_id)
    if wanted not in [str(team.team_id) for team in teams]:
        return await team_page(request, visitor, status=404, problem="team.gone")
    await sessions.look_at(pool, visitor.token, UUID(wanted))
    return see_other(f"{HERE}?done=switched")


@form("POST", "/team/name", right=Right.OWN, summary="Rename the team")
async def rename(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    name = one_line(fields.get("name"))
    if not name or len(fields.get("name")) > LONGEST_TEAM_NAME:
        return await team_page(request, visitor, status=422, problem="team.no_name")
    change = await members.rename_team(team_db(request, visitor), by(request, visitor), name)
    return await answered(request, visitor, change, "renamed")


@form(
    "POST",
    "/team/leave",
    right=Right.VIEW,
    while_blocked=True,
    confirm=True,
    back=HERE,
    summary="Leave the team",
)
async def leave(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    """Take the visitor out of the team, if its name was typed."""
    if one_line(fields.get("typed_name")) != one_line(visitor.team_name or ""):
        return await team_page(request, visitor, status=422, problem="team.leave_not_so")
    db = team_db(request, visitor)
    member_id = await members.member_of(db, visitor.person_id)
    change = MemberChange.GONE
    if member_id is not None:
        change = await members.remove(db, by(request, visitor), member_id)
    return await answered(request, visitor, change, "left")


async def answered(request: Request, visitor: Visitor, change: MemberChange, done: str) -> Reply[Html]:
    if change is MemberChange.DONE:
        return see_other(f"{HERE}?done={done}")
    status, problem = REFUSED[change]
    return await team_page(request, visitor, status=status, problem=problem)


async def team_page(
    request: Request,
    visitor: Visitor,
    *,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
) -> Reply[Html]:
    """Return the page of the team, with the other teams that the person belongs to."""
    return await draw_team(
        "teams/team.html",
        request,
        visitor,
        HERE,
        title="team.title",
        status=status,
        problem=problem,
        notice=notice,
        may_rename=visitor.may(Right.OWN),
        lost_keys=await lost_keys(request, visitor),
    )


async def lost_keys(request: Request, visitor: Visitor) -> list[str]:
    """Return the names of the API keys that do nothing any more once the visitor has left the team."""
    if visitor.team_id is None:
        return []
    return [key.name for key in await members.keys_of(team_db(request, visitor), visitor.person_id)]
