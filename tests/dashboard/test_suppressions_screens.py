"""Screens of suppressed addresses: search, adding, removing, why, the file, and who may do so."""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kit.people import Visit, a_person, logged_in, text_of
from kit.screens import a_suppression
from kit.world import Team, World, world
from pillarbox.people.roles import TeamRole
from pillarbox.suppressions import listing

LIST = "/dashboard/suppressions"


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with world(database_url, tmp_path, started=False) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    """A browser in which somebody of the team has logged in."""
    person = await a_person(team, f"{role.value}-{uuid4().hex[:6]}@quay.example", role)
    return await logged_in(team.world, person)


async def sent(ada: Visit, path: str, action: str, **fields: Any) -> httpx.Response:
    """What is shown after a form of this page was sent."""
    return await ada.follow(await ada.send(path, action, **fields))


async def listed(team: Team) -> list[str]:
    return [entry["email"] for entry in (await team.get("/suppressions")).json()["data"]]


async def suppress(team: Team, *addresses: str) -> list[str]:
    answer = await team.post("/suppressions/batch/add", {"emails": list(addresses)})
    return [entry["id"] for entry in answer.json()["data"]]


async def test_addresses_are_added_searched_and_removed(here: World) -> None:
    team = await here.team("Harbor")
    ada = await browser(team)
    assert "No address is suppressed" in (await ada.get(LIST)).text
    text = "Ann@quay.example, ben@quay.example;\n\n nell@pier.example\n"
    assert (
        "The addresses are suppressed."
        in (await sent(ada, f"{LIST}/add", f"{LIST}/add", addresses=text)).text
    )
    assert sorted(await listed(team)) == ["ann@quay.example", "ben@quay.example", "nell@pier.example"]
    shown = (await ada.get(f"{LIST}?address=QUAY")).text
    assert "ann@quay.example" in shown
    assert "nell@pier.example" not in shown
    assert "No address fits" in (await ada.get(f"{LIST}?address=quay&origin=bounce")).text
    ids = [entry["id"] for entry in (await team.get("/suppressions")).json()["data"]]
    answer = await sent(ada, LIST, f"{LIST}/remove", id=ids[:2])
    assert "The addresses are off the list." in answer.text
    assert len(await listed(team)) == 1
    assert (await ada.post(f"{LIST}/remove")).status_code == 422


async def test_an_entry_by_hand_names_who_added_it(here: World) -> None:
    team = await here.team("Harbor")
    ada = await browser(team)
    await ada.get("/dashboard/suppressions/add")
    await ada.post("/dashboard/suppressions/add", addresses="nell@quay.example ben@quay.example")
    entry = (await team.get("/suppressions/nell@quay.example")).json()["id"]
    shown = text_of(await ada.get(f"/dashboard/suppressions/{entry}"))
    assert re.search(r"Added by \S+@quay.example", shown)


async def test_what_is_no_address_is_named_and_kept(here: World) -> None:
    team = await here.team("Harbor")
    ada = await browser(team)
    answer = await ada.send(f"{LIST}/add", addresses="ann@quay.example <b>no</b>")
    assert answer.status_code == 422
    assert "these are no addresses: <b>no</b>" in text_of(answer)
    assert "<b>no</b>" not in answer.text
    assert "ann@quay.example" in answer.text
    many = " ".join(f"a{number}@quay.example" for number in range(101))
    assert "These are 101 addresses" in (await ada.send(f"{LIST}/add", addresses=many)).text
    assert (await ada.send(f"{LIST}/add", addresses=" ,")).status_code == 422
    assert await listed(team) == []


async def test_a_search_goes_on_page_by_page(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = await here.team("Harbor")
    await suppress(team, *(f"a{number}@quay.example" for number in range(90)))
    await suppress(team, "first@pier.example")
    ada = await browser(team)
    pages, path = [], f"{LIST}?address=quay"
    while path:
        page = (await ada.get(path)).text
        pages.append(page.count('name="id"'))
        _, _, rest = page.partition('rel="next" href="')
        path = rest.partition('"')[0].replace("&amp;", "&")
    assert pages == [40, 40, 10]
    monkeypatch.setattr(listing, "SCANNED", 50)
    found = await listing.find_containing(team.db, "@pier", None, limit=40)
    assert [row.shown for row in found.rows] == ["first@pier.example"]
    assert found.following is not None
    rest_of = await listing.find_containing(team.db, "@pier", None, limit=40, after=found.following)
    assert rest_of == ([], None)


async def test_why_an_address_is_suppressed(here: World) -> None:
    team = await here.team("Harbor")
    entry_id = await a_suppression(team)
    [email] = (await team.get("/emails")).json()["data"]
    ada = await browser(team)
    page = await ada.get(f"{LIST}/{entry_id}")
    shown = text_of(page)
    assert "A mail server said that there is no such address." in shown
    assert "Your <i>invoice</i>" in shown
    assert f'href="/dashboard/emails/{email["id"]}"' in page.text
    assert "550 5.1.1" in shown
    answer = await sent(ada, f"{LIST}/{entry_id}", f"{LIST}/{entry_id}/remove")
    assert "The address is off the list." in answer.text
    assert await listed(team) == []


async def test_the_list_is_saved_as_a_file(here: World) -> None:
    team = await here.team("Harbor")
    await suppress(team, "ann@quay.example", "ben@quay.example")
    answer = await (await browser(team)).get(f"{LIST}/csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="suppressions.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert [(row["email"], row["origin"]) for row in rows] == [
        ("ann@quay.example", "manual"),
        ("ben@quay.example", "manual"),
    ]
    await here.pool.execute("UPDATE suppressions SET address = '=1+1@quay.example' WHERE address LIKE 'ann%'")
    guarded = await (await browser(team)).get(f"{LIST}/csv")
    assert "\n'=1+1@quay.example," in guarded.text
    acts = await here.pool.fetchval("SELECT count(*) FROM audit_entries WHERE what = 'suppressions.exported'")
    assert acts == 2


async def test_viewers_see_and_change_nothing(here: World) -> None:
    team = await here.team("Harbor")
    [entry_id] = await suppress(team, "ann@quay.example")
    eve = await browser(team, TeamRole.VIEWER)
    for path in (LIST, f"{LIST}/{entry_id}", f"{LIST}/csv"):
        assert (await eve.get(path)).status_code == 200
    await eve.get(LIST)
    assert (await eve.get(f"{LIST}/add")).status_code == 403
    for path in (f"{LIST}/add", f"{LIST}/remove", f"{LIST}/{entry_id}/remove"):
        assert (await eve.post(path, id=entry_id, addresses="b@quay.example")).status_code == 403
    assert await listed(team) == ["ann@quay.example"]


async def test_entries_of_other_teams_do_not_exist(here: World) -> None:
    team = await here.team("Harbor")
    [entry_id] = await suppress(team, "ann@quay.example")
    bob = await browser(await here.team("Quay"))
    assert (await bob.get(f"{LIST}/{entry_id}")).status_code == 404
    assert "No address fits" in (await bob.get(f"{LIST}?address=ann")).text
    await bob.post(f"{LIST}/remove", id=entry_id)
    assert (await bob.post(f"{LIST}/{entry_id}/remove")).status_code == 404
    assert (await bob.get(f"{LIST}/csv")).text == "email,origin,source_id,created_at,id\r\n"
    assert await listed(team) == ["ann@quay.example"]
