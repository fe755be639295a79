"""Members of the team: who they are, what they may do, and taking them out. Invitations stand beside them."""

from __future__ import annotations

from uuid import UUID

from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.page_visits import Form, form, see_other
from pillarbox.dashboard.teams.current_team import (
    REFUSED,
    by,
    done_text,
    draw_team,
    manageable,
    role_of,
    team_db,
)
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.membership import members
from pillarbox.people.membership.members import KeysOfMember, MemberChange
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

HERE = "/team/members"
KEYS = {choice.value: choice for choice in KeysOfMember}
DONE = {
    "role": "members.role_changed",
    "removed": "members.removed",
    "invited": "invitations.sent",
    "ended": "invitations.ended",
}


@screen(
    HERE,
    title="members.title",
    words="members.words",
    navigation=NavigationEntry(group="team", order=20, icon="people"),
    query={"done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the members of the team and its invitations."""
    return await members_page(visit.request, visit.visitor, notice=done_text(visit.request, DONE))


@form(
    "POST",
    "/team/members/{member_id}/role",
    right=Right.MANAGE,
    confirm=True,
    back=HERE,
    keeps=["role"],
    summary="Give a member another role",
)
async def set_role(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    role = role_of(fields.get("role"))
    if role is None:
        return await members_page(request, visitor, status=422, problem="members.no_role")
    member_id = request.uuid("member_id")
    change = await members.set_role(team_db(request, visitor), by(request, visitor), member_id, role)
    return await answered(request, visitor, change, "role")


@screen("/team/members/{member_id}/remove", title="removal.title", right=Right.MANAGE)
async def ask(visit: Visit) -> Reply[Html]:
    """Show what follows if a member is removed."""
    return await removal_page(visit.request, visit.visitor, visit.request.uuid("member_id"))


@form(
    "POST",
    "/team/members/{member_id}/remove",
    while_blocked=True,
    right=Right.MANAGE,
    confirm=True,
    keeps=["keys"],
    summary="Take a member out of the team",
)
async def remove(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    change = await members.remove(
        team_db(request, visitor),
        by(request, visitor),
        request.uuid("member_id"),
        made_keys=KEYS.get(fields.get("keys"), KeysOfMember.END),
    )
    request.use(KeyCredentials).forget(team_db(request, visitor).team_id)
    return await answered(request, visitor, change, "removed")


async def answered(request: Request, visitor: Visitor, change: MemberChange, done: str) -> Reply[Html]:
    """Send the visitor to the list, which says what was done or why not."""
    if change is MemberChange.DONE:
        return see_other(f"{HERE}?done={done}")
    status, problem = REFUSED[change]
    return await members_page(request, visitor, status=status, problem=problem)


async def removal_page(request: Request, visitor: Visitor, member_id: UUID) -> Reply[Html]:
    """Show the member, and which API keys they have made."""
    db = team_db(request, visitor)
    member = await members.member(db, member_id)
    if member is None or member.role not in manageable(visitor.role):
        change = MemberChange.GONE if member is None else MemberChange.NOT_ALLOWED
        return await answered(request, visitor, change, "removed")
    keys = [] if member.person_id is None else await members.keys_of(db, member.person_id)
    return await draw_team(
        "teams/removal.html",
        request,
        visitor,
        HERE,
        title="removal.title",
        member=member,
        keys=keys,
        action=request.path,
    )


async def members_page(
    request: Request,
    visitor: Visitor,
    *,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
    email: str = "",
) -> Reply[Html]:
    """Show the list, with what the visitor may change."""
    db, kept = team_db(request, visitor), saved_form.kept(request, visitor)
    may_invite = visitor.may(Right.MANAGE)
    return await draw_team(
        "teams/members.html",
        request,
        visitor,
        HERE,
        title="members.title",
        status=status,
        problem=problem,
        notice=notice,
        members=await members.members(db),
        invitations=await members.invitations(db, request.at) if may_invite else [],
        may_invite=may_invite,
        roles=manageable(visitor.role),
        email=email or kept.get("/team/invitations", "email"),
    )
