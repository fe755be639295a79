"""Setting up, logging in and out in a browser: by mouse and keyboard, on a phone, at night."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.browser_forms import fills
from kit.people import PASSWORD, Person, a_person
from kit.seed_data import CAPTURE_TOKEN
from kit.world import World, world
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links

HEADING = "document.querySelector('h1').innerText"
PROBLEM = "document.querySelector('[role=alert]')?.innerText || ''"
SAID = "document.querySelector('[role=status]').innerText"
PATH = "location.pathname"
FOCUSED = "document.activeElement.id || document.activeElement.innerText"
COOKIES = "document.cookie"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@asynccontextmanager
async def opened(url: str, folder: Path, browser: Chromium) -> AsyncIterator[tuple[World, Tab]]:
    async with world(url, folder, started=False) as pillarbox, browser.tab() as tab:
        yield pillarbox, tab


async def logs_in(tab: Tab, pillarbox: World, person: Person, password: str = PASSWORD) -> None:
    await tab.open(f"{pillarbox.url}/login")
    await fills(tab, email=person.email, password=password)
    await tab.presses("Log in")


async def first_link(pillarbox: World) -> str:
    """What the first start prints."""
    team = await pillarbox.team("My team", email="admin@localhost")
    async with transaction(pillarbox.pool) as conn:
        token = await links.make(conn, pillarbox.app.need(Ids).now(), links.LinkKind.SET_UP, team_id=team.id)
    return f"{pillarbox.url}/set-up/{token}"


async def test_the_owner_sets_up_an_account_logs_out_and_in(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (pillarbox, tab):
        link = await first_link(pillarbox)
        await tab.open(link)
        await fills(tab, email="ada@quay.example", name="Ada", password="password123")
        await tab.presses("Set up and log in")
        assert "Too many people use this one" in await tab.run("document.body.innerText")
        await fills(tab, password=PASSWORD)
        await tab.presses("Set up and log in")
        assert await tab.run(HEADING) == "Overview"
        assert set(re.findall(r"([^=; ]+)=", await tab.run(COOKIES))) <= {"pillarbox-zone"}
        await tab.presses("Log out")
        assert await tab.run(HEADING) == "Log in"
        await fills(tab, email="ADA@quay.example", password=PASSWORD)
        await tab.presses("Log in")
        assert await tab.run(PATH) == "/dashboard"
        assert "My team" in await tab.run("document.body.innerText")
        await tab.presses("Log out")
        await tab.open(link)
        assert await tab.run(HEADING) == "This link does not work any more"
        assert tab.violations == []


async def test_after_five_wrong_passwords_the_browser_is_told_to_wait(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (pillarbox, tab):
        ada = await a_person(await pillarbox.team(), "ada@quay.example")
        for _ in range(5):
            await logs_in(tab, pillarbox, ada, "a lighthouse in the fog")
            assert await tab.run(PROBLEM) == "The address or the password is wrong."
            assert await tab.run(FOCUSED) == "password"
        await logs_in(tab, pillarbox, ada)
        assert (await tab.run(PROBLEM)).startswith("Too many tries.")
        assert await tab.run(PATH) == "/login"


async def test_a_lost_password_is_changed_by_the_link_of_the_captured_mail(
    running: World, browser: Chromium
) -> None:
    async with browser.tab() as tab:
        ada = await a_person(await running.team(), "ada@quay.example")
        await tab.open(f"{running.url}/login")
        await tab.open(f"{running.url}/password/lost")
        await fills(tab, email=ada.email)
        await tab.presses("Send the link")
        assert await tab.run(HEADING) == "Look into your mailbox"
        link = await link_in_capture(running, ada.email)
        await tab.open(link)
        await fills(tab, password="a lighthouse in the fog")
        await tab.presses("Change the password")
        assert "Your password is changed." in await tab.run(
            "document.querySelector('[role=status]').innerText"
        )
        await logs_in(tab, running, ada, "a lighthouse in the fog")
        assert await tab.run(HEADING) == "Overview"
        assert tab.violations == []


async def link_in_capture(pillarbox: World, email: str) -> str:
    """The link of the mail to this address, from the capture view, when it is there."""
    client = pillarbox.client(CAPTURE_TOKEN)
    answer = await client.get("/capture.json", params={"to": email, "wait": "20"})
    [mail] = answer.json()["data"]
    [link] = re.findall(r"http\S+/password/reset/\S+", (await client.get(f"/capture.json/{mail['id']}")).text)
    return str(link).partition("\\")[0].partition('"')[0]


async def test_the_login_is_done_with_the_keyboard(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (pillarbox, tab):
        ada = await a_person(await pillarbox.team(), "ada@quay.example")
        await tab.open(f"{pillarbox.url}/login?to=/account/password")
        assert await tab.run(FOCUSED) == "email"
        reached = []
        await fills(tab, email=ada.email, password=PASSWORD)
        for _ in range(4):
            await tab.keys("Tab")
            reached.append(await tab.run(FOCUSED))
        assert reached == ["password", "Log in", "Log in with a passkey", "I have lost my password"]
        outline = await tab.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        await tab.keys("Shift+Tab", "Shift+Tab")
        await tab.enters("Enter")
        assert await tab.run(PATH) == "/account/password"


async def test_pages_fit_a_telephone_and_keep_nobody_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """axe-core finds no barrier, by day and by night, on a telephone and on a desk."""
    seen = windows(1100, 320, every=is_thorough)
    async with opened(database_url, tmp_path, browser) as (pillarbox, tab):
        link = await first_link(pillarbox)
        ada = await a_person(await pillarbox.team(), f"{'long' * 12}@{'quay' * 12}.example")
        for path in ("/login", "/password/lost", link.removeprefix(pillarbox.url), "/set-up/nothing"):
            await tab.open(pillarbox.url + path)
            await tab.fits(f"people-{path.split('/')[1]}", seen)
        await logs_in(tab, pillarbox, ada, "a lighthouse in the fog")
        await tab.fits("people-login-wrong", seen)
        await logs_in(tab, pillarbox, ada)
        for path in ("/account", "/confirm"):
            await tab.open(pillarbox.url + path)
            await tab.fits(f"people-{path.split('/')[1]}", seen)
