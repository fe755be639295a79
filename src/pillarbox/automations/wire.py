"""Shapes of the automations endpoints (automations.md 1 and 4); field order is the contract's."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pillarbox.automations.graphs.graph import Outcome, StepType
from pillarbox.automations.graphs.parsing import MOST_CONNECTIONS, MOST_KEY, MOST_STEPS
from pillarbox.automations.queries import Automation, ListedAutomation, Status
from pillarbox.automations.requests import MOST_NAME
from pillarbox.kernel.wire.instants import DatabaseTime, database_style

Name = Annotated[str, Meta(max_length=MOST_NAME, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=MOST_NAME, extra={"trimmed": True})]
Key = Annotated[str, Meta(pattern=f"^[A-Za-z0-9_.-]{{1,{MOST_KEY}}}$")]

Config = Annotated[
    Any, Meta(extra_json_schema={"type": "object", "description": "What it has depends on `type`."})
]


class AutomationStep(Struct):
    key: Key
    type: StepType
    config: Config


class ShownStep(Struct):
    key: str
    type: StepType
    config: Config


class AutomationConnection(Struct, kw_only=True):
    from_: Key = msgspec.field(name="from")
    to: Key
    type: Outcome = "default"


class ShownConnection(Struct, kw_only=True):
    from_: str = msgspec.field(name="from")
    to: str
    type: Outcome


Steps = Annotated[list[AutomationStep], Meta(min_length=1, max_length=MOST_STEPS)]
Connections = Annotated[list[AutomationConnection], Meta(max_length=MOST_CONNECTIONS)]


class NewAutomation(Struct):
    name: Name
    steps: Steps
    connections: Connections
    status: Status = "disabled"


class ChangedAutomation(Struct):
    """`steps` and `connections` go together. An enabled automation keeps its steps."""

    min_properties: ClassVar[int] = 1

    name: OtherName | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    steps: Steps | UnsetType = UNSET
    connections: Connections | UnsetType = UNSET


class AutomationRef(Struct):
    object: Literal["automation"]
    id: UUID


class AutomationStopped(Struct):
    object: Literal["automation"]
    id: UUID
    status: Literal["disabled"]


class AutomationDeleted(Struct):
    object: Literal["automation"]
    id: UUID
    deleted: Literal[True]


class AutomationItem(Struct):
    id: UUID
    name: str
    status: Status
    created_at: DatabaseTime
    updated_at: DatabaseTime


class FullAutomation(Struct):
    object: Literal["automation"]
    id: UUID
    name: str
    status: Status
    created_at: DatabaseTime
    updated_at: DatabaseTime
    steps: list[ShownStep]
    connections: list[ShownConnection]


def item(row: ListedAutomation) -> AutomationItem:
    return AutomationItem(
        row.id, row.name, row.status, database_style(row.created_at), database_style(row.updated_at)
    )


def full(row: Automation) -> FullAutomation:
    """What is stored of the graph is what is shown, so it is not read."""
    return FullAutomation(
        "automation",
        row.id,
        row.name,
        row.status,
        database_style(row.created_at),
        database_style(row.updated_at),
        cast(list[ShownStep], msgspec.Raw(row.stored.steps.encode())),
        cast(list[ShownConnection], msgspec.Raw(row.stored.connections.encode())),
    )
