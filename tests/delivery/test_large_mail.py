"""Mails with large attachments are sent and never in memory as a whole (architecture 6.5, DUR-12)."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any
from uuid import UUID

import dkim

from kit.dkim_verifier import verify
from kit.manual_world import clock_of, parsed
from kit.smtp_sink import USUAL, Sink
from kit.world import Team, World
from pillarbox.delivery.composing import Composer
from pillarbox.delivery.plugin import SigningThreads
from pillarbox.delivery.queries import ClaimShare
from pillarbox.delivery.queue.claims import MOST_LOADED, ItemClaims
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.mail.message.long_content import LongContent

FORWARDED = b"Subject: earlier\r\n\r\n" + b".dotted line of an earlier mail\r\n" * 20_000
PICTURE = os.urandom(700_001)
SMALL = b"small enough for its row"


def file(name: str, data: bytes, kind: str) -> dict[str, Any]:
    return {"filename": name, "content": base64.b64encode(data).decode(), "content_type": kind}


FILES = [
    file("earlier.eml", FORWARDED, "message/rfc822"),
    file("picture.png", PICTURE, "image/png"),
    file("note.txt", SMALL, "text/plain"),
]


async def prepared(pillarbox: World) -> Team:
    team = await pillarbox.team()
    await team.domain()
    return team


async def sent(pillarbox: World, team: Team, **fields: Any) -> str:
    """A mail that the engine has accepted and not begun with."""
    email = await team.send(attachments=FILES, text="Ready\r\n.\r\n", **fields)
    clock_of(pillarbox).advance(0.001)
    return email


async def test_it_arrives_whole_and_signed(relayed: tuple[World, Sink]) -> None:
    """DKIM-01, MSG-08: what is hashed, announced and sent is the same, at each of its two destinations."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    await sent(pillarbox, team, to=["ada@quay.example", "bob@berth.example"])
    await pillarbox.turn()
    first, second = await sink.messages(2)
    assert first.content == second.content
    [domain] = (await team.get("/domains")).json()["data"]
    records = (await team.get(f"/domains/{domain['id']}")).json()["records"]
    value = next(r["value"] for r in records if r["record"] == "DKIM")
    assert dkim.verify(first.content, dnsfunc=lambda *_, **__: value.encode())
    verify(first.content, lambda name: value)
    _, eml, png, txt = parsed(first).iter_parts()
    assert eml.get_content_type() == "message/rfc822"
    assert first.content.count(b"\r\n.dotted line") == 20_000
    assert png.get_payload(decode=True) == PICTURE
    assert txt.get_payload(decode=True) == SMALL


async def test_it_is_not_held_in_memory(relayed: tuple[World, Sink]) -> None:
    pillarbox, _ = relayed
    team = await prepared(pillarbox)
    await sent(pillarbox, team)
    app = pillarbox.app
    [pair] = await app.need(ItemClaims).due()
    [item] = await app.need(ItemClaims).claim([ClaimShare(pair, 1)])
    wire = await Composer(app.need(KeyRing), app.need(BlobStore).stream, app.need(SigningThreads)).wire(
        item.email
    )
    assert isinstance(wire, LongContent)
    assert sum(len(piece) for piece in wire.pieces if isinstance(piece, bytes)) < 10_000


async def test_without_its_file_nothing_of_it_is_sent(relayed: tuple[World, Sink]) -> None:
    """It is tried again, as the file may come back; its reason can be read."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    email = await sent(pillarbox, team)
    blobs = "SELECT blob FROM attachments WHERE team_id = $1 AND blob IS NOT NULL"
    for blob in await team.db.values(blobs):
        await pillarbox.app.need(BlobStore).delete(blob)
    await pillarbox.turn()
    assert sink.received == []
    reason = "SELECT reason FROM deliveries WHERE team_id = $1 AND email_id = $2"
    assert "error of our own" in await team.db.value(reason, UUID(email))


async def test_a_file_that_gets_shorter_on_the_way_ends_the_session(relayed: tuple[World, Sink]) -> None:
    """What was signed is sent, or nothing: the final dot is never written."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    await sent(pillarbox, team)
    blobs = pillarbox.app.need(BlobStore)
    gate = asyncio.Event()
    sink.script("DATA", (gate, USUAL))
    turn = asyncio.create_task(pillarbox.turn())
    await sink.commands("DATA")
    picture = "SELECT blob FROM attachments WHERE team_id = $1 AND filename = 'picture.png'"
    await blobs.put(await team.db.value(picture), PICTURE[:-1])
    gate.set()
    await turn
    assert sink.received == []
    [session] = sink.sessions
    await session.ended.wait()
    assert len(session.unfinished) == 1


async def test_a_claim_takes_no_more_into_memory_than_it_may(relayed: tuple[World, Sink]) -> None:
    """Architecture 6.5: fifty mails of ten megabytes are half a gigabyte; what does not fit stays free."""
    pillarbox, sink = relayed
    team = await prepared(pillarbox)
    for _ in range(5):
        await team.send(text="x" * 9_000_000)
    clock_of(pillarbox).advance(0.001)
    claims = pillarbox.app.need(ItemClaims)
    [pair] = await claims.due()
    items = await claims.claim([ClaimShare(pair, 50)])
    assert len(items) == -(-MOST_LOADED // 9_000_000)
    free = "SELECT count(*) FROM deliveries WHERE team_id = $1 AND owner IS NULL"
    assert await team.db.value(free) == 5 - len(items)
    await claims.give_back(items)
    while await pillarbox.turn():
        clock_of(pillarbox).advance(1)
    assert len(sink.received) == 5
