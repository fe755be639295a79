"""Logging in by OpenID Connect: the way to the provider, and the way back.

A link leads to the provider, not a form: the answer of a form may not leave this site (UI-04). Beginning
stores nothing. Whatever the provider sends becomes a page that says what to do.
"""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.people.account import acting, done
from pillarbox.dashboard.people.account_frame import ACCOUNT
from pillarbox.dashboard.people.cookies import cookie, no_cookie, session_cookie, set_cookie
from pillarbox.dashboard.people.device_cookie import DEVICE
from pillarbox.dashboard.people.local_paths import local_path, with_return
from pillarbox.dashboard.people.login import HOME, OPENID, too_many, waiting
from pillarbox.dashboard.people.page_visits import (
    HEADERS,
    Form,
    PageGuest,
    draw,
    form,
    message_page,
    open_form,
    open_page,
    origin_of,
    page,
    see_other,
)
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people import sessions
from pillarbox.people.logins import LoginRefused, TooManyTries
from pillarbox.people.openid.failures import OpenIdReason
from pillarbox.people.openid.login_state import LASTS, LoginPurpose, is_browser_token
from pillarbox.people.openid.openid_logins import (
    BrowserRequest,
    OpenIdLogins,
    OpenIdRefused,
    OpenIdSession,
    PasswordNeeded,
    ProviderAnswer,
)
from pillarbox.people.openid.own_openid import OwnOpenId
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.openid.provider import CALLBACK
from pillarbox.people.sessions import SessionStage
from pillarbox.people.visitors import Visitor

BROWSER: Final = "__Host-pillarbox-openid"
JOIN: Final = "__Host-pillarbox-join"
JOIN_PATH: Final = f"{OPENID}/join"
JOINED: Final = "/team?done=joined"

STATUSES: Final = {OpenIdReason.UNREACHABLE: 503, OpenIdReason.STATE: 400, OpenIdReason.ANSWER: 503}
"""The statuses of pages about a login that did not happen; 403 for the others."""

TEXTS: Final = {
    OpenIdReason.STATE: "openid.refused.state",
    OpenIdReason.DENIED: "openid.refused.denied",
    OpenIdReason.UNREACHABLE: "openid.refused.unreachable",
    OpenIdReason.ANSWER: "openid.refused.answer",
    OpenIdReason.TOKEN: "openid.refused.token",
    OpenIdReason.UNVERIFIED: "openid.refused.unverified",
    OpenIdReason.NOT_INVITED: "openid.refused.not_invited",
    OpenIdReason.NO_TEAM: "openid.refused.no_team",
    OpenIdReason.DISABLED: "openid.refused.disabled",
    OpenIdReason.OTHER_SUBJECT: "openid.refused.other_subject",
    OpenIdReason.OTHER_WAY: "openid.refused.other_way",
    OpenIdReason.OTHER_PERSON: "openid.refused.other_person",
    OpenIdReason.OLD_PROOF: "openid.refused.old_proof",
    OpenIdReason.UNDATED_PROOF: "openid.refused.undated_proof",
}

ANSWER: Final = {"state": str, "code": str, "error": str, "iss": str}


@open_page("GET", OPENID, summary="Log in by OpenID Connect", query={"to": str})
async def begin(request: Request, guest: PageGuest) -> Reply[Html]:
    to = local_path(request.query.last("to"))
    if guest.visitor is not None:
        return see_other(to or HOME)
    return await sent_on(request, None, LoginPurpose.LOGIN, to)


@page("GET", "/confirm/openid", summary="Prove by OpenID Connect who you are", query={"to": str})
async def begin_confirm(request: Request, visitor: Visitor) -> Reply[Html]:
    return await sent_on(request, visitor, LoginPurpose.CONFIRM, local_path(request.query.last("to")))


@page("GET", "/account/openid", confirm=True, summary="Join the account to the provider")
async def begin_connect(request: Request, visitor: Visitor) -> Reply[Html]:
    return await sent_on(request, visitor, LoginPurpose.CONNECT, ACCOUNT)


@open_page("GET", CALLBACK, summary="Come back from the provider", query=ANSWER)
async def come_back(request: Request, guest: PageGuest) -> Reply[Html]:
    if request.use(OpenIdPolicy).issuer is None:
        return off()
    query = request.query
    answer = ProviderAnswer(
        query.last("state") or "", query.last("code"), query.last("error"), query.last("iss")
    )
    outcome = await request.use(OpenIdLogins).receive(asking(request, guest.visitor), answer)
    if isinstance(outcome, OpenIdSession):
        return admitted(outcome)
    if isinstance(outcome, PasswordNeeded):
        return see_other(JOIN_PATH, cookie=set_cookie(JOIN, outcome.token, LASTS))
    return too_many(outcome) if isinstance(outcome, TooManyTries) else refused(request, outcome)


