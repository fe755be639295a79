"""Describes messages by blocks, in the background.

A block has the signatures of some thousand messages of an inbox that follow one another, as a matrix. It
begins behind the block before it (`inboxes.described_to`). Ids are made before their commit: a message whose
id is not behind `indexed_up_to` is noted as late when it is added. Whoever moves `indexed_up_to` holds the
lock of the inbox, and looks whether a message has come between. So each message is in one block, or late, or
behind `indexed_up_to`, and a search that looks at all three misses none.

Sixteen blocks become a large one, because a search reads a few rows of each block.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from pillarbox.inboxes.search import block_queries as queries
from pillarbox.inboxes.search.block_queries import NewBlock, PartialBlock
from pillarbox.inboxes.search.described import IndexedMessage, fitting
from pillarbox.inboxes.search.terms import COLUMNS, ROWS, ROWS_OF_PART, VERSION
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.periodic import Periodic

log = get("inboxes")

EVERY: Final = timedelta(seconds=20)
INBOXES_AT_ONCE: Final = 1000
OUTDATED_AT_ONCE: Final = 40
MESSAGES_AT_ONCE: Final = 256

WORTH: Final = 900
"""Messages that make a block; it may have room for more."""

TOGETHER: Final = 16
"""Blocks that become a large one."""

PARTS: Final = ROWS // ROWS_OF_PART
COLUMN_OCTETS: Final = 32
"""Of what is known of a column: the ids of its message and its thread."""


class MessageBlocks:
    """Writes the blocks of all inboxes. Less than `worth` messages wait, and `together` blocks become a
    large one."""

    def __init__(self, pool: asyncpg.Pool, ids: Ids, worth: int = WORTH, together: int = TOGETHER) -> None:
        self._pool = pool
        self._ids = ids
        self._worth = worth
        self._together = together

    async def keep_up(self) -> str:
        """Describe what is enough for blocks; says how many blocks that made."""
        made = await self.renew()
        for team_id, inbox_id in await queries.due(self._pool, INBOXES_AT_ONCE):
            db = TeamDb(self._pool, team_id)
            # What comes from now on makes it due again.
            await queries.not_due(db, inbox_id)
            made += await self.describe(db, inbox_id)
        return f"{made} blocks"

    async def describe(self, db: TeamDb, inbox_id: UUID) -> int:
        """Make the blocks of an inbox; returns how many."""
        made = 0
        while await self._describe_next(db, inbox_id):
            made += 1
        while await queries.late_waiting(db, inbox_id, self._worth) >= self._worth:
            if await self._describe_late(db, inbox_id):
                made += 1
        while await self._join(db, inbox_id):
            pass
        return made

    async def renew(self) -> int:
        """Describe anew what another release has described; returns how many blocks that made."""
        made = 0
        for team_id, inbox_id, block_id in await queries.outdated(self._pool, VERSION, OUTDATED_AT_ONCE):
            db = TeamDb(self._pool, team_id)
            async with db.transaction() as inner:
                await queries.make_late(inner, inbox_id, block_id)
                await queries.drop_blocks(inner, inbox_id, [block_id])
            made += await self.describe(db, inbox_id)
        return made

    async def _describe_next(self, db: TeamDb, inbox_id: UUID) -> bool:
        """Make a block of the messages behind the last one; false where there are not enough."""
        after = await queries.indexed_up_to(db, inbox_id)
        if after is None or await queries.waiting(db, inbox_id, after, self._worth) < self._worth:
            return False
        messages: list[IndexedMessage] = []
        last = after
        while fitting(messages) == len(messages):
            some = await queries.following(db, inbox_id, last, MESSAGES_AT_ONCE)
            messages += some
            if len(some) < MESSAGES_AT_ONCE:
                break
            last = some[-1].id
        count = max(1, fitting(messages))
        block = await self._block(messages[:count])
        try:
            async with db.transaction() as inner:
                await queries.add_block(inner, inbox_id, block)
                if await queries.hold(inner, inbox_id) != after:
                    raise _BlockChanged
                if await queries.count(inner, inbox_id, after, block.newest_id) != count:
                    raise _BlockChanged
                await queries.put_described_to(inner, inbox_id, block.newest_id)
        except _BlockChanged:
            log.info("inboxes.described_again", messages=count)
        return True

    async def _describe_late(self, db: TeamDb, inbox_id: UUID) -> bool:
        """Make a block of late messages; false where those were gone."""
        if await queries.drop_late_and_gone(db, inbox_id):
            return False
        messages = await queries.late(db, inbox_id, MESSAGES_AT_ONCE * 4)
        count = max(1, fitting(messages))
        if not messages:
            return False
        block = await self._block(messages[:count])
        ids = [message.id for message in messages[:count]]
        try:
            async with db.transaction() as inner:
                await queries.add_block(inner, inbox_id, block)
                if await queries.hold(inner, inbox_id) is None:
                    raise _BlockChanged
                if await queries.not_late(inner, inbox_id, ids) != count:
                    raise _BlockChanged
        except _BlockChanged:
            return False
        return True

    async def _block(self, messages: Sequence[IndexedMessage]) -> NewBlock:
        from pillarbox.inboxes.search import signatures

        matrix = await asyncio.to_thread(signatures.matrix, messages)
        begins, columns = 0, bytearray()
        for message in messages:
            begins |= 1 << (COLUMNS - 1 - len(columns) // COLUMN_OCTETS)
            columns += (message.id.bytes + message.thread_id.bytes) * message.columns
        # Columns behind the last message are nobody's.
        columns += columns[-COLUMN_OCTETS:] * (COLUMNS - len(columns) // COLUMN_OCTETS)
        part = len(matrix) // PARTS
        return NewBlock(
            id=self._ids.new(),
            version=VERSION,
            columns=COLUMNS,
            oldest_id=messages[0].id,
            newest_id=messages[-1].id,
            begins=begins.to_bytes(COLUMNS // 8),
            messages=bytes(columns),
            parts=[matrix[at : at + part] for at in range(0, len(matrix), part)],
        )

    async def _join(self, db: TeamDb, inbox_id: UUID) -> bool:
        """Make one large block of the oldest small ones; false where these are too few."""
        most = self._together
        blocks = await queries.of_size(db, inbox_id, COLUMNS, VERSION, most)
        if len(blocks) < most:
            return False
        try:
            async with db.transaction() as inner:
                await self._join_blocks(inner, inbox_id, blocks)
        except _BlockChanged:
            return False
        return True

    async def _join_blocks(self, db: TeamDb, inbox_id: UUID, blocks: Sequence[PartialBlock]) -> None:
        ids = [block.id for block in blocks]
        parts = []
        for number in range(PARTS):
            found = await queries.part(db, inbox_id, ids, number)
            if len(found) < len(blocks):
                raise _BlockChanged
            parts.append(await asyncio.to_thread(side_by_side, found))
        block = NewBlock(
            id=self._ids.new(),
            version=VERSION,
            columns=COLUMNS * len(blocks),
            oldest_id=min(block.oldest_id for block in blocks),
            newest_id=max(block.newest_id for block in blocks),
            begins=b"".join([block.begins for block in blocks]),
            messages=b"".join([block.messages for block in blocks]),
            parts=parts,
        )
        await queries.add_block(db, inbox_id, block)
        # Late, because mail that comes in waits for it.
        if await queries.hold(db, inbox_id) is None:
            raise _BlockChanged
        if await queries.drop_blocks(db, inbox_id, ids) < len(ids) * PARTS:
            raise _BlockChanged


def side_by_side(parts: Sequence[bytes]) -> bytes:
    """Return one part of a large block: of each row the columns of all its pieces."""
    width = COLUMNS // 8
    return b"".join([part[at : at + width] for at in range(0, len(parts[0]), width) for part in parts])


class _BlockChanged(Exception):  # noqa: N818 - nothing is wrong: somebody was faster
    """The blocks were changed after they were read, so nothing is committed."""


def search_periodic(blocks: MessageBlocks) -> list[Periodic]:
    """Return the periodic job that keeps the blocks."""
    return [Periodic("inboxes.search_blocks", EVERY, blocks.keep_up, quiet=True)]
