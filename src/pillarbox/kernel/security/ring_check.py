"""Whether a key ring is the one of this database (docs/decisions/0044).

The database knows the id of every key that has sealed anything in it, and of each a value that the key has
sealed. A ring that cannot open one of them is the ring of another installation, or an old copy: a process
that went on with it could not sign, and what it sealed no other process could open. So it does not start.

A key that the operator has given up is not asked for any more; it is asked for again as soon as a ring has
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import TROUBLE, Connection, Source
from pillarbox.kernel.security import ring_queries as queries
from pillarbox.kernel.security.ring_queries import KnownKey
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError
from pillarbox.kernel.settings.settings import Settings, create_key_ring_file, key_ring_text
from pillarbox.kernel.settings.table import KEY_RING_FILE
from pillarbox.kernel.wire.problems import ServerOverloaded

log = get("key_ring")

PROBE: Final = b"pillarbox"
WATCH_SECONDS: Final = 5.0
RETRY_AFTER: Final = 60


class KeyRingRefused(Exception):  # noqa: N818 (a state, reported as a sentence)
    """The key ring does not fit the database; the message is one sentence for the operator."""


class OtherKeyRing(KeyRingRefused):
    """It cannot open what is sealed in the database."""


class KeyLacking(ServerOverloaded):
    """This process has been left behind by a new key of the ring."""

    def __init__(self) -> None:
        super().__init__("A key of the key ring is missing on this server. Try again later.", RETRY_AFTER)


async def known_keys(source: Source) -> list[KnownKey]:
    """Return the keys that have sealed something in this database, the oldest first."""
    return await queries.known(source)


def opens(ring: KeyRing, key: KnownKey) -> bool:
    """Return whether the ring has this very key."""
    try:
        ring.open(key.probe, key.context)
    except KeyRingError:
        return False
    return True


def lacking(ring: KeyRing | None, keys: Iterable[KnownKey]) -> list[str]:
    """Return the ids of the keys that the database needs and the ring does not have."""
    return [key.id for key in keys if not key.is_abandoned and (ring is None or not opens(ring, key))]


def refuse_other_ring(settings: Settings, text: str | None, keys: Sequence[KnownKey]) -> None:
    """Raise OtherKeyRing unless the ring opens what the database has, or nothing is asked of it."""
    ring = None if text is None else KeyRing.parse(text)
    if wanted := lacking(ring, keys):
        raise OtherKeyRing(_sentence(settings, ring, wanted))


def _sentence(settings: Settings, ring: KeyRing | None, key_ids: Sequence[str]) -> str:
    path = settings.data / KEY_RING_FILE
    needs = f"the key{'s' if len(key_ids) > 1 else ''} {' and '.join(key_ids)}"
    remedy = (
        f"put the {KEY_RING_FILE} of a machine that works on this database, or of its backup, there or give "
        "its text with --secret-key (docs/guide/backup.md says what to do where it is lost)."
    )
    if ring is None:
        return (
            f"The secrets in this database need a key ring with {needs}, and {path} does not exist: {remedy}"
        )
    place = f"in {path}" if settings.secret_key is None else "of --secret-key"
    has = " and ".join(f"another key {key}" if key in key_ids else f"the key {key}" for key in ring.key_ids)
    return (
        f"The key ring {place} is not the one of this database: it has {has}, and the secrets in the "
        f"database need {needs}; {remedy}"
    )


async def refuse_ring(conn: Connection, settings: Settings) -> None:
    """Raise OtherKeyRing as `established` would; nothing is changed."""
    text = await asyncio.to_thread(key_ring_text, settings)
    refuse_other_ring(settings, text, await known_keys(conn))


async def established(conn: Connection, settings: Settings) -> str:
    """Return the text of the ring with which this installation works from now on, known to the database.

    Made where there is none and the database needs none; raises OtherKeyRing where the database needs
    another.
    """
    async with conn.transaction():
        # Two machines may start on an empty database at once; one of them makes the ring.
        await queries.lock(conn)
        keys = await known_keys(conn)
        text = await asyncio.to_thread(key_ring_text, settings)
        refuse_other_ring(settings, text, keys)
        if text is None:
            text = await asyncio.to_thread(_made, settings)
        await register(conn, KeyRing.parse(text), keys)
    return text


def _made(settings: Settings) -> str:
    path = settings.data / KEY_RING_FILE
    try:
        return create_key_ring_file(path)
    except OSError as error:
        raise KeyRingRefused(f"The key ring file {path} cannot be written: {error.strerror}.") from None


async def register(source: Source, ring: KeyRing, keys: Sequence[KnownKey]) -> None:
    """Let the database know the key that seals from now on, and those of the ring that were given up."""
    context = probe_context(ring.active_id)
    await queries.add(source, ring.active_id, ring.seal(PROBE, context), context)
    if found := [key.id for key in keys if key.is_abandoned and opens(ring, key)]:
        await queries.ask_again(source, found)


def probe_context(key_id: str) -> bytes:
    return b"key_ring_keys" + key_id.encode("ascii")


class RingWatch:
    """Sees when another process has begun to seal with a key that the ring of this one does not have, and
    keeps the key known with which this one seals.

    `keyring reseal` forgets a key that no value needs. A process that was not restarted since the rotation
    goes on sealing with it, and nobody would miss the key when it is taken out of the rings.
    """

    def __init__(self, pool: asyncpg.Pool, clock: Clock, ring: KeyRing) -> None:
        self._pool = pool
        self._clock = clock
        self._ring = ring
        self.lacking: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise the 503 of a process that was left behind."""
        if self.lacking:
            raise KeyLacking

    async def look(self) -> None:
        """Find out how it stands now; what was known is kept while the database does not answer."""
        try:
            keys = await known_keys(self._pool)
            if self._ring.active_id not in {key.id for key in keys}:
                await register(self._pool, self._ring, ())
                log.warning("key_ring.known_again", key_ids=[self._ring.active_id])
        except TROUBLE:
            return
        found = tuple(lacking(self._ring, keys))
        if found != self.lacking:
            log.error("key_ring.left_behind" if found else "key_ring.complete", key_ids=list(found))
        self.lacking = found

    async def run(self) -> None:
        """Look every few seconds."""
        failures = LoopFailures("key_ring.watch")
        while True:
            await failures.attempt(self.look())
            await self._clock.sleep(max(WATCH_SECONDS, failures.pause))
