"""SQL of describing messages by blocks, for the periodic job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.inboxes.search.described import IndexedMessage, described
from pillarbox.kernel.postgres.database import TeamDb

# Across teams: which inboxes may have enough for a block.
DUE = """
    SELECT team_id, inbox_id FROM inbox_search_due ORDER BY team_id, inbox_id LIMIT $1
"""

NOT_DUE = """
    DELETE FROM inbox_search_due WHERE team_id = $1 AND inbox_id = $2
"""

DESCRIBED_TO = """
    SELECT described_to FROM inboxes WHERE team_id = $1 AND id = $2
"""

NEXT = """
    SELECT id, thread_id, sender, to_list, cc_list, bcc_list, subject, attachments, searched
      FROM inbox_messages
     WHERE team_id = $1 AND inbox_id = $2 AND id > $3
     ORDER BY id
     LIMIT $4
"""

LATE = """
    SELECT m.id, m.thread_id, m.sender, m.to_list, m.cc_list, m.bcc_list, m.subject, m.attachments, m.searched
      FROM (SELECT l.id
              FROM inbox_search_late l
             WHERE l.team_id = $1 AND l.inbox_id = $2
             ORDER BY l.id
             LIMIT $3) AS late
      JOIN inbox_messages m ON m.team_id = $1 AND m.inbox_id = $2 AND m.id = late.id
     ORDER BY m.id
"""

# Nobody adds a message to the inbox until the transaction ends, and what was added before is seen.
HOLD = """
    SELECT described_to FROM inboxes WHERE team_id = $1 AND id = $2 FOR NO KEY UPDATE
"""

WAITING = """
    SELECT count(*)
      FROM (SELECT FROM inbox_messages WHERE team_id = $1 AND inbox_id = $2 AND id > $3 LIMIT $4) AS next
"""

LATE_WAITING = """
    SELECT count(*) FROM (SELECT FROM inbox_search_late WHERE team_id = $1 AND inbox_id = $2 LIMIT $3) AS next
"""

COUNT = """
    SELECT count(*) FROM inbox_messages WHERE team_id = $1 AND inbox_id = $2 AND id > $3 AND id <= $4
"""

PUT_DESCRIBED_TO = """
    UPDATE inboxes SET described_to = $3 WHERE team_id = $1 AND id = $2
"""

NOT_LATE = """
    DELETE FROM inbox_search_late WHERE team_id = $1 AND inbox_id = $2 AND id = ANY ($3::uuid[])
"""

# Late ones that are gone, below those that exist.
LATE_AND_GONE = """
    DELETE FROM inbox_search_late l
     WHERE l.team_id = $1 AND l.inbox_id = $2
       AND NOT EXISTS (SELECT FROM inbox_messages m
                        WHERE m.team_id = $1 AND m.inbox_id = $2 AND m.id = l.id)
"""

ADD_BLOCK = """
    INSERT INTO inbox_search_blocks (team_id, inbox_id, id, version, columns, oldest_id, newest_id, begins,
                                     messages)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""

ADD_ROWS = """
    INSERT INTO inbox_search_rows (team_id, inbox_id, block_id, part, bits)
    SELECT $1, $2, $3, k.part, k.bits
      FROM unnest($4::smallint[], $5::bytea[]) AS k (part, bits)
"""

OF_SIZE = """
    SELECT id, begins, messages, oldest_id, newest_id
      FROM inbox_search_blocks
     WHERE team_id = $1 AND inbox_id = $2 AND columns = $3 AND version = $4
     ORDER BY oldest_id, id
     LIMIT $5
"""

PART = """
    SELECT r.bits
      FROM unnest($3::uuid[]) WITH ORDINALITY AS k (block_id, place)
      JOIN inbox_search_rows r
        ON r.team_id = $1 AND r.inbox_id = $2 AND r.block_id = k.block_id AND r.part = $4
     ORDER BY k.place
"""

DROP_BLOCKS = """
    WITH dropped AS (
        DELETE FROM inbox_search_blocks WHERE team_id = $1 AND inbox_id = $2 AND id = ANY ($3::uuid[])
        RETURNING id
    )
    DELETE FROM inbox_search_rows r
     USING dropped
     WHERE r.team_id = $1 AND r.inbox_id = $2 AND r.block_id = dropped.id
"""

# Across teams: blocks of another version. There are few blocks, a thousand for a million messages.
OUTDATED = """
    SELECT team_id, inbox_id, id FROM inbox_search_blocks WHERE version <> $1 ORDER BY team_id, id LIMIT $2
"""

# What a block had is to be described anew.
MAKE_LATE = """
    INSERT INTO inbox_search_late (team_id, inbox_id, id)
    SELECT DISTINCT b.team_id, b.inbox_id, m.id
      FROM inbox_search_blocks b
     CROSS JOIN generate_series(0, b.columns - 1) AS k (number)
     CROSS JOIN LATERAL (
           SELECT encode(substring(b.messages FROM k.number * 32 + 1 FOR 16), 'hex')::uuid AS id) AS m
     WHERE b.team_id = $1 AND b.inbox_id = $2 AND b.id = $3
    ON CONFLICT DO NOTHING
"""

