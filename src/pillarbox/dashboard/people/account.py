"""One's own account: its beginning."""

from __future__ import annotations

from pillarbox.dashboard.people.page_visits import draw, page
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.people.visitors import Visitor


@page("GET", "/account", summary="One's own account")
async def show(request: Request, visitor: Visitor) -> Reply[Html]:
    return draw("people/account.html", visitor=visitor)
