"""Signed links: whoever follows many of them leaves the database to the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.http.files import LOOK_UPS, FileLinks, FileToServe
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tokens import Signer
from pillarbox.kernel.storage.blobs import FolderBackend


async def test_a_few_links_are_looked_up_at_once(tmp_path: Path) -> None:
    ring = KeyRing([("k1", bytes(32))])
    files = FileLinks(
        Signer(ring, SystemClock()), SystemClock(), FolderBackend(tmp_path), "http://quay.example"
    )
    at_once, most = 0, 0

    async def opener(team_id: UUID, file_id: UUID) -> FileToServe:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return FileToServe(filename="a.txt", media="text/plain", size=1, data=b"a", blob=None)

    files.register("attachment", opener)
    link, _ = files.link("attachment", uuid4(), uuid4())
    found = await asyncio.gather(*(files.open(link.rpartition("/")[2]) for _ in range(50)))
    assert len(found) == 50
    assert most == LOOK_UPS


async def test_who_waits_for_memory_holds_no_turn(tmp_path: Path) -> None:
    ring = KeyRing([("k1", bytes(32))])
    files = FileLinks(
        Signer(ring, SystemClock()), SystemClock(), FolderBackend(tmp_path), "http://quay.example"
    )
    small = FileToServe(filename="a.txt", media="text/plain", size=1, data=b"a", blob=None)
    has_room = asyncio.Event()

    async def finish() -> FileToServe:
        await has_room.wait()
        return small

    async def slow(team_id: UUID, file_id: UUID) -> FileToServe:
        return FileToServe(filename="a", media="text/plain", size=0, data=None, blob=None, finish=finish)

    async def quick(team_id: UUID, file_id: UUID) -> FileToServe:
        return small

    files.register("sent", slow)
    files.register("attachment", quick)
    tokens = {
        kind: files.link(kind, uuid4(), uuid4())[0].rpartition("/")[2] for kind in ("sent", "attachment")
    }
    waiting = [asyncio.create_task(files.open(tokens["sent"])) for _ in range(2 * LOOK_UPS)]
    await asyncio.sleep(0.01)
    assert await asyncio.wait_for(files.open(tokens["attachment"]), 5) is small
    has_room.set()
    assert await asyncio.gather(*waiting) == [small] * len(waiting)
