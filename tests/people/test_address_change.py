"""The address that one logs in with becomes another one by a link that was mailed there
(docs/decisions/0106)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.address_changes import ACTS, HERE, LINK, Moving, moving
from kit.people import SESSION, Person, a_person, heading, logged_in, text_of, visit
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import links
from pillarbox.people.links import LinkKind

Place = tuple[str, Path]


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("addresses")
    databases.drop(url)


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
            lost = await links.make(conn, at, LinkKind.PASSWORD, person_id=cleo.person.id)
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
