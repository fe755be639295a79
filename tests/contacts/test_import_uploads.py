"""How a file comes in (contact-imports.md 1): forms, what is checked before the answer, and what is left of
those that are refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.audience import a_segment, a_topic
from kit.imports import BOUNDARY, ended, errors, form, importing_team, post, post_form
from kit.world import Team
from pillarbox.contacts.imports.intake import MOST_BYTES, UPLOADS_OF_TEAM

FILE = b"email,Plan,Plan two\nann@x.example,a,b\n"
PLAN = {"plan": {"column": "Plan"}}


async def nothing_is_kept(team: Team, folder: Path) -> None:
    """No import, no property, no job, no file."""
    for table in ("contact_imports", "contact_properties", "contacts"):
        assert await team.world.pool.fetchval(f"SELECT count(*) FROM {table}") == 0
    assert await team.world.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'contacts.import'") == 0
    assert [path for path in (folder / "blobs").rglob("imports/**/*") if path.is_file()] == []


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "Invalid `file` field. It is empty."),
    "no email": (b"mail\na@x.example\n", 'CSV missing required "email" column'),
    "other case": (b"Email\na@x.example\n", 'CSV missing required "email" column'),
    "email twice": (b"email,email\na@x.example,\n", 'more than one "email"'),
    "nul in header": (b"email\0\n", "NUL"),
    "utf-16 without mark": ("email\na@x.example\n".encode("utf-16-le"), "NUL"),
    "only blanks": (b"\n \n,,\n", "no header row"),
    "100,000 columns": (b"email," + b"a," * 100_000 + b"\n", "65536 bytes"),
    "1,001 columns": (b"email," + b"a," * 1000 + b"\n", "1000 columns"),
    "quote never closes": (b'"email\n' + b"a@x.example\n" * 10, "quote"),
    "blank beginning": (b"\n" * 300_000 + b"email\n", "first 262144 bytes"),
}

FIELDS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no mapped email": ({"column_map": {"email": "E-mail"}}, 422, 'CSV missing required "E-mail" column'),
    "no mapped column": ({"column_map": {"first_name": "Name", "properties": PLAN}}, 422, '"Name"'),
    "no property column": ({"column_map": {"properties": {"a": {"column": "A"}}}}, 422, '"A"'),
    "map no json": ({"column_map": "{"}, 422, "`column_map`"),
    "map no object": ({"column_map": []}, 422, "`column_map`"),
    "column no text": ({"column_map": {"first_name": 1}}, 422, "`column_map.first_name`"),
    "column empty": ({"column_map": {"first_name": " "}}, 422, "`column_map.first_name`"),
    "properties no object": ({"column_map": {"properties": [1]}}, 422, "`column_map.properties`"),
    "property no object": ({"column_map": {"properties": {"a": "b"}}}, 422, "`column_map.properties.a`"),
    "no column": ({"column_map": {"properties": {"a": {}}}}, 422, "Missing `column_map.properties.a.column`"),
    "type": ({"column_map": {"properties": {"a": {"column": "Plan", "type": "date"}}}}, 422, "`number`"),
    "key": ({"column_map": {"properties": {"a b": {"column": "Plan"}}}}, 422, "letters, digits"),
    "long key": ({"column_map": {"properties": {"a" * 51: {"column": "Plan"}}}}, 422, "letters, digits"),
    "reserved": ({"column_map": {"properties": {"EMAIL": {"column": "Plan"}}}}, 422, "reserved"),
    "conflict": ({"on_conflict": "merge"}, 422, "`on_conflict`"),
    "segments no array": ({"segments": {}}, 422, "`segments`"),
    "segment no id": ({"segments": [1]}, 422, "`segments`"),
    "segment no uuid": ({"segments": ["x"]}, 422, "valid UUID"),
    "101 segments": ({"segments": [str(uuid4())] * 101}, 422, "at most 100"),
    "unknown segment": ({"segments": [str(uuid4())], "column_map": {"properties": PLAN}}, 404, "Segment not"),
    "topic no subscription": ({"topics": [{"id": str(uuid4())}]}, 422, "Missing `subscription`"),
    "topic subscription": ({"topics": [{"id": str(uuid4()), "subscription": "in"}]}, 422, "`subscription`"),
    "101 topics": ({"topics": [{"id": str(uuid4()), "subscription": "opt_in"}] * 101}, 422, "at most 100"),
    "unknown topic": ({"topics": [{"id": str(uuid4()), "subscription": "opt_in"}]}, 404, "Topic not found"),
    "deep json": ({"segments": "[" * 50_000}, 422, "`segments`"),
    "nul in json": ({"column_map": '{"first_name":"a\\u0000"}'}, 422, "NUL"),
}


async def test_a_file_that_is_refused_leaves_nothing(database_url: str, tmp_path: Path) -> None:
    """Not even the property that it would have."""
    async with importing_team(database_url, tmp_path) as team:
        for name, (content, words) in FILES.items():
            answer = await post(team, content)
            assert (answer.status_code, list(answer.json())) == (422, ["statusCode", "message", "name"]), name
            assert words in answer.json()["message"], f"{name}: {answer.text}"
        twice = await post(team, b"email,Plan,Plan\n", column_map={"properties": PLAN})
        assert (twice.status_code, 'more than one "Plan"' in twice.json()["message"]) == (422, True)
        await nothing_is_kept(team, tmp_path)


async def test_fields_that_are_refused_leave_nothing(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        for name, (fields, status, words) in FIELDS.items():
            answer = await post(team, FILE, **fields)
            assert answer.status_code == status, f"{name}: {answer.text}"
            assert words in answer.json()["message"], f"{name}: {answer.text}"
        await nothing_is_kept(team, tmp_path)


@pytest.fixture
def team(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Team]:
    return importing_team(database_url, tmp_path)


async def test_a_property_of_another_type_is_refused(team: Team) -> None:
    await team.post("/contact-properties", {"key": "seats", "type": "number"})
    columns = {"properties": {"plan": {"column": "Plan"}, "seats": {"column": "Plan two"}}}
    answer = await post(team, FILE, column_map=columns)
    assert answer.status_code == 422
    assert "`seats`" in answer.json()["message"]
    assert [one["key"] for one in (await team.get("/contact-properties")).json()["data"]] == ["seats"]


async def test_a_segment_and_a_topic_of_another_team_are_unknown(team: Team) -> None:
    other = await team.world.team("Quay")
    segment, topic = await a_segment(other), await a_topic(other)
    assert (await post(team, FILE, segments=[str(segment)])).status_code == 404
    choice = {"id": str(topic), "subscription": "opt_in"}
    assert (await post(team, FILE, topics=[choice])).status_code == 404
    made = (await post(other, FILE, segments=[{"id": str(segment)}], topics=[choice])).json()
    assert (await team.get(f"/contacts/imports/{made['id']}")).status_code == 404
    assert (await team.get(f"/contacts/imports/{made['id']}/errors")).status_code == 404
    assert (await ended(other, made["id"]))["counts"]["created"] == 1


async def test_parts_come_in_any_order_and_unknown_ones_are_ignored(team: Team) -> None:
    """The file part before the fields and behind them; an empty field is as good as none."""
    file = ("file", b"E-mail\nann@x.example\n", "")
    fields = [("column_map", b'{"email":"E-mail"}'), ("on_conflict", b""), ("more", b"x")]
    for parts in ([file, *fields], [*fields, file], [fields[2], file, *fields[:2]]):
        answer = await post_form(team, form(*parts))
        assert answer.status_code == 201, answer.text
        assert (await ended(team, answer.json()["id"]))["status"] == "completed"


async def test_a_part_is_given_once(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        for name in ("file", "column_map"):
            content = FILE if name == "file" else b"{}"
            answer = await post_form(team, form(("file", FILE, "a.csv"), (name, content), (name, content)))
            assert (answer.status_code, f"`{name}`" in answer.json()["message"]) == (422, True)
        answer = await post_form(team, form(("column_map", b"{}")))
        assert (answer.status_code, answer.json()["name"]) == (422, "missing_required_field")
        assert answer.json()["message"] == "Missing `file` field."
        await nothing_is_kept(team, tmp_path)


BROKEN = {
    "no boundary": b"email\na@x.example\n",
    "no last boundary": form(("file", FILE, "a.csv"))[:-8],
    "no headers": f"--{BOUNDARY}\r\n\r\nx\r\n--{BOUNDARY}--\r\n".encode(),
    "no name": f"--{BOUNDARY}\r\nContent-Disposition: form-data\r\n\r\nx\r\n--{BOUNDARY}--\r\n".encode(),
    "endless header": f"--{BOUNDARY}\r\n".encode() + b"x" * 100_000,
    "many parts": form(*[("x", b"")] * 101),
    "text behind boundary": f"--{BOUNDARY}x\r\n\r\n".encode(),
    "nothing": b"",
}


async def test_a_body_that_is_no_form(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        for name, body in BROKEN.items():
            answer = await post_form(team, body)
            assert answer.status_code == 400, f"{name}: {answer.text}"
        for media in ("application/json", "text/csv", "multipart/form-data", "multipart/mixed; boundary=x"):
            answer = await team.http.post("/contacts/imports", content=b"x", headers={"content-type": media})
            assert (answer.status_code, answer.json()["name"]) == (422, "validation_error"), media
        assert (await team.http.post("/contacts/imports")).status_code == 422
        packed = {"content-type": f"multipart/form-data; boundary={BOUNDARY}", "content-encoding": "gzip"}
        answer = await team.http.post("/contacts/imports", content=form(("file", FILE)), headers=packed)
        assert answer.status_code == 415
        answer = await post_form(team, form(("segments", b" " * 1_048_577), ("file", FILE, "a")))
        assert answer.status_code == 413
        await nothing_is_kept(team, tmp_path)


async def test_who_may_not_is_refused_before_the_body_is_read(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        sending = team.using(await team.key(permission="sending_access"))
        assert (await post(sending, FILE)).status_code == 401
        assert (await post(team.using("re_unknown0_" + "x" * 24), FILE)).status_code in (401, 403)
        await nothing_is_kept(team, tmp_path)


HEADER = b"email\n"


async def zeros(octets: int, sent: list[int]) -> AsyncIterator[bytes]:
    """A form with a file of so many bytes in all, its header and zeros, in chunks."""
    yield form(("file", HEADER, "zeros.csv")).rpartition(b"\r\n--")[0]
    left = octets - len(HEADER)
    while left > 0:
        piece = bytes(min(left, 1024 * 1024))
        left -= len(piece)
        sent[0] += len(piece)
        yield piece
    yield f"\r\n--{BOUNDARY}--\r\n".encode()


async def spoken(team: Team, pieces: AsyncIterator[bytes], *headers: str) -> bytes:
    """What is answered to a body that is sent until there is an answer."""
    address = team.world.url.removeprefix("http://")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = (
        "POST /contacts/imports HTTP/1.1",
        f"Host: {address}",
        f"Authorization: Bearer {team.token}",
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}",
        *headers,
    )
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
    async for piece in pieces:
        writer.write(piece if "chunked" not in "".join(headers) else b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
        if answer.done():
            break
    head = await answer
    writer.close()
    return head


async def test_a_gigabyte_of_zeros_is_refused_and_not_kept(database_url: str, tmp_path: Path) -> None:
    """Chunked, so that nobody knows its size before."""
    async with importing_team(database_url, tmp_path) as team:
        sent = [0]
        head = await spoken(team, zeros(1024**3, sent), "Transfer-Encoding: chunked")
        assert head.startswith(b"HTTP/1.1 413 ")
        assert sent[0] < 1024**3
        await nothing_is_kept(team, tmp_path)


async def test_one_byte_too_many_is_refused(database_url: str, tmp_path: Path) -> None:
    """209,715,201 bytes of a file; and a body that is announced as larger than any form, of which nothing is
    read."""
    async with importing_team(database_url, tmp_path) as team:
        head = await spoken(team, zeros(0, [0]), "Content-Length: 300000000")
        assert head.startswith(b"HTTP/1.1 413 ")
        answer = await post_form(team, zeros(MOST_BYTES + 1, [0]))
        assert answer.status_code == 413
        assert str(MOST_BYTES) in answer.json()["message"]
        await nothing_is_kept(team, tmp_path)


async def test_the_largest_file_is_taken(team: Team) -> None:
    """209,715,200 bytes."""
    answer = await post_form(team, zeros(MOST_BYTES, [0]))
    assert answer.status_code == 201, answer.text
    found = await ended(team, answer.json()["id"])
    assert (found["status"], found["counts"]["total"]) == ("failed", 0)
    assert await errors(team, found["id"]) == [(1, None, "invalid_character")]


async def test_a_client_that_leaves_leaves_nothing(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        address = team.world.url.removeprefix("http://")
        host, _, port = address.partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST /contacts/imports HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {team.token}\r\n"
            f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: 100000000\r\n\r\n"
        )
        writer.write(head.encode() + form(("file", b"email\n" + b"x" * 3_000_000, "a.csv"))[:2_900_000])
        await writer.drain()
        folder = tmp_path / "blobs"
        while not [path for path in folder.rglob(".partial-*") if path.stat().st_size > 1_000_000]:
            await asyncio.sleep(0.01)
        writer.close()
        while [path for path in folder.rglob("*") if path.is_file() and "imports" in path.parts]:
            await asyncio.sleep(0.01)
        await nothing_is_kept(team, tmp_path)


async def test_a_team_uploads_a_few_files_at_a_time(database_url: str, tmp_path: Path) -> None:
    async with importing_team(database_url, tmp_path) as team:
        go_on = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            whole = form(("file", b"email\n", "a.csv"))
            yield whole[:-10]
            await go_on.wait()
            yield whole[-10:]

        uploads = [asyncio.create_task(post_form(team, slow())) for _ in range(UPLOADS_OF_TEAM)]
        while len(list((tmp_path / "blobs").rglob(".partial-*"))) < UPLOADS_OF_TEAM:
            await asyncio.sleep(0.01)
        answer = await post(team, b"email\n")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        go_on.set()
        assert {(await upload).status_code for upload in uploads} == {201}
        assert (await post(team, b"email\n")).status_code == 201


async def test_the_log_of_requests_has_no_file(team: Team) -> None:
    answer = await post(team, b"email\nsecret.person@x.example\n")
    shown = (await team.get(f"/logs/{answer.headers['x-request-id']}")).json()
    assert (shown["response_status"], shown["endpoint"]) == (201, "/contacts/imports")
    assert "secret.person" not in json.dumps(shown)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_a_form_is_read_however_it_is_cut(team: Team, size: int) -> None:
    tricky = b'email,x\nann@x.example,"\r\n--\r\n--' + BOUNDARY[:-1].encode() + b'"\n'
    parts = form(("file", tricky, "a.csv"), ("on_conflict", b"skip"))
    whole = parts + b"epilogue"

    async def cut() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    answer = await post_form(team, cut())
    assert answer.status_code == 201, answer.text
    found = await ended(team, answer.json()["id"])
    assert (found["status"], found["counts"]["created"]) == ("completed", 1)
