"""Which caller a token means, remembered for a moment; and when each key was last used."""

from __future__ import annotations

import asyncio
from datetime import datetime
from uuid import UUID

import asyncpg

from pillarbox.api_keys import queries
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability import log
from pillarbox.kernel.postgres.database import TROUBLE
from pillarbox.kernel.postgres.time_limit import TimeLimit, retrieve_exception, shared, unlimited
from pillarbox.kernel.security.authentication import Caller, Credential, Permission

REMEMBERED_SECONDS = 0.25
ASKED_AHEAD = 0.1
"""So long before what is remembered ends, a caller has it asked for again without waiting. Otherwise all that
come while it is asked for would wait, four times a second."""

MOST_REMEMBERED = 10_000
FLUSH_SECONDS = 1.0


class LastUsed:
    """Collects uses and writes them once a second, off the path of the requests."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._times: dict[tuple[UUID, UUID], datetime] = {}

    def touch(self, team_id: UUID, key_id: UUID) -> None:
        """The key was used now."""
        self._times[team_id, key_id] = self._clock.now()

    async def flush(self) -> None:
        """Write what was collected; what cannot be written is kept unless a newer use is known."""
        times, self._times = self._times, {}
        if not times:
            return
        try:
            await queries.set_last_used(
                self._pool, [team for team, _ in times], [key for _, key in times], list(times.values())
            )
        except BaseException:
            self._times = {**times, **self._times}
            raise

    async def run(self) -> None:
        """Flush every second, and once more when cancelled."""
        try:
            while True:
                await self._clock.sleep(FLUSH_SECONDS)
                await self._try_flush()
        finally:
            await self._try_flush()

    async def _try_flush(self) -> None:
        try:
            await self.flush()
        except TROUBLE as failure:
            log.get("api_keys").warning("api_keys.last_used_not_written", error=type(failure).__name__)


class KeyCredentials:
    """Finds callers by the hash of their token. Found ones are remembered for a quarter of a second."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock, last_used: LastUsed) -> None:
        self._pool = pool
        self._clock = clock
        self._last_used = last_used
        self._known: dict[bytes, tuple[float, Credential]] = {}
        self._asking: dict[bytes, asyncio.Task[Credential | None]] = {}

    async def find(self, token_hash: bytes) -> Credential | None:
        known = self._known.get(token_hash)
        if known is not None:
            left = known[0] - self._clock.boottime()
            if left > ASKED_AHEAD:
                return known[1]
            if left > 0:
                self._asked(token_hash)
                return known[1]
        return await shared(self._asked(token_hash))

    def _asked(self, token_hash: bytes) -> asyncio.Task[Credential | None]:
        """What asks for it now; who gives up waiting does not end it."""
        asking = self._asking.get(token_hash)
        if asking is None:
            asking = self._asking[token_hash] = asyncio.create_task(
                self._ask(token_hash), context=unlimited()
            )
            asking.add_done_callback(retrieve_exception)
        return asking

    def used(self, caller: Caller) -> None:
        if caller.key_id is not None:
            self._last_used.touch(caller.team_id, caller.key_id)

    def forget(self, team_id: UUID) -> None:
        """Ask the database again for every key of the team; call it after the commit of a change."""
        for token_hash, (_, found) in list(self._known.items()):
            if found.caller.team_id == team_id:
                del self._known[token_hash]
        self._asking.clear()

    async def _ask(self, token_hash: bytes) -> Credential | None:
        me = asyncio.current_task()
        asked_at = self._clock.boottime()
        try:
            with TimeLimit():
                row = await queries.by_hash(self._pool, token_hash)
            found = None if row is None else _credential(row)
            if found is not None and self._asking.get(token_hash) is me:
                self._remember(token_hash, asked_at + REMEMBERED_SECONDS, found)
        finally:
            if self._asking.get(token_hash) is me:
                del self._asking[token_hash]
        return found

    def _remember(self, token_hash: bytes, until: float, found: Credential) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[token_hash] = (until, found)


def _credential(row: queries.FoundKey) -> Credential:
    caller = Caller(
        team_id=row.team_id,
        team_number=row.team_number,
        key_id=row.key_id,
        permission=Permission(row.permission),
        domain_id=row.domain_id,
        rate_limit=row.rate_limit,
        daily_quota=row.daily_quota,
        monthly_quota=row.monthly_quota,
        log_days=row.log_days,
        metrics_days=row.metrics_days,
    )
    return Credential(caller, row.key_status, row.team_status)