FORGET = """
    WITH blocks AS MATERIALIZED (
        SELECT id FROM inbox_search_blocks WHERE team_id = $1 AND inbox_id = $2 LIMIT 1
    ), rows AS (
        DELETE FROM inbox_search_rows r
         USING blocks
         WHERE r.team_id = $1 AND r.inbox_id = $2 AND r.block_id = blocks.id
    ), late AS (
        DELETE FROM inbox_search_late WHERE team_id = $1 AND inbox_id = $2
    ), due AS (
        DELETE FROM inbox_search_due WHERE team_id = $1 AND inbox_id = $2
    )
    DELETE FROM inbox_search_blocks b
     USING blocks
     WHERE b.team_id = $1 AND b.inbox_id = $2 AND b.id = blocks.id
"""


PARTS_AT_ONCE = 16


class SearchedInbox(NamedTuple):
    """An inbox of a team."""

    team_id: UUID
    inbox_id: UUID


class NewBlock(NamedTuple):
    """A block as it is stored, with the parts of its matrix."""

    id: UUID
    version: int
    columns: int
    oldest_id: UUID
    newest_id: UUID
    begins: bytes
    messages: bytes
    parts: Sequence[bytes]


class PartialBlock(NamedTuple):
    """A block that becomes a piece of a larger one."""

    id: UUID
    begins: bytes
    messages: bytes
    oldest_id: UUID
    newest_id: UUID


class OutdatedBlock(NamedTuple):
    """A block of another version."""

    team_id: UUID
    inbox_id: UUID
    id: UUID


async def due(pool: asyncpg.Pool, limit: int) -> list[SearchedInbox]:
    """Return some of the inboxes that may have enough for a block."""
    return [SearchedInbox(**row) for row in await pool.fetch(DUE, limit)]


async def not_due(db: TeamDb, inbox_id: UUID) -> None:
    await db.run(NOT_DUE, inbox_id)


async def indexed_up_to(db: TeamDb, inbox_id: UUID) -> UUID | None:
    """Return the id up to which messages are in blocks; None where the inbox is gone."""
    found: UUID | None = await db.value(DESCRIBED_TO, inbox_id)
    return found


async def following(db: TeamDb, inbox_id: UUID, after: UUID, limit: int) -> list[IndexedMessage]:
    """Return the next messages behind this one, the oldest first."""
    return await db.all(described, NEXT, inbox_id, after, limit)


async def late(db: TeamDb, inbox_id: UUID, limit: int) -> list[IndexedMessage]:
    """Return the messages that were committed late, the oldest first."""
    return await db.all(described, LATE, inbox_id, limit)


async def waiting(db: TeamDb, inbox_id: UUID, after: UUID, limit: int) -> int:
    """Return how many messages are behind this one, up to `limit`."""
    found: int = await db.value(WAITING, inbox_id, after, limit)
    return found


async def late_waiting(db: TeamDb, inbox_id: UUID, limit: int) -> int:
    """Return how many messages are late, up to `limit`."""
    found: int = await db.value(LATE_WAITING, inbox_id, limit)
    return found


async def hold(db: TeamDb, inbox_id: UUID) -> UUID | None:
    """Lock the inbox; as `indexed_up_to`."""
    found: UUID | None = await db.value(HOLD, inbox_id)
    return found


async def count(db: TeamDb, inbox_id: UUID, after: UUID, last: UUID) -> int:
    """Return how many messages are behind `after`, up to `last`."""
    found: int = await db.value(COUNT, inbox_id, after, last)
    return found


async def put_described_to(db: TeamDb, inbox_id: UUID, last: UUID) -> None:
    await db.run(PUT_DESCRIBED_TO, inbox_id, last)


async def not_late(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> int:
    """Note that these messages are in blocks now; return how many of them were late."""
    return await db.run(NOT_LATE, inbox_id, ids)


async def drop_late_and_gone(db: TeamDb, inbox_id: UUID) -> int:
    return await db.run(LATE_AND_GONE, inbox_id)


async def add_block(db: TeamDb, inbox_id: UUID, block: NewBlock) -> None:
    await db.run(ADD_BLOCK, inbox_id, *block[:-1])
    # Some parts at a time: a large block has sixteen megabytes.
    for at in range(0, len(block.parts), PARTS_AT_ONCE):
        some: Sequence[Any] = block.parts[at : at + PARTS_AT_ONCE]
        await db.run(ADD_ROWS, inbox_id, block.id, list(range(at, at + len(some))), some)


async def of_size(db: TeamDb, inbox_id: UUID, columns: int, version: int, limit: int) -> list[PartialBlock]:
    """Return the oldest blocks with so many columns."""
    return await db.all(PartialBlock, OF_SIZE, inbox_id, columns, version, limit)


async def part(db: TeamDb, inbox_id: UUID, blocks: Sequence[UUID], number: int) -> Sequence[bytes]:
    """Return one part of each of these blocks, in their order."""
    return await db.values(PART, inbox_id, blocks, number)


async def drop_blocks(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> int:
    """Remove blocks; returns how many parts they had."""
    return await db.run(DROP_BLOCKS, inbox_id, ids)


async def outdated(pool: asyncpg.Pool, version: int, limit: int) -> list[OutdatedBlock]:
    """Return the blocks of other versions than this one."""
    return [OutdatedBlock(**row) for row in await pool.fetch(OUTDATED, version, limit)]


async def make_late(db: TeamDb, inbox_id: UUID, block_id: UUID) -> int:
    """Let no block have what this one has."""
    return await db.run(MAKE_LATE, inbox_id, block_id)


async def forget(db: TeamDb, inbox_id: UUID) -> int:
    """Remove a block of an inbox that is gone, and all that is not in blocks; returns how many blocks."""
    return await db.run(FORGET, inbox_id)
