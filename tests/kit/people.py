"""People who use the pages: a browser without a screen that keeps cookies and sends forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import httpx

from kit.world import Team, World
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.oauth import grants
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.people import accounts, queries
from pillarbox.people.roles import TeamRole

PASSWORD = "seven tall ships at noon"
HASHED = "$argon2id$v=19$m=19456,t=2,p=1$vWCkBuVIC4/buSgmh3FE3w$KZbswyY0S1yxsnsht6l8IJA9hpZxN5ehUp7jJHCDIxM"
"""Of PASSWORD, so that a test need not wait for it."""

SESSION = "__Host-pillarbox"
FORM_COOKIE = "__Host-pillarbox-form"

WAITS = """
    SELECT EXISTS (SELECT FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock')
"""
"""Whether anybody waits for what a transaction of the test holds."""

_CSRF = re.compile(r'name="csrf_token" value="([^"]*)"')
_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_CODES = re.compile(r'<pre class="codes"[^>]*>([^<]+)</pre>')
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who can log in."""

    id: UUID
    email: str
    password: str = PASSWORD


@dataclass(slots=True)
class Visit:
    """A browser of one person. It follows no redirects by itself, and sends what a browser sends with
    a form of the same site."""

    http: httpx.AsyncClient
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.ask("GET", path, headers={"sec-fetch-site": "same-origin", **headers})

    async def post(self, path: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """Send a form with these fields, and the token of the page that was shown last."""
        data = {"csrf_token": self.csrf, **fields}
        own = {"sec-fetch-site": "same-origin"} if headers is None else headers
        return await self.ask("POST", path, headers=own, data=data)

    async def send(self, page: str, path: str | None = None, **fields: Any) -> httpx.Response:
        """Open a page and send its form, to another path if one is given."""
        await self.get(page)
        return await self.post(path or page.partition("?")[0], **fields)

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if self.cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = await self.http.request(method, path, headers=headers, follow_redirects=False, **options)
        self._keep(answer)
        return answer

    async def follow(self, answer: httpx.Response) -> httpx.Response:
        """Return what is shown in the end."""
        while answer.status_code == 303:
            answer = await self.get(answer.headers["location"])
        return answer

    async def log_in(self, person: Person, to: str = "") -> httpx.Response:
        """Log in by password; the answer to the form."""
        page = f"/login?to={to}" if to else "/login"
        fields = {"to": to} if to else {}
        return await self.send(page, "/login", email=person.email, password=person.password, **fields)

    def _keep(self, answer: httpx.Response) -> None:
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            if "max-age=0" in line.lower():
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        if found := _CSRF.search(answer.text):
            self.csrf = unescape(found[1])


async def a_person(
    team: Team, email: str, role: TeamRole = TeamRole.OWNER, *, name: str | None = None, password: bool = True
) -> Person:
    """Store somebody who belongs to the team, with the password PASSWORD."""
    ids, address = Ids(SystemClock()), email_address(email)
    async with transaction(team.world.pool) as conn:
        person_id = await accounts.create(conn, ids.stamp(), address, name)
        await accounts.join(conn, ids.stamp(), person_id, address, team.id, role)
        if password:
            await accounts.set_password(conn, ids.now(), person_id, HASHED)
    return Person(person_id, email)


async def an_operator(team: Team, email: str, role: TeamRole = TeamRole.OWNER) -> Person:
    """Store somebody who belongs to the team, and is an operator of the installation."""
    person = await a_person(team, email, role)
    await queries.set_operator(team.world.pool, person.id, is_operator=True)
    return person


async def a_grant(team: Team, person: Person, name: str = "Quill") -> UUID:
    """Store a program that the person has let act for the team; return its grant."""
    stamp = Ids(SystemClock()).stamp()
    async with transaction(team.world.pool) as conn:
        await grants.add(
            conn,
            stamp.at,
            GrantRef(team.id, stamp.id),
            client_id=str(uuid4()),
            client={"name": name, "host": None},
            person_id=person.id,
            scopes=["full_access"],
        )
    return stamp.id


def visit(world: World) -> Visit:
    """Return a browser that was never here."""
    return Visit(world.client(None))


async def logged_in(world: World, person: Person) -> Visit:
    """Return a browser in which the person has logged in."""
    found = visit(world)
    answer = await found.log_in(person)
    assert answer.status_code == 303, answer.text
    return found


def heading(answer: httpx.Response) -> str:
    """Return what stands over a page."""
    found = _HEADING.search(answer.text)
    return unescape(_TAG.sub("", found[1])).strip() if found else ""


def text_of(answer: httpx.Response) -> str:
    """Return the text of a page, on one line."""
    return " ".join(unescape(_TAG.sub(" ", answer.text.partition("<body")[2].partition(">")[2])).split())


def recovery_codes(answer: httpx.Response) -> list[str]:
    """Return the recovery codes that a page shows."""
    found = _CODES.search(answer.text)
    return found[1].split() if found else []
