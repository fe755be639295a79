"""Accounts are set up by links, and another password is chosen by one: each works once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.manual_world import clock_of, manual_world, run_jobs
from kit.people import PASSWORD, SESSION, Person, a_person, heading, logged_in, text_of, visit
from kit.people_mail import mail_to_people
from kit.world import Team, World, world
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links, lost_passwords
from pillarbox.people.collectors import PeopleCollector
from pillarbox.people.links import LIFETIME, LinkKind
from pillarbox.people.mails import SystemMail

Place = tuple[str, Path]
GONE = "This link does not work any more"
OTHER = "a lighthouse in the fog"


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a folder for tests that each have people of their own."""
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("links")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[World]:
    async with manual_world(*place) as pillarbox:
        yield pillarbox


async def link_of(team: Team, kind: LinkKind, person: Person | None = None) -> str:
    """The path of a new link."""
    at = team.world.app.need(Ids).now()
    async with transaction(team.world.pool) as conn:
        token = await links.make(
            conn, at, kind, team_id=team.id if person is None else None, person_id=person and person.id
        )
    return f"/{'set-up' if kind is LinkKind.SET_UP else 'password/reset'}/{token}"


async def mailed(pillarbox: World, email: str) -> list[str]:
    """The links for another password that were sent to an address, the oldest first."""
    texts = [mail.text for mail in await mail_to_people(pillarbox) if mail.to == email]
    return [path for text in texts for path in re.findall(r"http[^/]*//[^/]+(/password/reset/\S+)", text)]


async def test_the_first_start_makes_an_owner_in_the_place_of_the_first_member(place: Place) -> None:
    async with opened(place) as pillarbox:
        team = await pillarbox.team("Quay", email="ada@first.example")
        path, browser = await link_of(team, LinkKind.SET_UP), visit(pillarbox)
        shown = await browser.get(path)
        assert heading(shown) == "Set up your account"
        answer = await browser.post(path, email=" Ada@First.example ", name="Ada", password=PASSWORD)
        assert answer.headers["location"] == "/dashboard"
        assert "Quay" in text_of(await browser.get("/account"))
        members = await pillarbox.pool.fetch(
            "SELECT email, role, person_id IS NOT NULL AS has FROM team_members WHERE team_id = $1", team.id
        )
        assert [tuple(one) for one in members] == [("ada@first.example", "owner", True)]
        assert heading(await visit(pillarbox).get(path)) == GONE


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"email": "nobody"}, "This is no email address."),
        ({"password": "short"}, "It is too short: 10 characters at least."),
        ({"password": "x" * 129}, "It is too long: 128 characters at most."),
        ({"password": "Password123"}, "Too many people use this one."),
        ({"password": "aaaaaaaaaaaaaaa"}, "Too many people use this one."),
        ({"password": "long.address@first.example"}, "It is your own address or name."),
        ({"password": "long.address"}, "It is your own address or name."),
    ],
)
async def test_what_is_wrong_with_a_set_up_is_said_and_the_link_still_works(
    place: Place, fields: dict[str, str], said: str
) -> None:
    """SEC-02: ten characters at least, and none of the commonest passwords."""
    async with opened(place) as pillarbox:
        path, browser = await link_of(await pillarbox.team(), LinkKind.SET_UP), visit(pillarbox)
        await browser.get(path)
        given = {"email": "long.address@first.example", "name": "Long", "password": PASSWORD, **fields}
        answer = await browser.post(path, **given)
        assert (answer.status_code, said in text_of(answer)) == (422, True)
        assert SESSION not in browser.cookies
        assert heading(await browser.get(path)) == "Set up your account"
        assert not await pillarbox.pool.fetchval(
            "SELECT count(*) FROM people WHERE email_key = 'long.address@first.example'"
        )


async def test_an_address_that_somebody_has_is_refused_and_the_link_still_works(place: Place) -> None:
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        taken = await a_person(team, "taken@first.example")
        path, browser = await link_of(team, LinkKind.SET_UP), visit(pillarbox)
        await browser.get(path)
        answer = await browser.post(path, email=taken.email, name="", password=PASSWORD)
        assert (answer.status_code, "There is an account" in text_of(answer)) == (422, True)
        await browser.get(path)
        again = await browser.post(path, email="free@first.example", name="", password=PASSWORD)
        assert again.status_code == 303


