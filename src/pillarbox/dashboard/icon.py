"""The icon that browsers ask for by themselves, also of answers that are no pages."""

from __future__ import annotations

from importlib import resources

from pillarbox.dashboard.pages import HEADERS
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route

MEDIA = "image/x-icon"
ICON = resources.files("pillarbox.dashboard").joinpath("templates/favicon.ico").read_bytes()


@route("GET", "/favicon.ico", needs=Access.PUBLIC, summary="The icon of the pages")
async def icon(_: Request) -> Reply[OctetsAnswer]:
    return Reply(ICON, headers=dict(HEADERS), media=MEDIA)
