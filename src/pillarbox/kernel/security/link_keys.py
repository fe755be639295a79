"""The keys of links in sent mail, which must work for years (docs/decisions/0086).

They lie in the database, sealed by the key ring, so that replacing a key of the ring makes no link invalid.
The process that first needs a key makes it; all processes of the installation have the same ones. Every key
reads. The links of a mail are made with the key that was the newest when the mail was accepted, so that each
attempt makes the same ones; a key counts as new once all processes had time to learn it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.security import link_key_queries as queries
from pillarbox.kernel.security.link_key_queries import LINK_KEYS, LinkKeyRow
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError

log = get("link_keys")

KEY_BYTES: Final = 64
NEVER: Final = float("-inf")
LOOK_EVERY: Final = 60.0
LOOK_AGAIN: Final = 1.0
LEARNED_AFTER: Final = timedelta(minutes=5)
"""How long a new key only reads, unless it is the only one."""

MOST_KEYS: Final = 1000


class LinkKey(NamedTuple):
    """A key with its number, ready for use."""

    id: int
    cipher: AESSIV


class LinkKeys:
    """The keys, as far as this process knows them."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, ring: KeyRing) -> None:
        self._pool = pool
        self._clock = clock
        self._ring = ring
        self._keys: Mapping[int, AESSIV] = {}
        self._since: Sequence[tuple[datetime, int]] = ()
        self._looked_at = NEVER
        self._reading = asyncio.Lock()

    async def maker(self, accepted_at: datetime) -> LinkKey:
        """Return the key that makes the links of mail that was accepted then; it is made where there
        is none."""
        if not self._keys or self._looked_before(LOOK_EVERY):
            await self._look()
        if not self._keys:
            await self._make_first()
        number = self._since[0][1]
        for since, newer in self._since[1:]:
            if since <= accepted_at:
                number = newer
        return LinkKey(number, self._keys[number])

    async def reader(self, number: int) -> AESSIV | None:
        """Return the key of that number. Where it is not known here the database is asked, once a second."""
        if number not in self._keys:
            async with self._reading:
                if number not in self._keys and self._looked_before(LOOK_AGAIN):
                    await self._look()
        return self._keys.get(number)

    def _looked_before(self, seconds: float) -> bool:
        now = self._clock.boottime()
        return not self._looked_at <= now < self._looked_at + seconds

    async def _look(self) -> None:
        self._looked_at = self._clock.boottime()
        try:
            self._take(await queries.every(self._pool))
        except BaseException:
            self._looked_at = NEVER
            raise

    async def _make_first(self) -> None:
        async with transaction(self._pool) as conn:
            await queries.lock(conn)
            rows = await queries.every(conn)
            self._take(rows)
            if not self._keys:
                await self._add(conn, [row.id for row in rows])
        await self._look()

    async def add(self) -> int:
        """Make another key, which makes links from some minutes on; returns its number."""
        async with transaction(self._pool) as conn:
            await queries.lock(conn)
            number = await self._add(conn, [row.id for row in await queries.every(conn)])
        await self._look()
        return number

    async def _add(self, conn: Connection, numbers: list[int]) -> int:
        if len(numbers) >= MOST_KEYS:
            raise ValueError(f"there are {MOST_KEYS} keys of links already")
        number = max(numbers, default=0) + 1
        sealed = self._ring.seal(secrets.token_bytes(KEY_BYTES), context(number))
        await queries.add(conn, number, sealed, self._clock.now())
        return number

    def _take(self, rows: Sequence[LinkKeyRow]) -> None:
        """Know these keys from now on."""
        keys: dict[int, AESSIV] = {}
        since = []
        for row in rows:
            number = row.id
            known = self._keys.get(number)
            if known is None:
                try:
                    known = AESSIV(self._ring.open(row.sealed, context(number)))
                except KeyRingError as trouble:
                    log.error("link_keys.unopened", number=number, trouble=str(trouble))
                    continue
            keys[number] = known
            since.append((row.created_at + LEARNED_AFTER, number))
        self._keys, self._since = keys, since


def context(number: int) -> bytes:
    """Return the context to which a sealed key is bound."""
    return LINK_KEYS.context(UUID(int=number))
