"""One attempt of an item: check that it may be sent, send it, and settle the outcome (architecture 2.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from pillarbox.delivery import prometheus
from pillarbox.delivery.composing import LARGE, EmailUnsendable
from pillarbox.delivery.copies import LastCheck
from pillarbox.delivery.items import Item
from pillarbox.delivery.queue import missing_keys
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.final_dots import FinalDots
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.queue.quarantine import UncertainAttempts
from pillarbox.delivery.rate_control import SiteSignal
from pillarbox.delivery.reports import (
    AttemptSettlement,
    RecipientResult,
    Report,
    decide,
    refuse,
    refused,
    suppressed,
)
from pillarbox.delivery.settle import AttemptSettler
from pillarbox.delivery.site_scheduler import Site
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import RETRIED
from pillarbox.kernel.process import faults
from pillarbox.kernel.process.byte_budget import ByteBudget
from pillarbox.kernel.security.secrets import KeyRingError
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

log = get("delivery")

MOST_COPIES = 48 * 1024 * 1024
"""Bytes of large copies of single recipients that are in memory at once; the next one waits its turn."""


class Transport(Protocol):
    """Sends one item; does not use the database."""

    def site(self, destination: str) -> Site:
        """Return the site whose slots an item for `destination` takes."""
        ...

    async def send(self, item: Item, fence: Callable[[], bool]) -> Report:
        """Make one attempt. `fence` is called right before the final dot; False forbids it."""
        ...

    async def close(self) -> None:
        """Close idle connections."""
        ...


class Attempts:
    """Makes the attempts of a process; each ends with a committed outcome or leaves the item to its lease."""

    def __init__(
        self,
        *,
        clock: Clock,
        claims: ItemClaims,
        settler: AttemptSettler,
        transport: Transport,
        pauses: Pauses,
        window: timedelta,
        chance: Callable[[], float],
        last_check: LastCheck | None = None,
        final_dots: FinalDots | None = None,
    ) -> None:
        self._clock = clock
        self._claims = claims
        self._settler = settler
        self._transport = transport
        self._pauses = pauses
        self._uncertain_attempts = UncertainAttempts(claims.begin)
        self._window = window
        self._chance = chance
        self._last_check = last_check
        self._final_dots = final_dots
        self._copy_memory = ByteBudget(MOST_COPIES)

    @property
    def may_begin(self) -> bool:
        """False while outcomes cannot be stored: what is sent meanwhile might be sent again."""
        return not self._settler.is_out

    async def run(self, item: Item) -> SiteSignal:
        """Attempt an item that this process has claimed; returns what was learned of its site."""
        await faults.point("delivery.claimed")
        if not self._is_lease_valid(item):
            # It was never offered, so where it is still ours another attempt makes no double.
            prometheus.LEASES_LOST.add()
            await self._claims.give_back_soon([item])
            return SiteSignal.SILENT
        if self._pauses.cover(item.team_id, item.destination):
            await self._claims.give_back_soon([item])
            return SiteSignal.SILENT
        if item.uncertain or item.has_lost_holder:
            async with self._uncertain_attempts.turn(item) as is_ours:
                return await self._check_and_send(item) if is_ours else SiteSignal.SILENT
        return await self._check_and_send(item)

    async def _check_and_send(self, item: Item) -> SiteSignal:
        """Settle what may not be sent, and send the rest."""
        now = self._clock.now()
        if item.email.refusal is not None:
            detail = EventDetail(reason=item.email.refusal)
            await self._settler.settle(refuse(item, EventKind.FAILED, detail, now))
            return SiteSignal.SILENT
        skipped = suppressed(item, [t for t in item.targets if t.origin is not None], now)
        skipped += refused(item, [t for t in item.targets if t.origin is None and t.refusal], now)
        item.targets = [t for t in item.targets if t.origin is None and t.refusal is None]
        if not item.targets:
            await self._settler.settle(AttemptSettlement(item, skipped, None))
            return SiteSignal.SILENT
        async with self._copy_memory.of(_size_of_copy(item)):
            return await self._send(item, skipped)

    async def _send(self, item: Item, skipped: list[TimelineEntry]) -> SiteSignal:
        dot_allowed = False

        def fence() -> bool:
            nonlocal dot_allowed
            if self._final_dots is not None:
                self._final_dots.note(item.key)
            dot_allowed = self._is_lease_valid(item)
            return dot_allowed

        checked = None
        if item.is_copy and self._last_check is not None:
            checked = self._last_check.of(item)
            item.may_start = checked.may_start
        try:
            report = await self._transport.send(item, fence)
        except EmailUnsendable as unsendable:
            log.error("delivery.unsendable", email=item.email_id, reason=str(unsendable)[:200])
            detail = EventDetail(reason=unsendable.reason)
            settlement = refuse(item, EventKind.FAILED, detail, self._clock.now())
            settlement.entries[:0] = skipped
            await self._settler.settle(settlement)
            return SiteSignal.SILENT
        except KeyRingError as trouble:
            log.error("delivery.key_missing", email=item.email_id, grp=item.grp, trouble=str(trouble))
            await self._claims.put_aside(item, missing_keys.reason_of(trouble))
            return SiteSignal.SILENT
        except Exception:
            log.exception("delivery.carrier_failed", email=item.email_id, grp=item.grp)
            report = self._broken(item, uncertain=dot_allowed)
        if report.abandoned and self._last_check is not None and checked is not None and checked.is_stopped:
            await self._last_check.end(item, checked.stopped)
        elif report.abandoned:
            prometheus.LEASES_LOST.add()
            log.warning("delivery.lease_lost", email=item.email_id, grp=item.grp)
        elif report.held is not None:
            item.held = report.held
        elif self._last_check is not None and checked is not None and await checked.is_over():
            await self._last_check.end(item, checked.stopped)
        else:
            settlement = decide(item, report, self._window, self._chance)
            settlement.entries[:0] = skipped
            await self._write(report, settlement)
        if self._final_dots is not None:
            self._final_dots.forget(item.key)
        if report.on_settled is not None:
            report.on_settled()
        return report.signal

    async def _write(self, report: Report, settlement: AttemptSettlement) -> None:
        try:
            await faults.point("delivery.after_250")
            await self._settler.settle(settlement)
        except BaseException:
            if report.on_settle_failed is not None:
                report.on_settle_failed()
            raise

    def _broken(self, item: Item, *, uncertain: bool) -> Report:
        """Return the report of our own fault: the item is tried again, and its reason says so."""
        now = self._clock.now()
        detail = EventDetail(reason="internal_error", uncertain=uncertain)
        results = [RecipientResult(t.position, EventKind.DELIVERY_DELAYED, detail) for t in item.targets]
        return Report(now, now, uncertain, results)

    def _is_lease_valid(self, item: Item) -> bool:
        return self._clock.boottime() < item.deadline


def _size_of_copy(item: Item) -> int:
    """Return the bytes of a recipient's copy beyond the shared email; 0 where they are few."""
    if item.email.shared > LARGE:
        return 2 * item.email.shared
    return item.email.weight if item.copy is not None and item.email.weight > LARGE else 0


async def log_database_errors(work: Awaitable[None]) -> None:
    """Do this work, and only log where the database does not answer: leases run out by themselves."""
    try:
        await work
    except RETRIED as trouble:
        log.warning("delivery.give_back_failed", trouble=repr(trouble)[:200])
