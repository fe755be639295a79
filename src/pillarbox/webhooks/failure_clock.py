"""The failure clock of an endpoint: the rule alone, without a database (webhooks.md section 4).

The first failed attempt after the last success starts the clock. When an automatic attempt fails 120 hours
after it or later, and attempts of at least two events have failed, the endpoint is hopeless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

DISABLE_AFTER = timedelta(hours=120)

Key = tuple[UUID, UUID]
"""A team and one of its webhooks."""


class AttemptEnd(NamedTuple):
    """How one attempt ended. `code` is 0 where no HTTP answer came; `exhausted`: it was the last one of
    the schedule; `replayed`: it was none of the schedule."""

    team_id: UUID
    webhook_id: UUID
    event_id: UUID
    at: datetime
    code: int
    succeeded: bool
    exhausted: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class WebhookHealth:
    """The failure clock of a webhook; everything is empty after a success."""

    failing_since: datetime | None = None
    failing_event: UUID | None = None
    failing_several: bool = False
    told_failing_at: datetime | None = None


HEALTHY = WebhookHealth()


class HealthVerdict(NamedTuple):
    """A webhook's health after a row of results. `notify`: the team is to know that it has begun to fail."""

    health: WebhookHealth
    notify: bool
    disable: bool
    last_failure: AttemptEnd | None


def judged(health: WebhookHealth, results: Iterable[AttemptEnd]) -> HealthVerdict:
    """Apply the rule to the results of one webhook, in order of time."""
    notify = disable = False
    last: AttemptEnd | None = None
    for result in results:
        if result.succeeded:
            health, notify, disable = HEALTHY, False, False
        elif not result.replayed:
            health, last = _failed(health, result), result
            if result.exhausted and health.told_failing_at is None:
                health, notify = replace(health, told_failing_at=result.at), True
            disable = disable or _is_hopeless(health, result)
    return HealthVerdict(health, notify, disable, last)


def _failed(health: WebhookHealth, result: AttemptEnd) -> WebhookHealth:
    if health.failing_since is None:
        return replace(health, failing_since=result.at, failing_event=result.event_id)
    if result.event_id != health.failing_event and not health.failing_several:
        return replace(health, failing_several=True)
    return health


def _is_hopeless(health: WebhookHealth, result: AttemptEnd) -> bool:
    since = health.failing_since
    return since is not None and result.at - since >= DISABLE_AFTER and health.failing_several
