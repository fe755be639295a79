"""Which event may follow which state, and what it counts as (emails.md section 6, metrics.md section 4).

Data first: the table `RULES` is the state machine. `step` applies one event to one recipient.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec


class Kind(StrEnum):
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


STATES = tuple(kind for kind in Kind if kind is not Kind.UNSUBSCRIBED)
"""What recipients and emails are in; leaving a topic or everything by the link of a mail changes no state."""

RANK = {kind: rank for rank, kind in enumerate(Kind)}
FIRST = frozenset({Kind.QUEUED, Kind.SCHEDULED})
"""What every email begins with; anything else is later, whatever the clock said then."""

OPEN = frozenset({Kind.QUEUED, Kind.SCHEDULED, Kind.SENT, Kind.DELIVERY_DELAYED})
"""States in which a work item still has the recipient."""

NEVER_BACK = frozenset({Kind.SENT, Kind.DELIVERY_DELAYED, Kind.DELIVERED})
"""Events that never replace a later stage of the same recipient: they are late bookkeeping."""

UNDERWAY = frozenset({Kind.QUEUED, Kind.SENT, Kind.DELIVERY_DELAYED})
ENGAGED = frozenset({Kind.SENT, Kind.DELIVERED, Kind.OPENED, Kind.CLICKED})


class Bounce(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bounce as the wire classes it (webhooks.md 7.1)."""

    type: str
    sub_type: str = msgspec.field(name="subType", default="General")


class Click(msgspec.Struct, frozen=True):
    """A link that was followed, and by whom."""

    ip_address: str
    link: str
    timestamp: datetime
    user_agent: str


class Detail(msgspec.Struct, frozen=True, omit_defaults=True):
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
    click: Click | None = None
    machine: str | None = None
    """The program that has opened the mail or followed the link, where it is known to be one."""


class Entry(NamedTuple):
    """One event of one recipient (`position`), or of the whole email (`position` None)."""

    team_id: UUID
    email_id: UUID
    position: int | None
    kind: Kind
    at: datetime
    detail: Detail | None = None


class Opening(NamedTuple):
    """The first entry of an email that this transaction inserts; its row already has the state."""

    team_id: UUID
    email_id: UUID
    kind: Kind
    at: datetime
    recipients: int
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


class Fate(NamedTuple):
    """The columns of `recipients` that belong to the timeline."""

    state: Kind
    sent_at: datetime | None = None
    delayed_at: datetime | None = None
    bounce_type: str | None = None
    opened_at: datetime | None = None
    clicked_at: datetime | None = None
    complained_at: datetime | None = None
    unsubscribed_at: datetime | None = None


class Step(NamedTuple):
    """What one event changes: the new fate, the metrics it adds, whether it shows as `last_event`."""

    fate: Fate
    counts: tuple[str, ...]
    shows: bool
    publishes: bool


class Rule(NamedTuple):
    """`after`: the states that the event may follow; `mark`: the column that keeps its first time; `moves`:
    whether it is a state itself. What ends a copy of a broadcast that is not to be sent any more counts
    nowhere."""

    after: frozenset[Kind]
    counts: str
    mark: str | None = None
    first_counts: str | None = None
    moves: bool = True


RULES: dict[Kind, Rule] = {
    Kind.SENT: Rule(UNDERWAY, "sent", "sent_at"),
    Kind.DELIVERY_DELAYED: Rule(UNDERWAY, "delivery_delayed", "delayed_at"),
    Kind.DELIVERED: Rule(UNDERWAY, "delivered"),
    Kind.BOUNCED: Rule(UNDERWAY | ENGAGED, "bounced"),
    Kind.COMPLAINED: Rule(ENGAGED, "complained", "complained_at"),
    Kind.OPENED: Rule(ENGAGED, "opened", "opened_at", "unique_opened"),
    Kind.CLICKED: Rule(ENGAGED, "clicked", "clicked_at", "unique_clicked"),
    Kind.FAILED: Rule(UNDERWAY | {Kind.SCHEDULED}, "failed"),
    Kind.SUPPRESSED: Rule(UNDERWAY | {Kind.SCHEDULED}, "suppressed"),
    Kind.CANCELED: Rule(UNDERWAY, ""),
    Kind.UNSUBSCRIBED: Rule(frozenset(STATES), "unsubscribed", "unsubscribed_at", moves=False),
}

ONCE = frozenset({Kind.SENT, Kind.DELIVERY_DELAYED, Kind.COMPLAINED, Kind.UNSUBSCRIBED})
"""Events that happen once per recipient; a further delay is kept as a line of history only."""


def step(fate: Fate, entry: Entry) -> Step | None:
    """What `entry` does to a recipient, or None where its state forbids it."""
    rule = RULES[entry.kind]
    if fate.state not in rule.after:
        return None
    if entry.kind is Kind.BOUNCED and fate.bounce_type is not None:
        return None
    first = rule.mark is None or getattr(fate, rule.mark) is None
    if entry.kind in ONCE and not first:
        return Step(fate, (), shows=False, publishes=False) if _is_history(entry) else None
    stays = not rule.moves or _is_late(fate.state, entry.kind)
    changes: dict[str, Any] = {} if stays else {"state": entry.kind}
    if rule.mark is not None and first:
        changes[rule.mark] = entry.at
    if entry.kind is Kind.BOUNCED:
        changes["bounce_type"] = _bounce_type(entry)
    moved = fate._replace(**changes)
    counts: tuple[str, ...] = (_metric(rule, entry),) if rule.counts else ()
    counts += (rule.first_counts,) if rule.first_counts and first else ()
    return Step(moved, counts, shows=moved.state is entry.kind, publishes=rule.moves)


def _is_history(entry: Entry) -> bool:
    """A repeated delay still records when the next attempt is and why the last one failed."""
    return entry.kind is Kind.DELIVERY_DELAYED


def _is_late(state: Kind, kind: Kind) -> bool:
    return kind in NEVER_BACK and RANK[kind] < RANK[state]


def _bounce_type(entry: Entry) -> str:
    bounce = entry.detail.bounce if entry.detail else None
    return bounce.type if bounce else "Undetermined"


def _metric(rule: Rule, entry: Entry) -> str:
    return f"bounced_{_bounce_type(entry).lower()}" if rule.counts == "bounced" else rule.counts


def place(kind: Kind, at: datetime) -> tuple[bool, datetime, int]:
    """Where an event stands among those of its email: the latest is its `last_event`."""
    return kind not in FIRST, at, RANK[kind]
