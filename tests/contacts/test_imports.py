"""Imports over the API, from the form to the contacts (contact-imports.md)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.audience import a_segment, a_topic
from kit.brought import INVARIANTS
from kit.imports import accepted, contact, counts, ended, errors, imported, importing_team, reasons
from kit.process import reconciled
from kit.webhook_events import published_events, subscribe
from kit.world import Team
from pillarbox.contacts.event_data import SHAPES
from pillarbox.contacts.imports.files import ImportRetention
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.storage.blobs import BlobStore

NONE = {"total": 0, "created": 0, "updated": 0, "skipped": 0, "failed": 0}


async def row(team: Team, address: str) -> Any:
    return await team.world.pool.fetchrow(
        "SELECT * FROM contacts WHERE team_id = $1 AND address = $2", team.id, address
    )


async def segments_of(team: Team, address: str) -> list[str]:
    return [one["id"] for one in (await team.get(f"/contacts/{address}/segments")).json()["data"]]


async def topics_of(team: Team, address: str) -> dict[str, str]:
    listed = (await team.get(f"/contacts/{address}/topics")).json()["data"]
    return {one["id"]: one["subscription"] for one in listed}


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return importing_team(database_url, tmp_path)


async def test_an_import_makes_contacts(team: Team) -> None:
    """Counts are there, as zeros, immediately after the POST; nothing is told to webhooks."""
    await subscribe(team, list(SHAPES))
    import_id = await accepted(team, "email,first_name\nAda@Harbor.example,Ada\nlin@harbor.example,\n")
    first = (await team.get(f"/contacts/imports/{import_id}")).json()
    assert list(first) == ["object", "id", "status", "created_at", "completed_at", "counts"]
    assert list(first["counts"]) == list(NONE)
    made = await ended(team, import_id)
    assert made["counts"] == {**NONE, "total": 2, "created": 2}
    assert (made["object"], made["status"]) == ("contact_import", "completed")
    assert made["completed_at"].endswith("Z")
    ada = await contact(team, "ada@harbor.example")
    assert (ada["email"], ada["first_name"], ada["last_name"]) == ("ada@harbor.example", "Ada", None)
    assert (ada["unsubscribed"], ada["properties"]) == (False, {})
    assert await published_events(team) == []
    listed = (await team.get("/contacts?limit=2")).json()["data"]
    assert [one["email"] for one in listed] == ["lin@harbor.example", "ada@harbor.example"]


async def test_encodings_and_line_ends(team: Team) -> None:
    """CSV-01: UTF-8 with a byte order mark, UTF-16 LE, Windows-1252, lines that end with CR alone."""
    files = {
        "mark": "\ufeffemail,first_name\nmark@harbor.example,Zoé\n".encode(),
        "utf16": "\ufeffemail;first_name\r\nutf16@harbor.example;Zoé\r\n".encode("utf-16-le"),
        "big": "\ufeffemail;first_name\nbig@harbor.example;Zoé\n".encode("utf-16-be"),
        "cp": "email,first_name\ncp@harbor.example,Zoé\n".encode("cp1252"),
        "cr": "email,first_name\rcr@harbor.example,Zoé\r".encode(),
    }
    for name, content in files.items():
        assert await counts(team, content) == (1, 1, 0, 0, 0), name
        assert (await contact(team, f"{name}@harbor.example"))["first_name"] == "Zoé"


async def test_a_semicolon_file_with_quoted_commas_and_line_ends(team: Team) -> None:
    file = 'email;first_name;last_name\nann@harbor.example;"Lee, Ann";"of\r\nthe; ""Pier"""\n'
    assert await counts(team, file) == (1, 1, 0, 0, 0)
    found = await contact(team, "ann@harbor.example")
    assert (found["first_name"], found["last_name"]) == ("Lee, Ann", 'of the; "Pier"')


@pytest.mark.parametrize(
    ("on_conflict", "expected"), [("upsert", (3, 1, 2, 0, 0)), ("skip", (3, 1, 0, 2, 0))]
)
async def test_one_address_three_times(team: Team, on_conflict: str, expected: tuple[int, ...]) -> None:
    file = "email,first_name\nann@harbor.example,Ann\nANN@harbor.example,Bea\nAnn@Harbor.example,\n"
    assert await counts(team, file, on_conflict=on_conflict) == expected
    name = (await contact(team, "ann@harbor.example"))["first_name"]
    assert name == ("Bea" if on_conflict == "upsert" else "Ann")


