"""The queue as the operator sees it: what waits, for whom, and why; and "try it now".

An item is in exactly one of these conditions:

    working      a process holds it
    fetching     an attachment is still to be fetched; nothing claims the item until then
    quarantined  it ended the processes that tried it, or needs a key that the key ring does not have; nothing
                 claims it until it is retried by hand, or the key is there
    scheduled    the sender asked for a later time
    retry        an attempt failed, the next one is at `due_at`
    paused       its time has come, but the operator holds it back
    due          its time has come; the next free process takes it
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

TIMED = frozenset({"due", "retry", "scheduled"})
"""Conditions in which `due_at` is when the next attempt can begin."""


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which part of the queue is meant; a field that is None does not narrow it."""

    team_id: UUID | None = None
    destination: str | None = None
    email_id: UUID | None = None

    @property
    def args(self) -> tuple[UUID | None, str | None, UUID | None]:
        return self.team_id, self.destination, self.email_id


class Totals(NamedTuple):
    """How many items there are in each condition."""

    items: int
    working: int
    fetching: int
    quarantined: int
    scheduled: int
    retry: int
    paused: int
    due: int
    destinations: int
    oldest: datetime | None


class QueueGroup(NamedTuple):
    """The items of one team for one destination. `reason` is the most frequent one."""

    team_id: UUID
    destination: str
    items: int
    working: int
    fetching: int
    quarantined: int
    scheduled: int
    retry: int
    paused: int
    due: int
    tries: int
    next_attempt_at: datetime | None
    oldest: datetime
    reason: str | None


class WaitingItem(NamedTuple):
    """One item. `tries` counts attempts that ended in a delay."""

    team_id: UUID
    email_id: UUID
    grp: int
    destination: str
    due_at: datetime
    leased_until: datetime | None
    tries: int
    uncertain: int
    first_attempt_at: datetime | None
    last_host: str | None
    last_reply: str | None
    reason: str | None
    created_at: datetime
    condition: str

    @property
    def next_attempt_at(self) -> datetime | None:
        """When it can be claimed; None where that is not a matter of time."""
        return self.due_at if self.condition in TIMED else None
