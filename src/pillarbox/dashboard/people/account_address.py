"""One's own account: the address that one logs in with. Opening a link changes nothing."""

from __future__ import annotations

from pillarbox.dashboard.frame.screens import screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.account import acting, done
from pillarbox.dashboard.people.account_frame import account_message, draw_account
from pillarbox.dashboard.people.login import waiting
from pillarbox.dashboard.people.page_visits import Form, form, page, see_other
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.people.addresses.own_address import AddressRefusal, OwnAddress
from pillarbox.people.logins import TooManyTries
from pillarbox.people.visitors import Visitor

HERE = "/account/address"
LINK = f"{HERE}/link/{{token}}"
DONE = {"asked": "address.done.asked", "withdrawn": "address.done.withdrawn"}


@screen(HERE, title="address.title", confirm=True, query={"done": str}, without_team=True)
async def show(visit: Visit) -> Reply[Html]:
    """Show the address that one logs in with, and the form for another."""
    done_key = DONE.get(visit.request.query.last("done") or "")
    return await address_page(visit.request, visit.visitor, notice=t(done_key) if done_key else None)


@form("POST", HERE, confirm=True, keeps=["email"], summary="Ask to log in with another address")
async def ask(request: Request, visitor: Visitor, fields: Form) -> Reply[Html]:
    given = fields.get("email")
    try:
        address = email_address(given)
    except NotAnAddress:
        return await address_page(request, visitor, given, wrong=t("set_up.no_address"), status=422)
    refused = await request.use(OwnAddress).ask(acting(request, visitor), address)
    if refused is AddressRefusal.OWN:
        return await address_page(request, visitor, given, wrong=t("address.own"), status=422)
    if isinstance(refused, TooManyTries):
        wrong = t("login.wait", seconds=refused.seconds)
        return waiting(await address_page(request, visitor, given, wrong=wrong, status=429), refused)
    return see_other(f"{HERE}?done=asked")


@form("POST", f"{HERE}/withdraw", back=HERE, summary="Keep the address that one logs in with")
async def withdraw(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    # A change that is not under way any more is withdrawn as well.
    await request.use(OwnAddress).withdraw(acting(request, visitor))
    return see_other(f"{HERE}?done=withdrawn")


@page("GET", LINK, confirm=True, summary="The link that was mailed to another address")
async def show_link(request: Request, visitor: Visitor) -> Reply[Html]:
    address = await request.use(OwnAddress).find(request.at, visitor, request.param("token"))
    if address is None:
        return await gone(request, visitor)
    return await draw_account(
        request,
        visitor,
        "people/address_link.html",
        title="address.link.title",
        address=address,
        action=request.path,
    )


@form("POST", LINK, confirm=True, summary="Log in with another address from now on")
async def change(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    changed = await request.use(OwnAddress).change(acting(request, visitor), request.param("token"))
    if changed is AddressRefusal.TAKEN:
        return await account_message(
            request, visitor, "address.taken.title", "address.taken.text", status=409
        )
    if isinstance(changed, AddressRefusal):
        return await gone(request, visitor)
    return done("address", changed.token)


async def address_page(
    request: Request,
    visitor: Visitor,
    email: str = "",
    *,
    wrong: str | None = None,
    notice: str | None = None,
    status: int = 200,
) -> Reply[Html]:
    """Show the address of now, the change that is under way, and the form for another one."""
    return await draw_account(
        request,
        visitor,
        "people/address.html",
        title="address.title",
        status=status,
        notice=notice,
        pending=await request.use(OwnAddress).pending(request.at, visitor),
        email=email or saved_form.kept(request, visitor).get(HERE, "email"),
        wrong=wrong,
    )


async def gone(request: Request, visitor: Visitor) -> Reply[Html]:
    """Show a 404, whosever link it is."""
    return await account_message(request, visitor, "address.gone.title", "address.gone.text", status=404)