async def test_skip_leaves_a_contact_as_it_is(team: Team) -> None:
    segment, topic = await a_segment(team), await a_topic(team)
    await team.post("/contacts", {"email": "ann@harbor.example", "first_name": "Ann"})
    before = dict(await row(team, "ann@harbor.example"))
    made = await counts(
        team,
        "email,first_name\nann@harbor.example,Bea\nnew@harbor.example,New\n",
        on_conflict="skip",
        segments=[{"id": str(segment)}],
        topics=[{"id": str(topic), "subscription": "opt_out"}],
    )
    assert made == (2, 1, 0, 1, 0)
    assert dict(await row(team, "ann@harbor.example")) == before
    assert await segments_of(team, "ann@harbor.example") == []
    assert await topics_of(team, "ann@harbor.example") == {str(topic): "opt_in"}
    assert await segments_of(team, "new@harbor.example") == [str(segment)]
    assert await topics_of(team, "new@harbor.example") == {str(topic): "opt_out"}


async def test_upsert_keeps_what_is_blank_or_not_mapped(team: Team) -> None:
    """A blank name keeps the name; `unsubscribed` that is not mapped stays true."""
    segment, topic = await a_segment(team), await a_topic(team)
    for name in ("ann", "bea"):
        new = {
            "email": f"{name}@harbor.example",
            "first_name": "Old",
            "last_name": "Lee",
            "unsubscribed": True,
        }
        await team.post("/contacts", new)
    places = {"segments": [str(segment)], "topics": [{"id": str(topic), "subscription": "opt_out"}]}
    file = "email,first_name,last_name\nann@harbor.example,,Kay\nbea@harbor.example,,\n"
    assert await counts(team, file, **places) == (2, 0, 2, 0, 0)
    ann, bea = [await contact(team, f"{name}@harbor.example") for name in ("ann", "bea")]
    assert (ann["first_name"], ann["last_name"], ann["unsubscribed"]) == ("Old", "Kay", True)
    assert (bea["first_name"], bea["last_name"], bea["unsubscribed"]) == ("Old", "Lee", True)
    for name in ("ann", "bea"):
        assert await segments_of(team, f"{name}@harbor.example") == [str(segment)]
        assert await topics_of(team, f"{name}@harbor.example") == {str(topic): "opt_out"}
    both = "email,unsubscribed\nann@harbor.example,subscribed\nbea@harbor.example,\ncy@harbor.example,Y\n"
    assert await counts(team, both) == (3, 1, 2, 0, 0)
    said = [(await contact(team, f"{name}@harbor.example"))["unsubscribed"] for name in ("ann", "bea", "cy")]
    assert said == [False, True, True]


async def test_updated_at_moves_only_where_something_changed(team: Team) -> None:
    columns = {"first_name": "first_name", "properties": {"plan": {"column": "plan"}}}
    file = "email,first_name,plan\nann@harbor.example,Ann,pro\nbea@harbor.example,Bea,\n"
    await counts(team, file, column_map=columns)
    before = {name: dict(await row(team, f"{name}@harbor.example")) for name in ("ann", "bea")}
    again = "email,first_name,plan\nann@harbor.example,Ann,pro\nbea@harbor.example,,free\n"
    assert await counts(team, again, column_map=columns) == (2, 0, 2, 0, 0)
    after = {name: dict(await row(team, f"{name}@harbor.example")) for name in ("ann", "bea")}
    assert after["ann"] == before["ann"]
    assert after["bea"]["updated_at"] > before["bea"]["updated_at"]
    assert after["bea"]["created_at"] == before["bea"]["created_at"]
    segment = await a_segment(team)
    await counts(team, "email\nann@harbor.example\n", segments=[str(segment)])
    assert (await row(team, "ann@harbor.example"))["updated_at"] > before["ann"]["updated_at"]


