"""The one script of the pages of people: it asks the browser for a passkey."""

from __future__ import annotations

from importlib import resources

from pillarbox.kernel.http.request import Octets, Reply, Request
from pillarbox.kernel.http.routing import Access, route

MEDIA = "text/javascript; charset=utf-8"
PASSKEYS = resources.files("pillarbox.dashboard").joinpath("templates/people/passkeys.js").read_bytes()
HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@route("GET", "/scripts/passkeys.js", needs=Access.PUBLIC, summary="The script that asks for a passkey")
async def passkeys(_: Request) -> Reply[Octets]:
    return Reply(PASSKEYS, headers=dict(HEADERS), media=MEDIA)
