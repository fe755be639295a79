"""Letting a program act, in a browser: by mouse and keyboard, on a phone, at night."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.http_outside import Server, answer, serving
from kit.oauth_flow import exchange, parameters, register
from kit.people import PASSWORD, Person, a_person
from kit.program_sites import PNG, RECORDS
from kit.smtp_sink import TlsAuthority
from kit.world import Team, World, world
from kit.zone import Zone

HEADING = "document.querySelector('h1').innerText"
TEXT = "document.body.innerText"
HERE = "location.href"
FOCUSED = "document.activeElement.innerText"
THANKS = answer(b"<h1>Thank you</h1>", "Content-Type: text/html")


@dataclass(slots=True)
class Scene:
    """Somebody at a browser, and a program that waits on this machine for its answer."""

    pillarbox: World
    team: Team
    person: Person
    tab: Tab
    program: Server
    client_id: str

    @property
    def redirect(self) -> str:
        return f"http://127.0.0.1:{self.program.port}/cb"

    async def sends_the_browser(self, **fields: str) -> None:
        """The program opens the browser; the person logs in."""
        query = urlencode(parameters(self.client_id, redirect_uri=self.redirect, **fields))
        await self.tab.open(f"{self.pillarbox.url}/oauth/authorize?{query}")
        assert await self.tab.run(HEADING) == "Log in"
        for name, value in (("email", self.person.email), ("password", PASSWORD)):
            await self.tab.run(f"document.getElementById({name!r}).value = {value!r}")
        await self.tab.presses("Log in")
        assert await self.tab.run(HEADING) == "Let this program act for you?"

    async def answered(self) -> dict[str, str]:
        """What the program was told."""
        here = await self.tab.run(HERE)
        assert here.startswith(f"{self.redirect}?")
        return dict(parse_qsl(urlsplit(here).query))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@asynccontextmanager
async def opened(url: str, folder: Path, browser: Chromium, **fields: object) -> AsyncIterator[Scene]:
    authority = TlsAuthority("logos.quill.example")
    picture = answer(PNG, "Content-Type: image/png")
    async with (
        serving(THANKS) as program,
        serving(picture, tls=authority.server) as logos,
        world(
            url,
            folder,
            started=False,
            zone=Zone(RECORDS),
            trust=authority.trust(),
            https_port=logos.port,
            allow_private="127.0.0.1/32",
        ) as pillarbox,
        browser.tab() as tab,
    ):
        team = await pillarbox.team()
        person = await a_person(team, "ada@quay.example", name="Ada")
        made = await register(pillarbox, redirect_uris=["http://127.0.0.1/cb"], **fields)
        yield Scene(
            pillarbox=pillarbox,
            team=team,
            person=person,
            tab=tab,
            program=program,
            client_id=made["client_id"],
        )


async def test_approving_gives_the_program_its_code(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """OA-10."""
    async with opened(database_url, tmp_path, browser) as scene:
        await scene.sends_the_browser()
        text = await scene.tab.run(TEXT)
        for part in ("Quill", "unverified", "Harbor", f"127.0.0.1:{scene.program.port}"):
            assert part in text
        await scene.tab.presses("Approve")
        assert await scene.tab.run(HEADING) == "Thank you"
        said = await scene.answered()
        assert (said["state"], said["iss"]) == ("k7", scene.pillarbox.url)
        answer = await exchange(scene.pillarbox, scene.client_id, said["code"], redirect_uri=scene.redirect)
        assert answer.status_code == 200, answer.text
        acting = scene.team.using(answer.json()["access_token"])
        assert (await acting.get("/domains")).status_code == 200
        [request] = [one for one in scene.program.requests if b" /cb?" in one]
        assert b"\r\nreferer:" not in request.lower(), "what the browser came from is nobody's business"
        assert scene.tab.violations == []


async def test_denying_tells_the_program_so(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with opened(database_url, tmp_path, browser) as scene:
        await scene.sends_the_browser()
        await scene.tab.presses("Deny")
        said = await scene.answered()
        assert (said["error"], said["state"]) == ("access_denied", "k7")
        assert "code" not in said
        assert (await scene.team.get("/oauth/grants")).json()["data"] == []
        assert scene.tab.violations == []


async def test_it_is_decided_with_the_keyboard(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    async with opened(database_url, tmp_path, browser, scope="emails:send") as scene:
        await scene.sends_the_browser()
        reached = []
        for _ in range(8):
            await scene.tab.keys("Tab")
            reached.append(await scene.tab.run(FOCUSED))
            if reached[-1] == "Approve":
                break
        assert reached[0] == "Skip to the content"
        await scene.tab.enters("Enter")
        assert "code" in await scene.answered()


async def test_a_logo_is_shown_without_asking_its_host(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    """UI-03: the browser loads it from us alone."""
    logo = "https://logos.quill.example/logo.png"
    async with opened(database_url, tmp_path, browser, logo_uri=logo) as scene:
        await scene.sends_the_browser()
        source = await scene.tab.run("document.querySelector('.program img').src")
        assert source.startswith(f"{scene.pillarbox.url}/oauth/authorize/")
        loaded = await scene.tab.run("performance.getEntriesByType('resource').map(one => one.name)")
        assert loaded == [source]
        assert scene.tab.violations == []


async def test_it_fits_a_phone_and_the_night(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    name = "A program with a name that is as long as one that somebody else may give it " + "x" * 100
    async with opened(database_url, tmp_path, browser, client_name=name) as scene:
        await scene.sends_the_browser()
        await scene.tab.fits("consent", windows(1100, 360, every=is_thorough))


async def test_a_request_that_is_wrong_is_a_page(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as scene:
        query = urlencode(parameters(scene.client_id, redirect_uri="https://evil.example/cb"))
        await scene.tab.open(f"{scene.pillarbox.url}/oauth/authorize?{query}")
        assert await scene.tab.run(HEADING) == "The program cannot be let in"
        assert await scene.tab.run("location.origin") == scene.pillarbox.url
        assert await scene.tab.barriers() == []
