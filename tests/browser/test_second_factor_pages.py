"""The second factor, passkeys and sessions in a browser, with an authenticator that DevTools plays."""

from __future__ import annotations

from base64 import b32decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.clock import ManualClock
from kit.people import PASSWORD, Person, a_person, logged_in
from kit.world import World, world
from pillarbox.people.factors.totp import STEP_SECONDS, code_of, step_at

HEADING = "document.querySelector('h1').innerText"
BODY = "document.body.innerText"
PATH = "location.pathname"
STATUS = "document.querySelector('[role=status]')?.innerText || ''"
PROBLEM = "document.querySelector('[role=alert]')?.innerText || ''"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@dataclass(slots=True)
class Somebody:
    """A person at a browser, which calls the machine itself localhost."""

    world: World
    clock: ManualClock
    person: Person
    tab: Tab
    seed: bytes = b""

    @property
    def url(self) -> str:
        return self.world.url.replace("127.0.0.1", "localhost")

    async def fills(self, **fields: str) -> None:
        for name, value in fields.items():
            await self.tab.run(f"document.getElementById({name!r}).value = {value!r}")

    async def logs_in(self) -> None:
        await self.tab.open(f"{self.url}/login")
        await self.fills(email=self.person.email, password=PASSWORD)
        await self.tab.presses("Log in")

    def code(self) -> str:
        """What the app shows now."""
        return code_of(self.seed, step_at(self.clock.now()))

    async def turns_on(self) -> list[str]:
        """Set up a second factor; the recovery codes."""
        await self.tab.presses("Set up a second factor")
        shown = await self.tab.run("document.getElementById('seed').innerText")
        self.seed = b32decode(shown.replace(" ", ""))
        await self.fills(code=self.code())
        await self.tab.presses("Turn it on")
        return (await self.tab.run("document.querySelector('.codes').innerText")).split()

    async def adds_passkey(self, name: str) -> None:
        await self.tab.presses("Add a passkey")
        await self.fills(name=name)
        await self.tab.presses("Make the passkey")
        await self.tab.arrives("/account")


@asynccontextmanager
async def somebody(url: str, folder: Path, browser: Chromium) -> AsyncIterator[Somebody]:
    """Who has logged in by password."""
    clock = ManualClock()
    async with world(url, folder, started=False, clock=clock) as box, browser.tab() as tab:
        person = await a_person(await box.team(), "ada@quay.example", name="Ada")
        ada = Somebody(box, clock, person, tab)
        await ada.logs_in()
        await tab.open(f"{ada.url}/account")
        yield ada


