"""Schedules deliveries: bounded slots per webhook, round robin over teams and their webhooks.

The queue of a webhook is what this process has in memory of it. It begins with a few slots, gets one more
with every answer up to ten, and one alone while its endpoint does not answer. Endpoints that do not answer,
or have not answered yet, together never have more than half of all slots; and of that half a team gets
another slot only while it has fewer than are left there: many new endpoints that hang keep no other team
waiting.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from pillarbox.webhooks.dispatch.deliveries import AttemptResult, Delivery, Endpoint, WebhookKey

MOST_SLOTS = 10
FIRST_SLOTS = 2
MOST_CLAIMED = 200
AHEAD_SECONDS = 0.2
"""A queue holds what it posts in this time, so that it need not wait for its next claim."""

MEASURE_SECONDS = 0.5
QUEUES_KEPT = 5000


@dataclass(slots=True)
class EndpointSlots:
    """One webhook's deliveries in memory. `more`: the database may have more that are due."""

    webhook: WebhookKey
    endpoint: Endpoint
    seen_at: float
    slots: int = FIRST_SLOTS
    running: int = 0
    silent: bool = False
    proven: bool = False
    """Whether the endpoint has answered."""

    more: bool = False
    listed: bool = False
    waiting: deque[Delivery] = field(default_factory=deque)
    answered: int = 0
    counted_from: float = 0.0
    rate: float = 0.0

    @property
    def is_doubtful(self) -> bool:
        """Whether nobody knows that the endpoint answers."""
        return self.silent or not self.proven

    @property
    def window(self) -> int:
        """The number of deliveries that may run or wait here."""
        if self.silent:
            return 1
        return min(MOST_CLAIMED, self.slots * 2 + int(self.rate * AHEAD_SECONDS))

    def note(self, answer: AttemptResult, now: float) -> None:
        """Learn from an attempt that ended."""
        self.silent = answer.hung
        self.proven = self.proven or not answer.hung
        self.slots = 1 if answer.hung else min(MOST_SLOTS, self.slots + 1)
        self.answered += 1
        if now - self.counted_from >= MEASURE_SECONDS:
            self.rate = self.answered / (now - self.counted_from) if self.counted_from else 0.0
            self.answered, self.counted_from = 0, now


class EndpointScheduler:
    """Deliveries in memory, waiting and running. Not thread-safe; every call is of constant time."""

    def __init__(self, most_running: int) -> None:
        self._most_running = most_running
        self._queues: OrderedDict[WebhookKey, EndpointSlots] = OrderedDict()
        self._teams: deque[UUID] = deque()
        self._turns: dict[UUID, deque[EndpointSlots]] = {}
        self._doubtful_of: Counter[UUID] = Counter()
        self.running = 0
        self.doubtful_running = 0

    def wants(self, webhook: WebhookKey) -> int:
        """Return how many deliveries of a webhook can be taken now. Where that is none, it is asked again as
        soon as one of its attempts has ended."""
        queue = self._queues.get(webhook)
        if queue is None:
            return FIRST_SLOTS * 2
        window, here = queue.window, queue.running + len(queue.waiting)
        if here <= window // 2 and not (queue.silent and self._is_crowded(webhook[0])):
            return window - here
        queue.more = True
        return 0

    def load(self, webhook: WebhookKey) -> int:
        """Return how many deliveries of a webhook are in memory; the webhook with the fewest is served
        first."""
        queue = self._queues.get(webhook)
        return 0 if queue is None else queue.running + len(queue.waiting)

    def queue_of(self, webhook: WebhookKey) -> EndpointSlots | None:
        """Return the slots and queue of a webhook; None where this process has none."""
        return self._queues.get(webhook)

    def add(
        self, webhook: WebhookKey, endpoint: Endpoint, deliveries: Iterable[Delivery], now: float
    ) -> EndpointSlots:
        """Put deliveries at the end of their queue."""
        queue = self._queues.get(webhook)
        if queue is None:
            self._evict_idle()
            queue = self._queues[webhook] = EndpointSlots(webhook, endpoint, now, counted_from=now)
        self._queues.move_to_end(webhook)
        queue.endpoint, queue.seen_at = endpoint, now
        queue.waiting.extend(deliveries)
        self._list(queue)
        return queue

    def take(self) -> tuple[EndpointSlots, Delivery] | None:
        """Return the next delivery that has a free slot, now counted as running; None when there is none."""
        if self.running >= self._most_running:
            return None
        for _ in range(len(self._teams)):
            team = self._teams.popleft()
            queue = self._next(self._turns[team])
            if self._turns[team]:
                self._teams.append(team)
            else:
                del self._turns[team]
            if queue is not None:
                return self._start(queue)
        return None

    def finish(self, queue: EndpointSlots, answer: AttemptResult | None, now: float) -> None:
        """Free the slot of a delivery that `take` gave; None where nothing was tried."""
        queue.running -= 1
        self.running -= 1
        was = queue.is_doubtful
        self._count(queue, -was)
        if answer is not None:
            queue.note(answer, now)
            self._count(queue, queue.running * (queue.is_doubtful - was))
        self._list(queue)

    def drain(self) -> list[Delivery]:
        """Remove and return everything that waits."""
        left = [delivery for queue in self._queues.values() for delivery in queue.waiting]
        for queue in self._queues.values():
            queue.waiting.clear()
        return left

    def _start(self, queue: EndpointSlots) -> tuple[EndpointSlots, Delivery]:
        delivery = queue.waiting.popleft()
        queue.running += 1
        self.running += 1
        self._count(queue, queue.is_doubtful)
        self._list(queue)
        return queue, delivery

    def _next(self, turns: deque[EndpointSlots]) -> EndpointSlots | None:
        """Return the first of these queues that may start a delivery; others are removed or moved back."""
        for _ in range(len(turns)):
            queue = turns.popleft()
            queue.listed = False
            if not queue.waiting or queue.running >= queue.slots:
                continue
            if queue.is_doubtful and self._is_crowded(queue.webhook[0]):
                queue.listed = True
                turns.append(queue)
                continue
            return queue
        return None

    def _count(self, queue: EndpointSlots, change: int) -> None:
        """Count so many more attempts at endpoints of which nobody knows that they answer."""
        if not change:
            return
        team = queue.webhook[0]
        self.doubtful_running += change
        self._doubtful_of[team] += change
        if not self._doubtful_of[team]:
            del self._doubtful_of[team]

    def _is_crowded(self, team: UUID) -> bool:
        """Return whether endpoints that may not answer have their half, or the team its part of that."""
        left = self._most_running // 2 - self.doubtful_running
        return left <= 0 or self._doubtful_of[team] >= left

    def _evict_idle(self) -> None:
        """Forget the idle endpoint that was used least recently, where too many are kept."""
        if len(self._queues) < QUEUES_KEPT:
            return
        idle = next((p for p, queue in self._queues.items() if not queue.running and not queue.waiting), None)
        if idle is not None:
            del self._queues[idle]

    def _list(self, queue: EndpointSlots) -> None:
        if queue.listed or not queue.waiting or queue.running >= queue.slots:
            return
        queue.listed = True
        team = queue.webhook[0]
        if team not in self._turns:
            self._turns[team] = deque()
            self._teams.append(team)
        self._turns[team].append(queue)
