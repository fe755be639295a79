"""Every page of people asked as a browser asks it, for whoever compares answers with their description."""

from __future__ import annotations

from uuid import uuid4

import httpx

from kit.oauth_flow import ask, register
from kit.people import PASSWORD, Person, a_person, an_operator, visit
from kit.screens import SUBJECTS
from kit.world import Team
from pillarbox.application import SLICES
from pillarbox.dashboard.frame import assets
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links, sessions
from pillarbox.people.addresses import address_queries
from pillarbox.people.addresses.own_address import LASTS
from pillarbox.people.links import LinkKind
from pillarbox.people.roles import TeamRole

PAGES = frozenset(
    (route.method, route.path) for one in SLICES if one.name == "dashboard" for route in one.pages
)
OPENID = ("/login/openid", "/confirm/openid", "/account/openid")
NAMED_IN_QUERY = {
    "/dashboard/personal-data/file": "?address=ada@quay.example",
    "/dashboard/template-gallery/html": "?name=welcome",
}
"""Pages that show what their query names."""

TESTED_ELSEWHERE = frozenset({"/login/passkey/answer", "/dashboard/live"})
"""What only a passkey can answer rightly (`tests/people/test_passkeys.py`), and a stream without an end
(`tests/dashboard/test_live.py`). Pages of `OPENID` need a provider (`tests/people/test_openid_logins.py`)."""

DOCUMENTATION = {
    "/docs/api/{operation}": {"operation": "post-emails"},
    "/docs/guide/{page}": {"page": "index"},
    "/docs/images/{name}": {"name": "capture.png"},
}
"""Names of pages of the documentation."""

LINKS = {"/set-up/{token}": LinkKind.SET_UP, "/password/reset/{token}": LinkKind.PASSWORD}


def is_page_of_people(entry: Route) -> bool:
    return (entry.method, entry.path) in PAGES


async def page_answers(team: Team, entry: Route) -> list[httpx.Response]:
    """Return what the page says to whoever has not logged in, and to an owner of the team."""
    if entry.path in TESTED_ELSEWHERE or entry.path.startswith(OPENID):
        return []
    world = team.world
    person = await an_operator(team, f"{uuid4().hex}@pages.example")
    if entry.path.startswith("/oauth/authorize/"):
        return await answers_to_a_program(team, entry, person)
    stranger = visit(world)
    path = await path_of(team, entry, person) + NAMED_IN_QUERY.get(entry.path, "")
    await stranger.get("/login")
    if entry.method == "POST":
        answer = await stranger.post(path, email=person.email, password=PASSWORD)
        return [answer]
    owner = visit(world)
    await owner.log_in(person)
    return [await stranger.get(path), await owner.get(path)]


async def answers_to_a_program(team: Team, entry: Route, person: Person) -> list[httpx.Response]:
    """Return what the page of a request of a program says before the login and after it."""
    browser = visit(team.world)
    client_id = (await register(team.world))["client_id"]
    asking = await ask(browser, client_id, scope="emails:send")
    path = entry.path.format(authorization=asking.path.rpartition("/")[2])
    if entry.method == "POST":
        await browser.log_in(person)
        return [await asking.decide("deny")]
    found = [await browser.get(path)]
    if path == asking.path:
        await browser.log_in(person)
        found.append(await browser.get(path))
    return found


async def path_of(team: Team, entry: Route, person: Person) -> str:
    """Return a path that leads somewhere."""
    if entry.path in LINKS:
        async with transaction(team.world.pool) as conn:
            at = team.world.app.need(Ids).now()
            token = await links.make(conn, at, LINKS[entry.path], person_id=person.id)
        return entry.path.format(token=token)
    if entry.path == "/account/address/link/{token}":
        return entry.path.format(token=await an_address_change(team, person))
    if entry.path == "/invitation/{token}":
        return entry.path.format(token=await an_invitation(team))
    if entry.path in DOCUMENTATION:
        return entry.path.format(**DOCUMENTATION[entry.path])
    if entry.path == "/assets/{name}":
        return assets.address("dashboard.css")
    ids = {name: await make(team) for name, make in SUBJECTS.items() if name in entry.parameters}
    if "member_id" in entry.parameters:
        other = await a_person(team, f"{uuid4().hex}@pages.example", TeamRole.MEMBER)
        ids["member_id"] = await team.world.pool.fetchval(
            "SELECT id FROM team_members WHERE person_id = $1", other.id
        )
    return entry.path.format(**{name: uuid4() for name in entry.parameters} | ids)


async def an_address_change(team: Team, person: Person) -> str:
    """Return the token by which the person logs in with another address."""
    token, now = sessions.new_token(), team.world.app.need(Ids).now()
    address, hash_ = f"{uuid4().hex}@pages.example", sessions.token_hash(token)
    await address_queries.ask(team.world.pool, person.id, hash_, address, now, now + LASTS)
    return token


async def an_invitation(team: Team) -> str:
    """Return the token of an invitation to the team."""
    ids = team.world.app.need(Ids)
    stamp = ids.stamp()
    async with transaction(team.world.pool) as conn:
        await conn.execute(
            "INSERT INTO team_invitations (team_id, id, email, role, created_at, expires_at)"
            " VALUES ($1, $2, $3, 'member', $4, $5)",
            team.id,
            stamp.id,
            f"{uuid4().hex}@pages.example",
            stamp.at,
            stamp.at + links.LIFETIME[LinkKind.INVITATION],
        )
        return await links.make(conn, stamp.at, LinkKind.INVITATION, team_id=team.id, invitation_id=stamp.id)
