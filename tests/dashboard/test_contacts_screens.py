"""Screens of contacts and segments: filters, columns, acts on many contacts, segments by conditions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.manual_world import manual_world, run_jobs
from kit.people import Visit, a_person, logged_in, text_of
from kit.world import Team, World
from pillarbox.dashboard.contacts import bulk_screens
from pillarbox.dashboard.contacts.filter_rows import (
    OPERATORS,
    FilterRow,
    condition_of_rows,
    input_of,
    rows_of_condition,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.roles import TeamRole

Place = tuple[str, Path]
HOSTILE = "<script>alert(1)</script>"
CONTACTS = "/dashboard/contacts"


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("contacts")
    databases.drop(url)


@asynccontextmanager
async def opened(place: Place) -> AsyncIterator[tuple[World, Team, Visit]]:
    async with manual_world(*place) as here:
        team = await here.team("Harbor")
        person = await a_person(team, f"ada@{team.id.hex}.example")
        yield here, team, await logged_in(here, person)


async def some_people(team: Team) -> dict[str, str]:
    await team.post("/contact-properties", {"key": "plan", "type": "string"})
    ids = {}
    for name, plan in (("Ada", "pro"), ("Bo", "free"), (HOSTILE, "pro")):
        address = f"p{len(ids)}@quay.example"
        body = {"email": address, "first_name": name, "properties": {"plan": plan}}
        ids[name] = (await team.post("/contacts", body)).json()["id"]
    return ids


async def test_contacts_are_filtered_by_rows_and_shown_in_chosen_columns(place: Place) -> None:
    async with opened(place) as (_, team, ada):
        empty = await ada.get(CONTACTS)
        assert "No contact yet" in text_of(empty)
        await some_people(team)
        everybody = await ada.get(f"{CONTACTS}?column=name,property.plan,opened")
        assert "3 contacts" in text_of(everybody)
        assert HOSTILE in text_of(everybody)
        assert HOSTILE not in everybody.text
        assert "free" in text_of(everybody)
        row = "f1=contact.properties.plan&o1=eq&v1=pro"
        some = text_of(await ada.get(f"{CONTACTS}?{row}"))
        assert "2 contacts" in some
        assert "p1@quay.example" not in some
        both = text_of(await ada.get(f"{CONTACTS}?{row}&f2=contact.first_name&o2=contains&v2=da&match=all"))
        assert "p0@quay.example" in both
        assert "p2@quay.example" not in both
        found = text_of(await ada.get(f"{CONTACTS}?search=p1%40"))
        assert "p1@quay.example" in found
        assert "p0@quay.example" not in found
        wrong = await ada.get(f"{CONTACTS}?f1=engagement.opened&o1=within_days&v1=soon")
        assert wrong.status_code == 422
        assert "soon" in wrong.text
        assert "No contact fits" in text_of(await ada.get(f"{CONTACTS}?search=zzz"))
        assert (await ada.get(f"{CONTACTS}/count?{row}")).text == "2 contacts"
        searched = text_of(await ada.get("/dashboard/search?q=p1"))
        assert "p1@quay.example" in searched


async def test_acts_on_many_contacts_begin_in_the_table_and_are_watched(place: Place) -> None:
    async with opened(place) as (here, team, ada):
        ids = await some_people(team)
        segment = (await team.post("/segments", {"name": "Crew"})).json()["id"]
        bulk = f"{CONTACTS}/bulk"
        await ada.get(bulk)
        nothing = await ada.post(bulk, action="", scope="all")
        assert nothing.status_code == 422
        assert (await ada.post(bulk, action="delete")).status_code == 422
        begun = await ada.post(bulk, action="add_to_segment", segment=segment, id=[ids["Ada"], ids["Bo"]])
        assert begun.status_code == 303
        while await run_jobs(here):
            pass
        shown = text_of(await ada.get(begun.headers["location"]))
        assert "2 of 2 contacts done, 2 changed" in shown
        assert "Crew" in shown
        assert "Add to segment" in text_of(await ada.get(bulk))
        row = "f1=contact.properties.plan&o1=eq&v1=pro"
        asked = await ada.post(f"{bulk}?{row}", action="delete", scope="all")
        assert asked.status_code == 200
        assert "Delete these contacts?" in text_of(asked)
        assert len((await team.get("/contacts")).json()["data"]) == 3
        done = await ada.post(f"{bulk}?{row}", action="delete", scope="all", confirmed="yes")
        stopped = await ada.post(f"{done.headers['location']}/stop")
        assert stopped.status_code == 303
        while await run_jobs(here):
            pass
        assert len((await team.get("/contacts")).json()["data"]) == 3
        await ada.post(f"{bulk}?{row}", action="delete", scope="all", confirmed="yes")
        while await run_jobs(here):
            pass
        assert [one["first_name"] for one in (await team.get("/contacts")).json()["data"]] == ["Bo"]
        saved = await ada.post(bulk, action="export", id=[ids["Bo"]])
        assert saved.text.splitlines()[1].split(",")[1:3] == ["p1@quay.example", "Bo"]
        fitting = await ada.post(f"{bulk}?f1=contact.first_name&o1=eq&v1=Bo", action="export", scope="all")
        assert fitting.text == saved.text
        whole = await ada.get(f"{CONTACTS}/csv?{row}")
        assert len(whole.text.splitlines()) == 1
        kinds = await here.pool.fetch("SELECT what FROM audit_entries WHERE team_id = $1", team.id)
        assert {"contacts.changed", "contacts.act_stopped", "contacts.exported"} <= {
            row["what"] for row in kinds
        }


async def test_an_act_that_ends_while_its_page_is_drawn_is_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is not newer than what is shown, so the stream tells of what came in between."""
    digest_of = bulk_screens.digest_of_bulk_acts
    async with opened(place) as (here, team, ada):

        async def ended(db: TeamDb, act_id: UUID | None) -> str:
            while await run_jobs(here):
                pass
            return await digest_of(db, act_id)

        monkeypatch.setattr(bulk_screens, "digest_of_bulk_acts", ended)
        ids = await some_people(team)
        segment = (await team.post("/segments", {"name": "Crew"})).json()["id"]
        bulk = f"{CONTACTS}/bulk"
        await ada.get(CONTACTS)
        for path in (None, bulk):
            begun = await ada.post(bulk, action="add_to_segment", segment=segment, id=[ids["Ada"]])
            assert begun.status_code == 303
            shown = text_of(await ada.get(path or begun.headers["location"]))
            assert "Done" in shown
            assert "Waiting" not in shown


