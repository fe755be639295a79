"""Links to another address: each works once, for an hour, for whoever asked for it and has just proved who it
is (docs/decisions/0106)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.address_changes import HERE, Moving, moving
from kit.manual_world import clock_of, run_jobs
from kit.people import PASSWORD, WAITS, Person, a_person, heading, logged_in, text_of, visit
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.wire.email_address import email_address
from pillarbox.people import accounts, links
from pillarbox.people.addresses.own_address import LASTS, PER_ADDRESS, PER_PAIR, PER_PERSON, WINDOW
from pillarbox.people.collectors import KEPT, PeopleCollector
from pillarbox.people.links import LinkKind

Place = tuple[str, Path]

GONE = "This link does not work"
OTHER = "a lighthouse in the fog"


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("addresses")
    databases.drop(url)


async def test_a_link_works_once(place: Place) -> None:
    async with moving(place, "kim") as kim:
        await kim.asks("kim@new.example")
        path = await kim.link("kim@new.example")
        answers = await asyncio.gather(*[logged_in(kim.team.world, kim.person) for _ in range(3)])
        for browser in (kim.browser, *answers):
            await browser.get(path)
        results = await asyncio.gather(*[one.post(path) for one in (kim.browser, *answers)])
        [won] = [one for one in results if one.headers.get("location") == "/account?done=address"]
        for lost in results:
            # Its session ended with the change: before it was asked for who it is, or after.
            is_out = lost.status_code == 303 and lost.headers["location"].startswith("/login")
            assert lost is won or is_out or lost.status_code in (404, 409), lost.text
        assert (await kim.acts()).count("address.changed") == 1


async def test_a_link_is_of_its_person_alone(place: Place) -> None:
    """Whoever else opens it sees what whoever opens no link sees; without a login it leads to one."""
    async with moving(place, "lea") as lea:
        await lea.asks("lea@new.example")
        path = await lea.link("lea@new.example")
        other = await logged_in(lea.team.world, await a_person(lea.team, "mel@old.example"))
        nothing = f"{HERE}/link/nothing"
        foreign, unknown = await other.get(path), await other.get(nothing)
        assert (foreign.status_code, heading(foreign)) == (404, GONE)
        assert text_of(foreign) == text_of(unknown)
        assert (await other.send("/account", path)).status_code == 404
        stranger = visit(lea.team.world)
        assert (await stranger.get(path)).headers["location"] == f"/login?to={path}"
        assert (await stranger.post(path)).headers["location"].startswith("/login")
        assert await lea.email() == "lea@old.example"
        back = await stranger.log_in(lea.person, to=path)
        assert back.headers["location"] == path
        assert heading(await stranger.follow(back)) == "Log in with the new address"


async def test_a_link_ends_with_its_time(place: Place) -> None:
    async with moving(place, "mia") as mia:
        await mia.asks("mia@new.example")
        path = await mia.link("mia@new.example")
        clock_of(mia.team.world).advance(LASTS.total_seconds() + 1)
        browser = await logged_in(mia.team.world, mia.person)
        assert (await browser.get(path)).status_code == 404
        assert (await browser.send("/account", path)).status_code == 404
        assert "mia@new.example" not in text_of(await browser.get(HERE))
        assert await mia.email() == "mia@old.example"
        clock_of(mia.team.world).advance(KEPT.total_seconds() + 1)
        await PeopleCollector(mia.team.world.pool, mia.team.world.clock).collect()
        left = "SELECT count(*) FROM person_address_changes WHERE person_id = $1"
        assert await mia.team.world.pool.fetchval(left, mia.person.id) == 0


async def test_a_second_change_ends_the_first(place: Place) -> None:
    async with moving(place, "nina") as nina:
        await nina.asks("first@nina.example")
        first = await nina.link("first@nina.example")
        await nina.asks("second@nina.example")
        assert (await nina.browser.get(first)).status_code == 404
        assert (await nina.uses(await nina.link("second@nina.example"))).status_code == 303
        assert await nina.email() == "second@nina.example"
        assert (await nina.browser.send("/account", first)).status_code == 404


async def test_a_change_is_taken_back(place: Place) -> None:
    async with moving(place, "otto") as otto:
        await otto.asks("otto@new.example")
        path = await otto.link("otto@new.example")
        await otto.browser.get(HERE)
        back = await otto.browser.post(f"{HERE}/withdraw")
        assert "Your address stays as it is." in text_of(await otto.browser.follow(back))
        assert (await otto.browser.get(path)).status_code == 404
        await otto.browser.get(HERE)
        assert (await otto.browser.post(f"{HERE}/withdraw")).status_code == 303
        assert await otto.acts() == ["address.change_asked", "address.change_withdrawn"]


@pytest.mark.parametrize("how", ["password", "lost password", "disabled"])
async def test_what_shuts_somebody_out_ends_the_change(place: Place, how: str) -> None:
    """The mail to the address of before says: choose another password. That ends the change."""
    async with moving(place, how.replace(" ", "")) as paul:
        world = paul.team.world
        await paul.asks(f"{how.replace(' ', '')}@new.example")
        path = await paul.link(f"{how.replace(' ', '')}@new.example")
        if how == "password":
            await paul.browser.send("/account/password", password=OTHER)
        elif how == "lost password":
            at = world.app.need(Ids).now()
            async with transaction(world.pool) as conn:
                token = await links.make(conn, at, LinkKind.PASSWORD, person_id=paul.person.id)
            await visit(world).send(f"/password/reset/{token}", password=OTHER)
        else:
            async with transaction(world.pool) as conn:
                await accounts.disable(conn, world.app.need(Ids).now(), paul.person.id)
                await accounts.enable(conn, paul.person.id)
        password = PASSWORD if how == "disabled" else OTHER
        again = await logged_in(world, Person(paul.person.id, paul.person.email, password))
        assert (await again.get(path)).status_code == 404
        assert (await again.send("/account", path)).status_code == 404
        assert await paul.email() == paul.person.email


async def test_a_lost_password_is_mailed_to_the_address_of_now(place: Place) -> None:
    """Asked for before the change, and sent after it."""
    async with moving(place, "quin") as quin:
        stranger = visit(quin.team.world)
        await quin.asks("quin@new.example")
        path = await quin.link("quin@new.example")
        await stranger.send("/password/lost", email="quin@old.example")
        await quin.uses(path)
        await run_jobs(quin.team.world)
        subjects = [subject for subject, _ in await quin.mails("quin@old.example")]
        assert "Another password for Pillarbox" not in subjects
        assert (await quin.mails("quin@new.example"))[-1][0] == "Another password for Pillarbox"


async def test_a_lost_password_that_is_mailed_meanwhile_goes_to_the_new_address(place: Place) -> None:
    """A job that was on its way makes no link for the mailbox of before that outlives the change."""
    async with moving(place, "ruth") as ruth:
        world = ruth.team.world
        await visit(world).send("/password/lost", email="ruth@old.example")
        async with transaction(world.pool) as conn:
            await accounts.set_address(conn, ruth.person.id, email_address("ruth@new.example"))
            job = asyncio.create_task(run_jobs(world))
            while not await world.pool.fetchval(WAITS):
                await asyncio.sleep(0.01)
        await job
        assert await ruth.mails("ruth@old.example") == []
        assert len(await ruth.mails("ruth@new.example")) == 1


# Proofs, limits, races ---------------------------------------------------------------------------


async def test_a_proof_is_asked_for_before_each_step(place: Place) -> None:
    async with moving(place, "rosa") as rosa:
        clock = clock_of(rosa.team.world)
        await rosa.asks("rosa@new.example")
        path = await rosa.link("rosa@new.example")
        clock.advance(601)
        for page in (HERE, path):
            assert (await rosa.browser.get(page)).headers["location"] == f"/confirm?to={page}"
            assert (await rosa.browser.post(page)).headers["location"] == f"/confirm?to={page}"
        assert await rosa.email() == "rosa@old.example"
        back = await rosa.browser.send(f"/confirm?to={path}", "/confirm", password=PASSWORD, to=path)
        assert back.headers["location"] == path
        await rosa.browser.follow(back)
        assert (await rosa.browser.post(path)).status_code == 303
        assert await rosa.email() == "rosa@new.example"


async def test_the_address_that_was_typed_survives_the_proof(place: Place) -> None:
    async with moving(place, "sid") as sid:
        await sid.browser.get(HERE)
        clock_of(sid.team.world).advance(601)
        asks = await sid.browser.post(HERE, email="sid@new.example")
        await sid.browser.follow(asks)
        back = await sid.browser.follow(await sid.browser.post("/confirm", password=PASSWORD, to=HERE))
        assert 'value="sid@new.example"' in back.text
        assert await sid.mails("sid@new.example") == []


async def test_mails_are_bounded(place: Place) -> None:
    async with moving(place, "tom") as tom:
        for _ in range(PER_PAIR):
            assert (await tom.asks("tom@new.example")).status_code == 303
        refused = await tom.asks("tom@new.example")
        assert (refused.status_code, "Too many tries." in text_of(refused)) == (429, True)
        assert int(refused.headers["retry-after"]) > 0
        assert len(await tom.mails("tom@new.example")) == PER_PAIR
        for number in range(PER_PERSON - PER_PAIR - 1):
            assert (await tom.asks(f"tom{number}@new.example")).status_code == 303
        assert (await tom.asks("tom9@new.example")).status_code == 429
        assert len(await tom.mails("tom@old.example")) == PER_PERSON - 1
        clock_of(tom.team.world).advance(WINDOW + 1)
        again = Moving(tom.team, tom.person, await logged_in(tom.team.world, tom.person))
        assert (await again.asks("tom@new.example")).status_code == 303


async def test_one_address_is_not_mailed_to_again_and_again(place: Place) -> None:
    """Whoever has several accounts."""
    async with moving(place, "uma") as uma:
        refused = []
        for number in range(PER_ADDRESS + 1):
            person = await a_person(uma.team, f"uma{number}@old.example")
            one = Moving(uma.team, person, await logged_in(uma.team.world, person))
            refused.append((await one.asks("victim@new.example")).status_code)
        assert refused == [303] * PER_ADDRESS + [429]
        assert len(await uma.mails("victim@new.example")) == PER_ADDRESS


async def test_whoever_was_logged_out_meanwhile_changes_nothing(place: Place) -> None:
    """A request on its way does not outlive a changed password: neither the one that asks nor the one that
    uses the link."""
    async with moving(place, "vera") as vera:
        pool, path = vera.team.world.pool, HERE
        for fields in ({"email": "vera@new.example"}, {}):
            browser = await logged_in(vera.team.world, vera.person)
            if not fields:
                one = Moving(vera.team, vera.person, browser)
                await one.asks("vera@new.example")
                path = await vera.link("vera@new.example")
            await browser.get(path)
            async with pool.acquire() as conn, conn.transaction():
                await conn.execute("SELECT FROM people WHERE id = $1 FOR UPDATE", vera.person.id)
                late = asyncio.create_task(browser.post(path, **fields))
                while not await pool.fetchval(WAITS):
                    await asyncio.sleep(0.01)
                await conn.execute("DELETE FROM person_sessions WHERE person_id = $1", vera.person.id)
            answer = await late
            assert (answer.status_code, "You were logged out" in text_of(answer)) == (409, True)
            assert await vera.email() == "vera@old.example"
        assert await vera.acts() == ["address.change_asked"]


async def test_nobody_changes_the_address_of_somebody_else(place: Place) -> None:
    """No field of the form names a person."""
    async with moving(place, "wim") as wim:
        victim = await a_person(wim.team, "victim@old.example")
        await wim.browser.get(HERE)
        await wim.browser.post(HERE, email="wim@new.example", person_id=str(victim.id), id=str(victim.id))
        await wim.browser.get(await wim.link("wim@new.example"))
        await wim.browser.post(
            await wim.link("wim@new.example"), person_id=str(victim.id), email="evil@new.example"
        )
        emails = {
            row["id"]: row["email"] for row in await wim.team.world.pool.fetch("SELECT id, email FROM people")
        }
        assert emails[victim.id] == "victim@old.example"
        assert emails[wim.person.id] == "wim@new.example"


async def test_the_token_is_stored_nowhere(place: Place) -> None:
    async with moving(place, "xena") as xena:
        await xena.asks("xena@new.example")
        token = (await xena.link("xena@new.example")).rpartition("/")[2]
        pool = xena.team.world.pool
        for table in ("person_address_changes", "audit_entries", "person_links"):
            rows = await pool.fetch(f"SELECT t::text FROM {table} t")
            assert [row for row in rows if token in row["t"]] == []
        assert len(token) == 32
