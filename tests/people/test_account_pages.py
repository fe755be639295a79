"""One's own account: name, password, sessions, and that only one's own forms change it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.clock import ManualClock
from kit.people import (
    PASSWORD,
    SESSION,
    WAITS,
    Person,
    Visit,
    a_person,
    heading,
    logged_in,
    text_of,
    visit,
)
from kit.world import World, world
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import sessions

Place = tuple[str, Path]
NEW = "another nine words nobody has"

FORMS = [
    "/account/name",
    "/account/address",
    "/account/address/withdraw",
    "/account/address/link/nothing",
    "/account/password",
    "/account/sessions/end",
    "/account/sessions/end-all",
    "/account/factor/begin",
    "/account/factor",
    "/account/factor/codes",
    "/account/factor/remove",
    "/account/passkeys/begin",
    "/account/passkeys",
    "/account/passkeys/remove",
    "/confirm/passkey",
    "/confirm/passkey/answer",
]
NEEDS_PROOF = [path for path in FORMS if path.startswith(("/account/f", "/account/pass"))]
NEEDS_PROOF += ["/account/address", "/account/address/link/nothing"]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("account")
    databases.drop(url)


@asynccontextmanager
async def somebody(
    place: Place, name: str, clock: ManualClock | None = None
) -> AsyncIterator[tuple[World, Person, Visit]]:
    async with world(*place, started=False, clock=clock) as box:
        person = await a_person(await box.team(), f"{name}@quay.example")
        yield box, person, await logged_in(box, person)


async def test_a_name_is_saved_as_one_line_of_text(place: Place) -> None:
    async with somebody(place, "ada") as (box, ada, browser):
        await browser.get("/account")
        done = await browser.follow(await browser.post("/account/name", name=" Ada \t <i>Quay</i> "))
        assert "Your name is saved." in text_of(done)
        assert "Ada &lt;i&gt;Quay&lt;/i&gt;" in done.text
        stored = await box.pool.fetchval("SELECT name FROM people WHERE id = $1", ada.id)
        assert stored == "Ada <i>Quay</i>"
        await browser.post("/account/name", name="")
        assert await box.pool.fetchval("SELECT name FROM people WHERE id = $1", ada.id) is None


async def test_who_is_logged_out_meanwhile_changes_nothing(place: Place) -> None:
    """SEC-03: a password that is on its way does not undo the one that has just ended its session."""
    async with somebody(place, "zoe") as (box, zoe, browser):
        await browser.get("/account/password")
        async with transaction(box.pool) as conn:
            await sessions.end_all(conn, zoe.id)
            change = asyncio.create_task(browser.post("/account/password", password=NEW))
            while not change.done() and not await box.pool.fetchval(WAITS):
                pass
        answer = await change
        assert (answer.status_code, "nothing was changed" in text_of(answer)) == (409, True)
        assert (await visit(box).log_in(zoe)).status_code == 303
        acts = await box.pool.fetch("SELECT what FROM audit_entries WHERE person_id = $1", zoe.id)
        assert {row["what"] for row in acts} == {"login.succeeded"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"),
        ("Ada\u202e\x07 Quay", "Ada Quay"),
        ("\u200d \u200c", None),
    ],
    ids=["joined letters", "control characters", "nothing to see"],
)
async def test_a_name_keeps_its_letters_and_nothing_else(place: Place, given: str, kept: str | None) -> None:
    async with somebody(place, f"n{len(given)}") as (box, person, browser):
        await browser.get("/account")
        await browser.post("/account/name", name=given)
        assert await box.pool.fetchval("SELECT name FROM people WHERE id = $1", person.id) == kept


async def test_a_new_password_ends_all_other_sessions(place: Place) -> None:
    """SEC-03: the old cookie is dead after the password changed."""
    async with somebody(place, "bea") as (box, bea, browser):
        other = await logged_in(box, bea)
        before = browser.cookies[SESSION]
        await browser.get("/account/password")
        done = await browser.post("/account/password", password=NEW)
        assert browser.cookies[SESSION] != before
        assert "Your password is changed." in text_of(await browser.follow(done))
        assert (await other.get("/account")).status_code == 303
        stale = visit(box)
        stale.cookies[SESSION] = before
        assert (await stale.get("/account")).status_code == 303
        assert (await visit(box).log_in(bea)).status_code == 403
        assert (await visit(box).log_in(Person(bea.id, bea.email, NEW))).status_code == 303


@pytest.mark.parametrize(
    "password", ["", "short", "x" * 129, "password123", "aaaaaaaaaaaa", "cleo@quay.example"]
)
async def test_a_bad_password_is_refused_and_changes_nothing(place: Place, password: str) -> None:
    name = f"cleo{len(password)}"
    async with somebody(place, name) as (box, cleo, browser):
        await browser.get("/account/password")
        given = password.replace("cleo@", f"{name}@")
        refused = await browser.post("/account/password", password=given)
        assert refused.status_code == 422
        assert 'aria-invalid="true"' in refused.text
        assert (await visit(box).log_in(cleo)).status_code == 303


async def test_sessions_are_listed_and_ended(place: Place) -> None:
    async with somebody(place, "dora") as (box, dora, browser):
        other = await logged_in(box, dora)
        shown = text_of(await browser.get("/account"))
        assert shown.count("this browser") == 1
        assert shown.count("Log out there") == 1
        rows = await box.pool.fetch("SELECT id FROM person_sessions WHERE person_id = $1", dora.id)
        stranger = await a_person(await box.team(), "stranger@quay.example")
        theirs = await logged_in(box, stranger)
        foreign = await box.pool.fetchval("SELECT id FROM person_sessions WHERE person_id = $1", stranger.id)
        for unknown in (foreign, uuid4(), "x", ""):
            assert (await browser.post("/account/sessions/end", id=str(unknown))).status_code == 303
        assert (await theirs.get("/account")).status_code == 200
        assert (await other.get("/account")).status_code == 200
        mine = await browser.get("/account")
        for row in rows:
            if f'value="{row["id"]}"' in mine.text:
                await browser.post("/account/sessions/end", id=str(row["id"]))
        assert (await other.get("/account")).status_code == 303
        assert (await browser.get("/account")).status_code == 200


async def test_logging_out_everywhere_ends_this_session_too(place: Place) -> None:
    async with somebody(place, "elsa") as (box, elsa, browser):
        other = await logged_in(box, elsa)
        await browser.get("/account")
        token = browser.cookies[SESSION]
        done = await browser.post("/account/sessions/end-all")
        assert heading(await browser.follow(done)) == "Log in"
        browser.cookies[SESSION] = token
        for one in (browser, other):
            assert (await one.get("/account")).headers["location"] == "/login?to=/account"
        acts = await box.pool.fetch("SELECT what FROM audit_entries WHERE person_id = $1", elsa.id)
        assert "login.ended_everywhere" in [row["what"] for row in acts]


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_of_another_site_changes_nothing(place: Place, path: str) -> None:
    """UI-06."""
    name = path.replace("/", "-").strip("-")
    async with somebody(place, f"fay-{name}") as (box, fay, browser):
        await browser.get("/account")
        fields = {"name": "Eve", "password": NEW, "code": "123456", "id": "00", "asked": "x", "answer": "{}"}
        before = await everything(box, fay)
        for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}, {}):
            assert (await browser.post(path, headers, **fields)).status_code == 403
        token, browser.csrf = browser.csrf, "x"
        assert (await browser.post(path, **fields)).status_code == 403
        browser.csrf = token
        assert await everything(box, fay) == before


@pytest.mark.parametrize("path", NEEDS_PROOF)
async def test_acts_of_power_ask_who_one_is_after_ten_minutes(place: Place, path: str) -> None:
    clock = ManualClock()
    name = path.replace("/", "-").strip("-")
    async with somebody(place, f"gwen-{name}", clock) as (box, gwen, browser):
        await browser.get("/account")
        clock.advance(601)
        before = await everything(box, gwen)
        asks = await browser.post(path, password=NEW, code="123456", id="00")
        assert asks.status_code == 303
        assert asks.headers["location"].startswith("/confirm?to=/account")
        assert await everything(box, gwen) == before
        await browser.follow(asks)
        back = await browser.post("/confirm", password=PASSWORD, to="/account")
        assert back.headers["location"] == "/account"


async def everything(box: World, person: Person) -> list[Any]:
    """What is stored of the person, but when its sessions were used."""
    rows = await box.pool.fetch("SELECT p::text FROM people p WHERE id = $1", person.id)
    rows += await box.pool.fetch("SELECT hash::text FROM person_sessions WHERE person_id = $1", person.id)
    rows += await box.pool.fetch("SELECT k::text FROM person_passkeys k WHERE person_id = $1", person.id)
    rows += await box.pool.fetch("SELECT c::text FROM person_challenges c WHERE person_id = $1", person.id)
    return [tuple(row) for row in rows]
