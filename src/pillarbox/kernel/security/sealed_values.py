"""All values that the key ring has sealed: looked through, and sealed again with the first key of the
ring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.postgres.database import Connection, Source, transaction
from pillarbox.kernel.security import ring_queries as queries
from pillarbox.kernel.security.secrets import KeyMissing, KeyRing, KeyRingError, SealBroken, sealed_by

PREFETCH: Final = 500


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """Sealed values of one table.

    `read` gives `team_id`, `id`, `sealed` and `owner`, the name by which the operator knows the value.
    `replace` takes the team, the id, the old value and the new one. A value is bound to `table` and the id of
    its row.
    """

    table: str
    sentence: str
    cure: str
    read: str
    replace: str

    def context(self, row_id: UUID) -> bytes:
        """Return the context to which the sealed values of a row are bound."""
        return self.table.encode("ascii") + row_id.bytes


class UnreadableValue(NamedTuple):
    """A value that the ring cannot open. `key_id` is the key that it lacks, None where the value is
    damaged."""

    column: SealedColumn
    team_id: UUID
    id: UUID
    owner: str
    key_id: str | None

    @property
    def sentence(self) -> str:
        """Return a sentence for the operator: which value cannot be opened, why, and what helps."""
        why = (
            "is damaged"
            if self.key_id is None
            else f"needs the key {self.key_id}, which the key ring does not have"
        )
        text = f"{self.column.sentence} {{why}}; {self.column.cure}"
        return text.format(owner=self.owner, id=self.id, why=why)


Columns = Callable[[], Sequence[SealedColumn]]
"""All of them. To name them the program must be loaded, which takes a second."""


@dataclass(slots=True)
class SealedCount:
    """How many values each key has sealed, and those that the ring cannot open."""

    by_key: dict[str, int]
    unopened: list[UnreadableValue]


async def counted(source: asyncpg.Pool, columns: Sequence[SealedColumn], ring: KeyRing | None) -> SealedCount:
    """Count every value, opened with this ring; without one none can be."""
    found = SealedCount({}, [])
    async with source.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        for column in columns:
            async for row in conn.cursor(column.read, prefetch=PREFETCH):
                try:
                    key_id = sealed_by(row["sealed"])
                    found.by_key[key_id] = found.by_key.get(key_id, 0) + 1
                    if ring is None:
                        raise KeyMissing(key_id)
                    ring.open(row["sealed"], column.context(row["id"]))
                except KeyRingError as trouble:
                    missing = trouble.key_id if isinstance(trouble, KeyMissing) else None
                    found.unopened.append(
                        UnreadableValue(
                            column=column,
                            team_id=row["team_id"],
                            id=row["id"],
                            owner=row["owner"],
                            key_id=missing,
                        )
                    )
    return found


async def reseal(pool: asyncpg.Pool, columns: Sequence[SealedColumn], ring: KeyRing) -> int:
    """Seal with the first key of the ring what another key has sealed; returns how many values that were.

    What the ring cannot open stays as it is. Keys that no value needs any more are forgotten afterwards.
    """
    done = 0
    for column in columns:
        async with pool.acquire() as conn:
            async for row in _old_values(conn, column, ring):
                context = column.context(row["id"])
                try:
                    again = ring.seal(ring.open(row["sealed"], context), context)
                except KeyRingError:
                    continue
                status = await pool.execute(column.replace, row["team_id"], row["id"], row["sealed"], again)
                done += not status.endswith(" 0")
    return done


async def _old_values(conn: Connection, column: SealedColumn, ring: KeyRing) -> AsyncIterator[Any]:
    async with conn.transaction(readonly=True):
        async for row in conn.cursor(column.read, prefetch=PREFETCH):
            try:
                is_current = ring.is_current(row["sealed"])
            except SealBroken:
                continue
            if not is_current:
                yield row


async def known_again(conn: Connection, columns: Columns) -> list[str]:
    """Let the database know again the keys that its values need, where it knows none because the table was
    lost. Each gets one of the values as its probe. Return their ids."""
    async with conn.transaction():
        await queries.lock(conn)
        if await queries.known(conn):
            return []
        found = await _probes(conn, await asyncio.to_thread(columns))
        for key_id, (sealed, context) in found.items():
            await queries.add(conn, key_id, sealed, context)
    return sorted(found)


async def _probes(conn: Connection, columns: Sequence[SealedColumn]) -> dict[str, tuple[bytes, bytes]]:
    """Return one value of each key that values need, and what it is bound to; in a transaction."""
    found: dict[str, tuple[bytes, bytes]] = {}
    for column in columns:
        async for row in conn.cursor(column.read, prefetch=PREFETCH):
            try:
                found.setdefault(sealed_by(row["sealed"]), (row["sealed"], column.context(row["id"])))
            except SealBroken:
                continue
    return found


async def forget_unused(pool: asyncpg.Pool, columns: Sequence[SealedColumn], ring: KeyRing) -> list[str]:
    """Forget keys that no value needs any more, but the first one, and know those again that are needed and
    whose row was lost; returns the ids of those that are known now."""
    async with transaction(pool) as conn:
        await queries.lock(conn)
        probes = await _probes(conn, columns)
        needed = sorted({ring.active_id, *probes})
        await queries.remove_others(conn, needed)
        for key_id, (sealed, context) in probes.items():
            await queries.add(conn, key_id, sealed, context)
    return needed


async def abandon(source: Source, key_id: str) -> bool:
    """Ask for this key no more; False where it is not one that is asked for."""
    return await queries.abandon(source, key_id)
