"""Making, naming and deleting segments (segments.md section 2); nothing is told to webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.contacts.conditions.language import Condition, as_json
from pillarbox.contacts.conditions.references import refuse_unknown
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, NotFound, Problem
from pillarbox.kernel.work import job_queries
from pillarbox.segments import queries
from pillarbox.segments.queries import Segment

MOST_WITH_CONDITIONS: Final = 100
"""Segments of a team that are defined by conditions: each is asked when the segments of a contact are
shown."""


class TooManyConditions(Problem):
    """More segments with conditions than a team may have."""

    status, name = 403, "validation_error"

    def __init__(self) -> None:
        super().__init__(f"A team may have {MOST_WITH_CONDITIONS} segments that are defined by conditions.")


class KeptByHand(Invalid):
    """Conditions for a segment that has members of its own."""

    def __init__(self) -> None:
        super().__init__("The members of this segment are added by hand: it cannot have conditions.")


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """The new name and the new conditions of a segment; None for what stays."""

    name: str | None = None
    condition: Condition | None = None


async def create(db: TeamDb, ids: Ids, name: str, condition: Condition | None) -> Segment:
    """Create a segment without members, or with those contacts that fit the condition; names may repeat."""
    if condition is not None:
        await refuse_unknown(db, condition, "conditions")
        if await queries.count_with_conditions(db) >= MOST_WITH_CONDITIONS:
            raise TooManyConditions
    stamp = ids.stamp()
    segment = Segment(id=stamp.id, name=name, created_at=stamp.at, conditions=_encoded(condition))
    await queries.insert(db, segment)
    return segment


async def found(db: TeamDb, segment_id: UUID, called: str = "Segment") -> Segment:
    """Return the segment, or raise a 404."""
    segment = await queries.get(db, segment_id)
    if segment is None:
        raise NotFound(called)
    return segment


async def change(
    db: TeamDb, segment_id: UUID, segment_change: SegmentChange, called: str = "Segment"
) -> None:
    """Change a segment, or raise a 404. Only one that has conditions gets other ones."""
    if segment_change.condition is not None:
        if (await found(db, segment_id, called)).conditions is None:
            raise KeptByHand
        await refuse_unknown(db, segment_change.condition, "conditions")
    if not await queries.change(db, segment_id, segment_change.name, _encoded(segment_change.condition)):
        raise NotFound(called)


async def delete(db: TeamDb, ids: Ids, segment_id: UUID) -> None:
    """Delete the segment, if it exists: from the commit on it is gone, and a job removes its members.
    Transactions that add one have ended by then: adding locks the segment."""
    if await queries.delete(db, segment_id):
        await job_queries.add(db, ids.new(), queries.JOB_REMOVE, segment_id, ids.now())


def _encoded(condition: Condition | None) -> str | None:
    return None if condition is None else msgspec.json.encode(as_json(condition)).decode()
