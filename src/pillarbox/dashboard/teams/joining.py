"""The link of an invitation. Opening it changes nothing.

Whoever has logged in with the address of the invitation joins; whoever can log in with it is asked to; and
somebody new chooses a password, which makes its account.
"""

from __future__ import annotations

import asyncpg

from pillarbox.dashboard.people.cookies import cookie, session_cookie
from pillarbox.dashboard.people.local_paths import with_return
from pillarbox.dashboard.people.login import OPENID
from pillarbox.dashboard.people.new_passwords import wrong_with
from pillarbox.dashboard.people.page_visits import (
    Form,
    PageGuest,
    draw,
    message_page,
    open_form,
    open_page,
    origin_of,
    see_other,
)
from pillarbox.dashboard.teams.current_team import ROLES
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import sessions
from pillarbox.people.accounts import clean_name
from pillarbox.people.audit import visitor_actor
from pillarbox.people.membership.invitations import Invitations, OpenedInvitation
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.roles import TeamRole
from pillarbox.people.visitors import Visitor

JOINED = "/team?done=joined"


@open_page("GET", "/invitation/{token}", summary="An invitation to a team")
async def show(request: Request, guest: PageGuest) -> Reply[Html]:
    opened = await request.use(Invitations).find(request.at, request.param("token"))
    return gone() if opened is None else invitation_page(request, guest, opened)


@open_form("POST", "/invitation/{token}", summary="Accept an invitation")
async def accept(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    opened = await request.use(Invitations).find(request.at, request.param("token"))
    if opened is None:
        return gone()
    if guest.visitor is not None and is_meant(guest.visitor, opened):
        return await joined(request, guest.visitor, opened)
    if guest.visitor is not None or opened.person is not None or request.use(OpenIdPolicy).is_only:
        return invitation_page(request, guest, opened, status=403)
    if wrong := wrong_with(fields.get("password"), opened.invitation.email, fields.get("name")):
        return invitation_page(request, guest, opened, status=422, wrong=wrong, name=fields.get("name"))
    return await begun(request, fields)


async def joined(request: Request, visitor: Visitor, opened: OpenedInvitation) -> Reply[Html]:
    """Add the account to the team, and let the person view that team from now on."""
    done = await request.use(Invitations).join(
        request.at, request.param("token"), visitor_actor(request, visitor)
    )
    if not done:
        return gone()
    await sessions.look_at(request.use(asyncpg.Pool), visitor.token, opened.invitation.team_id)
    return see_other(JOINED)


async def begun(request: Request, fields: Form) -> Reply[Html]:
    """Create an account with its first session."""
    session = await request.use(Invitations).join_newly(
        request.at,
        request.param("token"),
        name=clean_name(fields.get("name")),
        password=fields.get("password"),
        origin=origin_of(request),
        replaced=cookie(request),
    )
    return gone() if session is None else see_other(JOINED, cookie=session_cookie(session))


def is_meant(visitor: Visitor, opened: OpenedInvitation) -> bool:
    """Return whether the invitation is for the person who has logged in."""
    return email_address(visitor.email).address == email_address(opened.invitation.email).address


def invitation_page(
    request: Request,
    guest: PageGuest,
    opened: OpenedInvitation,
    *,
    status: int = 200,
    wrong: str | None = None,
    name: str = "",
) -> Reply[Html]:
    """Show the invitation, and what to do about it."""
    visitor, policy = guest.visitor, request.use(OpenIdPolicy)
    return draw(
        "teams/invitation.html",
        visitor=guest,
        status=status,
        invitation=opened.invitation,
        role=t(ROLES[TeamRole(opened.invitation.role)]),
        is_meant=visitor is not None and is_meant(visitor, opened),
        has_account=opened.person is not None,
        is_only=policy.is_only,
        login=with_return("/login", request.path),
        provider=policy.name if policy.issuer is not None else None,
        provider_link=with_return(OPENID, request.path),
        wrong=wrong,
        name=name,
    )


def gone() -> Reply[Html]:
    return message_page(
        t("invitation.gone.title"),
        t("invitation.gone.text"),
        status=404,
        link=("/", t("invitation.gone.link")),
    )