async def test_properties_are_defined_with_the_import_and_merge(team: Team) -> None:
    columns = {
        "email": "E-mail",
        "properties": {
            "plan": {"column": "Plan"},
            "seats": {"column": "Seats", "type": "number"},
            "active": {"column": "Active", "type": "boolean"},
            "copy": {"column": "Plan"},
        },
    }
    file = "Plan,Seats,E-mail,Active\npro,1.5,ann@harbor.example,yes\n,-2,ann@harbor.example,\n"
    assert await counts(team, file, column_map=columns) == (2, 1, 1, 0, 0)
    assert (await contact(team, "ann@harbor.example"))["properties"] == {
        "active": {"value": True, "type": "boolean"},
        "copy": {"value": "pro", "type": "string"},
        "plan": {"value": "pro", "type": "string"},
        "seats": {"value": -2, "type": "number"},
    }
    defined = (await team.get("/contact-properties")).json()["data"]
    assert {one["key"]: (one["type"], one["fallback_value"]) for one in defined} == {
        "plan": ("string", None),
        "seats": ("number", None),
        "active": ("boolean", None),
        "copy": ("string", None),
    }


async def test_row_errors_are_told_in_the_order_of_the_file(team: Team) -> None:
    """CSV-01: a failed row changes nothing; blank lines are not counted; an import of failed rows
    completes."""
    file = (
        "email,first_name,unsubscribed\nann@harbor.example,Ann,\n\nnot-an-address,,\n,Bea,\n"
        f"ann@harbor.example,{'x' * 256},\nann@harbor.example,Cee,perhaps\nAnn <ann@harbor.example>,,\n"
    )
    made = await imported(team, file)
    assert made["counts"] == {**NONE, "total": 6, "created": 1, "failed": 5}
    assert await errors(team, made["id"]) == [
        (2, "not-an-address", "invalid_email"),
        (3, None, "missing_email"),
        (4, "ann@harbor.example", "value_too_long"),
        (5, "ann@harbor.example", "invalid_unsubscribed"),
        (6, "Ann <ann@harbor.example>", "invalid_email"),
    ]
    assert (await contact(team, "ann@harbor.example"))["first_name"] == "Ann"
    path = f"/contacts/imports/{made['id']}/errors"
    first = (await team.get(f"{path}?limit=2")).json()
    assert (first["has_more"], [one["row"] for one in first["data"]]) == (True, [2, 3])
    assert list(first["data"][0]) == ["id", "row", "email", "reason"]
    after = (await team.get(f"{path}?limit=2&after={first['data'][1]['id']}")).json()
    assert (after["has_more"], [one["row"] for one in after["data"]]) == (True, [4, 5])
    before = (await team.get(f"{path}?limit=1&before={after['data'][0]['id']}")).json()
    assert (before["has_more"], [one["row"] for one in before["data"]]) == (True, [3])
    bad = await imported(team, "email\n" + "x\n" * 1500)
    assert (bad["status"], bad["counts"]["failed"]) == ("completed", 1500)
    listed = "SELECT count(*) FROM contact_import_errors WHERE import_id = $1::text::uuid"
    assert await team.world.pool.fetchval(listed, bad["id"]) == 1000


async def test_a_header_alone_and_a_file_without_a_line_end(team: Team) -> None:
    assert await counts(team, "email") == (0, 0, 0, 0, 0)
    assert await counts(team, "email,first_name\n\n \n") == (0, 0, 0, 0, 0)
    assert await counts(team, "email\nann@harbor.example") == (1, 1, 0, 0, 0)


async def test_a_file_that_cannot_be_read_on_keeps_what_came_before(team: Team) -> None:
    """NUL, a quote that never closes, bytes that the encoding does not have, a cell that is too large."""
    large = b'"' + b"x" * 1_048_577 + b'"'
    cases = {
        "invalid_character": b"email\na@x.example\nb\0@x.example\n",
        "unclosed_quote": b'email\na@x.example\n"b@x.example\nc@x.example\n',
        "invalid_encoding": b"\xef\xbb\xbfemail\na@x.example\nb\xff@x.example\n",
        "field_too_large": b"email,x\na@x.example,\nb@x.example," + large + b"\nc@x.example\n",
    }
    for reason, content in cases.items():
        made = await imported(team, content)
        assert (made["status"], made["counts"]["total"]) == ("failed", 1), reason
        assert made["completed_at"] is not None
        assert await errors(team, made["id"]) == [(2, None, reason)]
    assert (await team.get("/contacts/a@x.example")).status_code == 200
    assert (await team.get("/contacts/b@x.example")).status_code == 404