@pytest.mark.parametrize("kind", [LinkKind.SET_UP, LinkKind.PASSWORD], ids=lambda kind: kind.value)
async def test_of_several_at_once_one_uses_a_link(place: Place, kind: LinkKind) -> None:
    """SEC-03: a link works once, however many use it at the same moment."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, f"{kind.value}@race.example", password=False)
        path = await link_of(team, kind, person)
        browsers = [visit(pillarbox) for _ in range(4)]
        for browser in browsers:
            await browser.get(path)
        answers = await asyncio.gather(*[browser.post(path, password=PASSWORD) for browser in browsers])
        assert sorted(answer.status_code for answer in answers) == [303, 404, 404, 404]


@pytest.mark.parametrize("kind", [LinkKind.SET_UP, LinkKind.PASSWORD], ids=lambda kind: kind.value)
async def test_a_link_ends_with_its_time_and_is_of_one_kind(place: Place, kind: LinkKind) -> None:
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, f"{kind.value}@late.example")
        path, browser = await link_of(team, kind, person), visit(pillarbox)
        token = path.rpartition("/")[2]
        other = f"/password/reset/{token}" if kind is LinkKind.SET_UP else f"/set-up/{token}"
        assert (await browser.get(other)).status_code == 404
        assert (await browser.get(path)).status_code == 200
        clock_of(pillarbox).advance(LIFETIME[kind])
        assert (await browser.post(path, password=OTHER)).status_code == 404
        assert (await browser.get(path)).status_code == 404


async def test_a_lost_password_is_changed_by_the_mailed_link_and_ends_all_sessions(place: Place) -> None:
    """SEC-03: the link works once; cookies of before are dead."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "lost@first.example", name="Lo")
        old = await logged_in(pillarbox, person)
        browser = visit(pillarbox)
        sent = await browser.send("/password/lost", email="LOST@first.example")
        assert heading(sent) == "Look into your mailbox"
        while await run_jobs(pillarbox):
            pass
        [path] = await mailed(pillarbox, person.email)
        assert person.email in text_of(await browser.get(path))
        refused = await browser.post(path, password="qwertyuiop")
        assert refused.status_code == 422
        changed = await browser.post(path, password=OTHER)
        assert changed.headers["location"] == "/login?done=reset"
        assert (await old.get("/account")).status_code == 303
        assert heading(await browser.get(path)) == GONE
        assert (await visit(pillarbox).log_in(person)).status_code == 403
        again = Person(person.id, person.email, OTHER)
        assert (await visit(pillarbox).log_in(again)).status_code == 303


async def test_a_changed_password_ends_other_links(place: Place) -> None:
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "twice@first.example")
        first = await link_of(team, LinkKind.PASSWORD, person)
        second = await link_of(team, LinkKind.PASSWORD, person)
        browser = visit(pillarbox)
        await browser.send(first, password=OTHER)
        assert (await browser.get(second)).status_code == 404


async def test_a_link_for_setting_up_ends_with_the_first_password(place: Place) -> None:
    """SEC-03: an older one would set another password, and ask for no second factor."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "thrice@first.example", password=False)
        first = await link_of(team, LinkKind.SET_UP, person)
        second = await link_of(team, LinkKind.SET_UP, person)
        other = visit(pillarbox)
        await other.get(second)
        assert (await visit(pillarbox).send(first, password=OTHER)).status_code == 303
        assert (await other.post(second, password=PASSWORD)).status_code == 404
        again = Person(person.id, person.email, OTHER)
        assert (await visit(pillarbox).log_in(again)).status_code == 303


async def test_asking_for_a_link_tells_nothing_and_sends_nothing_to_nobody(place: Place) -> None:
    """SEC-03: the same answer for somebody, nobody and what is no address; mail goes to somebody alone."""
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "asked@first.example")
        disabled = await a_person(team, "asleep@first.example")
        await pillarbox.pool.execute("UPDATE people SET disabled_at = now() WHERE id = $1", disabled.id)
        before = await pillarbox.pool.fetchval("SELECT count(*) FROM emails")
        answers = []
        for email in (person.email, disabled.email, "nobody@first.example", "no address", ""):
            answer = await visit(pillarbox).send("/password/lost", email=email)
            answers.append((answer.status_code, text_of(answer)))
        assert len(set(answers)) == 1
        while await run_jobs(pillarbox):
            pass
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == before + 1
        assert len(await mailed(pillarbox, person.email)) == 1


async def test_mail_is_sent_to_one_address_only_so_often(place: Place) -> None:
    """SEC-03: who asks again and again fills nobody's mailbox."""
    async with opened(place) as pillarbox:
        person = await a_person(await pillarbox.team(), "flood@first.example")
        for _ in range(lost_passwords.PER_ADDRESS + 2):
            answer = await visit(pillarbox).send("/password/lost", email=person.email)
            assert answer.status_code == 200
            while await run_jobs(pillarbox):
                pass
        assert len(await mailed(pillarbox, person.email)) == lost_passwords.PER_ADDRESS
        statuses = [
            (await visit(pillarbox).send("/password/lost", email=f"n{number}@first.example")).status_code
            for number in range(lost_passwords.PER_NETWORK)
        ]
        assert statuses[-1] == 429


