"""The values that the dispatcher works with: webhooks, deliveries, and the results of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

SCHEDULED: Final = UUID(int=0)
"""`replay` of a delivery that follows the schedule."""

EVENT_PREFIX: Final = "msg_"

WebhookKey = tuple[UUID, UUID]
"""A team and one of its webhooks."""

Key = tuple[UUID, UUID, UUID, UUID]
"""Team, webhook, event, replay."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where deliveries of a webhook go now, and the keys that sign now, the newest first."""

    url: str
    keys: Sequence[bytes] = field(repr=False)
    epoch: int = 0


@dataclass(slots=True)
class Delivery:
    """A leased delivery. `attempt` fences its outcome, `tries` counts failures so far; until `deadline`
    (boot time) the lease may be trusted."""

    team_id: UUID
    webhook_id: UUID
    event_id: UUID
    replay: UUID
    at: datetime
    attempt: int
    tries: int
    body: bytes = field(repr=False)
    deadline: float

    @property
    def key(self) -> Key:
        return self.team_id, self.webhook_id, self.event_id, self.replay

    @property
    def webhook(self) -> WebhookKey:
        return self.team_id, self.webhook_id

    @property
    def is_replay(self) -> bool:
        return self.replay != SCHEDULED


class AttemptResult(NamedTuple):
    """How one attempt ended. `code` is 0 where no HTTP answer came, and `response` then a short reason;
    `hung`: nothing came in time."""

    code: int
    response: str
    hung: bool = False

    @property
    def succeeded(self) -> bool:
        return 200 <= self.code <= 299


class AttemptVerdict(Enum):
    """The consequence of an attempt for its delivery."""

    SUCCESS = "success"
    RETRY = "retry"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DeliverySettlement:
    """The settlement of an attempt, as it is written; after the verdict RETRY `due_at` is the time of the
    next one."""

    delivery: Delivery
    attempt_id: UUID
    sent_at: datetime
    ended_at: datetime
    answer: AttemptResult
    verdict: AttemptVerdict
    due_at: datetime
