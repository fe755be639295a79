"""Screens of emails: what a person sees of mail that was sent and received, and what forms do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.people import a_person, heading, logged_in, text_of
from kit.screens import a_received_email
from kit.world import World, world

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("screens")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with world(*place, started=False) as here:
        yield here


async def test_received_mail_is_listed_and_shown_with_its_verdicts(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@one.example"))
        empty = await ada.get("/dashboard/emails/receiving")
        assert "No received email yet" in text_of(empty)
        email_id = await a_received_email(team)
        listed = await ada.get("/dashboard/emails/receiving")
        assert "Re: Your invoice" in text_of(listed)
        page = await ada.get(f"/dashboard/emails/receiving/{email_id}")
        assert heading(page) == "Re: Your invoice"
        assert "There is no SPF record for" in text_of(page) or "SPF" in text_of(page)
        assert "DMARC" in text_of(page)
        headers = await ada.get(f"/dashboard/emails/receiving/{email_id}?view=headers")
        assert "reply-12@quay.example" in text_of(headers)
        files = await ada.get(f"/dashboard/emails/receiving/{email_id}?view=attachments")
        assert "order.pdf" in text_of(files)


async def test_the_html_of_received_mail_is_cleaned_and_sandboxed(place: Place) -> None:
    async with opened(place) as here:
        team = await here.team("Harbor")
        ada = await logged_in(here, await a_person(team, "ada@two.example"))
        frame = await ada.get(f"/dashboard/emails/receiving/{await a_received_email(team)}/html")
        assert "twelve more" in frame.text
        assert "alert(1)" not in frame.text
        assert "sandbox" in frame.headers["content-security-policy"]


async def test_received_mail_of_another_team_is_not_there(place: Place) -> None:
    async with opened(place) as here:
        team, other = await here.team("Harbor"), await here.team("Quay")
        ben = await logged_in(here, await a_person(other, "ben@three.example"))
        path = f"/dashboard/emails/receiving/{await a_received_email(team)}"
        assert (await ben.get(path)).status_code == 404
        assert (await ben.get(f"{path}/html")).status_code == 404
