"""Programs that act for the team: members see and end their own, those who manage the team all of them."""

from __future__ import annotations

from pillarbox.dashboard.consent.pages import shown_name
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form, form, see_other
from pillarbox.dashboard.teams.current_team import REFUSED, by, done_text, draw_team, team_db
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.membership import programs
from pillarbox.people.membership.members import MemberChange
from pillarbox.people.roles import Right, TeamAct
from pillarbox.people.visitors import Visitor

HERE = "/team/programs"
DONE = {"revoked": "programs.revoked"}


@screen(
    HERE,
    title="programs.title",
    words="programs.words",
    navigation=NavigationEntry(group="team", order=40, icon="programs"),
    query={"done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the programs that act for the team."""
    return await programs_page(visit.request, visit.visitor, notice=done_text(visit.request, DONE))


@form(
    "POST",
    "/team/programs/{oauth_grant_id}/revoke",
    while_blocked=True,
    right=Right.USE,
    back=HERE,
    summary="Shut a program out",
)
async def revoke(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    grant_id = request.uuid("oauth_grant_id")
    change = await programs.revoke(team_db(request, visitor), by(request, visitor), grant_id)
    if change is not MemberChange.DONE:
        status, problem = REFUSED[change]
        return await programs_page(request, visitor, status=status, problem=problem)
    return see_other(f"{HERE}?done=revoked")


async def programs_page(
    request: Request,
    visitor: Visitor,
    *,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
) -> Reply[Html]:
    """Show the list."""
    everybody = visitor.may_do(TeamAct.SEE_PROGRAMS, is_own=False)
    return await draw_team(
        "teams/programs.html",
        request,
        visitor,
        HERE,
        title="programs.title",
        status=status,
        problem=problem,
        notice=notice,
        programs=await programs.listed(team_db(request, visitor), None if everybody else visitor.person_id),
        shown_name=shown_name,
        everybody=everybody,
        may_revoke=visitor.may_do(TeamAct.REVOKE_PROGRAM),
    )
