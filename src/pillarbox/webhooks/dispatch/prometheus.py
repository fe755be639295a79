"""The metrics of the dispatcher for Prometheus (OPS-06)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pillarbox.kernel.observability.metrics import SECONDS, Counter, Gauge, Histogram
from pillarbox.webhooks.dispatch.deliveries import AttemptResult, DeliverySettlement


class MeasuredDispatcher(Protocol):
    @property
    def items_in_memory(self) -> int: ...

    @property
    def running(self) -> int: ...


ATTEMPTS = Counter(
    "pillarbox_webhook_attempts",
    "Attempts by their answer: 2xx, 3xx, 4xx, 5xx, other, none.",
    ("answer",),
)
OUTCOMES = Counter(
    "pillarbox_webhook_outcomes",
    "Deliveries by what an attempt made of them: success, retry, failed.",
    ("outcome",),
)
ATTEMPT_SECONDS = Histogram(
    "pillarbox_webhook_attempt_seconds", "How long attempts took until their answer or its absence.", SECONDS
)
LAG = Histogram(
    "pillarbox_webhook_lag_seconds", "From the event to the beginning of its first attempt.", SECONDS
)
LEASES_LOST = Counter(
    "pillarbox_webhook_leases_lost", "Attempts not made because their lease was over when their turn came."
)
LEASES_RECOVERED = Counter(
    "pillarbox_webhook_leases_recovered", "Deliveries taken from processes that ended or went silent."
)
ITEMS_IN_MEMORY = Gauge("pillarbox_webhook_items_in_memory", "Deliveries in the memory of the processes.")
RUNNING = Gauge("pillarbox_webhook_running", "Attempts in flight.")
QUEUE = Gauge(
    "pillarbox_webhook_queue_items",
    "Deliveries in the database: due, waiting for a retry, leased. Estimated beyond 10,000.",
    ("state",),
)
QUEUE_OLDEST = Gauge(
    "pillarbox_webhook_queue_oldest_seconds", "Age of the oldest event in each state.", ("state",)
)


def watch(dispatcher: MeasuredDispatcher) -> None:
    """Show what this dispatcher holds."""
    ITEMS_IN_MEMORY.read = lambda: {(): dispatcher.items_in_memory}
    RUNNING.read = lambda: {(): dispatcher.running}


CLASSES = {2: ("2xx",), 3: ("3xx",), 4: ("4xx",), 5: ("5xx",)}


def settled(batch: Iterable[DeliverySettlement]) -> None:
    """Count a batch of attempts that is committed."""
    for settlement in batch:
        ATTEMPTS.add(1, answer_class(settlement.answer))
        OUTCOMES.add(1, (settlement.verdict.value,))


def answer_class(answer: AttemptResult) -> tuple[str, ...]:
    return CLASSES.get(answer.code // 100, ("other",)) if answer.code else ("none",)
