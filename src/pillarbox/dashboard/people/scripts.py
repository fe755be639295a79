"""The one script of the pages of people: it asks the browser for a passkey."""

from __future__ import annotations

from importlib import resources

from pillarbox.dashboard.people.page_visits import HEADERS, policy_with
from pillarbox.kernel.http.request import OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route

MEDIA = "text/javascript; charset=utf-8"
PASSKEYS = resources.files("pillarbox.dashboard").joinpath("templates/people/passkeys.js").read_bytes()


@route("GET", "/scripts/passkeys.js", needs=Access.PUBLIC, summary="The script that asks for a passkey")
async def passkeys(_: Request) -> Reply[OctetsAnswer]:
    headers = {**HEADERS, "content-security-policy": policy_with()}
    return Reply(PASSKEYS, headers=headers, media=MEDIA)
