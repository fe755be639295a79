"""Logging in and out."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import asyncpg

from pillarbox.dashboard.people.cookies import cookie, no_session_cookie, session_cookie
from pillarbox.dashboard.people.device_cookie import DEVICE
from pillarbox.dashboard.people.local_paths import local_path, with_return
from pillarbox.dashboard.people.page_visits import (
    Form,
    PageGuest,
    actor_of,
    draw,
    message_page,
    open_form,
    open_page,
    origin_of,
    see_other,
)
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import audit, sessions
from pillarbox.people.audit import Act
from pillarbox.people.factors.passkeys import Passkeys
from pillarbox.people.logins import LoggedIn, Logins, TooManyTries
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.sessions import SessionStage

HOME = "/dashboard"
"""Where a login leads that comes from nowhere."""

OPENID = "/login/openid"

DONE = {"reset": "login.done.reset", "logout": "login.done.logout"}


@open_page("GET", "/", summary="The overview, or the login")
async def home(request: Request, guest: PageGuest) -> Reply[Html]:
    return see_other(HOME if guest.visitor else "/login")


@open_page("GET", "/login", summary="Log in", query={"to": str, "done": str})
async def show_login(request: Request, guest: PageGuest) -> Reply[Html]:
    to = local_path(request.query.last("to"))
    if guest.visitor is not None:
        return see_other(to or HOME)
    done = DONE.get(request.query.last("done") or "")
    return login_page(request, guest, to=to, done=done)


@open_form("POST", "/login", summary="Log in by password")
async def log_in(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    to, email = local_path(fields.get("to")), fields.get("email").strip()
    outcome = await request.use(Logins).log_in(
        request.at,
        email,
        fields.get("password"),
        origin_of(request),
        replaced=cookie(request),
        device=cookie(request, DEVICE),
    )
    if isinstance(outcome, LoggedIn):
        return logged_in(outcome, to)
    if isinstance(outcome, TooManyTries):
        wrong = t("login.wait_or_prove", seconds=outcome.seconds)
        return waiting(login_page(request, guest, to=to, email=email, wrong=wrong, status=429), outcome)
    policy = request.use(OpenIdPolicy)
    wrong = t("login.openid.only", name=policy.name) if policy.is_only else t("login.wrong")
    return login_page(request, guest, to=to, email=email, wrong=wrong, status=403)


@open_form("POST", "/logout", summary="Log out")
async def log_out(request: Request, guest: PageGuest, _: Form) -> Reply[Html]:
    if (visitor := guest.visitor) is not None:
        async with transaction(request.use(asyncpg.Pool)) as conn:
            await sessions.end(conn, visitor.token)
            await audit.record(
                conn, request.at, Act.LOGGED_OUT, team_id=None, actor=actor_of(request, visitor)
            )
    return see_other("/login?done=logout", cookie=no_session_cookie())


def logged_in(outcome: LoggedIn, to: str | None) -> Reply[Html]:
    """Send the person on to where they wanted to go, by way of the second factor where they have one."""
    next_page = with_return("/login/factor", to) if outcome.stage is SessionStage.PENDING else to or HOME
    return see_other(next_page, cookie=session_cookie(outcome.token))


def waiting(reply: Reply[Html], refused: TooManyTries) -> Reply[Html]:
    """Show the page, which says to programs too how long to wait."""
    reply.headers["retry-after"] = str(refused.seconds)
    return reply


def too_many(refused: TooManyTries) -> Reply[Html]:
    """Show a page that says how long to wait."""
    text = t("login.wait", seconds=refused.seconds)
    return waiting(message_page(t("login.too_many.title"), text, status=429), refused)


def login_page(
    request: Request,
    guest: PageGuest,
    *,
    to: str | None,
    email: str = "",
    wrong: str | None = None,
    done: str | None = None,
    status: int = 200,
) -> Reply[Html]:
    """Show the form, with what was wrong with the last try, and the way to the provider where there is
    one."""
    policy = request.use(OpenIdPolicy)
    return draw(
        "people/login.html",
        visitor=guest,
        status=status,
        to=to,
        email=email,
        wrong=wrong,
        done=t(done) if done else None,
        are_passkeys_possible=request.use(Passkeys).are_possible,
        provider=None if policy.issuer is None else policy.name,
        provider_link=with_return(OPENID, to),
        is_only=policy.is_only,
        insecure=None if keeps_cookies(request) else t("login.insecure"),
    )


def keeps_cookies(request: Request) -> bool:
    """Return whether a browser keeps our cookies: over HTTPS, or of the machine itself. A browser that says
    where a request comes from is on a secure page, whatever a proxy has made of it."""
    if request.scope["scheme"] == "https" or request.header("sec-fetch-site") is not None:
        return True
    host = urlsplit(f"//{request.header('host') or ''}").hostname or ""
    return host == "localhost" or host.endswith(".localhost") or is_loopback(host)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
