"""Domains that a team's mail has reached before: one NXDOMAIN for such a domain is not final.

A registration that lapses for an hour, a broken parent zone or a resolver that lies must not suppress all
the customers of a domain. So for a known domain the first NXDOMAIN is a delay, and only one that is seen
ten minutes later or more is final (OUT-03). The resolver keeps no such answer for longer than five minutes,
so the later one is a new one. Any other domain was mistyped, and its sender learns that at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg

from pillarbox.delivery.smtp import known_domain_queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.database import Connection, TeamDb, after_commit
from pillarbox.kernel.work.periodic import Periodic

Pair = tuple[UUID, str]

LOOK_AGAIN_AFTER = timedelta(minutes=10)
ONE_ABSENCE = timedelta(hours=12)
"""Answers that are further apart are two absences. Longer than any pause between two attempts."""

WRITTEN_EVERY = 24 * 3600.0
MOST_WRITTEN = 50_000
KEPT = timedelta(days=180)


class KnownDomains:
    """The domains that mail has reached, in the database, and those that this process has written today."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._written: OrderedDict[Pair, float] = OrderedDict()

    async def must_look_again(self, team_id: UUID, destination: str) -> bool:
        """Return whether a second answer is needed before this domain counts as not existing."""
        self._written.pop((team_id, destination), None)
        now = self._clock.now()
        since = await known_domain_queries.missed(
            TeamDb(self._pool, team_id), destination, now, now - ONE_ABSENCE
        )
        return since is not None and now - since < LOOK_AGAIN_AFTER

    def has_written(self, pairs: Collection[Pair]) -> bool:
        """Return whether `reached` has nothing to write of these."""
        boottime = self._clock.boottime()
        return all(self._written.get(pair, float("-inf")) > boottime for pair in pairs)

    async def reached(self, conn: Connection, pairs: Collection[Pair]) -> None:
        """Note that mail of these teams was taken for these destinations; it is written once a day, in the
        caller's transaction."""
        boottime = self._clock.boottime()
        new = sorted(pair for pair in pairs if self._written.get(pair, float("-inf")) <= boottime)
        if new:
            await known_domain_queries.mark_reached(conn, new, self._clock.now())
            after_commit(conn, lambda: self._note_written(new, boottime + WRITTEN_EVERY))

    def _note_written(self, pairs: Sequence[Pair], until: float) -> None:
        for pair in pairs:
            self._written[pair] = until
            self._written.move_to_end(pair)
        while len(self._written) > MOST_WRITTEN:
            self._written.popitem(last=False)


def known_domains_periodic(pool: asyncpg.Pool, clock: Clock) -> list[Periodic]:
    """Return the periodic job that removes domains that no mail was sent to for long."""

    async def remove_old() -> str:
        return f"{await known_domain_queries.remove_old(pool, clock.now() - KEPT)} destinations"

    return [Periodic("destinations.forget", timedelta(days=1), remove_old)]
