"""Which caller a token means, remembered for a moment; and when each key was last used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.api_keys import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.security.authentication import Caller, Credential, InboxRight, Permission
from pillarbox.kernel.security.remembered import SharedCache

FLUSH_SECONDS = 1.0

Write = Callable[[asyncpg.Pool, Sequence[UUID], Sequence[UUID], Sequence[datetime]], Awaitable[None]]
"""Writes when things of these teams with these ids were used."""


class LastUsed:
    """Collects uses and writes them once a second, off the path of the requests."""

    write: Write = staticmethod(queries.set_last_used)
    loop = "api_keys.last_used"

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._times: dict[tuple[UUID, UUID], datetime] = {}

    def touch(self, team_id: UUID, key_id: UUID) -> None:
        """Note that the key was used now."""
        self._times[team_id, key_id] = self._clock.now()

    async def flush(self) -> None:
        """Write what was collected; what cannot be written is kept unless a newer use is known."""
        times, self._times = self._times, {}
        if not times:
            return
        try:
            await self.write(
                self._pool, [team for team, _ in times], [key for _, key in times], list(times.values())
            )
        except BaseException:
            self._times = {**times, **self._times}
            raise

    async def run(self) -> None:
        """Flush every second, and once more when cancelled."""
        failures = LoopFailures(self.loop)
        try:
            while True:
                await self._clock.sleep(max(FLUSH_SECONDS, failures.pause))
                await failures.attempt(self.flush())
        finally:
            await failures.attempt(self.flush())


class KeyCredentials:
    """Finds callers by the hash of their token. Found ones are remembered for a quarter of a second."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, last_used: LastUsed) -> None:
        self._pool = pool
        self._last_used = last_used
        self._found: SharedCache[bytes, Credential] = SharedCache(clock, self._ask)

    async def find(self, token_hash: bytes) -> Credential | None:
        return await self._found.find(token_hash)

    def used(self, caller: Caller) -> None:
        if caller.key_id is not None:
            self._last_used.touch(caller.team_id, caller.key_id)

    def forget(self, team_id: UUID) -> None:
        """Ask the database again for every key of the team; call it after the commit of a change."""
        self._found.forget(lambda _, found: found.caller.team_id == team_id)

    async def _ask(self, token_hash: bytes) -> Credential | None:
        row = await queries.by_hash(self._pool, token_hash)
        return None if row is None else _credential(row)


def _credential(row: queries.FoundKey) -> Credential:
    caller = Caller(
        team_id=row.team_id,
        team_number=row.team_number,
        key_id=row.key_id,
        permission=Permission(row.permission),
        domain_id=row.domain_id,
        inbox_id=row.inbox_id,
        inbox_address=row.inbox_address,
        inbox_rights=frozenset([InboxRight(right) for right in row.rights or ()]),
        person_id=row.person_id,
        grant_id=row.grant_id,
        rate_limit=row.rate_limit,
        daily_quota=row.daily_quota,
        monthly_quota=row.monthly_quota,
        log_days=row.log_days,
        metrics_days=row.metrics_days,
    )
    return Credential(caller, row.key_status, row.team_status)
