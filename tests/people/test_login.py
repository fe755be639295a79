"""Logging in and out by password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.people import HASHED, SESSION, WAITS, Person, a_person, heading, logged_in, text_of, visit
from kit.world import World, world
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts, sessions
from pillarbox.people.sessions import SessionStage

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
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
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


@pytest.mark.parametrize("change", ["password", "address", "factor", "disabled"])
async def test_what_changes_while_a_password_is_compared_counts(place: Place, change: str) -> None:
    """SEC-03: a login that was on its way outlives neither the old password nor the lack of a factor."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        cleo = await a_person(team, f"{change}.cleo@quay.example")
        browser, at = visit(pillarbox), pillarbox.app.need(Ids).now()
        async with transaction(pillarbox.pool) as conn:
            if change == "password":
                await accounts.set_password(conn, at, cleo.id, HASHED)
            elif change == "disabled":
                await accounts.disable(conn, at, cleo.id)
            elif change == "address":
                await accounts.set_address(conn, cleo.id, email_address("moved.cleo@quay.example"))
            else:
                await conn.execute(
                    "UPDATE people SET totp = 'seed', totp_confirmed_at = $2 WHERE id = $1", cleo.id, at
                )
                await sessions.end_all(conn, cleo.id)
            login = asyncio.create_task(browser.log_in(cleo))
            while not login.done() and not await pillarbox.pool.fetchval(WAITS):
                pass
        answer = await login
        if change == "factor":
            assert answer.headers["location"] == "/login/factor"
        else:
            assert answer.status_code == 403
        if change == "disabled":
            await accounts.enable(pillarbox.pool, cleo.id)
        assert (await browser.get("/account")).headers["location"] == "/login?to=/account"


async def test_whoever_has_logged_in_does_not_see_the_login_again(place: Place) -> None:
    async with opened(place) as pillarbox:
        cal = await somebody(pillarbox, "cal")
        browser = await logged_in(pillarbox, cal)
        assert (await browser.get("/login")).headers["location"] == "/dashboard"
        assert (await browser.get("/")).headers["location"] == "/dashboard"
        assert (await visit(pillarbox).get("/")).headers["location"] == "/login"


async def test_a_person_has_so_many_sessions_and_the_oldest_end(place: Place) -> None:
    async with opened(place) as pillarbox:
        eve, other = await somebody(pillarbox, "eve"), await somebody(pillarbox, "other")
        ids, at, nowhere = pillarbox.app.need(Ids), pillarbox.clock.now(), sessions.SessionOrigin(None, None)
        mine, tokens = await logged_in(pillarbox, other), list[str]()
        most, waiting = sessions.MOST[SessionStage.FULL], sessions.MOST[SessionStage.PENDING]
        async with transaction(pillarbox.pool) as conn:

            async def begun(second: int, stage: SessionStage) -> str:
                when = at + timedelta(seconds=second)
                token = await sessions.begin(
                    conn, when, ids.new(), eve.id, ["password"], nowhere, stage=stage
                )
                assert token is not None
                return token

            tokens = [await begun(second, SessionStage.FULL) for second in range(most + 5)]
            pending = [await begun(second, SessionStage.PENDING) for second in range(waiting + 5)]
            # A clock that was set back does not end the session that has just begun.
            tokens += [await begun(-60, SessionStage.FULL)]
            renewed = await sessions.renew(conn, at, sessions.token_hash(pending[-1]), ["password", "code"])
            assert renewed is not None
            left = [t for t in tokens if await sessions.find(conn, at, t) is not None]
            assert left == tokens[6 : most + 5]
            assert [t for t in pending if await sessions.find(conn, at, t) is not None] == pending[5:-1]
            assert await sessions.find(conn, at, renewed) is not None
        assert (await mine.get("/account")).status_code == 200
