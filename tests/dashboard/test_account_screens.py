"""The pages of one's account: in the frame of the screens, and plain for people without a team."""

from __future__ import annotations

import pytest

from kit.people import Person, Visit, a_person, an_operator, heading, logged_in
from kit.world import Team, World

PAGES = ("/account", "/account/password", "/account/address")


async def leaves(team: Team, person: Person) -> None:
    """The person belongs to no team any more."""
    await team.world.pool.execute("DELETE FROM team_members WHERE email = $1", person.email)


async def somebody_alone(pillarbox: World) -> Visit:
    team = await pillarbox.team("Harbor")
    ada = await a_person(team, "ada@harbor.example")
    await leaves(team, ada)
    return await logged_in(pillarbox, ada)


@pytest.mark.parametrize("path", PAGES)
async def test_the_account_stands_in_the_frame_of_the_screens(pillarbox: World, path: str) -> None:
    browser = await logged_in(pillarbox, await a_person(await pillarbox.team("Harbor"), "ada@harbor.example"))
    page = await browser.get(path)
    assert 'href="/dashboard/emails"' in page.text
    assert '<a href="/account" aria-current="page">' in page.text
    assert "· Harbor · Pillarbox</title>" in page.text


@pytest.mark.parametrize("path", PAGES)
async def test_people_without_a_team_get_a_plain_page_that_works(pillarbox: World, path: str) -> None:
    browser = await somebody_alone(pillarbox)
    page = await browser.get(path)
    assert page.status_code == 200
    assert '<aside class="side">' not in page.text
    done = await browser.follow(await browser.post("/account/name", name="Ada"))
    assert "Your name is saved." in done.text
    assert heading(await browser.follow(await browser.post("/logout"))) == "Log in"


async def test_people_without_a_team_set_up_a_second_factor(pillarbox: World) -> None:
    browser = await somebody_alone(pillarbox)
    await browser.get("/account")
    shown = await browser.follow(await browser.post("/account/factor/begin"))
    assert heading(shown) == "Set up a second factor"
    wrong = await browser.post("/account/factor", code="000")
    assert (wrong.status_code, 'id="code-wrong"' in wrong.text) == (422, True)


async def test_an_operator_without_a_team_has_the_screens_of_the_installation(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    ada = await an_operator(team, "ada@harbor.example")
    await leaves(team, ada)
    page = await (await logged_in(pillarbox, ada)).get("/account")
    assert '<aside class="side">' in page.text
    assert 'href="/dashboard/emails"' not in page.text


async def test_an_account_is_found_by_the_search(pillarbox: World) -> None:
    browser = await logged_in(pillarbox, await a_person(await pillarbox.team(), "ada@harbor.example"))
    found = await browser.get("/dashboard/search?q=passkeys")
    assert 'href="/account"' in found.text