async def test_a_second_factor_is_set_up_and_asked_for(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """SEC-02."""
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        codes = await ada.turns_on()
        assert len(codes) == 10
        assert await tab.run(HEADING) == "Your recovery codes"
        await tab.open(f"{ada.url}/account")
        assert "Recovery codes left: 10" in await tab.run(BODY)
        await tab.presses("Log out")
        await ada.logs_in()
        assert await tab.run(PATH) == "/login/factor"
        await ada.fills(code="000000")
        await tab.presses("Log in")
        assert "The code is wrong" in await tab.run(PROBLEM)
        ada.clock.advance(STEP_SECONDS)
        await ada.fills(code=ada.code())
        await tab.presses("Log in")
        assert await tab.run(PATH) == "/dashboard"
        await tab.presses("Log out")
        await ada.logs_in()
        await ada.fills(code=codes[0])
        await tab.presses("Log in")
        assert "You have used a recovery code" in await tab.run(STATUS)
        assert tab.violations == []


@pytest.mark.slow
async def test_the_picture_for_the_phone_is_drawn(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with somebody(database_url, tmp_path, browser) as ada:
        await ada.tab.presses("Set up a second factor")
        width = await ada.tab.run("document.querySelector('img.qr').naturalWidth")
        assert width > 150
        assert ada.tab.violations == []


async def test_a_passkey_is_made_logs_in_confirms_and_is_removed(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """SEC-02."""
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        await tab.has_passkeys()
        await ada.adds_passkey("Ada's laptop")
        assert await tab.run(STATUS) == "The passkey is added."
        assert "Ada's laptop" in await tab.run(BODY)
        (kept,) = await tab.passkeys()
        assert kept["rpId"] == "localhost"
        assert kept["isResidentCredential"] is True
        await tab.presses("Log out")
        await tab.presses("Log in with a passkey")
        await tab.arrives("/dashboard")
        assert "Ada" in await tab.run(BODY)
        ada.clock.advance(601)
        await tab.open(f"{ada.url}/account/password")
        assert await tab.run(HEADING) == "Is it you?"
        await tab.presses("Confirm with a passkey")
        await tab.arrives("/account/password")
        await tab.open(f"{ada.url}/account")
        await tab.opens("Remove the passkey Ada's laptop")
        await tab.presses("Remove it")
        assert await tab.run(STATUS) == "The passkey is removed."
        await tab.presses("Log out")
        await tab.presses("Log in with a passkey")
        await tab.arrives("/login/passkey/answer")
        assert "The passkey is not known here" in await tab.run(BODY)
        assert tab.violations == []


async def test_a_passkey_stands_for_password_and_code(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        await tab.has_passkeys()
        await ada.adds_passkey("Laptop")
        await ada.turns_on()
        await tab.open(f"{ada.url}/account")
        await tab.presses("Log out")
        await ada.logs_in()
        assert await tab.run(PATH) == "/login/factor"
        await tab.presses("Log in with a passkey")
        await tab.arrives("/dashboard")
        assert tab.violations == []


@pytest.mark.slow
async def test_a_device_that_has_a_passkey_makes_no_second_one(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        await tab.has_passkeys()
        await ada.adds_passkey("Laptop")
        await tab.presses("Add a passkey")
        await tab.run(
            "new Promise(done => { const s = document.querySelector('[role=status]');"
            " new MutationObserver(() => s.innerText.includes('already') && done())"
            ".observe(s, {childList: true}); document.querySelector('button.main').click() })"
        )
        assert "has a passkey of your account already" in await tab.run(STATUS)
        assert len(await tab.passkeys()) == 1


@pytest.mark.slow
async def test_at_the_address_of_the_machine_the_page_says_where_passkeys_work(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        await tab.has_passkeys()
        await tab.open(f"{ada.world.url}/login")
        await tab.presses("Log in with a passkey")
        await tab.run(
            "new Promise(done => { const s = document.querySelector('[role=status]');"
            " const look = () => s.innerText.includes('localhost') && done(); look();"
            " new MutationObserver(look).observe(s, {childList: true}) })"
        )
        assert f"work under {ada.url} alone" in await tab.run(STATUS)


async def test_logging_out_everywhere(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        other = await logged_in(ada.world, ada.person)
        await tab.open(f"{ada.url}/account")
        await tab.opens("Log out everywhere…")
        await tab.presses("Log out now")
        assert await tab.run(HEADING) == "Log in"
        assert (await other.get("/account")).status_code == 303
        await tab.open(f"{ada.url}/account")
        assert await tab.run(PATH) == "/login"


async def test_nothing_keeps_people_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    """WCAG 2.1 AA, and pages no wider than the window."""
    async with somebody(database_url, tmp_path, browser) as ada:
        tab = ada.tab
        await tab.has_passkeys()

        async def is_open_to_all(name: str) -> None:
            await tab.fits(f"factor-{name}", windows(1100, 360, every=is_thorough))

        await tab.presses("Add a passkey")
        await is_open_to_all("passkey")
        await ada.fills(name="Averyveryveryveryveryveryveryverylongnamewithoutanyspaceinit")
        await tab.presses("Make the passkey")
        await tab.arrives("/account")
        await is_open_to_all("account")
        await tab.presses("Set up a second factor")
        await is_open_to_all("enrolment")
        await ada.fills(code="1")
        await tab.presses("Turn it on")
        await is_open_to_all("enrolment-wrong")
        await tab.open(f"{ada.url}/account")
        await ada.turns_on()
        await is_open_to_all("codes")
        await tab.open(f"{ada.url}/account/password")
        await is_open_to_all("password")
        await tab.open(f"{ada.url}/account")
        await is_open_to_all("account-factor")
        await tab.run("document.getElementById('menu').checked = true")
        await tab.presses("Log out")
        await ada.logs_in()
        await is_open_to_all("factor")
        assert tab.violations == []
