"""The dispatcher: posts the deliveries that this process has leased, and settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import RETRIED
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.secrets import KeyRingError
from pillarbox.kernel.work.engine_loop import EngineLoop
from pillarbox.webhooks.dispatch import prometheus
from pillarbox.webhooks.dispatch.claims import DeliveryClaims
from pillarbox.webhooks.dispatch.deliveries import AttemptResult, Delivery, Key, WebhookKey
from pillarbox.webhooks.dispatch.posting import Poster
from pillarbox.webhooks.dispatch.queries import RENEW_EVERY
from pillarbox.webhooks.dispatch.schedule import RETRIES, settlement
from pillarbox.webhooks.dispatch.scheduler import EndpointScheduler, EndpointSlots
from pillarbox.webhooks.dispatch.settle import DeliverySettler

log = get("webhooks")

MOST_ITEMS = 2000
MOST_BYTES = 32 * 1024 * 1024
MOST_RUNNING = 600
MOST_CLAIMS = 3
PAGES_PER_CLAIM = 4
CLAIM_EVERY = 1.0
HEARTBEAT_EVERY = 20.0
SHORT_PAUSE = 0.1
"""Seconds until the next claim, where more webhooks are due than one claim reads."""

CLAIM_PAUSE = 0.02
"""Seconds between two claims under load."""

FRESH_SECONDS = 1.0
"""How long a waiting delivery goes by what its claim read of the webhook."""

PAUSE_SECONDS = 60.0
STOP_SECONDS = 3.0
"""A stop waits so long for answers: who answers at all does so by then, and what is cut off is repeated."""


class WebhookDispatcher:
    """Bounded in deliveries, bytes and requests; what does not fit stays a free row of the queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        claims: DeliveryClaims,
        settler: DeliverySettler,
        poster: Poster,
        retries: Sequence[timedelta] = RETRIES,
        notify: Callable[[], None] | None = None,
        roles: str = "webhooks",
        look_every: float = CLAIM_EVERY,
    ) -> None:
        """Build the dispatcher; `notify` wakes the dispatchers of other processes. `look_every` is longer
        where a poll calls `notified`."""
        self._look_every = look_every
        self._clock = clock
        self._ids = ids
        self._claims = claims
        self._settler = settler
        self._poster = poster
        self._retries = tuple(retries)
        self._notify = notify
        self._roles = roles
        self._scheduler = EndpointScheduler(MOST_RUNNING)
        self._held: dict[Key, Delivery] = {}
        self._bytes = 0
        self._claiming: dict[WebhookKey, bool] = {}
        self._paused: dict[WebhookKey, float] = {}
        self._claim_slots = asyncio.Semaphore(MOST_CLAIMS)
        self._loop = EngineLoop("webhooks", clock)
        self._wake = asyncio.Event()
        self._has_news = False
        self._claim_failures = LoopFailures("webhooks.claim_endpoint")
        self._pause = look_every
        self._stopping = False

    # Start and stop -------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Claim due work now: this process has committed some."""
        self._has_news = True
        self._wake.set()

    def notified(self) -> None:
        """Claim due work now: another process, or the poll of queues, says that there is some."""
        self._wake.set()

    @property
    def items_in_memory(self) -> int:
        """The number of deliveries in memory."""
        return len(self._held)

    @property
    def running(self) -> int:
        """The number of attempts in flight."""
        return self._scheduler.running

    async def start(self) -> None:
        """Register this process in the table `processes` and begin to claim."""
        await self._claims.write_heartbeat(self._roles)
        self._loop.look("claim", self._look_in_peace, lambda: self._pause, self._wake)
        self._loop.repeat("renew", self._renew, RENEW_EVERY)
        self._loop.repeat("heartbeat", lambda: self._claims.write_heartbeat(self._roles), HEARTBEAT_EVERY)

    async def stop(self, grace: float) -> None:
        """Give back what waits, finish what is on the wire, and give back the rest."""
        self._stopping = True
        await self._loop.stop_looking()
        waiting = self._scheduler.drain()
        for delivery in waiting:
            self._drop(delivery)
        await _quietly(self._claims.give_back(waiting))
        await self._loop.wait(min(grace, STOP_SECONDS))
        unfinished = list(self._held.values())
        await self._loop.end()
        await _quietly(self._claims.give_back(unfinished))
        await self._poster.close()

    async def idle(self) -> None:
        """Return when nothing is held in memory."""
        await self._loop.idle()

    async def look(self) -> int:
        """Claim what is due; returns how many webhooks had due work. Tests call it."""
        await self._claims.recover(CLAIM_EVERY)
        met, self._pause = 0, SHORT_PAUSE
        has_news, self._has_news = self._has_news, False
        for _ in range(PAGES_PER_CLAIM):
            webhooks, is_last = await self._claims.due()
            met += len(webhooks)
            webhooks.sort(key=self._scheduler.load)
            await asyncio.gather(*[self._refill(webhook, notifies=has_news) for webhook in webhooks])
            if is_last or self._stopping:
                self._pause = self._look_every
                break
        return met

    async def _look_in_peace(self) -> None:
        """Look, and let a moment pass before the next look."""
        await self.look()
        await asyncio.sleep(CLAIM_PAUSE)

    async def _renew(self) -> None:
        behind = await self._claims.renew(list(self._held.values()))
        if behind:
            log.info("webhooks.renewal_behind", deliveries=behind)

    # Claiming --------------------------------------------------------------------------------------

    async def _refill(self, webhook: WebhookKey, *, notifies: bool = False) -> None:
        """Claim what the queue of this webhook can take. A call during a claim makes that claim run once
        more: what was committed meanwhile may not have been seen."""
        if webhook in self._claiming:
            self._claiming[webhook] = True
            return
        if self._is_paused(webhook):
            return
        self._claiming[webhook] = True
        try:
            async with self._claim_slots:
                while self._claiming[webhook]:
                    self._claiming[webhook] = False
                    if (most := self._wanted(webhook)) > 0:
                        await self._take(webhook, most, notifies=notifies)
            self._claim_failures.succeeded()
        except RETRIED as trouble:
            self._claim_failures.failed(trouble)
            self._paused[webhook] = self._clock.boottime() + self._claim_failures.pause
        except KeyRingError as trouble:
            log.error("webhooks.secret_unreadable", webhook=webhook[1], trouble=str(trouble))
            self._paused[webhook] = self._clock.boottime() + PAUSE_SECONDS
        except Exception as trouble:
            self._claim_failures.failed(trouble, webhook=webhook[1])
            self._paused[webhook] = self._clock.boottime() + PAUSE_SECONDS
        finally:
            del self._claiming[webhook]
        self._pump()

    def _wanted(self, webhook: WebhookKey) -> int:
        capacity = MOST_ITEMS - len(self._held)
        if self._stopping or self._settler.is_out or self._bytes > MOST_BYTES:
            capacity = 0
        return max(0, min(capacity, self._scheduler.wants(webhook)))

    async def _take(self, webhook: WebhookKey, limit: int, *, notifies: bool) -> None:
        found = await self._claims.claim(webhook, limit)
        if found.elsewhere and notifies and self._notify is not None:
            self._notify()
        queue = self._scheduler.queue_of(webhook)
        if queue is not None:
            queue.more = found.more
        if found.endpoint is None or not found.deliveries:
            if found.more:
                self._wake.set()
            return
        for delivery in found.deliveries:
            self._held[delivery.key] = delivery
            self._bytes += len(delivery.body)
        self._scheduler.add(
            webhook, found.endpoint, found.deliveries, self._clock.boottime()
        ).more = found.more

    def _is_paused(self, webhook: WebhookKey) -> bool:
        until = self._paused.get(webhook)
        if until is not None and self._clock.boottime() >= until:
            del self._paused[webhook]
            return False
        return until is not None

    # Posting -------------------------------------------------------------------------------------------

    @property
    def _may_begin(self) -> bool:
        """Whether attempts may begin: not while outcomes cannot be stored (docs/decisions/0156)."""
        return not self._stopping and not self._settler.is_out

    def _pump(self) -> None:
        while self._may_begin and (taken := self._scheduler.take()) is not None:
            self._loop.begin(self._run(*taken))

    async def _run(self, queue: EndpointSlots, delivery: Delivery) -> None:
        """Make one attempt and settle it. The slot is free as soon as the answer is here; the delivery stays
        in memory until its outcome is committed."""
        answer: AttemptResult | None = None
        sent_at = self._clock.now()
        try:
            answer = await self._attempt(queue, delivery)
        except RETRIED as trouble:
            log.warning("webhooks.attempt_not_made", trouble=repr(trouble)[:200])
            await _quietly(self._claims.give_back([delivery]))
        except Exception:
            log.exception("webhooks.attempt_failed", webhook=delivery.webhook_id)
            answer = AttemptResult(0, "internal error")
        finally:
            self._scheduler.finish(queue, answer, self._clock.boottime())
            if queue.more and self._wanted(queue.webhook) and not self._stopping:
                self._loop.begin(self._refill(queue.webhook))
            self._pump()
        try:
            if answer is not None:
                await self._settle(delivery, answer, sent_at, self._clock.now())
        except Exception:
            log.exception("webhooks.not_settled", webhook=delivery.webhook_id)
            later = self._clock.now() + timedelta(seconds=PAUSE_SECONDS)
            await _quietly(self._claims.give_back([delivery], later))
        finally:
            self._drop(delivery)
            self._pump()

    async def _attempt(self, queue: EndpointSlots, delivery: Delivery) -> AttemptResult | None:
        """Return the answer; None where the delivery was not tried and is not ours any more."""
        if self._clock.boottime() >= queue.seen_at + FRESH_SECONDS and not await self._renewed(queue):
            await _quietly(self._claims.give_back([delivery]))
            return None
        if self._clock.boottime() >= delivery.deadline:
            prometheus.LEASES_LOST.add()
            log.warning("webhooks.lease_lost", webhook=delivery.webhook_id, message=delivery.event_id)
            await _quietly(self._claims.give_back([delivery]))
            return None
        await faults.point("webhooks.claimed")
        began, now = self._clock.boottime(), self._clock.now()
        if not delivery.tries and not delivery.is_replay:
            prometheus.LAG.observe((now - delivery.at).total_seconds())
        answer = await self._poster.attempt(delivery, queue.endpoint, now)
        prometheus.ATTEMPT_SECONDS.observe(self._clock.boottime() - began)
        return answer

    async def _renewed(self, queue: EndpointSlots) -> bool:
        """Read the webhook again: it may lead elsewhere, or be disabled or gone, since the last claim."""
        endpoint = await self._claims.endpoint(queue.webhook)
        if endpoint is None or endpoint.epoch != queue.endpoint.epoch:
            return False
        queue.endpoint, queue.seen_at = endpoint, self._clock.boottime()
        return True

    async def _settle(
        self, delivery: Delivery, answer: AttemptResult, sent_at: datetime, ended_at: datetime
    ) -> None:
        await self._settler.settle(
            settlement(
                delivery,
                answer,
                attempt_id=self._ids.new(),
                sent_at=sent_at,
                ended_at=ended_at,
                retries=self._retries,
            )
        )

    def _drop(self, delivery: Delivery) -> None:
        # What was given back may have been claimed anew before this attempt ended.
        if self._held.get(delivery.key) is delivery:
            del self._held[delivery.key]
        self._bytes -= len(delivery.body)


async def _quietly(work: Awaitable[None]) -> None:
    try:
        await work
    except RETRIED as trouble:
        log.warning("webhooks.give_back_failed", trouble=repr(trouble)[:200])
