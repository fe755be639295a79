"""An invitation in a browser: sent from a page, read in the capture view, accepted by somebody new; the pages
about the team on a phone, at night, and for screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.browser_forms import fills, logs_in
from kit.people import PASSWORD, a_person
from kit.world import World, world

HEADING = "document.querySelector('h1').innerText"
TEXT = "document.body.innerText"
PATH = "location.pathname"
LINK = re.compile(r"http://[^\s]+/invitation/[\w-]+")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def link_in_the_mail(tab: Tab, here: World) -> str:
    """What somebody finds in its mail: here in the capture view."""
    await here.turn()
    await tab.open(f"{here.url}/capture?token=capture-token")
    mail = await tab.run("document.querySelector('ul.mails a').getAttribute('href')")
    await tab.open(f"{here.url}{mail}?view=text")
    found = LINK.search(await tab.run(TEXT))
    assert found
    return found[0]


async def test_somebody_is_invited_and_joins(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with (
        world(database_url, tmp_path, started=False, route="capture") as here,
        browser.tab() as owner,
        browser.tab() as guest,
    ):
        ada = await a_person(await here.team("Harbor"), "ada@harbor.example", name="Ada")
        await logs_in(owner, here, ada, "/team/members")
        await fills(owner, email="nell@quay.example")
        await owner.run("document.getElementById('role').value = 'viewer'")
        await owner.presses("Invite")
        assert "The invitation is on its way by mail." in await owner.run(TEXT)
        assert "nell@quay.example" in await owner.run(TEXT)
        link = await link_in_the_mail(owner, here)
        await guest.open(link)
        assert await guest.run(HEADING) == "Join a team"
        assert "Harbor" in await guest.run(TEXT)
        assert await guest.barriers() == []
        await fills(guest, name="Nell", password=PASSWORD)
        await guest.presses("Join the team")
        assert await guest.run(PATH) == "/team"
        assert "You belong to this team now." in await guest.run(TEXT)
        await guest.open(f"{here.url}/team/audit")
        assert await guest.run(HEADING) == "You may not do this"
        await guest.open(link)
        assert await guest.run(HEADING) == "The invitation has ended"
        assert owner.violations == guest.violations == []


async def test_the_pages_fit_a_phone_and_keep_nobody_out(pillarbox: World, browser: Chromium) -> None:
    async with browser.tab() as tab:
        team = await pillarbox.team("Harbor of the very long name that some team has given itself")
        ada = await a_person(team, "ada@harbor.example")
        await a_person(team, "somebody.with.a.very.long.address.indeed@a-long-domain.quay.example")
        await logs_in(tab, pillarbox, ada, "/team/keys")
        await fills(tab, name="a_key_with_the_longest_name_that_a_key_may_have_12")
        await tab.presses("Make the key")
        assert "It is shown only now." in await tab.run(TEXT)
        for path in ("/team", "/team/members", "/team/keys", "/team/audit"):
            await tab.open(pillarbox.url + path)
            await tab.fits(path.strip("/").replace("/", "-"), windows(1100, 360, every=False))
        assert tab.violations == []


async def test_a_key_is_deleted_by_keyboard(pillarbox: World, browser: Chromium) -> None:
    """UI-09: the button that deletes is behind another one."""
    async with browser.tab() as tab:
        ada = await a_person(await pillarbox.team("Harbor"), "ada@harbor.example")
        await logs_in(tab, pillarbox, ada, "/team/keys")
        await tab.run("document.querySelector('main summary').focus()")
        await tab.keys("Enter", "Tab")
        await tab.enters("Enter")
        assert "The key is deleted." in await tab.run(TEXT)
        assert "The team has no API key." in await tab.run(TEXT)
