"""Who may open which screen: made from the table of screens, so a new screen is in it by itself."""

from __future__ import annotations

import pytest

from kit.people import a_person, logged_in, visit
from kit.screens import address_of, table
from kit.world import World
from pillarbox.people.roles import TeamRole, may


async def test_strangers_are_sent_to_the_login(pillarbox: World) -> None:
    team, browser = await pillarbox.team(), visit(pillarbox)
    for screen in table():
        answer = await browser.get(await address_of(screen, team))
        assert answer.status_code == 303, screen.path
        assert answer.headers["location"].startswith("/login?to="), screen.path


@pytest.mark.parametrize("role", TeamRole)
async def test_a_role_opens_the_screens_of_its_rights(pillarbox: World, role: TeamRole) -> None:
    """Screens of the installation are for operators alone, whatever their role."""
    team = await pillarbox.team()
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example", role))
    for screen in table():
        answer = await browser.get(await address_of(screen, team))
        may_open = may(role, screen.right) and not screen.for_operators
        assert answer.status_code == (200 if may_open else 403), (screen.path, answer.text[:2000])


async def test_what_another_team_has_is_not_there(pillarbox: World) -> None:
    harbor, quay = await pillarbox.team(), await pillarbox.team("Quay")
    browser = await logged_in(pillarbox, await a_person(quay, "ben@quay.example"))
    for screen in table():
        if "{" in screen.path:
            answer = await browser.get(await address_of(screen, harbor))
            assert answer.status_code == (403 if screen.for_operators else 404), screen.path
