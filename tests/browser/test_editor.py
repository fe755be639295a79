"""The editor with its script: it saves by itself, shows the mail while it is written, undoes, and says where
somebody else was quicker. Mails of the gallery fit a desktop and a telephone, by day and by night."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Error

from browser.test_screens import CUT, TOO_WIDE
from kit.browser import Chromium, Tab, chromium
from kit.browser_forms import logs_in
from kit.people import a_person
from kit.screens import a_template
from kit.world import Team, world
from pillarbox.documents.gallery import GALLERY

SECONDS = 15.0
SERVICE = ("receipt", "reset", "invitation")
"""Mails of the gallery that nobody can unsubscribe from."""
TYPED = """
(() => {
  const field = document.querySelector("[data-block=heading] input[name=text]");
  field.value = %r;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  window.typedAt = Date.now();
  document.querySelector("[data-preview]").dataset.shown = "";
})()
"""
SHOWN = "Number(document.querySelector('[data-preview]').dataset.shown || 0) - window.typedAt"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def comes(tab: Tab, script: str) -> Any:
    """Return the first value of the script that is true, also where the page gives way to another."""
    value = None
    async with asyncio.timeout(SECONDS):
        while not value:
            try:
                value = await tab.run(script)
            except Error as fault:
                if "navigation" not in fault.message:
                    raise
            await asyncio.sleep(0.02)
    return value


async def heading_of(team: Team, template_id: str) -> str:
    document = (await team.get(f"/templates/{template_id}/document")).json()["document"]
    return str(document["blocks"][0]["text"])


async def test_what_is_typed_is_shown_saved_and_undone(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        template_id = await a_template(team)
        await logs_in(tab, here, await a_person(team, "ada@harbor.example"), "/dashboard")
        await tab.look(1280, is_dark=False)
        await tab.open(f"{here.url}/dashboard/templates/{template_id}")
        before = await heading_of(team, template_id)
        await tab.run(TYPED % "Twelve lanterns")
        assert await comes(tab, f"{SHOWN} > 0 && {SHOWN}") < 5000
        await comes(tab, "document.querySelector('[data-state]').textContent === 'Saved'")
        assert await heading_of(team, template_id) == "Twelve lanterns"
        await tab.run("document.querySelector('[data-undo]').click()")
        value = "document.querySelector('[data-block=heading] input[name=text]').value"
        assert await tab.run(value) == before
        await tab.run("document.querySelector('[data-redo]').click()")
        assert await tab.run(value) == "Twelve lanterns"
        await tab.run(
            "document.querySelector('[data-root] > [data-add] select').value = 'button';"
            "document.querySelector('[data-root] > [data-add] button').click()"
        )
        assert await tab.run("document.querySelectorAll('[data-root] > [data-block=button]').length") == 2
        await comes(tab, "document.querySelector('[data-state]').textContent === 'Saved'")
        of_ben = {"kind": "blocks", "blocks": [{"type": "heading", "text": "Of Ben"}]}
        await team.call("PUT", f"/templates/{template_id}/document", {"document": of_ben})
        await tab.run(TYPED % "Of Ada")
        await comes(tab, "!document.querySelector('[data-conflict]').hidden")
        await tab.run("document.querySelector('[data-take-theirs]').click()")
        await comes(tab, f"{value} === 'Of Ben'")
        assert await heading_of(team, template_id) == "Of Ben"
        assert tab.violations == []


async def test_what_is_typed_survives_a_logout_and_goes_before_a_publication(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        template_id = await a_template(team)
        await logs_in(tab, here, await a_person(team, "ada@harbor.example"), "/dashboard")
        await tab.open(f"{here.url}/dashboard/templates/{template_id}")
        pages = await tab.run("history.length")
        await here.pool.execute("UPDATE person_sessions SET ends_at = ends_at - interval '1 year'")
        await tab.run(TYPED % "Typed while logged out")
        await comes(tab, "document.querySelector('[data-state]').textContent.includes('logged out')")
        await here.pool.execute("UPDATE person_sessions SET ends_at = ends_at + interval '1 year'")
        await comes(tab, "document.querySelector('[data-state]').textContent === 'Saved'")
        assert await heading_of(team, template_id) == "Typed while logged out"
        assert await tab.run("history.length") == pages
        # The button is pressed while the text before is on its way.
        await tab.run(TYPED % "First")
        await tab.run("document.querySelector('[data-head]').requestSubmit()")
        await tab.run(TYPED % "Published")
        await tab.run("document.querySelector('form[action$=publish]').requestSubmit()")
        await comes(tab, "document.body.innerText.includes('mail is made of it from now on')")
        assert await heading_of(team, template_id) == "Published"
        # So is a tab, which shows what is stored.
        await tab.run(TYPED % "Before another tab")
        await tab.run("document.querySelector('.tabs a[href$=versions]').click()")
        await comes(tab, "location.pathname.endsWith('/versions') && document.readyState === 'complete'")
        assert await heading_of(team, template_id) == "Before another tab"
        assert tab.dialogs == []


async def test_an_undo_takes_nothing_with_it(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    """Blocks say their text, what is kept is stored though it was stored before, and a placeholder is put
    somewhere though the field that had the cursor is gone."""
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        template_id = await a_template(team)
        await logs_in(tab, here, await a_person(team, "ada@harbor.example"), "/dashboard")
        await tab.open(f"{here.url}/dashboard/templates/{template_id}")
        state = "document.querySelector('[data-state]').textContent"
        await tab.run(TYPED % "Twelve lanterns")
        await comes(tab, f"{state} === 'Saved'")
        of_ben = {"kind": "blocks", "blocks": [{"type": "heading", "text": "Of Ben"}]}
        await team.call("PUT", f"/templates/{template_id}/document", {"document": of_ben})
        await tab.run(
            "document.querySelector('[data-block=heading] details').open = true;"
            "document.querySelector('[data-block=heading] input[name=text]').focus()"
        )
        await tab.run(TYPED % "Thirteen lanterns")
        assert await tab.run(state) == ""
        await comes(tab, "!document.querySelector('[data-conflict]').hidden")
        await tab.run("document.querySelector('[data-undo]').focus()")
        await tab.run("document.querySelector('[data-undo]').click()")
        said = "document.querySelector('[data-block=heading] [data-excerpt]').textContent"
        assert await tab.run(said) == "Twelve lanterns"
        await tab.run("document.querySelector('[data-keep-mine]').click()")
        await comes(tab, f"{state} === 'Saved'")
        assert await heading_of(team, template_id) == "Twelve lanterns"
        await tab.run(
            "(() => { const list = document.querySelector('[data-insert-list]'); list.value = 'EMAIL';"
            " list.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )
        assert "{{{EMAIL}}}" in await tab.run("document.querySelector('[data-head] [name=subject]').value")
        await comes(tab, f"{state} === 'Saved'")
        assert "{{{EMAIL}}}" in (await team.get(f"/templates/{template_id}")).json()["subject"]


async def gallery(
    database_url: str, tmp_path: Path, browser: Chromium, names: list[str], language: str = "en"
) -> None:
    async with world(database_url, tmp_path, started=False) as here, browser.tab() as tab:
        team = await here.team("Harbor")
        await logs_in(tab, here, await a_person(team, "ada@harbor.example"), "/dashboard")
        await tab.run(f"document.cookie = 'pillarbox-language={language}; path=/'")
        for name in names:
            for width, mode in ((680, "light"), (680, "dark"), (360, "light"), (360, "dark")):
                await tab.look(width, is_dark=mode == "dark")
                await tab.open(f"{here.url}/dashboard/template-gallery/html?name={name}&mode={mode}")
                assert await tab.run("document.body.innerText.length") > 100, name
                way_out = "Abmelden" if language == "de" else "Unsubscribe"
                has_one = await tab.run(f"document.body.innerText.includes('{way_out}')")
                assert has_one is (name not in SERVICE), name
                assert not await tab.run(TOO_WIDE), (name, width)
                assert not await tab.run(CUT), (name, width)


async def test_a_mail_of_the_gallery_fits(database_url: str, tmp_path: Path, browser: Chromium) -> None:
    await gallery(database_url, tmp_path, browser, ["digest"], "de")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de"])
async def test_each_mail_of_the_gallery_fits(
    database_url: str, tmp_path: Path, browser: Chromium, language: str
) -> None:
    await gallery(database_url, tmp_path, browser, list(GALLERY), language)
