"""The pages of sign-ups: the hosted form, what it takes, and the page behind the link of its mail.

A GET changes nothing but a count: programs that look for dangerous links open every one. There are no
cookies, and other sites may post to a form, as its snippet does.
"""

from __future__ import annotations

from typing import Final

import asyncpg

from pillarbox.forms import form_settings, queries
from pillarbox.forms.confirming import Confirmations, ConfirmationState
from pillarbox.forms.form_links import confirmation_of, form_of
from pillarbox.forms.prometheus import REQUESTS
from pillarbox.forms.queries import OpenForm
from pillarbox.forms.screens import SignUpScreens
from pillarbox.forms.sign_up_pages import ShownForm, SignUpPages
from pillarbox.forms.submissions import (
    SubmissionOrigin,
    SubmissionOutcome,
    Submissions,
    fields_of,
    is_trapped,
    submission_of,
)
from pillarbox.forms.views import ShownCounts
from pillarbox.kernel.http.client_address import client_of
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.rate_limit import Windows, key_for

MEDIA: Final = "application/x-www-form-urlencoded"
LONGEST_BODY: Final = 32 * 1024
MINUTE: Final = 60.0
MOST_VIEWS: Final = 60
MOST_SUBMISSIONS: Final = 10
MOST_OF_FORM: Final = 300
"""Requests within a minute: pages and submissions of one client, and submissions of a form."""


@route(
    "GET",
    "/sign-up/{form}",
    needs=Access.PUBLIC,
    pages=(404, 429),
    summary="Show a sign-up form",
)
async def show(request: Request) -> Reply[Html]:
    """Show the hosted page of a form."""
    screens = _screens(request)
    if (seconds := _wait(request, "views", MOST_VIEWS)) is not None:
        return screens.too_many(seconds)
    found = await _open_form(request)
    if found is None:
        return screens.unknown()
    db, _, form = found
    await request.use(ShownCounts).add(db, form.form_id)
    REQUESTS.add(1, ("page",))
    return screens.form(form)


@route(
    "POST",
    "/sign-up/{form}",
    needs=Access.PUBLIC,
    multipart=True,
    media=MEDIA,
    limit=LONGEST_BODY,
    also=(303,),
    pages=(400, 404, 422, 429, 503),
    summary="Sign up with a form",
)
async def submit(request: Request) -> Reply[Html]:
    """Take a form that was filled in, here or at another site."""
    screens = _screens(request)
    if (seconds := _wait(request, "sign-ups", MOST_SUBMISSIONS)) is not None:
        return screens.too_many(seconds)
    fields = fields_of(bytes(request.raw)) if _is_form(request) else None
    if fields is None:
        return screens.not_understood()
    found = await _open_form(request)
    if found is None:
        return screens.unknown()
    _, row, form = found
    taken = request.use(Windows).take(key_for(f"sign-ups of {form.form_id}"), MOST_OF_FORM, MINUTE)
    if not taken.allowed:
        return screens.too_many(taken.reset)
    if is_trapped(fields):
        REQUESTS.add(1, (SubmissionOutcome.TRAPPED.value,))
        return _done(screens, form)
    submission, faults = submission_of(form, fields)
    if submission is None:
        return screens.form(form, dict(reversed(fields)), {name: one.value for name, one in faults.items()})
    outcome = await request.use(Submissions).take(
        row,
        form,
        submission,
        SubmissionOrigin(client=request.client or ""),
        screens.consent_text(form),
        lambda url: screens.mail(form, url, submission.address.shown),
    )
    REQUESTS.add(1, (outcome.value,))
    if outcome is SubmissionOutcome.TOO_MANY:
        return screens.too_many(3600)
    if outcome is SubmissionOutcome.CLOSED:
        return screens.unknown()
    if outcome is SubmissionOutcome.UNAVAILABLE:
        return screens.unavailable()
    return _done(screens, form)


@route(
    "GET",
    "/sign-up/confirm/{token}",
    needs=Access.PUBLIC,
    pages=(404, 410, 429),
    summary="Show the button that confirms a sign-up",
)
async def ask(request: Request) -> Reply[Html]:
    """Show the page behind the link of a mail, with one button."""
    return await _confirmation(request, confirms=False)


@route(
    "POST",
    "/sign-up/confirm/{token}",
    needs=Access.PUBLIC,
    multipart=True,
    media=MEDIA,
    limit=LONGEST_BODY,
    also=(303,),
    pages=(404, 410, 429),
    summary="Confirm a sign-up",
)
async def confirm(request: Request) -> Reply[Html]:
    """Add the person who pressed the button, once."""
    return await _confirmation(request, confirms=True)


async def _confirmation(request: Request, *, confirms: bool) -> Reply[Html]:
    screens = _screens(request)
    if (seconds := _wait(request, "confirmations", MOST_VIEWS)) is not None:
        return screens.too_many(seconds)
    link = confirmation_of(request.param("token"))
    confirmations = request.use(Confirmations)
    if link is None:
        return screens.unknown()
    found = await (
        confirmations.confirm(link, request.client or "") if confirms else confirmations.find(link)
    )
    if found is None:
        REQUESTS.add(1, ("unknown_link",))
        return screens.unknown()
    db = TeamDb(request.use(asyncpg.Pool), link.team_id)
    pages = request.use(SignUpPages)
    form = await pages.shown(db, found.form)
    if found.state is ConfirmationState.EXPIRED:
        REQUESTS.add(1, ("expired",))
        is_open = await queries.find_open(db, form.form_id) is not None
        return screens.expired(form, pages.url_of(link.team_id, form.form_id) if is_open else None)
    if found.state is ConfirmationState.WAITING and not confirms:
        REQUESTS.add(1, ("asked",))
        return screens.confirm(form, found.sign_up.email)
    REQUESTS.add(1, ("confirmed",))
    target = form_settings.read(found.form.settings).confirmed_url
    if target is not None and confirms:
        return _to(target)
    return screens.confirmed(form)


def _screens(request: Request) -> SignUpScreens:
    screens = request.use(SignUpScreens)  # type: ignore[type-abstract]
    screens.speak(request.header("accept-language"))
    return screens


def _wait(request: Request, what: str, limit: int) -> int | None:
    """Return the seconds until the client may ask again; None where it may now."""
    key = key_for(f"{what} {client_of(request.client)}")
    taken = request.use(Windows).take(key, limit, MINUTE)
    if taken.allowed:
        return None
    REQUESTS.add(1, (SubmissionOutcome.TOO_MANY.value,))
    return taken.reset


def _is_form(request: Request) -> bool:
    return (request.header("content-type") or "").partition(";")[0].strip().lower() == MEDIA


async def _open_form(request: Request) -> tuple[TeamDb, OpenForm, ShownForm] | None:
    link = form_of(request.param("form"))
    if link is None:
        return None
    db = TeamDb(request.use(asyncpg.Pool), link.team_id)
    row = await queries.find_open(db, link.form_id)
    return None if row is None else (db, row, await request.use(SignUpPages).shown(db, row))


def _done(screens: SignUpScreens, form: ShownForm) -> Reply[Html]:
    """Return what a visitor sees of a submission, whatever became of it."""
    target = form.settings.redirect_url
    return screens.sent(form) if target is None else _to(target)


def _to(target: str) -> Reply[Html]:
    """Send the browser on to an address that the team has set, never one of the request."""
    headers = {"location": target, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return Reply.html("", 303, headers)
