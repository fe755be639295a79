"""Memory for request bodies that come in pieces (architecture 6.5, docs/decisions/0032).

A body counts with the bytes that have come, never with those that its head announces, in up to three pools:
that of the process, of its client's address and of its team. A piece for which a pool has no space waits, and
its socket is not read. When it has waited for `wait_timeout`, the slowest upload of that pool is refused,
unless at its current rate it will complete in time; after `patience` that is no excuse any more, unless it
will complete within `soon`. A complete body keeps its space until the request is answered. A body that comes
in one piece is not counted.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakValueDictionary

from pillarbox.kernel.http.body import CLOSE, ClientGone, next_part, within
from pillarbox.kernel.http.request_cycle import RequestCycle
from pillarbox.kernel.http.upload_pool import Pool, PooledUpload
from pillarbox.kernel.wire.problems import ServerOverloaded

MIB = 1024 * 1024

STEP = 64 * 1024
"""Bodies are counted in steps, so that a piece of one packet costs nothing."""

UNANNOUNCED = MIB
"""The expected size of a body of unknown size; for a larger one it is the most that its route takes."""

LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """The memory for bodies that come in pieces, in bytes for one process, and how many may be coming at
    once. A body that is larger than a pool has it alone. When another has waited for `wait_timeout`, a slow
    one is refused. After `patience` seconds it is the one of the lowest rate, if it needs more than `soon`
    seconds more. One that has waited for `waiting_seconds` is refused itself. `unknown_seconds` is how long
    the body of an unauthenticated client is read.

    A body that is larger than a pool has it alone. A slow one is refused when another has waited for
    `wait_timeout`, and after `patience` seconds the one of the lowest rate, if it takes longer than `soon`
    seconds more. One that has waited for `waiting_seconds` is refused itself. `unknown_seconds` is how long
    the body of an unauthenticated client is read.
    """

    total: int = 64 * MIB
    of_address: int = 48 * MIB
    of_team: int = 32 * MIB
    uploads: int = 512
    uploads_of_address: int = 384
    uploads_of_team: int = 256
    wait_timeout: float = 0.5
    patience: float = 5.0
    soon: float = 5.0
    waiting_seconds: float = 30.0
    body_seconds: float = 60.0
    unknown_seconds: float = 10.0


class UploadRefused(ServerOverloaded):
    """The upload does not go on, because of others; the connection is closed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers.update(CLOSE)


class Uploads:
    """All bodies that come to one process in pieces."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._process = Pool(limits.total, limits.uploads)
        self._addresses: WeakValueDictionary[str, Pool] = WeakValueDictionary()
        self._teams: WeakValueDictionary[UUID, Pool] = WeakValueDictionary()
        self._waiting: dict[PooledUpload, RequestCycle] = {}
        self._look: asyncio.TimerHandle | None = None

    def begin(self, address: str, team: UUID | None, announced: int | None, limit: int) -> PooledUpload:
        """Count one more body until it is ended; raises where there are too many and none of them is slow."""
        of = self._limits
        pools = [
            self._process,
            self._addresses.get(address) or Pool(of.of_address, of.uploads_of_address),
        ]
        if team is not None:
            pools.append(self._teams.get(team) or Pool(of.of_team, of.uploads_of_team))
        now = _now()
        for pool in pools:
            if pool.is_full and not _frees_space(pool, now):
                raise UploadRefused("Too many uploads are under way. Try again later.")
        self._addresses[address] = pools[1]
        if team is not None:
            self._teams[team] = pools[2]
        most = limit if announced is None else announced
        first = most if announced is not None else min(most, UNANNOUNCED)
        return PooledUpload(first, most, now, now + of.body_seconds, pools)

    def end(self, upload: PooledUpload) -> None:
        """Release the bytes of the upload."""
        upload.end()
        if self._waiting:
            self._serve_waiting()

    async def read(self, upload: PooledUpload, cycle: RequestCycle, body: bytearray, limit: int) -> None:
        """Put the rest of a body behind what has come of it; 413 when it is larger than the limit."""
        more = True
        try:
            async with asyncio.timeout(None) as upload.timer:
                upload.received = len(body)
                await self._wait_for_space(upload, cycle, len(body))
                while more:
                    part, more = await next_part(cycle.receive)
                    body += part
                    within(body, limit)
                    upload.add_received(len(part), _now())
                    if len(body) > upload.held:
                        await self._wait_for_space(upload, cycle, len(body))
        except TimeoutError:
            raise UploadRefused(upload.refusal or "") from None
        finally:
            upload.timer = None
        upload.complete()
        if self._waiting:
            self._serve_waiting()

    async def _wait_for_space(self, upload: PooledUpload, cycle: RequestCycle, size: int) -> None:
        """Return when so many bytes of the body may be held."""
        upload.wanted = min(-(-size // STEP) * STEP, upload.most)
        if upload.blocker(upload.wanted) is None:
            upload.grow(upload.wanted)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        upload.waits(turn, _now())
        self._waiting[upload] = cycle
        self._look_later()
        try:
            self._serve(upload, cycle, _now())
            await turn
        finally:
            del self._waiting[upload]
            upload.goes_on(_now())

    def _serve_waiting(self) -> None:
        """Grant what is possible now, in the order of coming, and make room for those who waited enough."""
        now = _now()
        for upload, cycle in list(self._waiting.items()):
            self._serve(upload, cycle, now)

    def _serve(self, upload: PooledUpload, cycle: RequestCycle, now: float) -> None:
        turn = upload.turn
        if turn is None or turn.done():
            return
        blocker, waited = upload.blocker(upload.wanted), upload.waited(now)
        if blocker is None:
            upload.grow(upload.wanted)
            turn.set_result(None)
        elif cycle.is_gone:
            turn.set_exception(ClientGone())
        elif waited >= self._limits.waiting_seconds:
            upload.refuse("There was no memory for the upload. Try again later.")
        elif waited >= self._limits.wait_timeout:
            within = math.inf if waited < self._limits.patience else self._limits.soon
            _refuse_slow(blocker.slowest(now) or blocker.least_rate(now, within))

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        if self._waiting:
            self._serve_waiting()
            self._look_later()


def _frees_space(pool: Pool, now: float) -> bool:
    """Refuse the slowest upload of a pool, if there is one."""
    return _refuse_slow(pool.slowest(now))


def _refuse_slow(upload: PooledUpload | None) -> bool:
    if upload is None:
        return False
    upload.refuse("The upload was too slow while others waited for memory. Try again later.")
    return True


def _now() -> float:
    return asyncio.get_running_loop().time()
