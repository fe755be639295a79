"""Logging in and out by password."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.people import SESSION, Person, a_person, heading, logged_in, text_of, visit
from kit.world import World, world

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("login")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with world(*place, started=False) as pillarbox:
        yield pillarbox


async def somebody(pillarbox: World, name: str) -> Person:
    return await a_person(await pillarbox.team(), f"{name}@quay.example")


async def test_a_person_logs_in_comes_to_its_account_and_logs_out(place: Place) -> None:
    async with opened(place) as pillarbox:
        ada = await somebody(pillarbox, "ada")
        browser = visit(pillarbox)
        answer = await browser.log_in(ada)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account")
        token = browser.cookies[SESSION]
        account = await browser.get("/account")
        assert heading(account) == "Your account"
        assert ada.email in text_of(account)
        left = await browser.post("/logout")
        assert left.headers["location"] == "/login?done=logout"
        assert SESSION not in browser.cookies
        browser.cookies[SESSION] = token
        assert (await browser.get("/account")).headers["location"] == "/login?to=/account"


async def test_a_wrong_password_is_said_and_leaves_no_session(place: Place) -> None:
    async with opened(place) as pillarbox:
        bea = await somebody(pillarbox, "bea")
        browser = visit(pillarbox)
        answer = await browser.send("/login", email=bea.email, password="not this one at all")
        assert answer.status_code == 403
        assert "The address or the password is wrong." in text_of(answer)
        assert SESSION not in browser.cookies
        assert bea.email in answer.text


async def test_whoever_has_logged_in_does_not_see_the_login_again(place: Place) -> None:
    async with opened(place) as pillarbox:
        cal = await somebody(pillarbox, "cal")
        browser = await logged_in(pillarbox, cal)
        assert (await browser.get("/login")).headers["location"] == "/account"
        assert (await browser.get("/")).headers["location"] == "/account"
        assert (await visit(pillarbox).get("/")).headers["location"] == "/login"
