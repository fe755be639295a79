"""Describes emails by blocks as they get old enough.

A block is up to a thousand emails of a team that follow one another, with a Bloom filter of all they can be
found by. It begins behind the block before it, so every email below the last block is in one. An id is made
before its commit (architecture 2.3): emails are described half a minute late, and counted once more after an
hour, when a block with more or fewer of them gets another filter. Where the clock was ahead and is set back,
blocks that end in the future go: what is accepted now would lie inside them, and they would not be counted
again in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from pillarbox.emails.retention import first_id
from pillarbox.emails.search import queries
from pillarbox.emails.search.queries import IndexedEmail
from pillarbox.emails.search.terms import Terms
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.work.periodic import Periodic

EVERY = timedelta(seconds=20)
LATE = timedelta(seconds=30)
SETTLED = timedelta(hours=1)
"""How long an email may take from its id to its commit, and how far clocks of machines may differ."""

BLOCK = 1000
MOST_TERMS = 1900
"""Sixteen bits for each: two blocks fit on a page of the table."""

ALL = 2**31 - 1
COUNTED = 100
"""Blocks that are counted once more in one statement."""

OUTDATED_AT_ONCE = 300
"""Blocks of an older version that are described anew in one turn: some seconds' work."""


class SearchBlocks:
    """Writes the blocks of all teams, of up to `size` emails each."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, size: int = BLOCK) -> None:
        self._pool = pool
        self._clock = clock
        self._size = size

    async def keep_up(self) -> str:
        """Describe what is old enough, count once more what may have changed, and describe some blocks of an
        older version anew; says how many blocks that made."""
        now = self._clock.now()
        before = first_id(now - LATE)
        made = 0
        for team_id, after in await queries.ready(self._pool, before, self._size):
            made += await self.describe(TeamDb(self._pool, team_id), after, before)
        changed = await self.settle(first_id(now - SETTLED))
        renewed = await self.renew()
        return f"{made} blocks, {changed} changed, {renewed} renewed"

    async def describe(self, db: TeamDb, after: UUID, before: UUID) -> int:
        """Make the blocks of a team behind its last one, as far as an id; what is less than a block waits.
        Returns how many were made."""
        made = 0
        while True:
            emails = await queries.described(db, after, before, self._size)
            if len(emails) < self._size:
                return made
            count, bits = filter_of(emails, MOST_TERMS)
            last = emails[count - 1].id
            if not await queries.add_block(db, after, last, count, bits):
                return made
            after = last
            made += 1

    async def settle(self, before: UUID) -> int:
        """Count blocks once more that are old enough, and describe anew those that have changed; returns how
        many of these there were."""
        changed = 0
        while found := await queries.unsettled(self._pool, before, COUNTED):
            for block in found:
                db = TeamDb(self._pool, block.team_id)
                if block.counted == block.emails:
                    await queries.settle(db, block.after_id)
                    continue
                await self._describe_anew(db, block.after_id, block.last_id, is_settled=True)
                changed += 1
        return changed

    async def renew(self) -> int:
        """Describe anew what another release has described, which knew other terms; returns how many blocks
        these were."""
        found = await queries.outdated(self._pool, OUTDATED_AT_ONCE)
        for block in found:
            await self._describe_anew(TeamDb(self._pool, block.team_id), block.after_id, block.last_id)
        return len(found)

    async def _describe_anew(self, db: TeamDb, after: UUID, last: UUID, *, is_settled: bool = False) -> None:
        count, bits = filter_of(await queries.described(db, after, last, ALL), ALL)
        await queries.describe_anew(db, after, count, bits, is_settled=is_settled)

    async def drop_ahead(self, instant: datetime) -> int:
        """Remove blocks that end after this instant, which a clock ahead has dated; returns how many. Their
        emails are read one by one until they are old enough for blocks."""
        last = first_id(instant)
        dropped = 0
        for team_id in await queries.teams(self._pool):
            dropped += await queries.drop_ahead(TeamDb(self._pool, team_id), last)
        return dropped

    async def drop_empty(self) -> str:
        """Remove blocks whose emails are all gone; says how many."""
        dropped = 0
        for team_id in await queries.teams(self._pool):
            dropped += await queries.drop_empty(TeamDb(self._pool, team_id))
        return f"{dropped} blocks"


def filter_of(emails: Sequence[IndexedEmail], limit: int) -> tuple[int, bytes]:
    """Return a filter of the first emails, until they have so many terms, and how many emails these are."""
    terms = Terms()
    count = 0
    for email in emails:
        terms.add(email.sender, email.domain_name, email.subject, email.addresses.split("\n"))
        terms.add_origin(email.source, email.message_id, email.tags, email.key_id, email.broadcast_id)
        count += 1
        if len(terms) >= limit:
            break
    return count, terms.bloom_filter(emails[count - 1].id.int if emails else 0)


def search_periodic(blocks: SearchBlocks) -> list[Periodic]:
    """Return the periodic jobs that keep the blocks."""
    return [
        Periodic("emails.search_blocks", EVERY, blocks.keep_up, quiet=True),
        Periodic("emails.empty_search_blocks", timedelta(hours=1), blocks.drop_empty),
    ]
