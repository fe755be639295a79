"""Who may send which form and fetch which file: made from the pages, so a new one is in it by itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import uuid4

import pytest

from kit.people import a_grant, a_person, logged_in, visit
from kit.screens import SUBJECTS
from kit.world import Team, World
from pillarbox.application import SLICES
from pillarbox.dashboard.people.page_visits import RIGHTS, PageRights
from pillarbox.kernel.http.routing import Route
from pillarbox.people.roles import TeamRole, may

PAGES: Final = [
    (route, route.handler.__dict__[RIGHTS])
    for entry in SLICES
    for route in entry.pages
    if RIGHTS in route.handler.__dict__
]
OF_PERSONS: Final = ("/account", "/team/leave", "/team/switch")
"""Pages of people, whatever their team; `tests/people` has them."""


async def a_key(team: Team) -> str:
    return str((await team.post("/api-keys", {"name": "Quill"})).json()["id"])


async def an_invitation(team: Team) -> str:
    owner = await logged_in(team.world, await a_person(team, f"{uuid4().hex[:8]}@harbor.example"))
    await owner.send("/team/members", "/team/invitations", email="x@quay.example", role="viewer")
    (found,) = await team.db.values("SELECT id FROM team_invitations WHERE team_id = $1 LIMIT 1")
    return str(found)


async def a_program(team: Team) -> str:
    person = await a_person(team, f"{uuid4().hex[:8]}@harbor.example")
    return str(await a_grant(team, person))


MAKES: Final[dict[str, Callable[[Team], Awaitable[str]]]] = {
    **SUBJECTS,
    "api_key_id": a_key,
    "invitation_id": an_invitation,
    "oauth_grant_id": a_program,
}


def parameters_of(route: Route) -> list[str]:
    return re.findall(r"{(\w+)}", route.path)


async def path_in(team: Team, route: Route) -> str:
    return route.path.format(**{name: await MAKES[name](team) for name in parameters_of(route)})


def asked_of_members() -> list[tuple[Route, PageRights]]:
    return [
        (route, rights)
        for route, rights in PAGES
        if not route.path.startswith(OF_PERSONS) and (rights.right or rights.for_operators)
    ]


@pytest.mark.parametrize("role", TeamRole)
async def test_a_role_without_the_right_is_refused(pillarbox: World, role: TeamRole) -> None:
    """A form is refused before it is read, so that an empty one shows it."""
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example", role))
    await browser.get("/account")
    for route, rights in asked_of_members():
        if rights.right is not None and may(role, rights.right) and not rights.for_operators:
            continue
        path = await path_in(team, route)
        answer = await (browser.get(path) if route.method == "GET" else browser.post(path))
        assert answer.status_code == 403, (route.path, answer.text[:1000])


async def test_strangers_reach_nothing(pillarbox: World) -> None:
    team, browser = await pillarbox.team(), visit(pillarbox)
    await browser.get("/login")
    for route, _ in PAGES:
        path = route.path.format(**dict.fromkeys(parameters_of(route), str(team.id)))
        answer = await (browser.get(path) if route.method == "GET" else browser.post(path))
        assert answer.status_code == 303, route.path
        assert answer.headers["location"].startswith("/login"), route.path


async def test_what_another_team_has_can_neither_be_fetched_nor_changed(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team(), await pillarbox.team("Quay")
    browser = await logged_in(pillarbox, await a_person(quay, "ben@quay.example"))
    await browser.get("/account")
    for route, rights in asked_of_members():
        if not parameters_of(route) or rights.for_operators:
            continue
        path = await path_in(harbor, route)
        before = await everything_of(harbor)
        answer = await (browser.get(path) if route.method == "GET" else browser.post(path, role="viewer"))
        refusals = (404,) if route.method == "GET" else (404, 422)
        assert answer.status_code in refusals, (route.path, answer.text[:1000])
        assert await everything_of(harbor) == before, route.path


async def everything_of(team: Team) -> dict[str, int]:
    """How often each row of the team's things changed, by table."""
    tables = ("webhooks", "domains", "suppressions", "api_keys", "team_members", "oauth_grants", "emails")
    return {
        table: hash(
            tuple(await team.db.values(f"SELECT xmin::text FROM {table} WHERE team_id = $1 ORDER BY 1"))
        )
        for table in tables
    }
