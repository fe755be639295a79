"""Many who guess keep nobody out who has the password and a second proof (SEC-03)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.manual_world import clock_of, manual_world
from kit.people import SESSION, Person, Visit, a_person, visit
from kit.world import World
from pillarbox.dashboard.people.device_cookie import DEVICE
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links, logins
from pillarbox.people.known_devices import LASTS, KnownDevices

Place = tuple[str, Path]
WRONG = "not it, not it at all"
HOME, AWAY = "198.51.100.7", "203.0.113.9"


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("devices")
    databases.drop(url)


@asynccontextmanager
async def attacked(place: Place, name: str) -> AsyncIterator[tuple[World, Person, Visit]]:
    """Somebody who has logged in at home and out again, whose account addresses all over the world try."""
    async with manual_world(*place, trusted_proxy="127.0.0.0/8") as pillarbox:
        person = await a_person(await pillarbox.team(), f"{name}@devices.example")
        browser = visit(pillarbox)
        assert await tries(browser, person, person.password, HOME) == 303
        await browser.get("/account")
        assert (await browser.post("/logout")).status_code == 303
        assert SESSION not in browser.cookies
        await guess(pillarbox, person)
        yield pillarbox, person, browser


async def guess(pillarbox: World, person: Person) -> None:
    """Addresses of IPv4 and networks of IPv6, each as often as it may, until nothing is compared any more."""
    seen = []
    for number in range(logins.PER_PERSON // logins.PER_PAIR + 4):
        address = f"10.9.{number}.1" if number % 2 else f"2001:db8:{number:x}::1"
        attacker = visit(pillarbox)
        seen += [await tries(attacker, person, WRONG, address) for _ in range(logins.PER_PAIR)]
    assert seen.count(403) == logins.PER_PERSON, "guessing is bounded for each account"
    assert seen[-1] == 429


async def tries(browser: Visit, person: Person, password: str, address: str) -> int:
    await browser.get("/login")
    headers = {"sec-fetch-site": "same-origin", "x-forwarded-for": address}
    return (await browser.post("/login", headers, email=person.email, password=password)).status_code


async def test_a_browser_that_was_logged_in_before_is_let_in_anywhere(place: Place) -> None:
    async with attacked(place, "ada") as (pillarbox, ada, browser):
        assert await tries(visit(pillarbox), ada, ada.password, AWAY) == 429, "the password alone has to wait"
        assert await tries(browser, ada, ada.password, AWAY) == 303
        await browser.get("/account")
        await browser.post("/logout")
        shared = "10.9.1.1"
        assert await tries(browser, ada, ada.password, shared) == 303, "an address of those who guess"


async def test_a_link_that_was_mailed_lets_a_new_browser_try(place: Place) -> None:
    """The password stays as it is; the link still works for another one."""
    async with attacked(place, "bea") as (pillarbox, bea, _):
        browser = visit(pillarbox)
        assert await tries(browser, bea, bea.password, AWAY) == 429
        async with transaction(pillarbox.pool) as conn:
            now = clock_of(pillarbox).now()
            token = await links.make(conn, now, links.LinkKind.PASSWORD, person_id=bea.id)
        assert (await browser.get(f"/password/reset/{token}")).status_code == 200
        assert await tries(browser, bea, bea.password, AWAY) == 303
        assert (await visit(pillarbox).get(f"/password/reset/{token}")).status_code == 200


async def test_a_passkey_is_not_counted_with_passwords(place: Place) -> None:
    async with attacked(place, "cal") as (pillarbox, _, _):
        browser = visit(pillarbox)
        await browser.get("/login")
        headers = {"sec-fetch-site": "same-origin", "x-forwarded-for": AWAY}
        assert (await browser.post("/login/passkey", headers)).status_code in (200, 409)


async def test_a_known_browser_guesses_five_times(place: Place) -> None:
    """Whoever steals its cookie is bounded too, and keeps no other browser out."""
    async with attacked(place, "dora") as (pillarbox, dora, browser):
        other = visit(pillarbox)
        devices = pillarbox.app.need(KnownDevices)
        other.cookies[DEVICE] = devices.token(clock_of(pillarbox).now(), dora.id, uuid4())
        seen = [await tries(browser, dora, WRONG, f"10.8.{number}.1") for number in range(7)]
        assert seen == [403] * logins.PER_PAIR + [429] * 2
        assert await tries(other, dora, dora.password, AWAY) == 303


async def test_a_cookie_of_somebody_else_or_none_of_ours_counts_for_nothing(place: Place) -> None:
    async with attacked(place, "eva") as (pillarbox, eva, browser):
        devices, now = pillarbox.app.need(KnownDevices), clock_of(pillarbox).now()
        mallory = await a_person(await pillarbox.team(), "mallory@devices.example")
        stolen = browser.cookies[DEVICE]
        for cookie in (
            devices.token(now, mallory.id, uuid4()),
            devices.token(now - LASTS, eva.id, uuid4()),
            *(stolen[:-6] + "AAAA==", "x", "=" * 40, "A" * 5000),
        ):
            foreign = visit(pillarbox)
            foreign.cookies[DEVICE] = cookie
            assert await tries(foreign, eva, eva.password, AWAY) == 429, cookie[:40]


async def test_who_has_a_session_proves_again_who_they_are(place: Place) -> None:
    """What others try does not keep anybody from acts that ask for the password."""
    async with attacked(place, "fay") as (pillarbox, fay, browser):
        assert await tries(browser, fay, fay.password, AWAY) == 303
        await guess_again(pillarbox, fay)
        await browser.get("/confirm")
        headers = {"sec-fetch-site": "same-origin", "x-forwarded-for": "10.9.1.1"}
        assert (await browser.post("/confirm", headers, password=fay.password)).status_code == 303


async def guess_again(pillarbox: World, person: Person) -> None:
    for _ in range(logins.PER_PAIR):
        await tries(visit(pillarbox), person, WRONG, "10.9.1.1")
