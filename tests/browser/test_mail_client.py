"""The mail client in a browser: mail appears by itself, and is read, answered and archived by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.test_editor import comes
from kit.browser import Chromium, chromium, windows
from kit.browser_forms import logs_in
from kit.inbox_mail import inbox_mail
from kit.people import a_person

HELP = "help@harbor.example"
HTML = (
    '<p>Do they <b>shine</b>?</p><img src="https://elsewhere.example/pixel.png"><script>alert(1)</script>'
    "<img src=x onerror=alert(2)><blockquote>Twelve lanterns are on their way.</blockquote>"
)
ROW = "document.querySelector('.threads a.row')"
MESSAGES = "document.querySelector('#messages').textContent"
SECONDS = 15.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found


async def test_mail_arrives_is_read_answered_and_archived(
    database_url: str, tmp_path: Path, browser: Chromium
) -> None:
    async with inbox_mail(database_url, tmp_path) as mail, browser.tab() as tab:
        inbox = await mail.inbox(HELP, name="Help desk", from_name="Mina")
        here = f"/dashboard/inboxes/{inbox}"
        await logs_in(tab, mail.team.world, await a_person(mail.team, "ada@harbor.example"), here)
        await tab.look(1280, is_dark=False)
        assert await tab.run(ROW) is None
        headers = ["MIME-Version: 1.0", "Content-Type: text/html; charset=utf-8"]
        await mail.brings(HELP, subject="Lanterns", message_id="<a@x>", headers=headers, text=HTML)
        await comes(tab, f"{ROW} && {ROW}.textContent.includes('Lanterns')")
        [thread] = await mail.threads(inbox)
        page = f"{here}/threads/{thread['id']}"

        await tab.keys("j")
        await tab.enters("Enter")
        await tab.arrives(page)
        async with asyncio.timeout(SECONDS):
            while not (await mail.threads(inbox))[0]["read"]:
                await asyncio.sleep(0.02)
        await tab.rest()
        await tab.fits("mail-client-conversation", windows(1280, 360, every=True))

        await tab.enters("r")
        text = "document.getElementById('text')"
        assert "> Do they shine?" in await tab.run(f"{text}.value")
        await tab.run(f"{text}.value = 'They do.' + {text}.value")
        await tab.presses("Send")
        await tab.arrives(page)
        assert "They do." in await tab.run(MESSAGES)
        await mail.brings(HELP, subject="Re: Lanterns", answers="<a@x>", message_id="<b@x>", text="Lovely!")
        await comes(tab, f"{MESSAGES}.includes('Lovely!')")
        await tab.fits("mail-client-answered", windows(1280, 360, every=True))

        await tab.enters("e")
        await tab.arrives(here)
        assert (await mail.team.get(f"/inboxes/{inbox}/threads/{thread['id']}")).json()["folder"] == "archive"
        assert await tab.run(ROW) is None
        await tab.keys("/")
        assert await tab.run("document.activeElement.name") == "q"
        await tab.rest()
        assert tab.violations == []
        assert tab.dialogs == []
