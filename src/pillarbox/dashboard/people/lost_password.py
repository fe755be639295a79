"""A lost password: asking for a link, and using it. Opening the link changes no account."""

from __future__ import annotations

from uuid import UUID

from pillarbox.dashboard.people.cookies import no_session_cookie
from pillarbox.dashboard.people.device_cookie import with_device
from pillarbox.dashboard.people.login import too_many
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
from pillarbox.people import sessions
from pillarbox.people.lost_passwords import LostPasswords


@open_page("GET", "/password/lost", summary="Ask for another password")
async def show_lost(request: Request, guest: PageGuest) -> Reply[Html]:
    return draw("people/lost.html", visitor=guest, email="")


@open_form("POST", "/password/lost", summary="Send a link for another password")
async def lost(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    refused = await request.use(LostPasswords).ask(request.at, fields.get("email"), origin_of(request))
    if refused is not None:
        return too_many(refused)
    return message_page(
        t("lost.sent.title"), t("lost.sent.text"), status=200, link=("/login", t("login.title"))
    )


@open_page("GET", "/password/reset/{token}", summary="Choose another password by a link")
async def show_reset(request: Request, guest: PageGuest) -> Reply[Html]:
    """Show the form. The browser is a known one from then on: the mailbox is the person's."""
    token = request.param("token")
    person = await request.use(LostPasswords).find(request.at, token)
    if person is None:
        return gone()
    device_id = UUID(bytes=sessions.token_hash(token)[:16])
    return with_device(request, reset_page(guest, person.email), person.id, device_id)


@open_form("POST", "/password/reset/{token}", summary="Change a lost password")
async def reset(request: Request, guest: PageGuest, fields: Form) -> Reply[Html]:
    passwords, token, given = request.use(LostPasswords), request.param("token"), fields.get("password")
    person = await passwords.find(request.at, token)
    if person is None:
        return gone()
    if wrong := wrong_with(given, person.email, person.name):
        return reset_page(guest, person.email, wrong)
    if not await passwords.change(request.at, token, given, origin_of(request)):
        return gone()
    return see_other("/login?done=reset", cookie=no_session_cookie())


def reset_page(guest: PageGuest, email: str, wrong: str | None = None) -> Reply[Html]:
    return draw("people/reset.html", visitor=guest, status=422 if wrong else 200, email=email, wrong=wrong)


def gone() -> Reply[Html]:
    return message_page(
        t("reset.gone.title"), t("reset.gone.text"), status=404, link=("/password/lost", t("lost.title"))
    )
