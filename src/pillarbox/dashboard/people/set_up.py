"""Setting up an account by a link. Opening it changes nothing."""

from __future__ import annotations

from pillarbox.dashboard.people.cookies import cookie, session_cookie
from pillarbox.dashboard.people.login import HOME
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
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people.accounts import AddressTaken, clean_name
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.set_up import SetUp, SetUpLink


@open_page("GET", "/set-up/{token}", summary="Set up an account by a link")
async def show_set_up(request: Request, guest: PageGuest) -> Reply[Html]:
    invited = await request.use(SetUp).find(request.at, request.param("token"))
    if invited is not None and invited.is_closed:
        return closed(request)
    return gone() if invited is None else set_up_page(guest, invited, name=invited.name or "")


@open_form("POST", "/set-up/{token}", summary="Set up an account")
async def set_up(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    accounts, token = request.use(SetUp), request.param("token")
    invited = await accounts.find(request.at, token)
    if invited is None:
        return gone()
    if invited.is_closed:
        return closed(request)
    address, wrong = read(fields, invited)
    if wrong:
        return set_up_page(guest, invited, wrong, fields.get("email"), fields.get("name"))
    return await finished(request, guest, fields, invited, address)


async def finished(
    request: Request, guest: PageGuest, fields: Form, invited: SetUpLink, address: EmailAddress | None
) -> Reply[Html]:
    """Create the account and the first session of its person, and send them on."""
    try:
        session = await request.use(SetUp).finish(
            request.at,
            request.param("token"),
            email=address,
            name=clean_name(fields.get("name")),
            password=fields.get("password"),
            origin=origin_of(request),
            replaced=cookie(request),
        )
    except AddressTaken:
        wrong = {"email": t("set_up.taken")}
        return set_up_page(guest, invited, wrong, fields.get("email"), fields.get("name"))
    return gone() if session is None else see_other(HOME, cookie=session_cookie(session))


def read(fields: Form, invited: SetUpLink) -> tuple[EmailAddress | None, dict[str, str]]:
    """Return the address that was given, where one is asked for, and what is wrong with each field."""
    wrong, address = {}, None
    if invited.email is None:
        try:
            address = email_address(fields.get("email"))
        except NotAnAddress:
            wrong["email"] = t("set_up.no_address")
    email = invited.email or fields.get("email")
    if complaint := wrong_with(fields.get("password"), email, fields.get("name")):
        wrong["password"] = complaint
    return address, wrong


def set_up_page(
    guest: PageGuest, invited: SetUpLink, wrong: dict[str, str] | None = None, email: str = "", name: str = ""
) -> Reply[Html]:
    return draw(
        "people/set_up.html",
        visitor=guest,
        status=422 if wrong else 200,
        invited=invited,
        wrong=wrong or {},
        email=invited.email or email,
        name=name,
    )


def closed(request: Request) -> Reply[Html]:
    """Show a 403: accounts log in by the provider alone."""
    text = t("set_up.openid", name=request.use(OpenIdPolicy).name)
    return message_page(t("set_up.title"), text, status=403, link=("/login", t("login.title")))


def gone() -> Reply[Html]:
    return message_page(
        t("set_up.gone.title"), t("set_up.gone.text"), status=404, link=("/login", t("login.title"))
    )
