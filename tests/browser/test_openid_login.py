"""Logging in at a provider, in a browser: the whole round, between two sites."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.browser import Chromium, Tab, chromium, windows
from kit.browser_forms import fills
from kit.openid_provider import CALLBACK, OpenIdProvider, provider_settings, serving_provider, user
from kit.people import PASSWORD, a_person
from kit.world import World, world
from kit.zone import Zone

HEADING = "document.querySelector('h1').innerText"
BODY = "document.body.innerText"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


@asynccontextmanager
async def opened(
    url: str, folder: Path, browser: Chromium, **settings: str
) -> AsyncIterator[tuple[World, OpenIdProvider, Tab]]:
    """Pillarbox at 127.0.0.1, and a provider that a browser knows as another site."""
    zone = Zone("localhost A 127.0.0.1")
    async with serving_provider(host="localhost") as provider:
        given = {**provider_settings(provider), **settings}
        async with (
            world(url, folder, started=False, zone=zone, **given) as pillarbox,
            browser.tab() as tab,
        ):
            provider.client.redirect_uri = f"{pillarbox.url}{CALLBACK}"
            provider.asks_first = True
            yield pillarbox, provider, tab


async def goes_on(tab: Tab, link: str, path: str) -> None:
    """Follow the link of that text, until the path is shown."""
    await tab.run(f"[...document.links].find(link => link.innerText === {link!r}).click()")
    await tab.arrives(path)


async def looks_right(tab: Tab, name: str) -> None:
    """Look at the page as a phone and a desk show it, one by day and one by night."""
    await tab.fits(f"openid-{name}", windows(1280, 360, every=False))


async def test_a_person_joins_at_the_provider_and_comes_in_by_it(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser) as (pillarbox, provider, tab):
        await a_person(await pillarbox.team(), "ada@quay.example", name="Ada")
        provider.user = user("ada")
        await tab.open(f"{pillarbox.url}/login?to=/account")
        await looks_right(tab, "login")
        await goes_on(tab, "Log in with Quay Login", "/authorize")
        assert await tab.run(HEADING) == "Quay"
        await goes_on(tab, "Go on", "/login/openid/join")
        assert await tab.run(HEADING) == "Is this your account?"
        await looks_right(tab, "join")
        await fills(tab, password=PASSWORD)
        await tab.presses("Join and log in")
        assert await tab.run("location.pathname") == "/account"
        assert "Quay Login logs you in, as ada@quay.example" in await tab.run(BODY)
        await looks_right(tab, "account")
        await tab.presses("Log out")
        await goes_on(tab, "Log in with Quay Login", "/authorize")
        await goes_on(tab, "Go on", "/dashboard")
        await tab.open(f"{pillarbox.url}/account")
        await tab.opens("Remove this way to log in…")
        await tab.presses("Remove it")
        assert "It is removed." in await tab.run(BODY)
        assert tab.violations == []


async def test_the_only_way_in_is_the_first_on_the_page(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with opened(database_url, tmp_path, browser, oidc_only="yes") as (pillarbox, provider, tab):
        await a_person(await pillarbox.team(), "bea@quay.example", password=False)
        provider.user = user("bea")
        await tab.open(f"{pillarbox.url}/login")
        await looks_right(tab, "only")
        await goes_on(tab, "Log in with Quay Login", "/authorize")
        await goes_on(tab, "Go on", "/dashboard")
        await tab.open(f"{pillarbox.url}/confirm?to=/account")
        await looks_right(tab, "confirm")
        await goes_on(tab, "Confirm with Quay Login", "/authorize")
        await goes_on(tab, "Go on", "/account")
        await tab.presses("Log out")
        provider.user = user("cal")
        await goes_on(tab, "Log in with Quay Login", "/authorize")
        await goes_on(tab, "Go on", "/login/openid/callback")
        assert await tab.run(HEADING) == "Quay Login did not log you in"
        await looks_right(tab, "refused")
        assert tab.violations == []
