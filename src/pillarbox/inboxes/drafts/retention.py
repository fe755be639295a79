"""Drafts that were sent stay as long as the message that they became: a thread that is purged leaves none."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.inboxes.drafts import retention_queries
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.periodic import Periodic

EVERY: Final = timedelta(hours=6)
PAGE: Final = 1000
NIL: Final = UUID(int=0)


async def purge(pool: asyncpg.Pool) -> int:
    """Remove all whose message is gone; returns how many. It rests as long as each turn took."""
    removed = 0
    for team_id in await retention_queries.teams(pool):
        db, after = TeamDb(pool, team_id), NIL
        while True:
            started = time.monotonic()
            page = await retention_queries.sent(db, after, PAGE)
            if gone := [draft.id for draft in page if not draft.is_kept]:
                removed += await retention_queries.drop(db, gone)
            if len(page) < PAGE:
                break
            after = page[-1].id
            await asyncio.sleep(time.monotonic() - started)
    return removed


def periodic(pool: asyncpg.Pool) -> list[Periodic]:
    """Return the job that removes them."""

    async def work() -> str:
        return f"{await purge(pool)} drafts"

    return [Periodic("inboxes.sent_drafts", EVERY, work)]
