"""What did not work: a page for people, within the navigation where they have one; JSON for programs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from kit.people import a_person, heading, logged_in, text_of, visit
from kit.world import World
from pillarbox.kernel.http.maintenance import Maintenance, begin

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
MISSING = b'{"statusCode":404,"message":"The requested endpoint does not exist.","name":"not_found"}'


async def test_what_is_not_there_is_said_within_the_navigation(pillarbox: World) -> None:
    browser = await logged_in(pillarbox, await a_person(await pillarbox.team("Harbor"), "ada@harbor.example"))
    for path in ("/dashboard/emails/{}", "/dashboard/domains/{}", "/dashboard/webhooks/{}"):
        page = await browser.get(path.format(uuid4()))
        assert (page.status_code, heading(page)) == (404, "It is not there")
        assert 'href="/dashboard/webhooks"' in page.text
        assert "<title>It is not there · Harbor" in page.text


async def test_an_act_in_maintenance_says_so_on_a_page(pillarbox: World) -> None:
    team = await pillarbox.team("Harbor")
    browser = await logged_in(pillarbox, await a_person(team, "ada@harbor.example"))
    await browser.get("/dashboard/suppressions/add")
    await begin(pillarbox.pool, 120)
    await pillarbox.app.need(Maintenance).look()
    page = await browser.post("/dashboard/suppressions/add", addresses="ben@quay.example")
    assert (page.status_code, heading(page)) == (503, "Back in a moment")
    assert page.headers["retry-after"] == "120"
    assert "nothing was changed" in text_of(page)
    assert (await browser.get("/dashboard/suppressions")).status_code == 200
    told = await team.post("/suppressions", {"emails": ["ben@quay.example"]})
    assert (told.status_code, told.headers["content-type"]) == (503, "application/json; charset=utf-8")


@pytest.mark.parametrize("accept", ["*/*", "application/json", None])
async def test_programs_get_the_same_octets_as_ever(pillarbox: World, accept: str | None) -> None:
    headers = {} if accept is None else {"accept": accept}
    for path in ("/nothing", "/dashboard/nothing", "/emails/nothing/at/all"):
        answer = await pillarbox.client(None).get(path, headers=headers)
        assert answer.status_code == 404
        assert answer.content == MISSING


async def test_a_browser_without_a_session_gets_a_page_with_a_way_on(pillarbox: World) -> None:
    page = await visit(pillarbox).get("/nothing", accept=BROWSER)
    assert (page.status_code, heading(page)) == (404, "There is no such page")
    assert 'href="/"' in page.text