async def test_half_a_surrogate_pair_spoils_its_row(team: Team) -> None:
    rows = "\ufeffemail,first_name\na@x.example,A".encode("utf-16-le") + b"\x00\xd8"
    rows += "\nb@x.example,B\n".encode("utf-16-le")
    assert await reasons(team, rows) == [(1, "a@x.example", "invalid_character")]
    assert (await contact(team, "b@x.example"))["first_name"] == "B"


async def test_imports_of_a_team_wait_for_each_other(team: Team) -> None:
    """The answer is 201 while another import of the team goes on, and the second one is queued."""
    many = "email\n" + "".join(f"reader.{number}@x.example\n" for number in range(20_000))
    first, second = await accepted(team, many), await accepted(team, "email\nlast@x.example\n")
    pair: tuple[str, str] = ("", "")
    seen = set()
    while pair[0] != "completed":
        listed = (await team.get("/contacts/imports")).json()["data"]
        assert [one["id"] for one in listed] == [second, first]
        pair = (listed[1]["status"], listed[0]["status"])
        seen.add(pair)
        for one in listed:
            told = one["counts"]
            assert told["total"] == sum(list(told.values())[1:])
    assert all(waiting == "queued" for before, waiting in seen if before != "completed"), seen
    ends = [await ended(team, one) for one in (first, second)]
    assert [one["counts"]["total"] for one in ends] == [20_000, 1]
    assert ends[0]["completed_at"] <= ends[1]["completed_at"]
    completed = (await team.get("/contacts/imports?status=completed&limit=1")).json()
    assert (completed["has_more"], completed["data"][0]["id"]) == (True, second)
    assert (await team.get("/contacts/imports?status=queued")).json()["data"] == []


async def test_what_is_deleted_meanwhile_is_left_out(team: Team) -> None:
    """A segment, a topic and a property of an import that waits."""
    gone, kept = await a_segment(team), await a_segment(team, "Others")
    topic = await a_topic(team)
    before = "email\n" + "".join(f"reader.{number}@x.example\n" for number in range(20_000))
    await accepted(team, before)
    waiting = await accepted(
        team,
        "email,plan,seats\nann@x.example,pro,1\n",
        column_map={
            "properties": {"plan": {"column": "plan"}, "seats": {"column": "seats", "type": "number"}}
        },
        segments=[str(gone), str(kept)],
        topics=[{"id": str(topic), "subscription": "opt_out"}],
    )
    assert (await team.call("DELETE", f"/segments/{gone}")).status_code == 200
    assert (await team.call("DELETE", f"/topics/{topic}")).status_code == 200
    defined = {one["key"]: one["id"] for one in (await team.get("/contact-properties")).json()["data"]}
    assert (await team.call("DELETE", f"/contact-properties/{defined['plan']}")).status_code == 200
    assert (await ended(team, waiting))["counts"]["created"] == 1
    assert (await contact(team, "ann@x.example"))["properties"] == {"seats": {"value": 1, "type": "number"}}
    assert await segments_of(team, "ann@x.example") == [str(kept)]
    assert await team.world.pool.fetchval("SELECT count(*) FROM topic_choices") == 0


async def test_what_the_lists_refuse(team: Team) -> None:
    unknown = uuid4()
    asked = {
        "/contacts/imports?limit=101": 422,
        "/contacts/imports?status=done": 422,
        "/contacts/imports/xyz": 422,
        f"/contacts/imports/{unknown}": 404,
        f"/contacts/imports/{unknown}/errors": 404,
    }
    for path, status in asked.items():
        answer = await team.get(path)
        assert answer.status_code == status, path
    assert (await team.get(f"/contacts/imports/{unknown}")).json()["message"] == "Contact import not found"


