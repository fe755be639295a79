"""Proving again who one is, before an act that gives power (docs/decisions/0106)."""

from __future__ import annotations

import asyncpg

from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.cookies import session_cookie
from pillarbox.dashboard.people.local_paths import local_path, with_return
from pillarbox.dashboard.people.login import HOME, waiting
from pillarbox.dashboard.people.page_visits import Form, draw, form, page, see_other
from pillarbox.dashboard.people.passkey_page import has_passkeys
from pillarbox.dashboard.texts import has_text, t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import RouteTable
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people import sessions
from pillarbox.people.logins import PASSWORD, Logins, TooManyTries
from pillarbox.people.openid.own_openid import OwnOpenId
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.visitors import Visitor


@page("GET", "/confirm", summary="Prove again who you are", query={"to": str})
async def show_confirm(request: Request, visitor: Visitor) -> Reply[Html]:
    return await confirm_page(request, visitor, local_path(request.query.last("to")))


@form("POST", "/confirm", summary="Prove by password who you are")
async def confirm(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    to = local_path(fields.get("to"))
    right = await request.use(Logins).is_password(
        visitor.person_id, visitor.email, fields.get("password"), visitor.session_id
    )
    if isinstance(right, TooManyTries):
        page_again = await confirm_page(request, visitor, to, t("login.wait", seconds=right.seconds), 429)
        return waiting(page_again, right)
    if not right:
        return await confirm_page(request, visitor, to, t("confirm.wrong"), 403)
    return await confirmed(request, visitor, PASSWORD, to)


async def confirmed(request: Request, visitor: Visitor, way: str, to: str | None) -> Reply[Html]:
    """Renew the session with a new token, since the person has just proved who they are, and send them on."""
    ways = [*visitor.ways, *(() if way in visitor.ways else (way,))]
    async with transaction(request.use(asyncpg.Pool)) as conn:
        token = await sessions.renew(conn, request.at, sessions.token_hash(visitor.token), ways)
    return see_other("/login") if token is None else see_other(to or HOME, cookie=session_cookie(token))


async def confirm_page(
    request: Request, visitor: Visitor, to: str | None, wrong: str | None = None, status: int = 200
) -> Reply[Html]:
    """Show the form for the password, and for a passkey or the provider where the person has them."""
    can_sign = await has_passkeys(request, visitor.person_id)
    policy = request.use(OpenIdPolicy)
    is_joined = await request.use(OwnOpenId).find(visitor.person_id) is not None
    has_password = await request.use(Logins).has_password(visitor.person_id)
    return draw(
        "people/confirm.html",
        visitor=visitor,
        status=status,
        to=to,
        wrong=wrong,
        can_sign=can_sign,
        has_password=has_password or not (is_joined or can_sign),
        provider=policy.name if is_joined else None,
        provider_link=with_return("/confirm/openid", to),
        act=act_name(request, saved_form.form_path(request, visitor, to)),
        has_input=saved_form.has_fields(request, visitor, to),
    )


def act_name(request: Request, path: str | None) -> str | None:
    """Return what the form at this path is called on its screen; None where it has no such name."""
    if path is None:
        return None
    try:
        found, _ = request.use(RouteTable).match("POST", path)
    except Problem:
        return None
    return t(found.summary) if has_text(found.summary) else None
