"""Which event may follow which state, and what it counts as (emails.md section 6, metrics.md section 4).

Data first: the table `RULES` is the state machine. `step` applies one event to one recipient.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec


class EventKind(StrEnum):
    """Every event, in the order that decides between events of the same instant."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    SENT = "sent"
    DELIVERY_DELAYED = "delivery_delayed"
    DELIVERED = "delivered"
    OPENED = "opened"
    CLICKED = "clicked"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    FAILED = "failed"
    SUPPRESSED = "suppressed"
    CANCELED = "canceled"
    UNSUBSCRIBED = "unsubscribed"


STATES = tuple(kind for kind in EventKind if kind is not EventKind.UNSUBSCRIBED)
"""The states of recipients and emails; leaving a topic or everything by the link of a mail changes no
state."""

RANK = {kind: rank for rank, kind in enumerate(EventKind)}
FIRST = frozenset({EventKind.QUEUED, EventKind.SCHEDULED})
"""The kinds that an email begins with; anything else is later, whatever the clock said then."""

OPEN = frozenset({EventKind.QUEUED, EventKind.SCHEDULED, EventKind.SENT, EventKind.DELIVERY_DELAYED})
"""States in which a work item still has the recipient."""

NEVER_BACK = frozenset({EventKind.SENT, EventKind.DELIVERY_DELAYED, EventKind.DELIVERED})
"""Events that never replace a later stage of the same recipient: they are late bookkeeping."""

UNDERWAY = frozenset({EventKind.QUEUED, EventKind.SENT, EventKind.DELIVERY_DELAYED})
ENGAGED = frozenset({EventKind.SENT, EventKind.DELIVERED, EventKind.OPENED, EventKind.CLICKED})


class Bounce(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bounce as the wire classes it (webhooks.md 7.1)."""

    type: str
    sub_type: str = msgspec.field(name="subType", default="General")


class ClickDetail(msgspec.Struct, frozen=True):
    """A link that was followed, and by whom."""

    ip_address: str
    link: str
    timestamp: datetime
    user_agent: str


class EventDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts beside an event; stored as JSON, shown by `GET /emails/{id}/events`."""

    host: str | None = None
    code: int | None = None
    enhanced: str | None = None
    reply: str | None = None
    reason: str | None = None
    bounce: Bounce | None = None
    suppressed: str | None = None
    next_attempt_at: datetime | None = None
    attempt: int | None = None
    uncertain: bool = False
    repeated: bool = False
    tls: str | None = None
    click: ClickDetail | None = None
    machine: str | None = None
    """The program that has opened the mail or followed the link, where it is known to be one."""


class TimelineEntry(NamedTuple):
    """One event of one recipient (`position`), or of the whole email (`position` None)."""

    team_id: UUID
    email_id: UUID
    position: int | None
    kind: EventKind
    at: datetime
    detail: EventDetail | None = None


class FirstEntry(NamedTuple):
    """The first entry of an email that this transaction inserts; its row already has the state."""

    team_id: UUID
    email_id: UUID
    kind: EventKind
    at: datetime
    recipients: int
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


class RecipientFate(NamedTuple):
    """The columns of `recipients` that belong to the timeline."""

    state: EventKind
    sent_at: datetime | None = None
    delayed_at: datetime | None = None
    bounce_type: str | None = None
    opened_at: datetime | None = None
    clicked_at: datetime | None = None
    complained_at: datetime | None = None
    unsubscribed_at: datetime | None = None


class EventEffect(NamedTuple):
    """The effect of one event: the new fate, the metrics it adds, whether it shows as `last_event` and is
    published."""

    fate: RecipientFate
    counts: tuple[str, ...]
    shows: bool
    publishes: bool


class EventRule(NamedTuple):
    """`after`: the states that the event may follow; `mark`: the column that keeps its first time; `moves`:
    whether it is a state itself. What ends a copy of a broadcast that is not to be sent any more counts
    nowhere."""

    after: frozenset[EventKind]
    counts: str
    mark: str | None = None
    first_counts: str | None = None
    moves: bool = True


RULES: dict[EventKind, EventRule] = {
    EventKind.SENT: EventRule(UNDERWAY, "sent", "sent_at"),
    EventKind.DELIVERY_DELAYED: EventRule(UNDERWAY, "delivery_delayed", "delayed_at"),
    EventKind.DELIVERED: EventRule(UNDERWAY, "delivered"),
    EventKind.BOUNCED: EventRule(UNDERWAY | ENGAGED, "bounced"),
    EventKind.COMPLAINED: EventRule(ENGAGED, "complained", "complained_at"),
    EventKind.OPENED: EventRule(ENGAGED, "opened", "opened_at", "unique_opened"),
    EventKind.CLICKED: EventRule(ENGAGED, "clicked", "clicked_at", "unique_clicked"),
    EventKind.FAILED: EventRule(UNDERWAY | {EventKind.SCHEDULED}, "failed"),
    EventKind.SUPPRESSED: EventRule(UNDERWAY | {EventKind.SCHEDULED}, "suppressed"),
    EventKind.CANCELED: EventRule(UNDERWAY, ""),
    EventKind.UNSUBSCRIBED: EventRule(frozenset(STATES), "unsubscribed", "unsubscribed_at", moves=False),
}

ONCE = frozenset({EventKind.SENT, EventKind.DELIVERY_DELAYED, EventKind.COMPLAINED, EventKind.UNSUBSCRIBED})
"""Events that happen once per recipient; a further delay is kept as a line of history only."""


def step(fate: RecipientFate, entry: TimelineEntry) -> EventEffect | None:
    """Return the effect of `entry` on its recipient, or None where the recipient's state forbids it."""
    rule = RULES[entry.kind]
    if fate.state not in rule.after:
        return None
    if entry.kind is EventKind.BOUNCED and fate.bounce_type is not None:
        return None
    first = rule.mark is None or getattr(fate, rule.mark) is None
    if entry.kind in ONCE and not first:
        return EventEffect(fate, (), shows=False, publishes=False) if _is_history(entry) else None
    stays = not rule.moves or _is_late(fate.state, entry.kind)
    changes: dict[str, Any] = {} if stays else {"state": entry.kind}
    if rule.mark is not None and first:
        changes[rule.mark] = entry.at
    if entry.kind is EventKind.BOUNCED:
        changes["bounce_type"] = _bounce_type(entry)
    moved = fate._replace(**changes)
    counts: tuple[str, ...] = (_metric(rule, entry),) if rule.counts else ()
    counts += (rule.first_counts,) if rule.first_counts and first else ()
    return EventEffect(moved, counts, shows=moved.state is entry.kind, publishes=rule.moves)


def _is_history(entry: TimelineEntry) -> bool:
    """Return whether a repeated event is kept: a repeated delay still says when the next attempt is and why
    the last one failed."""
    return entry.kind is EventKind.DELIVERY_DELAYED


def _is_late(state: EventKind, kind: EventKind) -> bool:
    return kind in NEVER_BACK and RANK[kind] < RANK[state]


def _bounce_type(entry: TimelineEntry) -> str:
    bounce = entry.detail.bounce if entry.detail else None
    return bounce.type if bounce else "Undetermined"


def _metric(rule: EventRule, entry: TimelineEntry) -> str:
    return f"bounced_{_bounce_type(entry).lower()}" if rule.counts == "bounced" else rule.counts


def place(kind: EventKind, instant: datetime) -> tuple[bool, datetime, int]:
    """Return the rank of an event among those of its email: the greatest is its `last_event`."""
    return kind not in FIRST, instant, RANK[kind]
