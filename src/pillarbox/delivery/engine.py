"""The engine: takes items that this process leased, carries them, settles them (design 2.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Protocol

from pillarbox.delivery.claims import RENEW_EVERY, Claims
from pillarbox.delivery.items import Item, Key
from pillarbox.delivery.lanes import Lanes, Site
from pillarbox.delivery.reports import Report, Result, Settlement, decide, refuse, suppressed
from pillarbox.delivery.settle import RETRIED, Settler
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.log import get
from pillarbox.timeline.rules import Detail, Entry, Kind

log = get("delivery")

MOST_ITEMS = 500
MOST_BYTES = 64 * 1024 * 1024
MOST_RUNNING = 200
LOOK_EVERY = 1.0


class Unsendable(Exception):
    """The email itself cannot be made into a message; `reason` is one of `failed.reason`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Carrier(Protocol):
    """Carries one item; knows no table."""

    def site(self, destination: str) -> Site:
        """Whose slots an item for `destination` takes."""
        ...

    async def carry(self, item: Item, fence: Callable[[], bool]) -> Report:
        """One attempt. `fence` is asked right before the final dot; False forbids it."""
        ...

    async def close(self) -> None:
        """Say goodbye on idle connections."""
        ...


class Engine:
    """Bounded in items and bytes; what does not fit stays a free row of the queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        claims: Claims,
        settler: Settler,
        carrier: Carrier,
        window: timedelta,
        chance: Callable[[], float],
        roles: str = "delivery",
    ) -> None:
        self._clock = clock
        self._claims = claims
        self._settler = settler
        self._carrier = carrier
        self._window = window
        self._chance = chance
        self._roles = roles
        self._lanes = Lanes(carrier.site, MOST_RUNNING)
        self._held: dict[Key, Item] = {}
        self._bytes = 0
        self._reserved = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._stopping = False

    # Hand-over -------------------------------------------------------------------------------------

    def reserve(self, items: int, weight: int) -> bool:
        """Room for items that are about to be committed with this process as their owner."""
        if self._stopping or not self._loops or self._lanes.waiting + self._reserved + items > MOST_ITEMS:
            return False
        if self._bytes + weight > MOST_BYTES:
            return False
        self._reserved += items
        self._bytes += weight
        return True

    def forget(self, items: int, weight: int) -> None:
        """Give up a reservation whose commit failed."""
        self._reserved -= items
        self._bytes -= weight

    def take(self, items: Sequence[Item], reserved: int, weight: int) -> None:
        """Items that are committed and leased to this process; ends their reservation."""
        self.forget(reserved, weight)
        for item in items:
            self._hold(item)
        self._pump()

    def wake(self) -> None:
        """Look for due work now."""
        self._wake.set()

    @property
    def held(self) -> int:
        """How many items are in memory."""
        return len(self._held)

    # Life ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Enter this process in the register and begin to claim."""
        await self._claims.enroll(self._roles)
        self._loops = [
            asyncio.create_task(self._forever(self._look, LOOK_EVERY, wakes=True)),
            asyncio.create_task(self._forever(self._keep, RENEW_EVERY)),
        ]

    async def stop(self, grace: float) -> None:
        """Give back what waits, finish what is on the wire, and give back the rest."""
        self._stopping = True
        looking, keeping = self._loops
        looking.cancel()
        waiting = self._lanes.drain()
        for item in waiting:
            self._drop(item)
        await _quietly(self._claims.give_back(waiting))
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=grace)
        keeping.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(looking, keeping, *self._tasks, return_exceptions=True)
        self._loops = []
        await self._carrier.close()

    async def look(self) -> int:
        """One round of claiming; returns how many items were taken. Tests call it by hand."""
        await self._claims.recover()
        taken = 0
        pairs = await self._claims.due()
        for at, pair in enumerate(pairs):
            room = MOST_ITEMS - len(self._held) - self._reserved
            if room <= 0 or self._stopping or self._bytes > MOST_BYTES:
                break
            share = max(1, room // (len(pairs) - at))
            items = await self._claims.claim(pair, share)
            for item in items:
                self._hold(item)
            taken += len(items)
            self._pump()
        return taken

    async def idle(self) -> None:
        """Return when nothing is held in memory."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _look(self) -> None:
        while await self.look():
            if len(self._held) >= MOST_ITEMS:
                break

    async def _keep(self) -> None:
        await self._claims.enroll(self._roles)
        behind = await self._claims.renew(list(self._held.values()))
        if behind:
            log.info("delivery.renewal_behind", items=behind)

    async def _forever(
        self, work: Callable[[], Awaitable[None]], pause: float, *, wakes: bool = False
    ) -> None:
        while True:
            try:
                await work()
            except RETRIED as trouble:
                log.warning("delivery.database_away", trouble=repr(trouble)[:200])
            except Exception:
                log.exception("delivery.loop_failed")
            if not wakes:
                await self._clock.sleep(pause)
                continue
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()

    # Carrying --------------------------------------------------------------------------------------

    def _hold(self, item: Item) -> None:
        self._held[item.key] = item
        self._bytes += item.parcel.weight
        self._lanes.add(item)

    def _drop(self, item: Item) -> None:
        if self._held.get(item.key) is item:
            del self._held[item.key]
        self._bytes -= item.parcel.weight

    def _pump(self) -> None:
        while not self._stopping:
            item = self._lanes.take()
            if item is None:
                return
            task = asyncio.create_task(self._run(item))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, item: Item) -> None:
        try:
            await self._attempt(item)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("delivery.attempt_failed", email=item.email_id, grp=item.grp)
        finally:
            self._drop(item)
            self._lanes.finish(item)
            if self._lanes.waiting < MOST_ITEMS // 2:
                self._wake.set()
            self._pump()

    async def _attempt(self, item: Item) -> None:
        now = self._clock.now()
        if not self._trusted(item):
            return
        if item.parcel.refusal is not None:
            detail = Detail(reason=item.parcel.refusal)
            await self._settler.settle(refuse(item, Kind.FAILED, detail, now))
            return
        skipped = suppressed(item, [t for t in item.targets if t.origin is not None], now)
        item.targets = [t for t in item.targets if t.origin is None]
        if not item.targets:
            await self._settler.settle(Settlement(item, skipped, None))
            return
        await self._carry(item, skipped)

    async def _carry(self, item: Item, skipped: list[Entry]) -> None:
        try:
            report = await self._carrier.carry(item, lambda: self._trusted(item))
        except Unsendable as unsendable:
            log.error("delivery.unsendable", email=item.email_id, reason=str(unsendable)[:200])
            detail = Detail(reason=unsendable.reason)
            settlement = refuse(item, Kind.FAILED, detail, self._clock.now())
            settlement.entries[:0] = skipped
            await self._settler.settle(settlement)
            return
        except Exception:
            log.exception("delivery.carrier_failed", email=item.email_id, grp=item.grp)
            report = self._broken(item)
        if report.abandoned:
            log.warning("delivery.lease_lost", email=item.email_id, grp=item.grp)
        else:
            settlement = decide(item, report, self._window, self._chance)
            settlement.entries[:0] = skipped
            await self._settler.settle(settlement)
        if report.after is not None:
            report.after()

    def _broken(self, item: Item) -> Report:
        """Our own fault: the item is tried again, and its reason says so."""
        now = self._clock.now()
        detail = Detail(reason="internal_error")
        return Report(
            now, now, results=[Result(t.position, Kind.DELIVERY_DELAYED, detail) for t in item.targets]
        )

    def _trusted(self, item: Item) -> bool:
        return self._clock.boottime() < item.deadline


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except RETRIED as trouble:
        log.warning("delivery.give_back_failed", trouble=repr(trouble)[:200])
