"""Carrying out steps that change contacts: `contact_update`, `add_to_segment` and `contact_delete`.

Contacts are locked before runs: whoever deletes a contact holds it while its runs are cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

from msgspec import UNSET, UnsetType

from pillarbox.automations.execution import contact_queries, state_queries
from pillarbox.automations.execution.facts import RunFacts, RunSubject, facts_of
from pillarbox.automations.execution.state import RunLocks, is_for_nobody
from pillarbox.automations.execution.walks import StepFailure, Walk
from pillarbox.automations.execution.work_queries import ClaimedStep
from pillarbox.automations.graphs.evaluation import EvaluationInput
from pillarbox.automations.graphs.graph import AddToSegment, ContactUpdate
from pillarbox.automations.graphs.resolving import Kind, Mismatch, MissingValue, resolved
from pillarbox.automations.graphs.rules import Value
from pillarbox.contact_properties.definitions import definitions
from pillarbox.contacts.change import ContactChange
from pillarbox.contacts.store import Contacts, MembersByConditions
from pillarbox.contacts.wire import ChangedContact, change_of
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import Invalid, NotFound


class ValueRefused(Exception):  # noqa: N818 - the step fails
    """A value that does not fit, or a property that is not there."""

    def __init__(self, failure: StepFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class ContactSteps:
    """Carries out steps that change contacts."""

    runs: RunLocks
    contacts: Contacts

    async def change(self, team_id: UUID, items: Sequence[ClaimedStep]) -> None:
        """Carry out updates of contacts and additions to segments, all in one transaction."""
        ids = sorted({item.contact_id for item in items})
        async with self.runs.opened(team_id, items, partial(contact_queries.hold, contact_ids=ids)) as (
            db,
            steps,
        ):
            facts = await _facts(db, steps)
            for item, walk in steps:
                if walk.is_over:
                    continue
                known = facts[item.run_id]
                if known.contact is None:
                    is_for_nobody(walk, item.position)
                    continue
                failure = await self._change(db, walk, item.position, known)
                if failure is None:
                    walk.finish(item.position)
                else:
                    walk.fail(item.position, failure)

    async def delete(self, team_id: UUID, items: Sequence[ClaimedStep]) -> None:
        """Delete the contacts of these steps, one after the other, and cancel their other runs."""
        for item in items:
            await self._delete(team_id, item)

    async def _delete(self, team_id: UUID, item: ClaimedStep) -> None:
        async def before(db: TeamDb) -> None:
            await contact_queries.hold_alone(db, item.contact_id)
            await state_queries.lock_of_contact(db, item.contact_id)

        async with self.runs.opened(team_id, [item], before) as (db, steps):
            for _, walk in steps:
                if walk.contact_deleted_at is not None:
                    walk.finish(item.position)
                    continue
                await state_queries.mark_contact_deleted(db, item.run_id, walk.now)
                try:
                    await self.contacts.delete(db, item.contact_id)
                except NotFound:
                    walk.cancel()
                else:
                    walk.contact_deleted_at = walk.now
                    walk.finish(item.position)

    async def _change(self, db: TeamDb, walk: Walk, position: int, known: RunFacts) -> StepFailure | None:
        config = walk.graph.steps[position].config
        if isinstance(config, AddToSegment):
            try:
                await self.contacts.add_to_segments(db, walk.run.contact_id, [config.segment_id])
            except NotFound:
                return StepFailure("segment_not_found", f"There is no segment `{config.segment_id}`.")
            except MembersByConditions as refused:
                return StepFailure("segment_not_found", refused.message)
            return None
        assert isinstance(config, ContactUpdate)
        try:
            change = await wanted(db, config, known.event())
            await self.contacts.change(db, walk.run.contact_id, change)
        except ValueRefused as unfit:
            return unfit.failure
        except Invalid as problem:
            return StepFailure("invalid_variable", problem.message)
        return None


async def _facts(db: TeamDb, steps: Sequence[tuple[ClaimedStep, Walk]]) -> dict[UUID, RunFacts]:
    subjects = {item.run_id: RunSubject(item.run_id, item.contact_id, item.event_name) for item, _ in steps}
    return await facts_of(db, list(subjects.values()), [walk.graph for _, walk in steps])


async def wanted(db: TeamDb, config: ContactUpdate, facts: EvaluationInput) -> ContactChange:
    """Return the change that a `contact_update` step makes. A value whose field is missing changes nothing;
    raises ValueRefused."""
    kinds: dict[str, Kind] = {}
    if config.properties:
        kinds = {one.key: cast(Kind, one.type) for one in await definitions(db)}
    properties: dict[str, Any] = {}
    for key, value in config.properties or ():
        if key not in kinds:
            raise ValueRefused(StepFailure("property_not_found", f"There is no property `{key}`."))
        found = _value(f"properties.{key}", value, kinds[key], facts)
        if found is not UNSET:
            properties[key] = found
    members = ChangedContact(
        first_name=_value("first_name", config.first_name, "string", facts),
        last_name=_value("last_name", config.last_name, "string", facts),
        unsubscribed=_value("unsubscribed", config.unsubscribed, "boolean", facts),
        properties=properties,
    )
    return change_of(members)


def _value(field: str, value: Value | None, kind: Kind, facts: EvaluationInput) -> Any | UnsetType:
    """Return the new value of a member: None clears it, UNSET leaves it as it is; raises ValueRefused."""
    if value is None:
        return UNSET
    found = resolved(value, kind, facts)
    if isinstance(found, Mismatch):
        raise ValueRefused(
            StepFailure("invalid_variable", f"The value of `{field}` does not fit. {found.reason}")
        )
    if isinstance(found, MissingValue):
        return UNSET if found.is_foreign else None
    return found.value
