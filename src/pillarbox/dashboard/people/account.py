"""One's own account: name, password, and where one is logged in.

Its pages stand in the frame of the screens, as `account_frame.py` says.
"""

from __future__ import annotations

from uuid import UUID

from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.account_frame import ACCOUNT, draw_account
from pillarbox.dashboard.people.cookies import LANGUAGE_COOKIE, cookie, no_session_cookie, session_cookie
from pillarbox.dashboard.people.new_passwords import wrong_with
from pillarbox.dashboard.people.page_visits import Form, form, origin_of, see_other
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.accounts import clean_name
from pillarbox.people.factors.passkeys import Passkeys
from pillarbox.people.openid.own_openid import OwnOpenId
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.own_account import AccountChange, OwnAccount
from pillarbox.people.visitors import Visitor

DONE = frozenset(
    {
        *("name", "address", "password", "factor_removed", "passkey", "passkey_removed", "session"),
        *("recovery", "openid", "openid_removed"),
    }
)
"""The changes that the page may report as done."""


@screen(ACCOUNT, title="account.title", words="account.words", query={"done": str}, without_team=True)
async def show(visit: Visit) -> Reply[Html]:
    """Show the whole account."""
    done = visit.request.query.last("done")
    notice = t(f"account.done.{done}") if done in DONE else None
    return await account_page(visit.request, visit.visitor, notice=notice)


@form("POST", "/account/name", back=ACCOUNT, summary="Change one's name")
async def rename(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    await request.use(OwnAccount).rename(acting(request, visitor), clean_name(fields.get("name")))
    return done("name")


@screen("/account/password", title="change.title", confirm=True, without_team=True)
async def show_password(visit: Visit) -> Reply[Html]:
    """Show the form for another password."""
    return await password_page(visit.request, visit.visitor)


@form("POST", "/account/password", confirm=True, summary="Change one's password")
async def change_password(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    password = fields.get("password")
    if wrong := wrong_with(password, visitor.email, visitor.name):
        return await password_page(request, visitor, wrong, 422)
    renewed = await request.use(OwnAccount).change_password(acting(request, visitor), password)
    return done("password", renewed.token)


@form("POST", "/account/sessions/end", back=ACCOUNT, summary="Log out another browser")
async def end_session(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    if well_formed(fields.get("id")):
        await request.use(OwnAccount).end_session(acting(request, visitor), UUID(fields.get("id")))
    # One that is not there any more is logged out as well.
    return done("session")


@form("POST", "/account/sessions/end-all", back=ACCOUNT, summary="Log out everywhere")
async def log_out_everywhere(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    await request.use(OwnAccount).log_out_everywhere(acting(request, visitor))
    return see_other("/login?done=logout", cookie=no_session_cookie())


def acting(request: Request, visitor: Visitor) -> AccountChange:
    """Return the visitor, as the one who changes the account now."""
    return AccountChange(request.at, visitor, origin_of(request))


def done(what: str, token: str | None = None) -> Reply[Html]:
    """Go back to the account, which says what was done; with the session's new token where there is one."""
    return see_other(f"{ACCOUNT}?done={what}", cookie=None if token is None else session_cookie(token))


async def account_page(
    request: Request,
    visitor: Visitor,
    *,
    notice: str | None = None,
    problem: str | None = None,
    status: int = 200,
) -> Reply[Html]:
    """Return the page of the whole account."""
    overview = await request.use(OwnAccount).overview(request.at, visitor.person_id)
    if overview is None:
        return see_other("/login")
    policy, own = request.use(OpenIdPolicy), request.use(OwnOpenId)
    openid = await own.find(visitor.person_id)
    return await draw_account(
        request,
        visitor,
        "people/account.html",
        title="account.title",
        status=status,
        problem=problem,
        notice=notice,
        overview=overview,
        provider=None if policy.issuer is None else policy.name,
        openid=openid,
        may_part=openid is not None and own.may_part(overview.state),
        are_passkeys_possible=request.use(Passkeys).are_possible,
        chosen_language=cookie(request, LANGUAGE_COOKIE),
    )


async def password_page(
    request: Request, visitor: Visitor, wrong: str | None = None, status: int = 200
) -> Reply[Html]:
    """Return the form for another password, with what was wrong with the last one."""
    return await draw_account(
        request, visitor, "people/password.html", title="change.title", status=status, wrong=wrong
    )
