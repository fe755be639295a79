"""Pages of the installation are for operators alone, whatever somebody's role in a team."""

from __future__ import annotations

from pathlib import Path

from kit.people import a_person, an_operator, heading, logged_in, visit
from kit.screens import table
from kit.world import world
from pillarbox.application import SLICES
from pillarbox.people import queries

OURS = ("/design", "/dashboard/installation")
PAGES = [
    route
    for entry in SLICES
    if entry.name == "dashboard"
    for route in entry.pages
    if route.path.startswith(OURS)
]


def a_path(path: str) -> str:
    """A path that the route takes, whatever it leads to."""
    for name in ("team_id",):
        path = path.replace(f"{{{name}}}", "00000000-0000-7000-8000-000000000000")
    return path


async def test_owners_who_are_no_operators_are_refused_everywhere(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        owner = await logged_in(here, await a_person(await here.team(), "ada@harbor.example"))
        guest = visit(here)
        await owner.get("/account")
        await guest.get("/login")
        for route in PAGES:
            path = a_path(route.path)
            if route.method == "GET":
                asked = await guest.get(path)
                assert asked.headers["location"].startswith("/login?to="), path
                answer = await owner.get(path)
            else:
                answer = await owner.post(path)
            assert (answer.status_code, heading(answer)) == (403, "You may not do this"), route
            assert "pillarbox people operator" in answer.text


async def test_the_table_and_the_pages_agree_on_what_is_for_operators() -> None:
    assert {screen.path for screen in table() if screen.for_operators} == {
        route.path for route in PAGES if route.method == "GET"
    }


async def test_an_operator_sees_them_until_the_flag_is_taken_away(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        otto = await an_operator(await here.team(), "otto@harbor.example")
        browser = await logged_in(here, otto)
        assert heading(await browser.get("/design")) == "Parts of the screens"
        await queries.set_operator(here.pool, otto.id, is_operator=False)
        assert (await browser.get("/design")).status_code == 403


async def test_an_operator_needs_no_team(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        otto = await an_operator(await here.team(), "otto@harbor.example")
        browser = await logged_in(here, otto)
        await here.pool.execute("DELETE FROM team_members WHERE person_id = $1", otto.id)
        assert (await browser.get("/design")).status_code == 200
        assert (await browser.get("/dashboard/emails")).headers["location"] == "/account"
