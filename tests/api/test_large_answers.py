"""Answers of any size are what the usual encoder writes, and none keeps the event loop (API-09)."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from msgspec import UNSET, Raw, Struct, UnsetType

from kit.inbox_rows import an_inbox
from kit.manual_world import manual_world
from kit.world import Team
from pillarbox.kernel.wire.large_answers import LARGE, encoded, is_large

MIB = 1024 * 1024
ALLOWED = 0.02
SLACK = 2.0
"""On a busy machine the same work takes more processor time."""


class Berth(Struct, rename="camel"):
    berth_name: str
    boat_length: int | None
    crew: list[str] | UnsetType = UNSET


class Quay(Struct, tag_field="object", tag="quay"):
    berths: list[Berth]
    notes: dict[str, Any]
    plan: Raw = Raw(b"[1, 2]")


LONG = {
    "plain": "tide " * LARGE,
    "escapes": 'a"b\\c\n\t\x01' * LARGE,
    "beyond the first plane": "\U0001f6a2é港" * LARGE,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_text_is_encoded_as_by_the_usual_encoder(text: str) -> None:
    body = Quay(
        [Berth(text, None), Berth("short", 3, [text, "b"])], {'na"me': [text, {"x": None}], text[:9]: 1}
    )
    assert is_large(body)
    assert encoded(body) == msgspec.json.encode(body)


BODIES: dict[str, Any] = {
    "octets": {"raw": bytes(range(256)) * LARGE},
    "json that is there already": Quay([], {}, Raw(json.dumps(["x" * 99] * LARGE).encode())),
    "many values": [{"id": uuid4(), "n": number, "f": 1.5, "ok": True} for number in range(20_000)],
    "many structs": Quay([Berth("b", number) for number in range(20_000)], {}),
    "a tuple": ("x" * LARGE, 1, None),
    "names that are numbers": dict.fromkeys(range(LARGE // 50), "x" * 99),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_kind_of_body_is_encoded_as_by_the_usual_encoder(body: Any) -> None:
    assert is_large(body)
    assert encoded(body) == msgspec.json.encode(body)


def test_a_page_of_a_list_is_encoded_at_once() -> None:
    assert not is_large([Berth("A name of a berth", number) for number in range(100)])


# The loop -----------------------------------------------------------------------------------------


class LoopHolds:
    """How long the loop of this process was kept from its other work: the longest time between two turns in
    which this process computed."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        while True:
            await asyncio.sleep(0.001)
            now, used = time.perf_counter(), time.process_time()
            self.longest = max(self.longest, min(now - wall, used - cpu))
            wall, cpu = now, used


@asynccontextmanager
async def holds() -> AsyncIterator[LoopHolds]:
    found = LoopHolds()
    watching = asyncio.create_task(found.watch())
    yield found
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def read(team: Team, path: str) -> int:
    """Ask as a client that takes what comes and keeps nothing; how many octets came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(team.world.url.rpartition(":")[2]))
    head = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode())
    status = await reader.readline()
    assert b" 200 " in status, status
    size = 0
    while piece := await reader.read(64 * 1024):
        size += len(piece)
        await asyncio.sleep(0)
    writer.close()
    return size


LINE = '<p class="tide">\t\u00abHafen\u00bb, berth twelve</p>\n\n'
"""Much of it is escaped in JSON, and it is not ASCII."""

MAIL = {"from": "a@harbor.example", "to": "b@quay.example", "subject": "Large"}


def text_of(octets: int) -> str:
    return LINE * (octets // len(LINE.encode()))


async def made(team: Team, path: str, body: dict[str, Any]) -> str:
    answer = await team.post(path, body)
    assert answer.status_code in (200, 201), answer.text
    return f"{path}/{answer.json()['id']}"


async def a_sent_email(team: Team) -> str:
    return await made(team, "/emails", {**MAIL, "html": text_of(9 * MIB)})


async def a_template(team: Team) -> str:
    return await made(team, "/templates", {"name": "Large", "html": text_of(9 * MIB)})


async def a_broadcast(team: Team) -> str:
    segment = (await made(team, "/segments", {"name": "Crew"})).rpartition("/")[2]
    wanted = {"segment_id": segment, "from": MAIL["from"], "subject": "Large", "html": text_of(9 * MIB)}
    return await made(team, "/broadcasts", wanted)


async def a_thread_page(team: Team) -> str:
    """Three messages of 8 MB, received."""
    thread = await (await an_inbox(team)).thread("Large")
    for _ in range(3):
        await thread.received(a_received_message())
    return f"{thread.url}/emails"


async def a_received_email(team: Team) -> str:
    thread = await (await an_inbox(team)).thread("Large")
    return f"/emails/receiving/{await thread.received(a_received_message())}"


def a_received_message() -> bytes:
    text = text_of(8 * MIB).replace("\n", "\r\n").encode()
    head = "From: a@customer.example\r\nTo: help@harbor.example\r\nMessage-ID: <%s@customer.example>\r\n"
    kind = "Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
    return (head % uuid4() + "MIME-Version: 1.0\r\n" + kind).encode() + text


async def a_list_of_contacts(team: Team) -> str:
    for number in range(100):
        await team.post("/contacts", {"email": f"{number}@quay.example", "first_name": "\u00bb" * 50})
    return "/contacts?limit=100"


@pytest.mark.parametrize(
    "made_large",
    [a_sent_email, a_template, a_broadcast, a_thread_page, a_received_email, a_list_of_contacts],
)
async def test_no_answer_holds_the_loop(
    made_large: Callable[[Team], Awaitable[str]], database_url: str, tmp_path: Path
) -> None:
    async with manual_world(database_url, tmp_path, route="capture") as pillarbox:
        team = await pillarbox.team()
        path = await made_large(team)
        await read(team, "/emails?limit=1")
        gc.collect()
        async with holds() as found:
            octets = await read(team, path)
        assert octets > (8 * MIB if "?" not in path else 1000)
        assert found.longest < ALLOWED * SLACK
