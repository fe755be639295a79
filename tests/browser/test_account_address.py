"""Another address to log in with, and forms whose input survives the question who one is: in a browser, by
mouse and keyboard, on a phone, at night."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.browser_forms import fills, logs_in
from kit.people import PASSWORD, a_person
from kit.people_mail import mail_to_people
from kit.world import World, world

HEADING = "document.querySelector('h1').innerText"
TEXT = "document.body.innerText"
PATH = "location.pathname"
FOCUSED = "document.activeElement.id || document.activeElement.innerText"
AGAIN = "It is you. Nothing was done yet: press the button again."
LINK = re.compile(r"http://[^\s]+/account/address/link/[\w-]+")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def ages(here: World) -> None:
    """The last proof of who one is was eleven minutes ago."""
    await here.pool.execute("UPDATE person_sessions SET confirmed_at = confirmed_at - interval '11 minutes'")


async def proves(tab: Tab) -> None:
    """By keyboard: the field has the focus already."""
    assert await tab.run(FOCUSED) == "password"
    await fills(tab, password=PASSWORD)
    await tab.enters("Enter")


async def looks(tab: Tab, name: str, *, every: bool) -> None:
    """Nothing is too wide and axe-core finds no barrier, on a phone and a desk, by day and by night."""
    await tab.fits(name, windows(1100, 320, every=every))


async def test_another_address_is_asked_for_and_taken(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        ada = await a_person(await here.team(), f"{'long' * 12}@{'quay' * 12}.example")
        new = f"{'other' * 10}@{'quay' * 12}.example"
        await logs_in(tab, here, ada, "/account")
        await looks(tab, "account", every=is_thorough)
        await tab.open(f"{here.url}/account/address")
        assert await tab.run(FOCUSED) == "email"
        await looks(tab, "address", every=is_thorough)
        await fills(tab, email=ada.email)
        await tab.enters("Enter")
        assert "You log in with this address already." in await tab.run(TEXT)
        await looks(tab, "address-wrong", every=is_thorough)
        await fills(tab, email=new)
        await tab.presses("Send the link")
        assert "A mail is on its way to the new address." in await tab.run(TEXT)
        await looks(tab, "address-asked", every=is_thorough)
        [link] = [found[0] for mail in await mail_to_people(here) if (found := LINK.search(mail.text))]
        await ages(here)
        await tab.open(link)
        await proves(tab)
        assert await tab.run(HEADING) == "Log in with the new address"
        await looks(tab, "address-link", every=is_thorough)
        await tab.presses("Change the address")
        assert (await tab.run(PATH), new in await tab.run(TEXT)) == ("/account", True)
        await tab.open(link)
        assert await tab.run(HEADING) == "This link does not work"
        await looks(tab, "address-gone", every=is_thorough)
        assert tab.violations == []


async def test_what_was_typed_is_there_again_and_sent_by_keyboard(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """The keyboard is put before the form, not on its button: a key that is held down does nothing."""
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        ada = await a_person(await here.team("Harbor"), "ada@harbor.example")
        await logs_in(tab, here, ada, "/team/members")
        await fills(tab, email="nell@quay.example")
        await tab.run("document.getElementById('role').value = 'viewer'")
        await ages(here)
        await tab.presses("Invite")
        assert (await tab.run(PATH), "What you have typed is kept." in await tab.run(TEXT)) == (
            "/confirm",
            True,
        )
        await looks(tab, "confirm", every=is_thorough)
        await proves(tab)
        assert await tab.run(PATH) == "/team/members"
        assert await tab.run(FOCUSED) == AGAIN
        assert await tab.run("document.getElementById('email').value") == "nell@quay.example"
        assert await tab.run("document.getElementById('role').value") == "viewer"
        await looks(tab, "members-again", every=is_thorough)
        await tab.keys("Enter", "Tab")
        assert await tab.run(FOCUSED) == "email"
        await tab.enters("Enter")
        assert "The invitation is on its way by mail." in await tab.run(TEXT)
        assert tab.violations == []


async def test_a_form_behind_another_button_is_open_again(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        ada = await a_person(team, "ada@harbor.example")
        await a_person(team, "bea@harbor.example")
        await logs_in(tab, here, ada, "/team/keys")
        await ages(here)
        await tab.run("document.querySelector('main summary').focus()")
        await tab.keys("Enter", "Tab")
        await tab.enters("Enter")
        await proves(tab)
        assert (await tab.run(PATH), await tab.run(FOCUSED)) == ("/team/keys", AGAIN)
        await looks(tab, "keys-again", every=is_thorough)
        await tab.keys("Tab")
        await tab.enters("Enter")
        assert "The key is deleted." in await tab.run(TEXT)
        await tab.open(f"{here.url}/team/members")
        await ages(here)
        role = "document.querySelector('main form.inline-form select')"
        await tab.run(f"{role}.value = 'viewer'")
        await tab.submit("main form.inline-form >> nth=0")
        await proves(tab)
        assert (await tab.run(f"{role}.value"), await tab.run(FOCUSED)) == ("viewer", AGAIN)
        await looks(tab, "role-again", every=is_thorough)
        assert tab.violations == []
