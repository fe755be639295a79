"""Removing what nobody asks for any more (oauth.md 9): requests, codes, tokens, documents, programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.work.collectors import in_batches
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
        """Remove requests, codes and tokens that are over their time; return how many of each, in words."""
        now = self._clock.now()
        ended = now - KEPT
        requests = await self._removed(request_queries.remove, ended)
        codes = await self._removed(token_queries.remove_codes, ended, now)
        tokens = await self._removed(token_queries.remove_refresh_tokens, ended, now)
        documents = await self._removed(document_queries.remove, ended)
        logos = await self._removed(document_queries.remove_logos, ended)
        programs = await self._removed(client_queries.remove_unused, now - UNUSED_KEPT)
        return (
            f"{requests} requests, {codes} codes, {tokens} refresh tokens, {documents} documents, "
            f"{logos} logos, {programs} programs"
        )

    async def _removed(self, remove: Callable[..., Awaitable[int]], *instants: datetime) -> int:
        return await in_batches(partial(remove, self._pool, *instants, BATCH))
