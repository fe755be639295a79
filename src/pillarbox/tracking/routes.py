"""Links and pictures of tracked mail (emails.md 8, endpoints 11 and 12).

The token is the only authority, and it says where a link leads, so nothing can be redirected to a place that
stood in no mail. HEAD makes no event. Under the host of a team's links only links of this team are there.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Final
from urllib.parse import quote
from uuid import UUID

import idna

from pillarbox.kernel.http.request import Html, OctetsAnswer, Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, read_link, read_open
from pillarbox.timeline.rules import ClickDetail, EventDetail, EventKind, TimelineEntry
from pillarbox.tracking.hosts import TrackingHosts
from pillarbox.tracking.machines import LONGEST_AGENT, Machines
from pillarbox.tracking.prometheus import REQUESTS
from pillarbox.tracking.recording import TrackingRecorder
from pillarbox.tracking.screens import TrackingScreens

_PARTS = re.compile(r"(https?://)([^/\\?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(.*@)?(.*?)(:[0-9]*)?", re.DOTALL)
_NOT_VISIBLE = re.compile(r"[^\x21-\x7e]+")


def location(url: str) -> str:
    """Return the same place for a browser. What is visible ASCII stays as it is; a host of other letters gets
    its A-labels, and everything else that is not ASCII its escapes."""
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return _escaped(url)
    scheme, authority, rest = parts.groups()
    found = _AUTHORITY.fullmatch(authority)
    user, host, port = found.groups("") if found else ("", authority, "")
    return f"{scheme}{_escaped(user)}{_host(host)}{port}{_escaped(rest)}"


def _host(host: str) -> str:
    if host.isascii():
        return _escaped(host)
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        # Browsers undo the escapes of a host before they look at it (URL standard 3.5).
        return quote(host, safe="")


def _escaped(text: str) -> str:
    return _NOT_VISIBLE.sub(lambda found: quote(found[0], safe="", errors="replace"), text)


GIF: Final = b64decode("R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")
"""One transparent pixel, in 43 octets."""

SUFFIX: Final = ".gif"
STANDING: Final = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex",
}
SHOWN_ANYWHERE: Final = {**STANDING, "cross-origin-resource-policy": "cross-origin"}
"""Mail is read on pages of others, and some of these show only what says that it may be shown."""


@route(
    "GET",
    "/t/o/{token}",
    needs=Access.PUBLIC,
    summary="Show the picture of a tracked email",
)
async def opened(request: Request) -> Reply[OctetsAnswer]:
    """Send the picture, whatever the token is; store the event only for one that is right."""
    who = await _seen(request)
    if who is not None and await _is_here(request, who.team_id):
        await _record(request, who, EventKind.OPENED, None)
    else:
        REQUESTS.add(1, ("unknown",))
    return Reply(GIF, headers=dict(SHOWN_ANYWHERE), media="image/gif")


@route(
    "GET",
    "/t/c/{token}",
    needs=Access.PUBLIC,
    status=302,
    pages=(404,),
    summary="Follow a link of a tracked email",
)
async def clicked(request: Request) -> Reply[Html]:
    """Redirect to where the link led in the mail as it was written."""
    found = await read_link(request.param("token"), request.use(LinkKeys))
    if found is None or not await _is_here(request, found.recipient.team_id):
        REQUESTS.add(1, ("unknown",))
        screens = request.use(TrackingScreens)  # type: ignore[type-abstract]
        screens.speak(request.header("accept-language"))
        return screens.unknown_link()
    await _record(request, found.recipient, EventKind.CLICKED, found.url)
    return Reply.html("", 302, {**STANDING, "location": location(found.url)})


async def _seen(request: Request) -> TrackedRecipient | None:
    """Return who may see the picture: nobody where the database is away and the key not known."""
    text = request.param("token")
    if not text.endswith(SUFFIX):
        return None
    try:
        return await read_open(text.removesuffix(SUFFIX), request.use(LinkKeys))
    except TROUBLE:
        return None


async def _is_here(request: Request, team_id: UUID) -> bool:
    owner = await request.use(TrackingHosts).team_of(request.raw_header(b"host"))
    return owner is None or owner == team_id


async def _record(request: Request, who: TrackedRecipient, kind: EventKind, url: str | None) -> None:
    if request.method == "HEAD":
        REQUESTS.add(1, ("head",))
        return
    REQUESTS.add(1, ("open" if url is None else "click",))
    agent, client = (request.header("user-agent") or "")[:LONGEST_AGENT], request.client
    purpose = request.header("sec-purpose") or request.header("purpose") or request.header("x-moz")
    click = None if url is None else ClickDetail(client, url, request.at, agent)
    detail = EventDetail(click=click, machine=request.use(Machines).name_of(agent, client, purpose))
    await request.use(TrackingRecorder).record(TimelineEntry(*who, kind, request.at, detail))
