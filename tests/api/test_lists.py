"""Lists that are wanted whole are sent as they are read, whatever their length (conventions section 10)."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from kit.broadcasts import made as made_broadcast
from kit.brought import ROUTES
from kit.inbound_client import inbound_client, receiving_domain
from kit.world import Team, World
from pillarbox.contacts.reading import BLOCK as CONTACTS_BLOCK
from pillarbox.kernel.http.body import ClientGone
from pillarbox.kernel.http.routing import Route
from pillarbox.kernel.wire.paging import BLOCK

MOST_IN_PIECE = 256 * 1024

SHORT = {
    "/emails/{email_id}/attachments": "an email has at most 100",
    "/emails/receiving/{email_id}/attachments": "a message is read as at most 1000 parts",
}
"""Lists that are whole without `limit` and short by their nature."""


ELSEWHERE = {
    "/broadcasts/{broadcast_id}/clicked-links": "its rows are sums of the history",
}
"""Lists that are whole without `limit` and are measured where their rows are made."""


class Many(NamedTuple):
    """How a list gets long: one thing is made through the API, and its row is copied, with `unique` in place
    of what may be there once; `then` makes items of the list of the copies. `block` rows are read at once."""

    make: Callable[[World, Team], Awaitable[object]]
    table: str
    unique: str = "jsonb_build_object()"
    block: int = BLOCK
    then: str | None = None

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


async def a_contact(here: World, team: Team) -> None:
    """In a segment, and with a topic to choose."""
    await team.post("/topics", {"name": "Tides", "default_subscription": "opt_in"})
    segment = (await team.post("/segments", {"name": "Beta"})).json()["id"]
    made = await team.post("/contacts", {"email": "ann@quay.example", "segments": [segment]})
    assert made.status_code == 201, made.text


async def a_broadcast(here: World, team: Team) -> None:
    await made_broadcast(team)


async def a_property(here: World, team: Team) -> None:
    made = await team.post("/contact-properties", {"key": "plan", "type": "string"})
    assert made.status_code == 201, made.text


ADDRESSES = "jsonb_build_object('address', 'n' || n || '.example')"
EVERYBODY = """
    INSERT INTO segment_members
    SELECT s.team_id, s.id, c.id, now() FROM segments s JOIN contacts c USING (team_id)
    ON CONFLICT DO NOTHING
"""
MEMBERS = Many(make=a_contact, table="contacts", unique=ADDRESSES, block=CONTACTS_BLOCK, then=EVERYBODY)

MANY = {
    "/emails/receiving": Many(a_received_email, "received_emails"),
    "/domains": Many(
        lambda here, team: team.domain(), "domains", "jsonb_build_object('name', 'n' || n || '.example')"
    ),
    "/api-keys": Many(lambda here, team: team.key(), "api_keys"),
    "/webhooks": Many(a_webhook, "webhooks"),
    "/contacts": Many(a_contact, "contacts", ADDRESSES, CONTACTS_BLOCK),
    "/contacts/{contact}/segments": Many(a_contact, "segments", then=EVERYBODY),
    "/contacts/{contact}/topics": Many(a_contact, "topics"),
    "/contact-properties": Many(
        a_property, "contact_properties", "jsonb_build_object('key', 'k' || n, 'number', n + 1)"
    ),
    "/segments": Many(a_contact, "segments"),
    "/broadcasts": Many(a_broadcast, "broadcasts"),
    "/segments/{segment_id}/contacts": MEMBERS,
    "/audiences": Many(a_contact, "segments"),
    "/audiences/{audience_id}/contacts": MEMBERS,
}


def whole_lists() -> list[Route]:
    """The routes whose list is whole without `limit`."""
    return [
        route
        for route in ROUTES
        if "limit" in route.query and "default=None" in inspect.getsource(route.handler)
    ]


def test_every_list_that_is_whole_without_limit_is_measured_here() -> None:
    assert {route.path for route in whole_lists()} == {*MANY, *SHORT, *ELSEWHERE}


@pytest.mark.parametrize("path", MANY)
async def test_a_long_list_holds_neither_the_loop_nor_memory(path: str, pillarbox: World) -> None:
    team, rows, block = await filled(pillarbox, path), MANY[path].rows, MANY[path].block
    path = await named(team, path)
    pieces, turns = await pieces_of(pillarbox, team, path)
    ids = [item["id"] for item in json.loads(b"".join(pieces))["data"]]
    assert len(ids) >= rows
    assert ids == sorted(set(ids), reverse=True)
    assert max(map(len, pieces)) <= MOST_IN_PIECE
    assert len(pieces) > rows // block
    assert all(later > earlier for earlier, later in pairwise(turns))
    middle = ids[len(ids) // 2]
    older = (await team.get(f"{path}?after={middle}")).json()
    newer = (await team.get(f"{path}?before={middle}")).json()
    assert [item["id"] for item in newer["data"]] + [middle] + [i["id"] for i in older["data"]] == ids
    assert (newer["has_more"], older["has_more"]) == (False, False)


async def test_the_pieces_on_the_wire(pillarbox: World) -> None:
    """RFC 9112, 6.3 and 7.1: chunks, and for HTTP/1.0 the end of the connection."""
    team = await filled(pillarbox, "/webhooks")
    first = await team.get("/webhooks")
    assert first.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in first.headers
    assert len(first.json()["data"]) >= MANY["/webhooks"].rows
    old = await said(pillarbox, f"GET /webhooks HTTP/1.0\r\nAuthorization: Bearer {team.token}\r\n\r\n")
    head, _, body = old.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert json.loads(body) == first.json()
    asked = (
        "HEAD /webhooks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Authorization: Bearer {team.token}\r\n\r\n"
    )
    head, _, body = (await said(pillarbox, asked)).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert body == b""


async def test_nothing_more_is_read_for_a_client_that_left(pillarbox: World) -> None:
    team = await filled(pillarbox, "/api-keys")
    pieces, _ = await pieces_of(pillarbox, team, "/api-keys", leaves_after=2)
    assert len(pieces) == 2


async def filled(here: World, path: str) -> Team:
    """A team whose list has at least so many rows."""
    team = await here.team()
    many = MANY[path]
    await many.make(here, team)
    changes = f"jsonb_build_object('id', gen_random_uuid()) || {many.unique}"
    await here.pool.execute(
        f"""
        INSERT INTO {many.table}
        SELECT (jsonb_populate_record(t, {changes})).*
          FROM (SELECT m FROM {many.table} AS m WHERE team_id = $1 LIMIT 1) AS one (t),
               generate_series(1, $2::integer) AS n
        """,
        team.id,
        many.rows,
    )
    if many.then is not None:
        await here.pool.execute(many.then)
    return team


async def named(team: Team, path: str) -> str:
    """The path with what was made in it."""
    contact = await team.world.pool.fetchval("SELECT id FROM contacts WHERE address = 'ann@quay.example'")
    segment = await team.world.pool.fetchval("SELECT id FROM segments LIMIT 1")
    return path.format(contact=contact, segment_id=segment, audience_id=segment)


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
