"""Screens of imports: a file is brought, mapped, imported and undone; and who may do so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kit.manual_world import manual_world, run_jobs
from kit.people import Visit, a_person, logged_in, text_of
from kit.spreadsheets import sheet_of, workbook
from kit.world import Team, World
from pillarbox.contacts.imports.files import ImportRetention
from pillarbox.people.roles import TeamRole

LIST = "/dashboard/contacts/imports"
NEW = f"{LIST}/new"
CSV = "E-Mail;Vorname;Plan;Seats\nada@quay.example;Ada;pro;4\nno address;Ben;free;2\nnell@quay.example;;;12\n"

# What background jobs and events keep of each contact.
KEPT_OF_ALL = """
    WITH engaged AS (
        INSERT INTO contact_engagement (team_id, contact_id, opened_at)
        SELECT team_id, id, created_at FROM contacts
    ), had_events AS (
        INSERT INTO contact_events (team_id, name, contact_id, first_at, last_at, occurrences)
        SELECT team_id, 'visited', id, created_at, created_at, 1 FROM contacts
    )
    INSERT INTO contact_terms (team_id, contact_id, terms) SELECT team_id, id, '{1}' FROM contacts
"""


@pytest.fixture
@asynccontextmanager
async def here(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with manual_world(database_url, tmp_path) as found:
        yield found


async def browser(team: Team, role: TeamRole = TeamRole.OWNER) -> Visit:
    person = await a_person(team, f"{role.value}-{uuid4().hex[:6]}@quay.example", role)
    return await logged_in(team.world, person)


async def brought(
    ada: Visit, content: bytes | str, name: str = "people.csv", **options: Any
) -> httpx.Response:
    """The answer to the form that brings a file."""
    await ada.get(NEW)
    data = content.encode() if isinstance(content, str) else content
    # A dict of files alone: the token is the first part, as in the page.
    parts = {"csrf_token": (None, options.get("token", ada.csrf)), "file": (name, data)}
    return await ada.ask("POST", NEW, headers={"sec-fetch-site": "same-origin"}, files=parts)


async def started(ada: Visit, page: str, **fields: Any) -> httpx.Response:
    """The answer to the form that says what the columns are."""
    return await ada.send(page, page, **{"consent_note": "At the fair, on paper.", **fields})


async def worked(team: Team, path: str) -> str:
    """Run the jobs of an import until it has ended; return its id."""
    import_id = path.rpartition("/")[2]
    while (await team.get(f"/contacts/imports/{import_id}")).json()["completed_at"] is None:
        await run_jobs(team.world)
    return import_id


async def addresses(team: Team) -> set[str]:
    return {contact["email"] for contact in (await team.get("/contacts")).json()["data"]}


async def test_a_file_is_brought_mapped_imported_and_undone(here: World) -> None:
    team = await here.team()
    ada = await browser(team)
    await team.post("/contacts", {"email": "ada@quay.example", "first_name": "Old"})
    page = (await brought(ada, CSV, "people & <b>.csv")).headers["location"]
    shown = await ada.get(page)
    assert "people & <b>.csv" in text_of(shown)
    for guess in (
        'to_0"',
        'value="email" selected',
        'value="first_name" selected',
        'value="number" selected',
    ):
        assert guess in shown.text
    assert (await team.get("/contacts/imports")).json()["data"] == []

    answer = await started(
        ada,
        page,
        to_0="email",
        to_1="first_name",
        to_2="property",
        key_2="plan",
        type_2="string",
        on_conflict="upsert",
        new_segment="Fair",
    )
    one = answer.headers["location"]
    await worked(team, one)
    shown = await ada.get(one)
    assert "At the fair, on paper." in text_of(shown)
    assert "This is no email address." in text_of(shown)
    counts = (await team.get(one.removeprefix("/dashboard"))).json()["counts"]
    assert counts == {"total": 3, "created": 1, "updated": 1, "skipped": 0, "failed": 1}
    nell = (await team.get("/contacts/nell@quay.example")).json()
    assert [segment["name"] for segment in (await team.get("/segments")).json()["data"]] == ["Fair"]
    errors = (await ada.get(f"{one}/errors")).text
    assert "2,no address,invalid_email,This is no email address." in errors
    assert (await started(ada, page, to_0="email")).status_code == 404

    assert (await ada.send(one, f"{one}/undo", typed_name="another")).status_code == 422
    assert (await ada.send(one, f"{one}/undo", typed_name="people & <b>.csv")).status_code == 303
    await run_jobs(here)
    assert await addresses(team) == {"ada@quay.example"}
    assert "Removed: 1." in text_of(await ada.get(one))
    assert nell["id"] not in (await ada.get(one)).text


async def test_an_import_is_undone_once_and_keeps_what_somebody_changed(here: World) -> None:
    team = await here.team()
    topic = (await team.post("/topics", {"name": "News", "default_subscription": "opt_in"})).json()["id"]
    ada = await browser(team)
    names = ("same", "twice", "renamed", "joined", "chose")
    rows = "".join(f"{name}@quay.example,{name}\n" for name in (*names, "twice"))
    page = (await brought(ada, "email,first_name\n" + rows)).headers["location"]
    answer = await started(ada, page, **{"to_0": "email", "to_1": "first_name", f"topic_{topic}": "opt_out"})
    import_id = await worked(team, answer.headers["location"])
    here.clock.advance(1)  # type: ignore[attr-defined]
    await team.call("PATCH", "/contacts/renamed@quay.example", {"first_name": "Other"})
    segment = (await team.post("/segments", {"name": "Quay"})).json()["id"]
    await team.http.post(f"/contacts/joined@quay.example/segments/{segment}")
    await team.call("PATCH", "/contacts/chose@quay.example/topics", [{"id": topic, "subscription": "opt_in"}])
    await here.pool.execute(KEPT_OF_ALL)
    for _ in range(2):
        assert (await team.http.post(f"/contacts/imports/{import_id}/undo")).status_code == 202
        await run_jobs(here)
    assert await addresses(team) == {f"{name}@quay.example" for name in ("renamed", "joined", "chose")}
    for table in ("contact_engagement", "contact_events", "contact_terms"):
        assert await here.pool.fetchval(f"SELECT count(*) FROM {table}") == 3, table
    state = (await team.get(f"/contacts/imports/{import_id}/undo")).json()
    assert (state["removed"], state["kept"]) == (2, 3)
    assert state["completed_at"] is not None
    quay = await here.team("Quay")
    assert (await quay.get(f"/contacts/imports/{import_id}/undo")).status_code == 404
    assert (await quay.http.post(f"/contacts/imports/{import_id}/undo")).status_code == 404


CORNER = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
HOSTILE = {
    "too many cells": (sheet_of(CORNER), "too large"),
    "no workbook": (b"PK\x03\x04 nothing", "no spreadsheet"),
    "zip of zeros": (
        sheet_of(f'<row r="1"><c r="A1" t="str"><v>{"a" * 3_000_000}</v></c></row>'),
        "header row",
    ),
    "old": (b"\xd0\xcf\x11\xe0 old", "old spreadsheets"),
    "empty sheet": (workbook(), "empty"),
    "empty": (b"", "empty"),
    "no text": (b"email\0\n", "NUL"),
}


async def test_spreadsheets_are_read_and_hostile_ones_are_refused(here: World) -> None:
    team = await here.team()
    ada = await browser(team)
    book = workbook(["Email", "Seats", "Active"], ["ada@quay.example", 4.0, True], [None, None, None])
    page = (await brought(ada, book, "people.xlsx")).headers["location"]
    shown = (await ada.get(page)).text
    assert 'value="boolean" selected' in shown
    answer = await started(
        ada,
        page,
        to_0="email",
        to_1="property",
        key_1="seats",
        type_1="number",
        to_2="property",
        key_2="active",
        type_2="boolean",
    )
    await worked(team, answer.headers["location"])
    contact = (await team.get("/contacts/ada@quay.example")).json()
    assert {key: one["value"] for key, one in contact["properties"].items()} == {"active": True, "seats": 4}
    for name, (content, says) in HOSTILE.items():
        answer = await brought(ada, content, "people.xlsx")
        assert answer.status_code == 422, name
        assert says in text_of(answer), name
    assert (
        await team.db.value("SELECT count(*) FROM contact_imports WHERE team_id = $1 AND status = 'uploaded'")
        == 0
    )


WRONG: dict[str, dict[str, Any]] = {
    "no address": {"to_0": "", "to_1": "first_name"},
    "address twice": {"to_0": "email", "to_1": "email"},
    "property twice": {"to_0": "email", "to_1": "property", "key_1": "a", "to_2": "property", "key_2": "a"},
    "reserved key": {"to_0": "email", "to_1": "property", "key_1": "email"},
    "key": {"to_0": "email", "to_1": "property", "key_1": "<b>"},
    "no note": {"to_0": "email", "consent_note": " "},
    "long note": {"to_0": "email", "consent_note": "x" * 2001},
}


async def test_what_is_wrong_is_said_and_nothing_is_imported(here: World) -> None:
    team, quay = await here.team(), await here.team("Quay")
    ada = await browser(team)
    page = (await brought(ada, CSV)).headers["location"]
    for name, fields in WRONG.items():
        answer = await started(ada, page, **fields)
        assert answer.status_code == 422, name
    segment = (await quay.post("/segments", {"name": "Theirs"})).json()["id"]
    assert (await started(ada, page, to_0="email", segment=segment)).status_code == 404
    assert (await team.get("/contacts/imports")).json()["data"] == []
    assert (await team.get("/contact-properties")).json()["data"] == []

    ben = await browser(quay)
    await ben.get(LIST)
    for answer in (
        await ben.get(page),
        await ben.post(page, to_0="email"),
        await ben.post(f"{page}/discard"),
    ):
        assert answer.status_code == 404
    vera = await browser(team, TeamRole.VIEWER)
    await vera.get("/account")
    assert (await vera.get(page)).status_code == 403
    foreign = {"csrf_token": (None, vera.csrf), "file": ("people.csv", b"email\n")}
    headers = {"sec-fetch-site": "same-origin"}
    assert (await vera.ask("POST", NEW, headers=headers, files=foreign)).status_code == 403
    assert (await brought(ada, CSV, token="guessed")).status_code == 403
    assert (await ada.send(page, f"{page}/discard")).headers["location"].startswith(LIST)
    assert (await ada.get(page)).status_code == 404


async def test_files_that_wait_are_few_and_do_not_wait_for_ever(here: World) -> None:
    team = await here.team()
    ada = await browser(team)
    for _ in range(20):
        assert (await brought(ada, CSV)).status_code == 303
    assert (await brought(ada, CSV)).status_code == 403
    here.clock.advance(86_401)  # type: ignore[attr-defined]
    assert (await here.app.need(ImportRetention).collect()).startswith("20 files")
    assert await team.db.value("SELECT count(*) FROM contact_imports WHERE team_id = $1") == 0
