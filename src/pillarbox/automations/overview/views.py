"""Automations, their runs and versions, as screens show them. Large graphs are read by their outlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.automations.changes import found
from pillarbox.automations.overview import outline_queries
from pillarbox.automations.overview.outline_queries import (
    AutomationHeading,
    EventListener,
    NamedAutomation,
    RunContact,
    RunDetail,
    StartingEvent,
    StepCount,
    StepWait,
    StoredVersion,
    VersionEntry,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.process.offload import in_thread_if_large
from pillarbox.kernel.wire.problems import NotFound

MOST_COUNTED: Final = 1000
"""Runs of a status that a list counts of each automation; what is above is shown as more."""

MOST_OF_ONE: Final = 30_000
"""The same on the page of one automation."""

MOST_IN_STEPS: Final = 3000
ROWS_COUNTED: Final = 40_000
"""The newest runs whose steps the page of an automation counts, fewer where the graph has many steps."""

MOST_VERSIONS: Final = 100
MOST_LISTENERS: Final = 21
"""Automations that are named of those that an event starts."""

LOOKED_AT: Final = 2000
"""Of the newest runs so many are looked through for the events that started them."""

LONGEST_CONFIG: Final = 4000
"""Octets of a config that an outline reads; longer ones are told by their size."""


class StepOutline(NamedTuple):
    """A step as drawings show it. `config` is None where it is very long: `octets` says how long."""

    key: str
    type: str
    config: Mapping[str, Any] | None
    octets: int


class GraphOutline(NamedTuple):
    """A graph as drawings show it; connections are positions of two steps with an outcome."""

    steps: list[StepOutline]
    connections: list[tuple[int, int, str]]


class AutomationView(NamedTuple):
    """An automation with its newest graph and how many of its runs are where."""

    id: UUID
    name: str
    status: str
    version: int
    created_at: datetime
    updated_at: datetime
    octets: int
    graph: GraphOutline


class _Head(msgspec.Struct):
    key: str
    type: str
    config: msgspec.Raw = msgspec.Raw(b"{}")


class _Link(msgspec.Struct):
    source: str = msgspec.field(name="from")
    to: str
    type: str = "default"


_heads = msgspec.json.Decoder(list[_Head]).decode
_links = msgspec.json.Decoder(list[_Link]).decode


def outline_of(steps: str, connections: str) -> GraphOutline:
    """Return the outline of a stored graph."""
    heads = _heads(steps)
    positions = {head.key: position for position, head in enumerate(heads)}
    links = [(positions[link.source], positions[link.to], link.type) for link in _links(connections)]
    return GraphOutline([_step(head) for head in heads], links)


def outline_of_json(steps: Sequence[Any], connections: Sequence[Any]) -> GraphOutline:
    """Return the outline of a graph as JSON has it."""
    return outline_of(msgspec.json.encode(steps).decode(), msgspec.json.encode(connections).decode())


def _step(head: _Head) -> StepOutline:
    octets = len(bytes(head.config))
    config = msgspec.json.decode(head.config) if octets <= LONGEST_CONFIG else None
    return StepOutline(head.key, head.type, config, octets)


async def outlined(steps: str, connections: str) -> GraphOutline:
    """Return the outline of a stored graph, of a large one in a thread."""
    return await in_thread_if_large(len(steps) + len(connections), outline_of, steps, connections)


async def view_of(db: TeamDb, automation_id: UUID) -> AutomationView:
    """Return the automation with its newest graph; 404 where it does not exist."""
    automation = await found(db, automation_id)
    stored = automation.stored
    return AutomationView(
        id=automation.id,
        name=automation.name,
        status=automation.status,
        version=automation.version,
        created_at=automation.created_at,
        updated_at=automation.updated_at,
        octets=stored.octets,
        graph=await outlined(stored.steps, stored.connections),
    )


async def heading_of(db: TeamDb, automation_id: UUID) -> AutomationHeading:
    """Return the automation without its graph; 404 where it does not exist."""
    heading = await outline_queries.heading(db, automation_id)
    if heading is None:
        raise NotFound("Automation")
    return heading


async def graph_json(db: TeamDb, automation_id: UUID, version: int | None = None) -> bytes:
    """Return name and graph of an automation as `POST /automations` takes them."""
    automation = await found(db, automation_id)
    steps, connections = automation.stored
    if version is not None:
        other = await version_of(db, automation_id, version)
        steps, connections = other.steps, other.connections
    document = {
        "name": automation.name,
        "steps": msgspec.Raw(steps.encode()),
        "connections": msgspec.Raw(connections.encode()),
    }
    return msgspec.json.encode(document)


async def run_counts(
    db: TeamDb, automation_ids: Sequence[UUID], limit: int = MOST_COUNTED
) -> Mapping[UUID, Mapping[str, int]]:
    """Return how many runs of each automation have which status, up to `limit` + 1 each."""
    result: dict[UUID, dict[str, int]] = {automation_id: {} for automation_id in automation_ids}
    for row in await outline_queries.counts(db, automation_ids, limit + 1):
        result[row.automation_id][row.status] = row.runs
    return result


def runs_counted(steps: int) -> int:
    """Return how many runs have their steps counted, where a graph has so many steps."""
    return min(MOST_IN_STEPS, ROWS_COUNTED // max(1, steps))


async def step_counts(db: TeamDb, automation_id: UUID, version: int, limit: int) -> Mapping[int, StepCount]:
    """Return for each step what became of those of the newest runs there that are of this version."""
    rows = await outline_queries.steps(db, automation_id, version, limit)
    return {row.position: row for row in rows}


async def versions_of(db: TeamDb, automation_id: UUID) -> list[VersionEntry]:
    """Return the versions of an automation, the newest first."""
    return await outline_queries.versions(db, automation_id, MOST_VERSIONS)


async def version_of(db: TeamDb, automation_id: UUID, number: int) -> StoredVersion:
    """Return a version with its graph; 404 where there is none of this number."""
    row = await outline_queries.version(db, automation_id, number)
    if row is None:
        raise NotFound("Version")
    return row


async def named(db: TeamDb, text: str, limit: int) -> list[NamedAutomation]:
    """Return the newest automations with this text in their names."""
    return await outline_queries.named(db, text, limit)


async def run_detail(db: TeamDb, automation_id: UUID, run_id: UUID) -> RunDetail:
    """Return whose run it is and what started it; 404 where it is not a run of that automation."""
    row = await outline_queries.run(db, automation_id, run_id)
    if row is None:
        raise NotFound("Automation run")
    return row


async def waits_of(db: TeamDb, run_id: UUID) -> Mapping[int, StepWait]:
    """Return what the steps of a run wait for, by their positions."""
    return {wait.position: wait for wait in await outline_queries.waits(db, run_id)}


async def subjects_of(db: TeamDb, run_ids: Sequence[UUID]) -> Mapping[UUID, RunContact]:
    """Return whose these runs are."""
    return {row.id: row for row in await outline_queries.subjects(db, run_ids)}


async def starting_events(db: TeamDb, name: str | None, limit: int, shown: int) -> list[StartingEvent]:
    """Return the latest events that started runs, of one name or of all, each with so many characters of its
    payload."""
    return await outline_queries.started(db, name, limit, LOOKED_AT, shown)


async def listeners_of(db: TeamDb, names: Sequence[str]) -> Mapping[str, list[EventListener]]:
    """Return the enabled automations that events of these names start."""
    result: dict[str, list[EventListener]] = {name: [] for name in names}
    for row in await outline_queries.listeners(db, names, MOST_LISTENERS):
        result[row.event_name].append(row)
    return result


async def digest_of_automations(db: TeamDb, automation_id: UUID | None) -> str:
    """Return a text that is another one after a change of this automation and its runs, or of the newest of
    the team. Of an older run each step is told that a time brings, and its end."""
    return await outline_queries.digest(db, automation_id)


async def digest_of_run(db: TeamDb, run_id: UUID | None) -> str:
    """Return a text that is another one after a change of this run."""
    return await outline_queries.digest_of_run(db, run_id)