async def test_the_file_goes_with_the_end_of_the_import(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        await imported(team, "email\nann@x.example\n")
        await imported(team, b"email\nann@x.example\n\0")
        left = "SELECT count(*) FROM contact_imports WHERE blob IS NOT NULL"
        while await team.world.pool.fetchval(left):
            pass
        assert [path for path in (tmp_path / "blobs").rglob("imports/**/*") if path.is_file()] == []


async def test_verify_finds_no_gap_in_imports_and_knows_those_that_there_are(
    database_url: str, tmp_path: Path
) -> None:
    """Also of a file with one column, for whose cells nothing divides."""
    async with importing_team(database_url, tmp_path) as team:
        await imported(team, "email\nann@x.example\nbad\n")
        await imported(team, "email,first_name\nann@x.example,Ann\n\0")
        job = "SELECT count(*) FROM jobs WHERE kind = 'contacts.import'"
        while await team.world.pool.fetchval(job):
            await asyncio.sleep(0.01)
        await reconciled(database_url)
        await team.world.pool.execute("UPDATE contact_imports SET created = created + 1")
        await team.world.pool.execute(
            "UPDATE contact_imports SET status = 'in_progress', completed_at = NULL WHERE failed = 1"
        )
        found = await reconcile(team.world.pool, 100, INVARIANTS)
        names = {gap.name for gap in found.gaps}
        assert {"import_counts_differ", "import_without_job", "import_without_file"} <= names


async def test_the_detail_of_an_import_goes_after_90_days(database_url: str, tmp_path: Path) -> None:
    """The import stays, with its counts; a file that nobody removed goes at once."""
    async with importing_team(database_url, tmp_path) as team:
        old, new = [await imported(team, "email\nann@x.example\nbad\n") for _ in range(2)]
        pool, app = team.world.pool, team.world.app
        await pool.execute(
            "UPDATE contact_imports SET completed_at = now() - interval '91 days' WHERE id = $1::text::uuid",
            old["id"],
        )
        await app.need(BlobStore).put("imports/left", b"x")
        left = "UPDATE contact_imports SET blob = 'imports/left' WHERE id = $1::text::uuid"
        await pool.execute(left, new["id"])
        done = await app.need(ImportRetention).collect()
        assert done == "1 files, details of 1 imports"
        assert await errors(team, old["id"]) == []
        assert await errors(team, new["id"]) == [(2, "bad", "invalid_email")]
        assert (await team.get(f"/contacts/imports/{old['id']}")).json()["counts"] == old["counts"]
        assert await app.need(BlobStore).size("imports/left") is None
        assert await pool.fetchval("SELECT count(*) FROM contact_imports WHERE blob IS NOT NULL") == 0
        await reconciled(database_url)


async def test_writers_of_one_address_lose_nothing(database_url: str, tmp_path: Path) -> None:
    """Upserts by the API, PATCHes and imports at the same time: one contact, every member of every body."""
    async with importing_team(database_url, tmp_path) as team:
        for key in ("plan", "seats", "tier"):
            await team.post("/contact-properties", {"key": key, "type": "string"})
        columns = {"last_name": "last", "properties": {"plan": {"column": "plan"}}}
        rows = "email,last,plan\n" + "".join(f"r{number}@x.example,L,p\n" for number in range(400))
        others = [f"r{number}@x.example" for number in range(0, 400, 40)]

        writers = asyncio.Semaphore(20)

        async def upsert(address: str, number: int) -> int:
            body = {"email": address, "first_name": f"First {number}", "properties": {"seats": str(number)}}
            async with writers:
                return (await team.post("/contacts", body)).status_code

        async def patch(address: str) -> int:
            async with writers:
                return (await team.call("PATCH", f"/contacts/{address}", {"unsubscribed": True})).status_code

        for address in others:
            await upsert(address, 0)
        imports = [await accepted(team, rows, column_map=columns) for _ in range(3)]
        upserts = [upsert(address, number) for number in range(20) for address in others]
        said = await asyncio.gather(*upserts, *[patch(address) for address in others for _ in range(3)])
        assert set(said) <= {200, 201}
        ends = [await ended(team, one) for one in imports]
        assert [one["counts"]["total"] for one in ends] == [400] * 3
        assert [one["status"] for one in ends] == ["completed"] * 3
        assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == 400
        for address in others:
            found = await contact(team, address)
            assert (found["last_name"], found["unsubscribed"]) == ("L", True)
            assert found["first_name"].startswith("First ")
            assert found["properties"].keys() == {"plan", "seats"}
        await reconciled(database_url)
