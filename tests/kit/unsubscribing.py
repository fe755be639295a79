"""Links of sent mail, and the pages behind them as a reader without scripts sees them."""

from __future__ import annotations

from datetime import datetime
from random import randrange
from typing import Any
from uuid import UUID, uuid4

import httpx
from selectolax.lexbor import LexborHTMLParser

from kit.world import Team
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.link_tokens import LinkToken, token

PROXY = "127.0.0.0/8"
FORM = "application/x-www-form-urlencoded"


class Recipient:
    """Somebody with the link of a mail, in a world with the setting `PROXY`."""

    def __init__(self, team: Team, link: LinkToken, path: str) -> None:
        self.team = team
        self.link = link
        self.path = path
        self.http = team.world.client(None)

    def headers(self, **more: str) -> dict[str, str]:
        """Return the headers: each request comes from another address, as the proxy in front says."""
        chosen = randrange(256**3)
        address = f"10.{chosen >> 16}.{chosen >> 8 & 255}.{chosen & 255}"
        return {"x-forwarded-for": address, **{name.replace("_", "-"): text for name, text in more.items()}}

    async def opens(self) -> Shown:
        return Shown(await self.http.get(self.path, headers=self.headers()))

    async def posts(self, *fields: tuple[str, Any], **named: Any) -> Shown:
        """Send a form with these fields."""
        pairs = [(name, str(value)) for name, value in (*fields, *named.items())]
        body = str(httpx.QueryParams(pairs))
        return Shown(await self.http.post(self.path, content=body, headers=self.headers(content_type=FORM)))

    async def clicks(self) -> httpx.Response:
        """Send what a mail program sends for one click (RFC 8058)."""
        body = "List-Unsubscribe=One-Click"
        return await self.http.post(self.path, content=body, headers=self.headers(content_type=FORM))

    async def takes_back(self, shown: Shown) -> Shown:
        """Press the first button of what was just said."""
        fields = shown.form(".done form")
        return await self.posts(*fields)

    async def choice(self, topic: UUID) -> str | None:
        """Return what is stored of the address and a topic."""
        found: str | None = await self.team.world.pool.fetchval(
            "SELECT h.subscription FROM contacts c JOIN topic_choices h ON h.contact_id = c.id"
            " WHERE c.team_id = $1 AND c.address = $2 AND h.topic_id = $3",
            self.team.id,
            self.link.address,
            topic,
        )
        return found

    async def is_unsubscribed(self) -> bool | None:
        """Return what is stored of the address; None where it is no contact."""
        found: bool | None = await self.team.world.pool.fetchval(
            "SELECT unsubscribed FROM contacts WHERE team_id = $1 AND address = $2",
            self.team.id,
            self.link.address,
        )
        return found


class Shown:
    """A page."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.status = answer.status_code
        self.tree = LexborHTMLParser(answer.text)

    @property
    def text(self) -> str:
        """What is read on it."""
        body = self.tree.css_first("main")
        return " ".join(body.text(separator=" ").split()) if body is not None else ""

    @property
    def said(self) -> str:
        """What was just done."""
        found = self.tree.css_first("[role=status]")
        return " ".join(found.text(separator=" ").split()) if found is not None else ""

    @property
    def buttons(self) -> list[str]:
        return [" ".join(button.text(separator=" ").split()) for button in self.tree.css("button")]

    @property
    def boxes(self) -> dict[str, bool]:
        """The topics that can be chosen, and which are checked."""
        return {
            " ".join(choice.css_first("label").text().split()): "checked"
            in choice.css_first("[type=checkbox]").attributes
            for choice in self.tree.css(".choice")
        }

    def form(self, selector: str) -> list[tuple[str, str]]:
        """Return the hidden fields of the first form that fits."""
        found = self.tree.css_first(selector)
        assert found is not None, self.text
        hidden = found.css("input[type=hidden]")
        return [(str(one.attributes["name"]), str(one.attributes["value"])) for one in hidden]


async def recipient(
    team: Team,
    topic: UUID | None = None,
    address: str = "ada@quay.example",
    *,
    email: object = None,
    position: int = 0,
    at: datetime | None = None,
) -> Recipient:
    """Return somebody who got a mail of this topic."""
    link = LinkToken(
        team_id=team.id,
        email_id=UUID(str(email)) if email else uuid4(),
        position=position,
        topic_id=topic,
        address=address,
    )
    key = await team.world.app.need(LinkKeys).maker(at or team.world.clock.now())
    return Recipient(team, link, f"/unsubscribe/{token(link, key)}")
