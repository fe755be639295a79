"""Logging in by more than a password: the second factor after it, or a passkey alone."""

from __future__ import annotations

from pillarbox.dashboard.people.cookies import cookie, session_cookie
from pillarbox.dashboard.people.local_paths import local_path, with_return
from pillarbox.dashboard.people.login import HOME, too_many, waiting
from pillarbox.dashboard.people.page_visits import (
    Form,
    PageGuest,
    draw,
    form,
    message_page,
    open_form,
    open_page,
    origin_of,
    see_other,
)
from pillarbox.dashboard.people.passkey_page import has_passkeys, impossible, passkey_page
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.factors.factor_logins import FactorLogins, FullSession
from pillarbox.people.factors.passkeys import Passkeys
from pillarbox.people.factors.second_factor import Factor
from pillarbox.people.logins import LoginRefused, TooManyTries
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.session_queries import PersonSession
from pillarbox.people.visitors import Visitor

AFTER_RECOVERY = "/account?done=recovery"


@open_page("GET", "/login/factor", summary="Give the second factor", query={"to": str})
async def show_factor(request: Request, guest: PageGuest) -> Reply[Html]:
    to = local_path(request.query.last("to"))
    pending = await request.use(FactorLogins).pending(request.at, cookie(request))
    if pending is None:
        return see_other((to or HOME) if guest.visitor else with_return("/login", to))
    return await factor_page(request, guest, pending, to)


@open_form("POST", "/login/factor", summary="Log in by the second factor")
async def give_factor(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    logins, to = request.use(FactorLogins), local_path(fields.get("to"))
    pending = await logins.pending(request.at, cookie(request))
    if pending is None:
        return see_other(with_return("/login", to))
    outcome = await logins.give(request.at, pending, fields.get("code"), origin_of(request))
    if isinstance(outcome, FullSession):
        return admitted(outcome, to)
    if isinstance(outcome, TooManyTries):
        wrong = t("login.wait", seconds=outcome.seconds)
        return waiting(await factor_page(request, guest, pending, to, wrong, 429), outcome)
    return await factor_page(request, guest, pending, to, t("factor.wrong"), 403)


@open_form("POST", "/login/passkey", summary="Ask the browser for a passkey")
async def ask_for_passkey(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    if not request.use(Passkeys).are_possible:
        return impossible()
    asked = await request.use(FactorLogins).ask_for_passkey(request.at, origin_of(request))
    if isinstance(asked, TooManyTries):
        return too_many(asked)
    to = local_path(fields.get("to"))
    return passkey_page(request, guest, asked, "login", "/login/passkey/answer", "/login", to)


@open_form("POST", "/login/passkey/answer", summary="Log in by a passkey")
async def log_in_by_passkey(request: Request, _: PageGuest, fields: Form) -> Reply[Html]:
    outcome = await request.use(FactorLogins).by_passkey(
        request.at,
        fields.get("asked"),
        fields.get("answer"),
        origin_of(request),
        replaced=cookie(request),
    )
    to = local_path(fields.get("to"))
    if isinstance(outcome, LoginRefused):
        return wrong_passkey(with_return("/login", to))
    return admitted(outcome, to)


@form("POST", "/confirm/passkey", summary="Ask the browser for a passkey of the visitor")
async def ask_to_confirm(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    if not request.use(Passkeys).are_possible:
        return impossible()
    asked = await request.use(FactorLogins).ask_to_confirm(request.at, visitor)
    if isinstance(asked, TooManyTries):
        return too_many(asked)
    to = local_path(fields.get("to"))
    return passkey_page(
        request, visitor, asked, "confirm", "/confirm/passkey/answer", with_return("/confirm", to), to
    )


@form("POST", "/confirm/passkey/answer", summary="Prove by a passkey who you are")
async def confirm_by_passkey(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    to = local_path(fields.get("to"))
    outcome = await request.use(FactorLogins).confirm(
        request.at, visitor, fields.get("asked"), fields.get("answer")
    )
    return (
        wrong_passkey(with_return("/confirm", to))
        if isinstance(outcome, LoginRefused)
        else admitted(outcome, to)
    )


def admitted(outcome: FullSession, to: str | None) -> Reply[Html]:
    """Send the person on to where they wanted to go; one who has used up a recovery code is told so."""
    place = AFTER_RECOVERY if outcome.factor is Factor.RECOVERY else to or HOME
    return see_other(place, cookie=session_cookie(outcome.token))


def wrong_passkey(back: str) -> Reply[Html]:
    return message_page(
        t("passkey.login.title"), t("passkey.wrong"), status=403, link=(back, t("passkey.back"))
    )


async def factor_page(
    request: Request,
    guest: PageGuest,
    pending: PersonSession,
    to: str | None,
    wrong: str | None = None,
    status: int = 200,
) -> Reply[Html]:
    """Show the form for the code, and for a passkey where the person has one."""
    return draw(
        "people/factor.html",
        visitor=guest,
        status=status,
        to=to,
        wrong=wrong,
        passkeys=await has_passkeys(request, pending.person_id),
        is_only=request.use(OpenIdPolicy).is_only,
        back=with_return("/login", to),
    )
