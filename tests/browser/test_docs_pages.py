"""The documentation in a browser: wide and narrow, light and dark; its filter, and the form of a request.

With PILLARBOX_PICTURES=<folder> the pages are kept as pictures there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.test_screens import look_at, sizes
from kit.browser import Chromium, chromium
from kit.browser_forms import logs_in
from kit.people import a_person
from kit.world import world

pytestmark = pytest.mark.sweep

PAGES = (
    *("/docs", "/docs/search?q=bounce", "/docs/browser", "/docs/api/post-emails"),
    *("/docs/api/get-emails-metrics", "/docs/api/webhook-email-bounced", "/docs/api/post-automations"),
    *("/docs/guide/index", "/docs/guide/settings", "/docs/guide/monitoring", "/docs/guide/webhooks"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def test_the_pages_fit_and_keep_nobody_out(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        for number, path in enumerate(PAGES):
            name = path.strip("/").replace("/", "-").partition("?")[0]
            await look_at(tab, here.url + path, name, sizes(number, every=is_thorough))
        await tab.rest()
        assert tab.violations == []
        assert tab.dialogs == []


async def test_the_index_is_filtered_while_one_types(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    shown = "[...document.querySelectorAll('#operations [data-entry]')].filter((e) => e.offsetParent).length"
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        await tab.open(f"{here.url}/docs")
        everything = await tab.run(shown)
        assert everything > 100
        await tab.run("document.getElementById('narrow').focus()")
        await tab.keys(*"cancel")
        assert 0 < await tab.run(shown) < 5
        assert not await tab.run("!!document.getElementById('webhooks').offsetParent")
        await tab.enters("Enter")
        assert await tab.run("location.pathname + location.search") == "/docs/search?q=cancel"
        assert tab.violations == []


async def test_a_request_is_filled_in_and_sent(
    database_url: str, tmp_path: Path, browser: Chromium, is_thorough: bool
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        ada = await a_person(team, "ada@harbor.example")
        await logs_in(tab, here, ada, "/dashboard/request?operation=post-emails")
        await look_at(
            tab,
            f"{here.url}/dashboard/request?operation=post-emails",
            "request-post-emails",
            sizes(0, every=is_thorough),
        )
        await look_at(tab, f"{here.url}/dashboard/request", "request", sizes(1, every=is_thorough))
        await tab.open(f"{here.url}/docs/api/post-emails")
        await tab.run("document.querySelector('.tools a').click()")
        await tab.arrives("/dashboard/request")
        await tab.switches("This changes data of the team Harbor. Send it.")
        await tab.presses("Send")
        assert "200" in await tab.run("document.getElementById('answer').innerText")
        await look_at(
            tab,
            f"{here.url}/dashboard/request?operation=get-emails-metrics",
            "request-metrics",
            sizes(2, every=is_thorough),
        )
        assert tab.violations == []
        assert tab.dialogs == []
