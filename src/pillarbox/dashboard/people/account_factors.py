"""One's own account: the second factor and passkeys. Each change asks first who one is."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pillarbox.dashboard.people.account import account_page, acting, done
from pillarbox.dashboard.people.account_frame import ACCOUNT, account_message, draw_account
from pillarbox.dashboard.people.cookies import session_cookie
from pillarbox.dashboard.people.login import waiting
from pillarbox.dashboard.people.page_visits import Form, form, page, see_other
from pillarbox.dashboard.people.passkey_page import MAKE, passkey_values
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people import sessions
from pillarbox.people.accounts import clean_name
from pillarbox.people.factors.factor_logins import FactorLogins
from pillarbox.people.factors.passkeys import MOST_NAME, Passkeys
from pillarbox.people.logins import TooManyTries
from pillarbox.people.own_account import OwnAccount, RenewedSession
from pillarbox.people.visitors import Visitor


def qr_picture(text: str) -> str:
    """Return the address of the picture, which holds all of it; dark on light, whatever the page is."""
    # Loaded with the first picture: most processes never draw one.
    import segno

    code = segno.make_qr(text, error="m")
    return str(code.svg_data_uri(light="#fff", dark="#000", border=4, scale=5))


FACTOR = "/account/factor"


@form("POST", "/account/factor/begin", confirm=True, back=ACCOUNT, summary="Begin a second factor")
async def begin_factor(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    is_begun = await request.use(OwnAccount).begin_factor(acting(request, visitor))
    return see_other(FACTOR if is_begun else ACCOUNT)


@page("GET", FACTOR, confirm=True, summary="The key for a phone")
async def show_enrolment(request: Request, visitor: Visitor) -> Reply[Html]:
    """Show the key for a phone. It is no screen: it exists while a second factor is being set up."""
    return await enrolment_page(request, visitor)


@form("POST", FACTOR, confirm=True, summary="Turn the second factor on")
async def finish_factor(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    renewed = await request.use(OwnAccount).finish_factor(acting(request, visitor), fields.get("code"))
    if renewed is None:
        return await enrolment_page(request, visitor, t("enrolment.wrong"), 422)
    return await codes_page(request, visitor, renewed)


@form("POST", "/account/factor/codes", confirm=True, back=ACCOUNT, summary="Make new recovery codes")
async def new_codes(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    renewed = await request.use(OwnAccount).new_codes(acting(request, visitor))
    return see_other(ACCOUNT) if renewed is None else await codes_page(request, visitor, renewed)


@form("POST", "/account/factor/remove", confirm=True, back=ACCOUNT, summary="Remove the second factor")
async def remove_factor(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    renewed = await request.use(OwnAccount).remove_factor(acting(request, visitor))
    return see_other(ACCOUNT) if renewed is None else done("factor_removed", renewed.token)


@form("POST", "/account/passkeys/begin", confirm=True, back=ACCOUNT, summary="Ask for a new passkey")
async def begin_passkey(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    if not request.use(Passkeys).are_possible:
        return await account_message(request, visitor, "passkey.make.title", "passkey.impossible", status=409)
    asked = await request.use(FactorLogins).ask_for_new(request.at, visitor)
    if isinstance(asked, TooManyTries):
        wrong = t("login.wait", seconds=asked.seconds)
        return waiting(await account_page(request, visitor, problem=wrong, status=429), asked)
    return await draw_account(
        request,
        visitor,
        "people/new_passkey.html",
        title="passkey.make.title",
        **passkey_values(request, asked, MAKE, "/account/passkeys", ACCOUNT),
    )


@form("POST", "/account/passkeys", confirm=True, back=ACCOUNT, summary="Add a passkey")
async def add_passkey(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    name = clean_name(fields.get("name")[:MOST_NAME]) or t("passkey.name.default")
    renewed = await request.use(OwnAccount).add_passkey(
        acting(request, visitor), fields.get("asked"), fields.get("answer"), name
    )
    if renewed is None:
        return await account_page(request, visitor, problem=t("account.wrong.passkey"), status=422)
    return done("passkey", renewed.token)


@form(
    "POST",
    "/account/passkeys/remove",
    confirm=True,
    back=ACCOUNT,
    keeps=["id"],
    summary="Remove a passkey",
)
async def remove_passkey(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    try:
        passkey_id = bytes.fromhex(fields.get("id"))
    except ValueError:
        return see_other(ACCOUNT)
    await request.use(OwnAccount).remove_passkey(acting(request, visitor), passkey_id)
    # One that is not there any more is removed as well.
    return done("passkey_removed")


async def enrolment_page(
    request: Request, visitor: Visitor, wrong: str | None = None, status: int = 200
) -> Reply[Html]:
    """Show the key that waits for its first code; where none does, the account."""
    enrolment = await request.use(OwnAccount).enrolment(visitor)
    if enrolment is None:
        return see_other(ACCOUNT)
    return await draw_account(
        request,
        visitor,
        "people/enrolment.html",
        title="enrolment.title",
        status=status,
        wrong=wrong,
        enrolment=enrolment,
        picture=await asyncio.to_thread(qr_picture, enrolment.uri),
    )


async def codes_page(request: Request, visitor: Visitor, renewed: RenewedSession) -> Reply[Html]:
    """Show the recovery codes, once. The forms of the page carry the session's new token."""
    token = renewed.token
    later = replace(visitor, token=token, form_token=sessions.form_token(token))
    reply = await draw_account(request, later, "people/codes.html", title="codes.title", codes=renewed.codes)
    reply.headers["set-cookie"] = session_cookie(token)
    return reply
