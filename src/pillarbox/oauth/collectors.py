"""Removing what nobody asks for any more (oauth.md 9): requests, codes, tokens, documents, programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import changed, in_batches
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.oauth import request_queries, token_queries
from pillarbox.oauth.clients import client_queries, document_queries

EVERY: Final = timedelta(hours=1)
BATCH: Final = 1000
KEPT: Final = timedelta(hours=24)
"""For so long after their end requests and codes are kept."""
UNUSED_KEPT: Final = timedelta(days=90)
"""For so long a program is kept that nobody ever let in."""


class OAuthCollector:
    """Removes rows that mean nothing any more, some at a time."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock

    def periodic(self) -> list[Periodic]:
        return [Periodic("oauth.collect", EVERY, self.collect)]

    async def collect(self) -> str:
        """Says how many of each were removed."""
        now = self._clock.now()
        ended = now - KEPT
        requests = await self._removed(request_queries.REMOVE, ended)
        codes = await self._removed(token_queries.REMOVE_CODES, ended, now)
        tokens = await self._removed(token_queries.REMOVE_REFRESH_TOKENS, ended, now)
        documents = await self._removed(document_queries.REMOVE, ended)
        logos = await self._removed(document_queries.REMOVE_LOGOS, ended)
        programs = await self._removed(client_queries.REMOVE_UNUSED, now - UNUSED_KEPT)
        return (
            f"{requests} requests, {codes} codes, {tokens} refresh tokens, {documents} documents, "
            f"{logos} logos, {programs} programs"
        )

    async def _removed(self, statement: str, *times: datetime) -> int:
        async def some() -> int:
            return changed(await self._pool.execute(statement, *times, BATCH))

        return await in_batches(some)
