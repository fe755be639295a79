"""Inviting somebody to the team, and taking an invitation back."""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.people.page_visits import Form, form, see_other
from pillarbox.dashboard.teams.current_team import by, role_of, team_db
from pillarbox.dashboard.teams.people_of_team import HERE, members_page
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people.membership import invitations
from pillarbox.people.membership.invitations import InvitationRefusal, Invitations
from pillarbox.people.roles import Right
from pillarbox.people.visitors import Visitor

REFUSED: Final = {
    InvitationRefusal.NOT_ALLOWED: (403, "team.not_allowed"),
    InvitationRefusal.IS_MEMBER: (409, "invitations.is_member"),
    InvitationRefusal.TOO_MANY: (429, "invitations.too_many"),
    InvitationRefusal.GONE: (404, "invitations.gone"),
}


@form(
    "POST",
    "/team/invitations",
    right=Right.MANAGE,
    confirm=True,
    back=HERE,
    keeps=["email", "role"],
    summary="Invite somebody to the team",
)
async def invite(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    address, role = address_of(fields.get("email")), role_of(fields.get("role"))
    if address is None or role is None:
        problem = "invitations.no_address" if address is None else "members.no_role"
        return await members_page(request, visitor, status=422, problem=problem, email=fields.get("email"))
    made = await request.use(Invitations).invite(
        team_db(request, visitor), by(request, visitor), address, role
    )
    if isinstance(made, InvitationRefusal):
        return await refused(request, visitor, made, fields.get("email"))
    return see_other(f"{HERE}?done=invited")


@form(
    "POST",
    "/team/invitations/{invitation_id}/end",
    while_blocked=True,
    right=Right.MANAGE,
    summary="Take an invitation back",
)
async def end(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    invitation_id = request.uuid("invitation_id")
    refusal = await invitations.end(team_db(request, visitor), by(request, visitor), invitation_id)
    if refusal is not None:
        return await refused(request, visitor, refusal)
    return see_other(f"{HERE}?done=ended")


async def refused(
    request: Request, visitor: Visitor, refusal: InvitationRefusal, email: str = ""
) -> Reply[Html]:
    status, problem = REFUSED[refusal]
    return await members_page(request, visitor, status=status, problem=problem, email=email)


def address_of(text: str) -> EmailAddress | None:
    try:
        return email_address(text)
    except NotAnAddress:
        return None