async def test_mail_of_the_system_goes_out_with_its_transaction_alone(place: Place) -> None:
    async with opened(place) as pillarbox:
        await pillarbox.team()
        mail: SystemMail = pillarbox.app.need(SystemMail)  # type: ignore[type-abstract]
        before = await pillarbox.pool.fetchval("SELECT count(*) FROM emails")
        at = pillarbox.clock.now()
        async with pillarbox.pool.acquire() as conn:
            undone = conn.transaction()
            await undone.start()
            await mail.send(conn, at, to="sent@first.example", subject="Hello", text="Not sent")
            await undone.rollback()
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM emails") == before
        async with transaction(pillarbox.pool) as conn:
            await mail.send(conn, at, to="sent@first.example", subject="Hello", text="Sent")
        while await pillarbox.turn():
            pass
        sent = "SELECT last_event FROM emails WHERE to_list::text LIKE '%sent@first.example%'"
        assert [row["last_event"] for row in await pillarbox.pool.fetch(sent)] == ["delivered"]


async def test_what_has_ended_is_removed(place: Place) -> None:
    async with opened(place) as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "old@first.example")
        await logged_in(pillarbox, person)
        await link_of(team, LinkKind.PASSWORD, person)
        collector = PeopleCollector(pillarbox.pool, pillarbox.clock)
        count = (
            "SELECT (SELECT count(*) FROM person_sessions WHERE person_id = $1)"
            " + (SELECT count(*) FROM person_links WHERE person_id = $1)"
        )
        await collector.collect()
        assert await pillarbox.pool.fetchval(count, person.id) == 2
        clock_of(pillarbox).advance(2 * 24 * 3600)
        await collector.collect()
        assert await pillarbox.pool.fetchval(count, person.id) == 0


async def test_a_link_cannot_be_read_with_an_api_key(pillarbox: World) -> None:
    """Keys of the oldest team may be in many hands: they show that there was such mail, not what it says."""
    team = await pillarbox.team()
    person = await a_person(team, "ada@quay.example")
    await visit(pillarbox).send("/password/lost", email=person.email)
    while await run_jobs(pillarbox):
        pass
    while await pillarbox.turn():
        pass
    [path] = await mailed(pillarbox, person.email)
    [listed] = (await team.get("/emails")).json()["data"]
    shown = (await team.get(f"/emails/{listed['id']}")).json()
    assert (shown["to"], shown["last_event"]) == ([person.email], "delivered")
    assert (shown["html"], shown["text"]) == (None, "This email is for its recipient alone.")
    shared = (await team.post(f"/emails/{listed['id']}/share")).json()["url"]
    page = await pillarbox.client(None).get(shared.partition(pillarbox.url)[2] or shared)
    assert "This email is for its recipient alone." in page.text
    token = path.rpartition("/")[2]
    for answer in (page, await team.get(f"/emails/{listed['id']}/events"), await team.get("/logs")):
        assert token not in answer.text
    own = await team.send(text="Ready", tags=[{"name": "pillarbox_mail", "value": "mine"}])
    assert (await team.email(own))["text"] == "Ready"


async def test_health_stays_green_while_many_log_in(place: Place) -> None:
    """A login costs one hash, four run at once, and nothing else of the process waits for them."""
    async with world(*place, trusted_proxy="127.0.0.0/8") as pillarbox:
        team = await pillarbox.team()
        person = await a_person(team, "crowd@first.example")
        browsers = [visit(pillarbox) for _ in range(24)]
        for browser in browsers:
            await browser.get("/login")
        headers = {"sec-fetch-site": "same-origin"}
        logins = [
            asyncio.create_task(
                browser.post(
                    "/login",
                    {**headers, "x-forwarded-for": f"10.0.{number}.1"},
                    email=person.email,
                    password=PASSWORD,
                )
            )
            for number, browser in enumerate(browsers)
        ]
        health = []
        while not all(login.done() for login in logins):
            health.append((await pillarbox.client(None).get("/health")).status_code)
        assert set(health) == {200}
        assert [(await login).status_code for login in logins] == [303] * len(logins)
