"""Tracked mail: domains whose links lead to a host of theirs, and what stands in mail that arrived."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
from selectolax.lexbor import LexborHTMLParser

from kit.manual_world import parsed
from kit.smtp_sink import Message
from kit.world import Team
from pillarbox.domains import trust
from pillarbox.domains.context import DomainContext
from pillarbox.domains.senders import Senders
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.tracking_tokens import TrackedRecipient, link_token, open_token

URL = "https://mail.pillar.example:8443"
HOST = "links.harbor.example"
BASE = f"https://{HOST}:8443"


async def tracks(
    team: Team,
    name: str = "harbor.example",
    *,
    opens: bool = True,
    clicks: bool = True,
    label: str | None = "links",
    verified: bool = True,
) -> str:
    """Make a domain that the operator vouches for, with these flags, and its host for links too or not."""
    domain_id = await team.domain(name)
    wanted = {"open_tracking": opens, "click_tracking": clicks, "tracking_subdomain": label}
    answer = await team.call("PATCH", f"/domains/{domain_id}", wanted)
    assert answer.status_code == 200, answer.text
    if verified and label:
        context = team.world.app.need(DomainContext)
        await trust.trust(team.world.pool, name, team.id, context, tracking=True)
    team.world.app.need(Senders).forget(team.id)
    return domain_id


def html_of(message: Message) -> str:
    """Return the HTML of a mail that arrived, without the line end that the transfer adds."""
    part = parsed(message).get_body(("html",))
    assert part is not None
    return str(part.get_content()).removesuffix("\n")


def hrefs(html: str) -> list[str]:
    """Return where the links of an HTML lead, as a browser reads it."""
    return [node.attributes.get("href") or "" for node in LexborHTMLParser(html).css("a, area")]


def pixels(html: str) -> list[str]:
    """Return the pictures that are seen when the mail is opened."""
    found = [node.attributes.get("src") or "" for node in LexborHTMLParser(html).css("img")]
    return [url for url in found if "/t/o/" in url]


async def tracking_path(team: Team, route: str) -> str:
    """Return the path of a link or picture of some email of the team."""
    key = await team.world.app.need(LinkKeys).maker(team.world.clock.now())
    who = TrackedRecipient(team.id, UUID(await team.send()), 0)
    if route == "/t/o/{token}":
        return f"/t/o/{open_token(who, key)}.gif"
    return f"/t/c/{link_token(who, 0, 'https://shop.example/', key)}"


class Reader:
    """Somebody who opens mail and follows links; each request goes to the world, whatever its host is."""

    def __init__(self, team: Team) -> None:
        self._http = team.world.client(None)

    async def asks(
        self, url: str, *, host: str | None = None, method: str = "GET", **headers: str
    ) -> httpx.Response:
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["host"] = host or parts.netloc
        return await self._http.request(method, path, headers=named, follow_redirects=False)


async def timeline_of(team: Team, email: str) -> list[dict[str, Any]]:
    """Return the opens and clicks of an email as they are stored: kind, position, detail."""
    rows = await team.world.pool.fetch(
        "SELECT kind, position, detail::text AS detail FROM timeline WHERE team_id = $1 AND email_id = $2"
        " AND kind IN ('opened', 'clicked') ORDER BY at, id",
        team.id,
        email,
    )
    return [dict(row) for row in rows]
