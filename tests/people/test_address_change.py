"""The address that one logs in with becomes another one by a link that was mailed there
(docs/decisions/0126)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world, run_jobs
from kit.people import PASSWORD, SESSION, WAITS, Person, Visit, a_person, heading, logged_in, text_of, visit
from kit.world import Team
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import accounts, links
from pillarbox.people.addresses.own_address import LASTS, PER_ADDRESS, PER_PAIR, PER_PERSON, WINDOW
from pillarbox.people.collectors import KEPT, PeopleCollector
from pillarbox.people.links import Kind

Place = tuple[str, Path]

HERE = "/account/address"
GONE = "This link does not work"
LINK = re.compile(r"http[^/]*//[^/]+(/account/address/link/\S+)")
OTHER = "a lighthouse in the fog"

MAILS = """
    SELECT e.to_list::text AS to_list, e.subject, c.text
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     ORDER BY e.id
"""

ACTS = "SELECT what, target, details::text FROM audit_entries WHERE person_id = $1 ORDER BY id"


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("addresses")
    databases.drop(url)


@dataclass(frozen=True, slots=True)
class Moving:
    """Somebody who wants another address, and the browser in which it has just logged in."""

    team: Team
    person: Person
    browser: Visit

    async def asks(self, new: str) -> httpx.Response:
        await self.browser.get(HERE)
        return await self.browser.post(HERE, email=new)

    async def mails(self, to: str) -> list[tuple[str, str]]:
        """Subject and text of what was sent to an address."""
        rows = await self.team.world.pool.fetch(MAILS)
        return [(row["subject"], row["text"]) for row in rows if json.loads(row["to_list"]) == [to]]

    async def link(self, to: str) -> str:
        """The path of the last link that was mailed there."""
        return [path for _, text in await self.mails(to) for path in LINK.findall(text)][-1]

    async def uses(self, path: str) -> httpx.Response:
        await self.browser.get(path)
        return await self.browser.post(path)

    async def email(self) -> str:
        """What the person logs in with."""
        found: str = await self.team.world.pool.fetchval(
            "SELECT email FROM people WHERE id = $1", self.person.id
        )
        return found

    async def acts(self) -> list[str]:
        rows = await self.team.world.pool.fetch(ACTS, self.person.id)
        return [row["what"] for row in rows if row["what"].startswith("address.")]


@asynccontextmanager
async def moving(place: Place, name: str) -> AsyncIterator[Moving]:
    async with manual_world(*place, ManualClock()) as box:
        team = await box.team()
        person = await a_person(team, f"{name}@old.example")
        yield Moving(team, person, await logged_in(box, person))


async def test_the_address_is_changed_by_the_link_in_the_mail(place: Place) -> None:
    async with moving(place, "ada") as ada:
        asked = await ada.asks(" Ada@New.example ")
        assert asked.headers["location"] == f"{HERE}?done=asked"
        shown = text_of(await ada.browser.follow(asked))
        assert "Nothing has changed yet." in shown
        assert "ada@new.example" in shown
        assert await ada.email() == "ada@old.example"
        path = await ada.link("ada@new.example")
        assert "ada@new.example" in text_of(await ada.browser.get(path))
        assert await ada.email() == "ada@old.example"
        before = ada.browser.cookies[SESSION]
        done = await ada.browser.post(path)
        assert done.headers["location"] == "/account?done=address"
        assert ada.browser.cookies[SESSION] != before
        assert "You log in with the new address now." in text_of(await ada.browser.follow(done))
        assert await ada.email() == "ada@new.example"
        moved = Person(ada.person.id, "ADA@new.example")
        assert (await visit(ada.team.world).log_in(moved)).status_code == 303
        assert (await visit(ada.team.world).log_in(ada.person)).status_code == 403
        assert await ada.acts() == ["address.change_asked", "address.changed"]
        rows = await ada.team.world.pool.fetch(ACTS, ada.person.id)
        assert [tuple(row)[1:] for row in rows if row["what"] == "address.changed"] == [
            ("ada@old.example", '{"address": "ada@new.example"}')
        ]


async def test_the_address_of_before_is_told_twice(place: Place) -> None:
    async with moving(place, "bob") as bob:
        await bob.asks("bob@new.example")
        [(asked, text)] = await bob.mails("bob@old.example")
        assert asked == "Somebody asks to change your login address at Pillarbox"
        assert "bob@new.example in place of bob@old.example" in text
        assert "/password/lost" in text
        assert LINK.findall(text) == []
        await bob.uses(await bob.link("bob@new.example"))
        [_, (changed, text)] = await bob.mails("bob@old.example")
        assert changed == "Your login address at Pillarbox has changed"
        assert "The account bob@old.example" in text
        assert "logs in with bob@new.example from now on" in text
        assert LINK.findall(text) == []


async def test_no_mail_has_a_command_with_an_address(place: Place) -> None:
    """A local part may hold what a shell acts upon, and somebody may copy the line."""
    async with moving(place, "bea") as bea:
        new = "`id`$(id)|id@new.example".replace("(", "").replace(")", "")
        await bea.asks(new)
        await bea.uses(await bea.link(new))
        assert await bea.email() == new
        for to in ("bea@old.example", new):
            lines = [line for _, text in await bea.mails(to) for line in text.splitlines()]
            assert [line for line in lines if "pillarbox people" in line and new in line] == []


async def test_other_sessions_and_links_of_before_end(place: Place) -> None:
    """A link that lies in the mailbox of before leads nowhere."""
    async with moving(place, "cleo") as cleo:
        world = cleo.team.world
        elsewhere = await logged_in(world, cleo.person)
        async with transaction(world.pool) as conn:
            at = world.app.need(Ids).now()
            lost = await links.make(conn, at, Kind.PASSWORD, person_id=cleo.person.id)
        await cleo.asks("cleo@new.example")
        await cleo.uses(await cleo.link("cleo@new.example"))
        assert (await elsewhere.get("/account")).headers["location"] == "/login?to=/account"
        assert (await cleo.browser.get("/account")).status_code == 200
        assert (await visit(world).get(f"/password/reset/{lost}")).status_code == 404


async def test_teams_know_the_new_address(place: Place) -> None:
    """Test mail of a team goes to its members: to the addresses that they proved."""
    async with moving(place, "dora") as dora:
        await dora.asks("dora@new.example")
        await dora.uses(await dora.link("dora@new.example"))
        emails = "SELECT email FROM team_members WHERE team_id = $1 AND person_id = $2"
        pool = dora.team.world.pool
        assert await pool.fetchval(emails, dora.team.id, dora.person.id) == "dora@new.example"
        assert "dora@new.example" in text_of(await dora.browser.get("/team/members"))


async def test_a_team_that_has_the_address_for_itself_is_no_obstacle(place: Place) -> None:
    async with moving(place, "emma") as emma:
        pool = emma.team.world.pool
        await pool.execute(
            "INSERT INTO team_members (team_id, id, email, role, created_at) "
            "VALUES ($1, gen_random_uuid(), 'Emma@new.example', 'viewer', now())",
            emma.team.id,
        )
        await emma.asks("emma@new.example")
        await emma.uses(await emma.link("emma@new.example"))
        assert await emma.email() == "emma@new.example"
        emails = "SELECT email FROM team_members WHERE team_id = $1 AND person_id = $2"
        assert await pool.fetchval(emails, emma.team.id, emma.person.id) == "emma@old.example"


@pytest.mark.parametrize("wrong", ["", "nobody", "a b@x.example", "Ann <ann@x.example>", "x" * 400])
async def test_what_is_no_address_is_said(place: Place, wrong: str) -> None:
    async with moving(place, f"fay{len(wrong)}") as fay:
        answer = await fay.asks(wrong)
        assert (answer.status_code, "This is no email address." in text_of(answer)) == (422, True)
        assert await fay.acts() == []


async def test_the_own_address_is_said(place: Place) -> None:
    async with moving(place, "gus") as gus:
        answer = await gus.asks("GUS@old.example")
        assert (answer.status_code, "with this address already" in text_of(answer)) == (422, True)
        assert await gus.mails("gus@old.example") == []


# Whether there is somebody -----------------------------------------------------------------------


async def test_nothing_but_the_mail_says_that_an_address_is_taken(place: Place) -> None:
    """Answers, pages and what is stored are the same whether or not somebody has the address."""
    async with moving(place, "hugo") as hugo:
        await a_person(hugo.team, "here@taken.example")
        seen = []
        for new in ("none@taken.example", "here@taken.example"):
            asked = await hugo.asks(new)
            page = await hugo.browser.follow(asked)
            rows = await hugo.team.world.pool.fetch(
                "SELECT email, length(hash) FROM person_address_changes WHERE person_id = $1", hugo.person.id
            )
            told = (await hugo.mails("hugo@old.example"))[-1]
            texts = (asked.status_code, asked.headers["location"], text_of(page), told, [*map(tuple, rows)])
            seen.append(repr(texts).replace(new, "NEW"))
        assert seen[0] == seen[1]
        [(_, free)], [(_, taken)] = (
            await hugo.mails("none@taken.example"),
            await hugo.mails("here@taken.example"),
        )
        assert len(LINK.findall(free)) == 1
        assert LINK.findall(taken) == []
        assert "there is an account with this address already" in taken
        assert await hugo.acts() == ["address.change_asked"] * 2


async def test_an_address_that_was_taken_meanwhile_is_refused(place: Place) -> None:
    """The database settles it: whoever was first has the address, and the other keeps everything."""
    async with moving(place, "ida") as ida:
        await ida.asks("ida@new.example")
        path = await ida.link("ida@new.example")
        other = await a_person(ida.team, "ida@new.example")
        elsewhere = await logged_in(ida.team.world, ida.person)
        answer = await ida.uses(path)
        assert (answer.status_code, heading(answer)) == (409, "This address has an account already")
        assert await ida.email() == "ida@old.example"
        assert (await elsewhere.get("/account")).status_code == 200
        assert (await ida.browser.get("/account")).status_code == 200
        assert await ida.acts() == ["address.change_asked"]
        assert (await visit(ida.team.world).log_in(other)).status_code == 303


async def test_of_two_who_want_one_address_one_gets_it(place: Place) -> None:
    async with moving(place, "jo") as jo:
        other = await a_person(jo.team, "joe@old.example")
        joe = Moving(jo.team, other, await logged_in(jo.team.world, other))
        for one in (jo, joe):
            await one.asks("both@new.example")
        paths = [path for _, text in await jo.mails("both@new.example") for path in LINK.findall(text)]
        for one, path in zip((jo, joe), paths, strict=True):
            await one.browser.get(path)
        answers = await asyncio.gather(jo.browser.post(paths[0]), joe.browser.post(paths[1]))
        assert sorted(answer.status_code for answer in answers) == [303, 409]
        assert sorted([await jo.email(), await joe.email()]) in (
            ["both@new.example", "joe@old.example"],
            ["both@new.example", "jo@old.example"],
        )


# Links -------------------------------------------------------------------------------------------


async def test_a_link_works_once(place: Place) -> None:
    async with moving(place, "kim") as kim:
        await kim.asks("kim@new.example")
        path = await kim.link("kim@new.example")
        answers = await asyncio.gather(*[logged_in(kim.team.world, kim.person) for _ in range(3)])
        for browser in (kim.browser, *answers):
            await browser.get(path)
        results = await asyncio.gather(*[one.post(path) for one in (kim.browser, *answers)])
        assert [answer.headers.get("location") for answer in results].count("/account?done=address") == 1
        assert sorted(answer.status_code for answer in results) in (
            [303, 404, 404, 404],
            [303, 409, 409, 409],
        )
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
                token = await links.make(conn, at, Kind.PASSWORD, person_id=paul.person.id)
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
