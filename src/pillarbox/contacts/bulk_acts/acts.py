"""Beginning and stopping acts on many contacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.contacts import segment_queries
from pillarbox.contacts.bulk_acts import queries
from pillarbox.contacts.bulk_acts.queries import JOB, BulkAct, BulkKind, NewBulkAct
from pillarbox.contacts.conditions.filtering import ContactFilter
from pillarbox.contacts.conditions.language import as_json
from pillarbox.contacts.conditions.membership import count_fitting
from pillarbox.contacts.store import MembersByConditions
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, after_commit
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.kernel.work import job_queries
from pillarbox.teams.allowances import TooMany, hold_count

MOST_OPEN: Final = 10
"""Acts of a team that have not ended."""


class ActEnded(Problem):
    """An act that cannot be stopped any more."""

    status, name = 409, "invalid_state"

    def __init__(self) -> None:
        super().__init__("This act has ended.")


@dataclass(frozen=True, slots=True)
class BulkSelection:
    """The contacts of an act: those with these ids, or, with None, those that fit the filter."""

    contact_ids: Sequence[UUID] | None
    contact_filter: ContactFilter


@dataclass(frozen=True, slots=True)
class BulkActs:
    """Begins and stops acts. `wake` tells the jobs of this process that there is one."""

    ids: Ids
    wake: Callable[[], None]

    async def begin(
        self, db: TeamDb, kind: BulkKind, segment_id: UUID | None, selection: BulkSelection
    ) -> UUID:
        """Store the act, with the job that does it; return its id. 404 for a segment that is not there."""
        if segment_id is not None:
            if await segment_queries.conditions_of(db, segment_id) is not None:
                raise MembersByConditions
            if not await segment_queries.exists(db, segment_id):
                raise NotFound("Segment")
        named = selection.contact_ids
        total = len(named) if named is not None else await count_fitting(db, selection.contact_filter)
        condition = selection.contact_filter.condition
        new = NewBulkAct(
            id=self.ids.new(),
            kind=kind,
            segment_id=segment_id,
            contact_ids=None if named is None else sorted(named),
            conditions=None if condition is None else msgspec.json.encode(as_json(condition)).decode(),
            search=selection.contact_filter.search,
            total=total,
            created_at=self.ids.now(),
        )
        async with db.joined_transaction() as inside:
            await hold_count(inside, "bulk acts")
            if await queries.count_open(inside) >= MOST_OPEN:
                raise TooMany(MOST_OPEN, "bulk acts that have not ended")
            await queries.insert(inside, new)
            await job_queries.add(inside, self.ids.new(), JOB, new.id, new.created_at)
            after_commit(inside.connection, self.wake)
        return new.id

    async def stop(self, db: TeamDb, act_id: UUID) -> None:
        """Stop an act: of its contacts those are changed that are changed by now. 404, or 409 where it has
        ended."""
        if not await queries.end(db, act_id, "stopped", None, self.ids.now()):
            if await queries.one(db, act_id) is None:
                raise NotFound("Bulk act")
            raise ActEnded


async def newest(db: TeamDb, act_id: UUID) -> BulkAct:
    """Return an act as it is now; 404 where there is none."""
    found = await queries.one(db, act_id)
    if found is None:
        raise NotFound("Bulk act")
    return found


async def digest_of_bulk_acts(db: TeamDb, _: UUID | None) -> str:
    """Return a text that is another one when an act of the team goes on."""
    return await queries.digest(db)
