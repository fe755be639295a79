"""Lists that are wanted whole are sent as they are read, whatever their length (conventions section 10)."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from kit.audience import a_contact, a_property, a_segment, a_topic, joins
from kit.brought import ROUTES
from kit.builders import Made
from kit.inbound_client import inbound_client, receiving_domain
from kit.world import Team, World, world
from pillarbox.contacts import reading
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.wire.paging import BLOCK

MOST_IN_PIECE = 256 * 1024

SHORT = {
    "/emails/{email_id}/attachments": "an email has at most 100",
    "/emails/receiving/{email_id}/attachments": "a message is read as at most 1000 parts",
}
"""Lists that are whole without `limit` and short by their nature."""


class Many(NamedTuple):
    """How a list gets long: one thing is made through the API, and its row is copied, with `changes` to each
    copy `n`. What the path names is in `parts`. `block`: rows that are read at once."""

    make: Callable[[World, Team], Awaitable[object]]
    table: str
    changes: str = "{}"
    parts: Callable[[Team], Awaitable[Made]] | None = None
    block: int = BLOCK

    @property
    def rows(self) -> int:
        return 12 * self.block + 7


async def a_received_email(here: World, team: Team) -> None:
    await receiving_domain(team)
    async with inbound_client(here) as post:
        assert (await post.deliver(b"Subject: x\r\n\r\nx\r\n", ["ann@harbor.example"])).startswith("250")


async def a_webhook(here: World, team: Team) -> None:
    made = await team.post("/webhooks", {"endpoint": "https://h.example/x", "events": ["email.sent"]})
    assert made.status_code == 201, made.text


async def all_in_a_segment(team: Team) -> Made:
    """All contacts of the team in one segment."""
    made = await a_segment(team)
    await joins(team, made, list(await team.db.values("SELECT id FROM contacts WHERE team_id = $1")))
    return {"segment_id": str(made), "audience_id": str(made)}


async def one_in_all_segments(team: Team) -> Made:
    """A contact in all segments of the team."""
    contact = await a_contact(team, "ada@quay.example")
    await team.db.run(
        "INSERT INTO segment_members (team_id, segment_id, contact_id, added_at) "
        "SELECT team_id, id, $2, now() FROM segments WHERE team_id = $1",
        contact,
    )
    return {"contact": str(contact)}


async def one_beside(team: Team) -> Made:
    return {"contact": str(await a_contact(team, "ada@quay.example"))}


CONTACTS = Many(
    lambda here, team: a_contact(team, "ada@quay.example"),
    "contacts",
    '{"address": "n%@quay.example"}',
    block=reading.BLOCK,
)
SEGMENTS = Many(lambda here, team: a_segment(team), "segments")

MANY = {
    "/emails/receiving": Many(a_received_email, "received_emails"),
    "/domains": Many(lambda here, team: team.domain(), "domains", '{"name": "n%.example"}'),
    "/api-keys": Many(lambda here, team: team.key(), "api_keys"),
    "/webhooks": Many(a_webhook, "webhooks"),
    "/contacts": CONTACTS,
    "/contact-properties": Many(
        lambda here, team: a_property(team), "contact_properties", '{"key": "n%", "number": 9%}'
    ),
    "/contacts/{contact}/segments": SEGMENTS._replace(parts=one_in_all_segments),
    "/contacts/{contact}/topics": Many(lambda here, team: a_topic(team), "topics", parts=one_beside),
    "/segments": SEGMENTS,
    "/segments/{segment_id}/contacts": CONTACTS._replace(parts=all_in_a_segment),
    "/audiences": SEGMENTS,
    "/audiences/{audience_id}/contacts": CONTACTS._replace(parts=all_in_a_segment),
}


def whole_lists() -> list[Route]:
    """The routes whose list is whole without `limit`."""
    return [
        route
        for route in ROUTES
        if "limit" in route.query and "default=None" in inspect.getsource(route.handler)
    ]


def test_every_list_that_is_whole_without_limit_is_measured_here() -> None:
    assert {route.path for route in whole_lists()} == MANY.keys() | SHORT.keys()


@pytest.mark.parametrize("path", MANY)
async def test_a_long_list_holds_neither_the_loop_nor_memory(
    path: str, database_url: str, tmp_path: Path
) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        many = MANY[path]
        team, path = await filled(here, path)
        pieces, turns = await pieces_of(here, team, path)
        ids = [item["id"] for item in json.loads(b"".join(pieces))["data"]]
        assert len(ids) >= many.rows
        assert ids == sorted(set(ids), reverse=True)
        assert max(map(len, pieces)) <= MOST_IN_PIECE
        assert len(pieces) > many.rows // many.block
        assert all(later > earlier for earlier, later in pairwise(turns))
        middle = ids[len(ids) // 2]
        older = (await team.get(f"{path}?after={middle}")).json()
        newer = (await team.get(f"{path}?before={middle}")).json()
        assert [item["id"] for item in newer["data"]] + [middle] + [i["id"] for i in older["data"]] == ids
        assert (newer["has_more"], older["has_more"]) == (False, False)


async def test_the_pieces_on_the_wire(database_url: str, tmp_path: Path) -> None:
    """RFC 9112, 6.3 and 7.1: chunks, and for HTTP/1.0 the end of the connection."""
    async with world(database_url, tmp_path, started=False) as here:
        team, _ = await filled(here, "/webhooks")
        first = await team.get("/webhooks")
        assert first.headers["transfer-encoding"] == "chunked"
        assert "content-length" not in first.headers
        assert len(first.json()["data"]) >= MANY["/webhooks"].rows
        old = await said(here, f"GET /webhooks HTTP/1.0\r\nAuthorization: Bearer {team.token}\r\n\r\n")
        head, _, body = old.partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert json.loads(body) == first.json()
        asked = (
            "HEAD /webhooks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {team.token}\r\n\r\n"
        )
        head, _, body = (await said(here, asked)).partition(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert body == b""


async def test_nothing_more_is_read_for_a_client_that_left(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path, started=False) as here:
        team, _ = await filled(here, "/api-keys")
        pieces, _ = await pieces_of(here, team, "/api-keys", leaves_after=2)
        assert len(pieces) == 2


async def filled(here: World, path: str) -> tuple[Team, str]:
    """A team whose list has at least so many rows, and the path of the list."""
    team = await here.team()
    many = MANY[path]
    await many.make(here, team)
    await here.pool.execute(
        f"""
        INSERT INTO {many.table}
        SELECT (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid())
                                         || replace($3, '%', n::text)::jsonb)).*
          FROM (SELECT m FROM {many.table} AS m WHERE team_id = $1 LIMIT 1) AS one (t),
               generate_series(1, $2::integer) AS n
        """,
        team.id,
        many.rows,
        many.changes,
    )
    return team, path.format(**(await many.parts(team))) if many.parts else path


async def pieces_of(
    here: World, team: Team, path: str, leaves_after: int = 10_000
) -> tuple[list[bytes], list[int]]:
    """The pieces of an answer, and how often the loop had gone round before each."""
    pieces: list[bytes] = []
    turns: list[int] = []
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            if len(pieces) == leaves_after:
                raise ClientGone
            pieces.append(message["body"])
            turns.append(rounds)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(b"authorization", f"Bearer {team.token}".encode())],
    }
    counting = asyncio.create_task(count())
    await here.app.asgi(scope, receive, send)
    counting.cancel()
    return pieces, turns[:-1]


async def said(here: World, request: str) -> bytes:
    """Everything that is answered until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(here.url).port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer
