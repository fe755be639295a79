"""One's own account: the address that one logs in with. Opening a link changes nothing."""

from __future__ import annotations

from pillarbox.dashboard.people import saved_form
from pillarbox.dashboard.people.account import ACCOUNT, acting, done
from pillarbox.dashboard.people.login import waiting
from pillarbox.dashboard.people.page_visits import Form, draw, form, message_page, page, see_other
from pillarbox.dashboard.people.saved_form import NOTHING, SavedForm
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address
from pillarbox.people.addresses.own_address import AddressRefusal, OwnAddress
from pillarbox.people.logins import TooManyTries
from pillarbox.people.visitors import Visitor

HERE = "/account/address"
LINK = f"{HERE}/link/{{token}}"
DONE = {"asked": "address.done.asked", "withdrawn": "address.done.withdrawn"}


@page("GET", HERE, confirm=True, summary="The address that one logs in with", query={"done": str})
async def show(request: Request, visitor: Visitor) -> Reply[Html]:
    done_key = DONE.get(request.query.last("done") or "")
    kept = saved_form.kept(request, visitor)
    return await address_page(request, visitor, done=t(done_key) if done_key else None, kept=kept)


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
        return gone()
    kept = saved_form.kept(request, visitor)
    return draw("people/address_link.html", visitor=visitor, address=address, action=request.path, kept=kept)


@form("POST", LINK, confirm=True, summary="Log in with another address from now on")
async def change(request: Request, visitor: Visitor, _: Form) -> Reply[Html]:
    changed = await request.use(OwnAddress).change(acting(request, visitor), request.param("token"))
    if changed is AddressRefusal.TAKEN:
        return message_page(t("address.taken.title"), t("address.taken.text"), status=409, link=back())
    if isinstance(changed, AddressRefusal):
        return gone()
    return done("address", changed.token)


async def address_page(
    request: Request,
    visitor: Visitor,
    email: str = "",
    *,
    wrong: str | None = None,
    done: str | None = None,
    status: int = 200,
    kept: SavedForm = NOTHING,
) -> Reply[Html]:
    """Show the address of now, the change that is under way, and the form for another one."""
    return draw(
        "people/address.html",
        visitor=visitor,
        status=status,
        pending=await request.use(OwnAddress).pending(request.at, visitor),
        email=email or kept.get(HERE, "email"),
        wrong=wrong,
        done=done,
        kept=kept,
    )


def gone() -> Reply[Html]:
    """Show a 404, whosever link it is."""
    return message_page(t("address.gone.title"), t("address.gone.text"), status=404, link=back())


def back() -> tuple[str, str]:
    return ACCOUNT, t("account.back")
