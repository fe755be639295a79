"""Whose job is next under a limit whose jobs wait for servers that users have chosen.

Slots go in turn over teams and, inside a team, over sites (the host that a job talks to). A team, and a site,
gets another slot only while it has fewer than are free: a single team has half of them, two have a third
each, so there is nearly always a free slot for a team that has none. A team without a slot gets one whatever
host its job asks, even if jobs of others keep that host busy. Where all slots are taken, the team with most
gives one back after `slot_timeout` seconds to a team that has at least two fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Turns:
    """The jobs under a limit take turns. A job that is cut off counts as tried and is due again after
    `gap`; one that was tried `tries` times is never cut off, so no job fails because others took its
    time."""

    slot_timeout: float
    gap: timedelta
    tries: int


class DueJob(NamedTuple):
    """A job that is due."""

    team_id: UUID
    id: UUID
    site: str


class TakenSlot(NamedTuple):
    """A slot that is taken: by whom, for how many seconds, and how often its job was tried before."""

    team_id: UUID
    site: str
    job: UUID
    seconds: float
    tries: int


def chosen(candidates: Sequence[DueJob], taken: Iterable[TakenSlot], slots: int, limit: int) -> list[DueJob]:
    """Return which of these begin now, `limit` of them, where there are so many slots in all."""
    taken = list(taken)
    teams, sites = Counter(slot.team_id for slot in taken), Counter(slot.site for slot in taken)
    free, found, left = slots - len(taken), list[DueJob](), list(candidates)
    while left and len(found) < min(limit, slots - len(taken)):
        share = max(1, free)
        fit = [
            c
            for c in left
            if not teams[c.team_id] or (teams[c.team_id] < share and (not c.site or sites[c.site] < share))
        ]
        if not fit:
            break
        best = min(fit, key=lambda c: (teams[c.team_id], sites[c.site]))
        left.remove(best)
        found.append(best)
        teams[best.team_id] += 1
        sites[best.site] += 1
        free -= 1
    return found


def overdue(candidates: Iterable[DueJob], taken: Sequence[TakenSlot], turns: Turns) -> TakenSlot | None:
    """Return the slot to give back where none is free: the oldest of the team that has most of them, if a
    team that has at least two fewer waits and the slot was held for long enough."""
    teams = Counter(slot.team_id for slot in taken)
    fewest = min((teams[candidate.team_id] for candidate in candidates), default=None)
    old = [slot for slot in taken if slot.seconds >= turns.slot_timeout and slot.tries < turns.tries]
    slot = max(old, key=lambda slot: (teams[slot.team_id], slot.seconds), default=None)
    if slot is None or fewest is None or teams[slot.team_id] < fewest + 2:
        return None
    return slot