@open_page("GET", JOIN_PATH, summary="Join the account with this address to the provider")
async def show_join(request: Request, guest: PageGuest) -> Reply[Html]:
    return await join_page(request, guest)


@open_form("POST", JOIN_PATH, summary="Join the account by its password")
async def join(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    if request.use(OpenIdPolicy).issuer is None:
        return off()
    outcome = await request.use(OpenIdLogins).join(
        asking(request, guest.visitor),
        cookie(request, JOIN),
        fields.get("password"),
        cookie(request, DEVICE),
    )
    if isinstance(outcome, OpenIdSession):
        return admitted(outcome, also_gone=JOIN)
    if isinstance(outcome, TooManyTries):
        wrong = t("login.wait", seconds=outcome.seconds)
        return waiting(await join_page(request, guest, wrong, 429), outcome)
    if isinstance(outcome, LoginRefused):
        return await join_page(request, guest, t("confirm.wrong"), 403)
    return refused(request, outcome)


@form("POST", "/account/openid/remove", confirm=True, back=ACCOUNT, summary="Part from the provider")
async def remove(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    renewed = await request.use(OwnOpenId).remove(acting(request, visitor))
    # What is not there any more is removed as well; the only way in stays.
    return see_other(ACCOUNT) if renewed is None else done("openid_removed", renewed.token)


async def sent_on(
    request: Request, visitor: Visitor | None, purpose: LoginPurpose, to: str | None
) -> Reply[Html]:
    """Send the browser to the provider, with the cookie that its answer must meet."""
    if request.use(OpenIdPolicy).issuer is None:
        return off()
    if not is_opened(request):
        return message_page(
            t("form.foreign.title"), t("openid.foreign"), status=403, link=("/login", t("login.title"))
        )
    found = cookie(request, BROWSER)
    # A second tab goes on with the same token: each login has a state of its own.
    browser = found if found is not None and is_browser_token(found) else sessions.new_token()
    begun = await request.use(OpenIdLogins).begin(asking(request, visitor, browser), purpose, to)
    if isinstance(begun, OpenIdRefused):
        return refused(request, begun)
    headers = {**HEADERS, "location": begun, "set-cookie": set_cookie(BROWSER, browser, LASTS)}
    return Reply.html("", 303, headers)


def is_opened(request: Request) -> bool:
    """Return whether somebody opens the page, or a page of this site asks for it: not an image of another."""
    site = request.header("sec-fetch-site")
    return site in (None, "none", "same-origin") or request.header("sec-fetch-mode") == "navigate"


def asking(request: Request, visitor: Visitor | None, browser: str | None = None) -> BrowserRequest:
    """Return the request as the login sees it."""
    found = browser or cookie(request, BROWSER)
    token = found if is_browser_token(found) else None
    return BrowserRequest(
        at=request.at,
        origin=origin_of(request),
        browser=token,
        session=cookie(request),
        visitor=visitor,
    )


def admitted(session: OpenIdSession, *, also_gone: str | None = None) -> Reply[Html]:
    """Send the person on to where they wanted to go, by way of the second factor where they have one."""
    to = local_path(session.to)
    if session.purpose is LoginPurpose.CONNECT:
        return done("openid", session.token)
    if session.has_accepted:
        to = JOINED
    place = with_return("/login/factor", to) if session.stage is SessionStage.PENDING else to or HOME
    reply = see_other(place, cookie=session_cookie(session.token))
    if also_gone is not None:
        reply.headers["Set-Cookie"] = no_cookie(also_gone)
    return reply


async def join_page(
    request: Request, guest: PageGuest, wrong: str | None = None, status: int = 200
) -> Reply[Html]:
    """Show the form for the password of the account, once."""
    policy = request.use(OpenIdPolicy)
    if policy.issuer is None:
        return off()
    asked = asking(request, guest.visitor)
    found = await request.use(OpenIdLogins).pending_join(asked, cookie(request, JOIN))
    if found is None:
        return refused(request, OpenIdRefused(OpenIdReason.STATE))
    return draw(
        "people/join.html",
        visitor=guest,
        status=status,
        wrong=wrong,
        email=found[1].email,
        provider=policy.name,
        action=JOIN_PATH,
    )


def refused(request: Request, outcome: OpenIdRefused) -> Reply[Html]:
    """Show a page that says why nobody was logged in, and what to do."""
    policy = request.use(OpenIdPolicy)
    text = t(TEXTS[outcome.reason], name=policy.name)
    link = (with_return("/login", outcome.to), t("openid.refused.link"))
    status = STATUSES.get(outcome.reason, 403)
    reply = message_page(t("openid.refused.title", name=policy.name), text, status=status, link=link)
    # The address of this page may hold a code.
    reply.headers["referrer-policy"] = "no-referrer"
    return reply


def off() -> Reply[Html]:
    """Show a 404: the operator has named no provider."""
    return message_page(t("missing.title"), t("openid.off"), status=404, link=("/login", t("login.title")))
