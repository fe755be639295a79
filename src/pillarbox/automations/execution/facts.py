"""The facts that steps may read: the contact as it is now, and the payloads of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.automations.execution import contact_queries, state_queries
from pillarbox.automations.execution.contact_queries import AutomationContact
from pillarbox.automations.graphs.evaluation import ContactFacts, EvaluationInput
from pillarbox.automations.graphs.graph import Graph, WaitForEvent
from pillarbox.contact_properties.definitions import fallbacks
from pillarbox.kernel.postgres.database import TeamDb

Dates = Mapping[str, frozenset[str]]

NO_DATA: Final = state_queries.RunData(UUID(int=0), "{}", None)


class RunSubject(NamedTuple):
    """A run whose facts are wanted: for whom, and which event started it."""

    run_id: UUID
    contact_id: UUID
    event_name: str


@dataclass(slots=True)
class RunFacts:
    """The facts of one run. `address` is that of the contact in the form in which addresses are compared."""

    event_name: str
    payload: dict[str, Any]
    waited: dict[str, Any]
    contact: ContactFacts | None
    address: str | None
    dates: Dates

    def event(self) -> EvaluationInput:
        """Return the facts in the form that rules and values of steps read."""
        return EvaluationInput(
            event=self.payload,
            contact=self.contact,
            waited=self.waited,
            event_name=self.event_name,
            dates=self.dates,
        )


async def facts_of(db: TeamDb, runs: Sequence[RunSubject], graphs: Iterable[Graph]) -> dict[UUID, RunFacts]:
    """Return the facts of each of these runs; of one that was removed, no payloads."""
    stored = {one.id: one for one in await state_queries.data(db, [run.run_id for run in runs])}
    contacts = await _contacts(db, {run.contact_id for run in runs})
    names = {run.event_name for run in runs} | {name for graph in graphs for name in awaited(graph)}
    dates = await contact_queries.dates(db, list(names))
    found: dict[UUID, RunFacts] = {}
    for run in runs:
        data = stored.get(run.run_id, NO_DATA)
        contact = contacts.get(run.contact_id)
        found[run.run_id] = RunFacts(
            event_name=run.event_name,
            payload=msgspec.json.decode(data.payload),
            waited={} if data.waited is None else msgspec.json.decode(data.waited),
            contact=None if contact is None else contact[0],
            address=None if contact is None else contact[1],
            dates=dates,
        )
    return found


def awaited(graph: Graph) -> set[str]:
    """Return the names of the events that a graph waits for."""
    return {step.config.event_name for step in graph.steps if isinstance(step.config, WaitForEvent)}


async def _contacts(db: TeamDb, ids: set[UUID]) -> dict[UUID, tuple[ContactFacts, str]]:
    rows = await contact_queries.contacts(db, list(ids))
    other = await fallbacks(db) if rows else {}
    return {row.id: (_facts(row, other), row.address) for row in rows}


def _facts(row: AutomationContact, other: Mapping[str, Any]) -> ContactFacts:
    return ContactFacts(
        id=row.id,
        email=row.email,
        first_name=row.first_name,
        last_name=row.last_name,
        unsubscribed=row.unsubscribed,
        created_at=row.created_at,
        properties={**other, **msgspec.json.decode(row.properties)},
    )
