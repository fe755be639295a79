"""The whole way of a program: it registers, somebody lets it act, it exchanges its code.

asking = await ask(pillarbox, browser, client_id)      # what the browser is sent to
code = await asking.approve()
tokens = await exchange(pillarbox, client_id, code)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from kit.people import Person, Visit, a_person, logged_in
from kit.world import Team, World
from pillarbox.people.roles import TeamRole

VERIFIER = "pillarbox-verifier-0123456789-abcdefghijklmnopqrstuvwxyz"
CHALLENGE = "9CTi_XRWtbcQcZsMW4oPEpgPsc42lFpjcEvyppOZ240"
"""The vector of the contract (oauth.md 6)."""

REDIRECT = "https://quill.example/cb"


def registration(**fields: Any) -> dict[str, Any]:
    """Return a registration that is right, with `fields` put in its place (None removes one)."""
    body = {"client_name": "Quill", "redirect_uris": [REDIRECT], **fields}
    return {name: value for name, value in body.items() if value is not None}


async def register(pillarbox: World, **fields: Any) -> dict[str, Any]:
    """Register a program of its own; return the answer to its registration."""
    answer = await pillarbox.client(None).post("/oauth/register", json=registration(**fields))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def parameters(client_id: str, **fields: str | None) -> dict[str, str]:
    """Return a request of a program that is right, with `fields` put in its place (None removes one)."""
    made: dict[str, str | None] = {
        "client_id": client_id,
        "response_type": "code",
        "redirect_uri": REDIRECT,
        "state": "k7",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        **fields,
    }
    return {name: value for name, value in made.items() if value is not None}


@dataclass(slots=True)
class Asking:
    """A request that somebody has to decide about."""

    visit: Visit
    path: str

    async def page(self) -> httpx.Response:
        return await self.visit.get(self.path)

    async def decide(self, decision: str, team: Team | None = None) -> httpx.Response:
        """Open the page and press a button of it."""
        page = await self.page()
        assert page.status_code == 200, page.text
        team_id = str(team.id) if team else page.text.partition('name="team_id" value="')[2].partition('"')[0]
        return await self.visit.post(self.path, decision=decision, team_id=team_id)

    async def approve(self, team: Team | None = None) -> str:
        """Return the code that the program gets."""
        answer = await self.decide("approve", team)
        assert answer.status_code == 303, answer.text
        return answered(answer)["code"]


def answered(answer: httpx.Response) -> dict[str, str]:
    """Return what a redirect tells the program."""
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def ask(visit: Visit, client_id: str, **fields: str | None) -> Asking:
    """Return a browser that a program has sent to us."""
    answer = await visit.ask("GET", "/oauth/authorize", params=parameters(client_id, **fields))
    assert answer.status_code == 302, answer.text
    path = urlsplit(answer.headers["location"]).path
    assert path.startswith("/oauth/authorize/"), answer.headers["location"]
    return Asking(visit, path)


async def exchange(pillarbox: World, client_id: str, code: str, **fields: str | None) -> httpx.Response:
    """Exchange a code."""
    made = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "client_id": client_id,
        **fields,
    }
    return await token(pillarbox, {name: value for name, value in made.items() if value is not None})


async def refresh(pillarbox: World, client_id: str, refresh_token: str, **fields: str) -> httpx.Response:
    """Exchange a refresh token."""
    made = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": client_id}
    return await token(pillarbox, {**made, **fields})


async def token(pillarbox: World, fields: Mapping[str, str], **options: Any) -> httpx.Response:
    return await pillarbox.client(None).post("/oauth/token", data=dict(fields), **options)


@dataclass(slots=True)
class Allowed:
    """A program that somebody lets act, and what it got."""

    client_id: str
    team: Team
    person: Person
    visit: Visit
    tokens: dict[str, Any]

    @property
    def acting(self) -> Team:
        """The team, as the program sees it."""
        return self.team.using(self.tokens["access_token"])


async def allowed(pillarbox: World, role: TeamRole = TeamRole.OWNER, **fields: Any) -> Allowed:
    """Return a new program that was let in by a new person of a new team."""
    team = await pillarbox.team()
    person = await a_person(team, f"{role.value}-{team.id.hex}@people.example", role)
    client_id = (await register(pillarbox, **fields))["client_id"]
    visit = await logged_in(pillarbox, person)
    code = await (await ask(visit, client_id)).approve()
    answer = await exchange(pillarbox, client_id, code)
    assert answer.status_code == 200, answer.text
    return Allowed(client_id=client_id, team=team, person=person, visit=visit, tokens=answer.json())
