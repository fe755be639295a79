"""The choice of the language that pages are written in; a cookie of the browser keeps it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from pillarbox.dashboard.people.cookies import LANGUAGE_COOKIE, no_cookie, set_cookie
from pillarbox.dashboard.people.page_visits import Form, PageGuest, open_form, see_other
from pillarbox.dashboard.texts import NAMES
from pillarbox.kernel.http.request import Html, Reply, Request

LASTS: Final = timedelta(days=365)


@open_form("POST", "/language", summary="Choose the language of pages")
async def choose(request: Request, _: PageGuest, fields: Form) -> Reply[Html]:
    """Keep the language, and show the page again on which it was chosen. No known one: the browser's."""
    chosen = fields.get("language")
    is_known = chosen in NAMES
    kept = set_cookie(LANGUAGE_COOKIE, chosen, LASTS) if is_known else no_cookie(LANGUAGE_COOKIE)
    return see_other(_place_of(request), cookie=kept)


def _place_of(request: Request) -> str:
    """Return the path of the page with the form; the form came from this site."""
    try:
        sender = urlsplit(request.header("referer") or "")
    except ValueError:
        return "/"
    return f"{sender.path}?{sender.query}" if sender.query else sender.path
