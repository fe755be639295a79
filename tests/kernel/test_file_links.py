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
