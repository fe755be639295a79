"""When a failed delivery is tried again (webhooks.md section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pillarbox.webhooks.dispatch.deliveries import AttemptResult, AttemptVerdict, Delivery, DeliverySettlement

RETRIES = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
)
"""Waits from the end of a failed attempt to the next one. After the last of them the delivery has failed."""


def settlement(
    delivery: Delivery,
    answer: AttemptResult,
    *,
    attempt_id: UUID,
    sent_at: datetime,
    ended_at: datetime,
    retries: Sequence[timedelta] = RETRIES,
) -> DeliverySettlement:
    """Return the settlement of an attempt: the delivery ends, or has a next attempt. A replay is one attempt
    and no more."""
    verdict, due_at = AttemptVerdict.FAILED, ended_at
    if answer.succeeded:
        verdict = AttemptVerdict.SUCCESS
    elif not delivery.is_replay and delivery.tries < len(retries):
        verdict, due_at = AttemptVerdict.RETRY, ended_at + retries[delivery.tries]
    return DeliverySettlement(
        delivery=delivery,
        attempt_id=attempt_id,
        sent_at=sent_at,
        ended_at=ended_at,
        answer=answer,
        verdict=verdict,
        due_at=due_at,
    )