async def test_a_contact_is_made_once(place: Place) -> None:
    async with opened(place) as (_, team, ada):
        await ada.get(CONTACTS)
        made = await ada.post(f"{CONTACTS}/new", email="Eve@Quay.example", first_name=HOSTILE)
        assert made.status_code == 303
        contact = (await team.get("/contacts/eve@quay.example")).json()
        assert contact["first_name"] == HOSTILE
        again = await ada.post(f"{CONTACTS}/new", email="eve@quay.example")
        assert again.status_code == 422
        assert "already" in text_of(again)
        assert (await ada.post(f"{CONTACTS}/new", email="nobody")).status_code == 422


async def test_segments_are_made_by_conditions_changed_and_deleted(place: Place) -> None:
    async with opened(place) as (here, team, ada):
        await some_people(team)
        form = "/dashboard/segments/new"
        drawn = await ada.get(f"{form}?by=conditions&f1=contact.properties.plan&o1=eq&v1=pro")
        assert "2 contacts" in text_of(drawn)
        conditions = re.search(r"<textarea[^>]*>(.*?)</textarea>", drawn.text, re.S)
        assert conditions is not None
        text = conditions[1].replace("&#34;", '"')
        made = await ada.post(form, name=HOSTILE, conditions=text)
        path = made.headers["location"].partition("?")[0]
        shown = await ada.get(path)
        assert HOSTILE in text_of(shown)
        assert HOSTILE not in shown.text
        assert "plan is pro" in text_of(shown)
        assert (await ada.post(form, name="x", conditions="{")).status_code == 422
        assert (await ada.post(form, name=" ")).status_code == 422
        page = await ada.get(f"{path}/conditions")
        assert page.status_code == 200
        # Its rows are those of the segment, and so is the count.
        for pattern in (r'value="contact\.properties\.plan"\s+selected', r'name="v1"[^>]*value="pro"'):
            assert re.search(pattern, page.text), pattern
        assert "2 contacts" in text_of(page)
        before = re.search(r'name="before" value="([^"]*)"', page.text)
        assert before is not None
        kept = before[1].replace("&#34;", '"')
        changed = text.replace('"pro"', '"free"')
        assert (await ada.post(f"{path}/conditions", conditions=changed, before="x")).status_code == 422
        assert (await ada.post(f"{path}/conditions", conditions=changed, before=kept)).status_code == 303
        assert "p1@quay.example" in text_of(await ada.get(path))
        assert (await ada.post(path, name="Free plans")).status_code == 303
        assert "Free plans" in text_of(await ada.get("/dashboard/segments"))
        assert (await ada.post(f"{path}/delete", typed_name="x")).status_code == 422
        assert (await ada.post(f"{path}/delete", typed_name="Free plans")).status_code == 303
        assert (await ada.get(path)).status_code == 404
        other = await here.team("Quay")
        foreign = (await other.post("/segments", {"name": "Theirs"})).json()["id"]
        assert (await ada.get(f"/dashboard/segments/{foreign}")).status_code == 404
        viewer = await logged_in(here, await a_person(team, f"v@{team.id.hex}.example", TeamRole.VIEWER))
        assert (await viewer.get(CONTACTS)).status_code == 200
        for path in (f"{CONTACTS}/bulk", f"{CONTACTS}/new", "/dashboard/segments/new"):
            assert (await viewer.post(path, name="x", action="delete", scope="all")).status_code == 403
        assert (await viewer.get(CONTACTS)).status_code == 200


TYPES = {"plan": "string", "seats": "number", "vip": "boolean"}
FIELDS = {
    "text": "contact.properties.plan",
    "number": "contact.properties.seats",
    "boolean": "contact.properties.vip",
    "flag": "contact.unsubscribed",
    "created": "contact.created_at",
    "instant": "events.order.placed",
    "topic": "topics.7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "segment": "segments.7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "broadcast": "broadcasts.7c9e6679-7425-40de-944b-e07fc1f90ae7",
}


def test_rows_become_conditions_and_conditions_the_same_rows() -> None:
    values = {"number": "3", "date": "2026-10-03", "text": "pro", None: ""}
    for kind, field in FIELDS.items():
        for operator in OPERATORS[kind]:
            row = FilterRow(field, operator, values[input_of(kind, operator)])
            condition = condition_of_rows([row, row], "any", TYPES)
            assert condition is not None
            assert rows_of_condition(condition, TYPES) == ([row, row], "any"), row
    assert condition_of_rows([FilterRow("contact.email", "eq", " ")], "all", TYPES) is None
    nested = {"type": "not", "rule": {"type": "and", "rules": []}}
    assert rows_of_condition(nested, TYPES) is None
