"""The engine: claims items, keeps their leases, and starts their attempts (architecture 2.5)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from uuid import UUID

from pillarbox.delivery.attempts import Attempts, Transport, log_database_errors
from pillarbox.delivery.copies import BroadcastCopySource, LastCheck
from pillarbox.delivery.copy_window import CopyWindow
from pillarbox.delivery.items import Item, Key
from pillarbox.delivery.lease_expiry import RENEW_EVERY
from pillarbox.delivery.other_mail import TransactionalActivity
from pillarbox.delivery.queries import ClaimShare, Pair
from pillarbox.delivery.queue.claims import BATCH, ItemClaims
from pillarbox.delivery.queue.final_dots import FinalDots
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.rate_control import BREAK_SECONDS, SiteSignal
from pillarbox.delivery.settle import AttemptSettler
from pillarbox.delivery.site_scheduler import COPIES, MAIL, MOST_LATE, SiteScheduler
from pillarbox.delivery.smtp.relay_faults import RelayFault
from pillarbox.delivery.smtp.site_sharing import EXCHANGE_EVERY, SiteSharing
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.work.engine_loop import EngineLoop

log = get("delivery")

MOST_ITEMS = 500
MOST_BYTES = 64 * 1024 * 1024
MOST_RUNNING = 200
CLAIM_EVERY = 1.0
HEARTBEAT_EVERY = 10.0
OUTAGE_LOOK = 0.5
"""Seconds between two looks whether outcomes can be stored again."""


class Engine:
    """Bounded in items and bytes; what does not fit stays a free row of the queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        claims: ItemClaims,
        settler: AttemptSettler,
        transport: Transport,
        pauses: Pauses,
        site_sharing: SiteSharing,
        window: timedelta,
        chance: Callable[[], float],
        roles: str = "delivery",
        other_mail: TransactionalActivity,
        copies: BroadcastCopySource | None = None,
        final_dots: FinalDots | None = None,
        look_every: float = CLAIM_EVERY,
    ) -> None:
        """Build the engine; `look_every` is longer where a poll calls `look_again` and `make_copies`."""
        self._look_every = look_every
        self._clock = clock
        self._claims = claims
        self._transport = transport
        self._pauses = pauses
        self._site_sharing = site_sharing
        self._attempts = Attempts(
            clock=clock,
            claims=claims,
            settler=settler,
            transport=transport,
            pauses=pauses,
            window=window,
            chance=chance,
            last_check=None if copies is None else LastCheck(clock, copies, claims, settler),
            final_dots=final_dots,
        )
        self._final_dots = final_dots
        self._roles = roles
        self._other_mail = other_mail
        self._scheduler = SiteScheduler(transport.site, MOST_RUNNING)
        self._copies = CopyWindow(
            copies=copies,
            claims=claims,
            scheduler=self._scheduler,
            pauses=pauses,
            clock=clock,
            other_mail=other_mail,
            take=self._take,
            drop=self._drop,
            start=self._pump,
        )
        self._held: dict[Key, Item] = {}
        self._bytes = 0
        self._reserved = 0
        self._loop = EngineLoop("delivery", clock)
        self._wake = asyncio.Event()
        self._more = False
        self._notified = True
        self._recovered = float("-inf")
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping = False

    # Hand-over -------------------------------------------------------------------------------------

    def reserve(self, items: int, weight: int) -> bool:
        """Reserve capacity for items that are about to be committed with this process as their owner."""
        if self._stopping or not self._loop.is_running or self._mail_waiting + items > MOST_ITEMS:
            return False
        if self._bytes + weight > MOST_BYTES:
            return False
        self._reserved += items
        self._bytes += weight
        return True

    def holds_back(self, team_id: UUID, destinations: Sequence[str]) -> bool:
        """Return whether any of this mail is paused, so that it must not be handed over."""
        now = self._clock.boottime()
        return self._pauses.cover_any(team_id, destinations) or any(
            self._scheduler.holds_back(name, now) for name in destinations
        )

    def cancel_reservation(self, items: int, weight: int) -> None:
        """Give up a reservation whose commit failed."""
        self._reserved -= items
        self._bytes -= weight

    def take(self, items: Sequence[Item], reserved: int, weight: int) -> None:
        """Take items that are committed and leased to this process; their reservation ends."""
        self.cancel_reservation(reserved, weight)
        self._take(items)

    def _take(self, items: Sequence[Item]) -> None:
        for item in items:
            self._hold(item)
        self._pump()

    def wake(self) -> None:
        """Claim due work, read the pauses and make copies now: another process has changed something."""
        self._notified = True
        self._wake.set()
        self._copies.room.set()

    def look_again(self) -> None:
        """Look for due work: there is some, or somebody holds work."""
        self._wake.set()

    def make_copies(self) -> None:
        """Make copies of broadcasts: some are wanted."""
        self._copies.room.set()

    @property
    def _mail_waiting(self) -> int:
        return self._scheduler.mail_waiting + self._reserved

    @property
    def items_in_memory(self) -> int:
        """How many items are in memory."""
        return len(self._held)

    @property
    def is_refused(self) -> bool:
        """Whether the smarthost refuses us, so that all mail waits."""
        return self._scheduler.is_refused(self._clock.boottime())

    # Start and stop -------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Register this process in the table `processes` and begin to claim."""
        if self._final_dots is not None:
            self._final_dots.open()
        await self._claims.write_heartbeat(self._roles)
        await self._site_sharing.divide(self._scheduler)
        await log_database_errors(self._site_sharing.begin())
        await log_database_errors(self._claims.release_held())
        loop = self._loop
        loop.look("claim", self._claim, lambda: self._look_every, self._wake)
        loop.repeat("renew", self._renew, RENEW_EVERY)
        loop.repeat("heartbeat", self._heartbeat, HEARTBEAT_EVERY)
        loop.look("refresh", self._pauses.refresh, lambda: self._look_every, self._pauses.news)
        loop.look("share_complaints", self.share_complaints, lambda: EXCHANGE_EVERY, self._site_sharing.news)
        loop.look("fill", self._copies.fill, lambda: self._look_every, self._copies.room)
        loop.keep(self._copies.limit_copies())

    async def stop(self, grace: float) -> None:
        """Give back what waits, finish what is on the wire, and give back the rest."""
        self._stopping = True
        await self._copies.stop(grace)
        await self._loop.stop_looking()
        waiting = self._scheduler.drain()
        for item in waiting:
            self._drop(item)
        await log_database_errors(self._claims.give_back(waiting))
        await self._loop.wait(grace)
        await self._loop.end()
        await self._transport.close()
        if self._final_dots is not None:
            self._final_dots.close()

    async def look(self) -> int:
        """Read the pauses, claim what is due and make copies; returns how many items were taken. Tests call
        it."""
        await self._pauses.refresh()
        return await self._claim_due() + await self._copies.make()

    async def _claim_due(self) -> int:
        await self._recover()
        self._more = False
        due = await self._claims.due()
        mail = deque([pair for pair in due if not pair.is_of_copies])
        copies = deque([pair for pair in due if pair.is_of_copies])
        self._copies.are_due = any(map(self._can_go, copies))
        part = await self._give_back_surplus(mail)
        taken = await self._claim_pairs(mail, part, self._free_slots)
        taken += await self._claim_pairs(copies, self._copies.part(len(copies)), lambda: self._copies.free)
        await self._free_held()
        return taken

    def _can_go(self, pair: Pair) -> bool:
        """Return whether nothing keeps mail from its destination that is known here."""
        return not self._scheduler.holds_back(pair.domain, self._clock.boottime())

    async def _claim_pairs(self, pairs: deque[Pair], part: int, free: Callable[[], int]) -> int:
        taken = 0
        while wanted := self._shares(pairs, part, free()):
            items = await self._claims.claim(wanted)
            full = {(*share.pair[:2], share.most) for share in wanted}
            got = Counter((item.team_id, item.queue) for item in items)
            self._more = self._more or any((*pair, count) in full for pair, count in got.items())
            self._take(items)
            taken += len(items)
        return taken

    def _shares(self, pairs: deque[Pair], part: int, slots: int) -> list[ClaimShare]:
        """Return the next claims for one commit; pairs that are dealt with are taken from `pairs`."""
        shares: list[ClaimShare] = []
        batch = BATCH
        while pairs and batch > 0:
            if slots <= 0 or self._stopping or self._bytes > MOST_BYTES:
                self._more = True
                break
            fair = max(1, slots // len(pairs))
            pair = pairs.popleft()
            if not self._can_go(pair):
                continue
            priority = COPIES if pair.is_of_copies else MAIL
            free = part - self._scheduler.waiting_in((pair.team_id, pair.domain), priority)
            share = min(batch, free, fair)
            if share > 0:
                shares.append(ClaimShare(pair, share))
                slots -= share
                batch -= share
        return shares

    def _free_slots(self) -> int:
        held = len(self._held) - self._copies.held
        return MOST_ITEMS - held + min(self._scheduler.late, MOST_LATE) - self._reserved

    async def _give_back_surplus(self, pairs: Collection[Pair]) -> int:
        """Return how many items of one team for one destination may wait in memory. Where memory is full,
        items beyond that number are given back, so that mail to a site that takes none does not keep out
        other mail."""
        due = {(pair.team_id, pair.destination) for pair in pairs}
        part = max(1, MOST_ITEMS // max(1, len(due | self._scheduler.busy())))
        if self._free_slots() < len(due) and any(self._scheduler.waiting_in(pair) < part for pair in due):
            surplus = self._scheduler.remove_surplus(part)
            for item in surplus:
                self._drop(item)
            await self._claims.give_back(surplus)
        return part

    async def _recover(self) -> None:
        """Recover lost leases, once a second however often work is claimed."""
        now = self._clock.boottime()
        if now >= self._recovered + CLAIM_EVERY or now < self._recovered:
            self._recovered = now
            await self._claims.recover()

    async def idle(self) -> None:
        """Return when nothing is held in memory."""
        await self._loop.idle()

    async def _claim(self) -> None:
        if self._notified:
            self._notified = False
            await self._pauses.refresh()
        self._scheduler.abort_if_silent()
        while await self._claim_due():
            if not self._more or len(self._held) >= MOST_ITEMS // 2:
                break

    async def share_complaints(self) -> None:
        """Share complaints of sites with the other processes, in both directions. Tests call it."""
        await self._site_sharing.exchange_complaints(self._scheduler)

    async def _heartbeat(self) -> None:
        await self._claims.write_heartbeat(self._roles)
        await self._site_sharing.divide(self._scheduler)
        await self._claims.end_stuck_sessions()

    async def _renew(self) -> None:
        behind = await self._claims.renew(list(self._held.values()))
        if behind:
            log.info("delivery.renewal_behind", items=behind)

    # Sending -------------------------------------------------------------------------------------------

    def _hold(self, item: Item) -> None:
        if not item.is_copy:
            self._other_mail.note()
        before = self._held.get(item.key)
        self._copies.held += item.is_copy - (before is not None and before.is_copy)
        self._held[item.key] = item
        self._bytes += item.email.weight
        self._scheduler.add(item)

    def _drop(self, item: Item) -> None:
        if self._held.get(item.key) is item:
            del self._held[item.key]
            self._copies.held -= item.is_copy
        self._bytes -= item.email.weight

    def _pump(self) -> None:
        while not self._stopping and self._attempts.may_begin:
            item = self._scheduler.take(self._clock.boottime())
            if item is None:
                break
            self._loop.begin(self._run(item))
        self._set_alarm()

    def _set_alarm(self) -> None:
        """Come back when a site that items wait for opens again."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        pause = self._scheduler.next_change_in(self._clock.boottime())
        if not self._attempts.may_begin:
            pause = OUTAGE_LOOK
        if pause is not None and not self._stopping:
            self._alarm = asyncio.get_running_loop().call_later(pause, self._pump)

    async def _run(self, item: Item) -> None:
        signal = SiteSignal.SILENT
        try:
            signal = await self._attempts.run(item)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("delivery.attempt_failed", email=item.email_id, grp=item.grp)
        finally:
            self._drop(item)
            broken = self._scheduler.finish(item, signal, self._clock.boottime())
            if item.held is not None:
                self._loop.begin(self._hold_back(item, item.held, is_first=broken))
            elif broken:
                self._loop.begin(self._park(item))
            if self._more and self._scheduler.mail_waiting < MOST_ITEMS // 2:
                self._wake.set()
            self._copies.note_end()
            self._pump()

    async def _park(self, last: Item) -> None:
        """Let the items of a site that is out of reach, here and in the queue, wait until it is
        probed again."""
        until = self._clock.now() + timedelta(seconds=BREAK_SECONDS)
        waiting = self._scheduler.evict(last.site)
        for item in waiting:
            self._drop(item)
        log.warning("delivery.site_parked", site=last.site, items=len(waiting))
        await log_database_errors(self._claims.park([*waiting, last], until))

    async def _hold_back(self, item: Item, fault: RelayFault, *, is_first: bool) -> None:
        """Free this item and all that waits in memory, without an attempt: the relay refuses us."""
        seconds = self._scheduler.closed_for(item.site, self._clock.boottime())
        until = self._clock.now() + timedelta(seconds=seconds)
        if is_first:
            log.warning("delivery.relay_held", fault=fault.name, code=fault.code, seconds=round(seconds))
        await log_database_errors(self._claims.hold(item, until, fault.found))
        await self._free_held()

    async def _free_held(self) -> None:
        """Free what waits in memory for a relay that refuses us; claims under way may have brought more."""
        waiting = self._scheduler.evict_held(self._clock.boottime())
        for item in waiting:
            self._drop(item)
        await log_database_errors(self._claims.give_back(waiting))
