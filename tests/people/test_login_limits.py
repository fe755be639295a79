"""Who guesses passwords is slowed, and nobody is locked out by others (SEC-03)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from kit.manual_world import clock_of, manual_world
from kit.people import SESSION, Person, Visit, a_person, text_of, visit
from kit.world import World
from pillarbox.people import logins, passwords

Place = tuple[str, Path]
PROXY = "127.0.0.0/8"
WRONG = "The address or the password is wrong."
WAIT = "Too many tries."


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("limits")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with manual_world(*place, trusted_proxy=PROXY) as pillarbox:
        yield pillarbox


async def somebody(pillarbox: World, name: str) -> Person:
    return await a_person(await pillarbox.team(), f"{name}@limits.example")


async def tries(browser: Visit, email: str, password: str, address: str = "192.0.2.1") -> Any:
    """The answer to a try from this address."""
    await browser.get("/login")
    headers = {"sec-fetch-site": "same-origin", "x-forwarded-for": address}
    return await browser.post("/login", headers, email=email, password=password)


async def test_after_five_wrong_passwords_the_right_one_has_to_wait(place: Place) -> None:
    """SEC-03: the sixth try is not compared; after a while the right password works."""
    async with opened(place) as pillarbox:
        ada = await somebody(pillarbox, "ada")
        browser = visit(pillarbox)
        for _ in range(logins.PER_PAIR):
            answer = await tries(browser, ada.email, "not it, not it at all")
            assert (answer.status_code, WRONG in text_of(answer)) == (403, True)
        answer = await tries(browser, ada.email, ada.password)
        assert (answer.status_code, WAIT in text_of(answer)) == (429, True)
        assert 0 < int(answer.headers["retry-after"]) <= logins.WINDOW
        assert SESSION not in browser.cookies
        clock_of(pillarbox).advance(logins.WINDOW + 1)
        assert (await tries(browser, ada.email, ada.password)).status_code == 303


async def test_wrong_passwords_elsewhere_do_not_lock_somebody_out(place: Place) -> None:
    """SEC-03: from an address where the person has a session, nothing that others try counts."""
    async with opened(place) as pillarbox:
        bea = await somebody(pillarbox, "bea")
        home, attacker = visit(pillarbox), visit(pillarbox)
        assert (await tries(home, bea.email, bea.password, "198.51.100.7")).status_code == 303
        for number in range(logins.PER_PERSON):
            await tries(attacker, bea.email, "not it, not it at all", f"10.1.{number}.1")
        refused = await tries(attacker, bea.email, bea.password, "10.2.0.1")
        assert refused.status_code == 429
        again = visit(pillarbox)
        assert (await tries(again, bea.email, bea.password, "198.51.100.7")).status_code == 303


async def test_one_place_alone_does_not_use_up_the_tries_of_others(place: Place) -> None:
    """SEC-03: what is not compared counts for nobody, so a new browser elsewhere gets in."""
    async with opened(place) as pillarbox:
        eva = await somebody(pillarbox, "eva")
        attacker = visit(pillarbox)
        for _ in range(logins.PER_PERSON):
            await tries(attacker, eva.email, "not it, not it at all", "10.7.0.1")
        assert (await tries(attacker, eva.email, eva.password, "10.7.0.1")).status_code == 429
        assert (await tries(attacker, "x@limits.example", "not it at all", "10.7.0.1")).status_code == 403
        assert (await tries(visit(pillarbox), eva.email, eva.password, "198.51.100.9")).status_code == 303


async def test_what_a_busy_machine_did_not_compare_does_not_count(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(place) as pillarbox:
        fey = await somebody(pillarbox, "fey")
        browser = visit(pillarbox)
        with monkeypatch.context() as patched:
            patched.setattr(passwords, "MOST_WAITING", 0)
            for _ in range(logins.PER_PAIR):
                answer = await tries(browser, fey.email, fey.password, "192.0.2.40")
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert (await tries(browser, fey.email, fey.password, "192.0.2.40")).status_code == 303


async def test_who_tries_many_people_from_one_address_has_to_wait(place: Place) -> None:
    """SEC-03: an address of the network has a limit of its own; a /64 of IPv6 counts as one."""
    async with opened(place) as pillarbox:
        browser = visit(pillarbox)
        found = []
        for number in range(logins.PER_NETWORK + 1):
            address = f"2001:db8:7::{number:x}"
            answer = await tries(browser, f"p{number}@limits.example", "not it at all", address)
            found.append(answer.status_code)
        assert found == [403] * logins.PER_NETWORK + [429]
        elsewhere = await tries(browser, "p1@limits.example", "not it at all", "2001:db8:8::1")
        assert elsewhere.status_code == 403


async def test_right_passwords_are_not_counted(place: Place) -> None:
    async with opened(place) as pillarbox:
        cal = await somebody(pillarbox, "cal")
        for _ in range(2 * logins.PER_PAIR):
            answer = await tries(visit(pillarbox), cal.email, cal.password, "192.0.2.30")
            assert answer.status_code == 303


async def test_nobody_finds_out_who_has_an_account(place: Place) -> None:
    """SEC-03: of somebody, nobody, somebody disabled and somebody without a password the answers are the
    same, limits included, and the work is the same."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        known = await a_person(team, "dora@limits.example")
        without = await a_person(team, "emil@limits.example", password=False)
        disabled = await a_person(team, "fay@limits.example")
        await pillarbox.pool.execute("UPDATE people SET disabled_at = now() WHERE id = $1", disabled.id)
        emails = [known.email, without.email, disabled.email, "gus@limits.example", "no address"]
        pages: dict[str, list[object]] = {email: [] for email in emails}
        seconds: dict[str, list[float]] = {email: [] for email in emails}
        browser = visit(pillarbox)
        for _ in range(logins.PER_PAIR + 1):
            for number, email in enumerate(emails):
                # The work of this process: whatever else runs on the machine does not count.
                started = time.process_time()
                answer = await tries(browser, email, "not it, not it at all", f"192.0.2.{100 + number}")
                seconds[email].append(time.process_time() - started)
                shown = text_of(answer), sorted(set(answer.headers) - {"date"})
                pages[email].append((answer.status_code, *shown))
        first, *others = pages.values()
        assert all(one == first for one in others)
        usual = [median(took[: logins.PER_PAIR]) for took in seconds.values()]
        assert min(usual) > 0.6 * max(usual)
        right = await tries(visit(pillarbox), disabled.email, disabled.password, "192.0.2.200")
        assert (right.status_code, WRONG in text_of(right)) == (403, True)
