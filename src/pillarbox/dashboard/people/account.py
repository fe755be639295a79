"""One's own account: name, password, and where one is logged in."""

from __future__ import annotations

from uuid import UUID

from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.cookies import no_session_cookie, session_cookie
from pillarbox.dashboard.people.new_passwords import wrong_with
from pillarbox.dashboard.people.page_visits import Form, draw, form, origin_of, page, see_other
from pillarbox.dashboard.people.saved_form import NOTHING, SavedForm
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.people.accounts import clean_name
from pillarbox.people.factors.passkeys import Passkeys
from pillarbox.people.openid.own_openid import OwnOpenId
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.own_account import AccountChange, OwnAccount
from pillarbox.people.visitors import Visitor

ACCOUNT = "/account"
DONE = frozenset(
    {
        *("name", "address", "password", "factor_removed", "passkey", "passkey_removed", "session"),
        *("recovery", "openid", "openid_removed"),
    }
)
"""The changes that the page may report as done."""


@page("GET", ACCOUNT, summary="One's own account", query={"done": str})
async def show(request: Request, visitor: Visitor) -> Reply[Html]:
    done = request.query.last("done")
    said = t(f"account.done.{done}") if done in DONE else None
    return await account_page(request, visitor, done=said, kept=saved_form.kept(request, visitor))


@form("POST", "/account/name", back=ACCOUNT, summary="Change one's name")
async def rename(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    await request.use(OwnAccount).rename(acting(request, visitor), clean_name(fields.get("name")))
    return done("name")


@page("GET", "/account/password", confirm=True, summary="Choose another password")
async def show_password(request: Request, visitor: Visitor) -> Reply[Html]:
    kept = saved_form.kept(request, visitor)
    return draw("people/password.html", visitor=visitor, wrong=None, kept=kept)


@form("POST", "/account/password", confirm=True, summary="Change one's password")
async def change_password(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    password = fields.get("password")
    if wrong := wrong_with(password, visitor.email, visitor.name):
        return draw("people/password.html", visitor=visitor, status=422, wrong=wrong)
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
    done: str | None = None,
    wrong: str | None = None,
    status: int = 200,
    kept: SavedForm = NOTHING,
) -> Reply[Html]:
    """Show the whole account on one page."""
    overview = await request.use(OwnAccount).overview(request.at, visitor.person_id)
    if overview is None:
        return see_other("/login")
    policy, own = request.use(OpenIdPolicy), request.use(OwnOpenId)
    openid = await own.find(visitor.person_id)
    return draw(
        "people/account.html",
        visitor=visitor,
        status=status,
        overview=overview,
        done=done,
        wrong=wrong,
        kept=kept,
        provider=None if policy.issuer is None else policy.name,
        openid=openid,
        may_part=openid is not None and own.may_part(overview.state),
        are_passkeys_possible=request.use(Passkeys).are_possible,
    )
