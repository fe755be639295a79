"""Shapes of the automations endpoints (automations.md 1 and 4); field order is the contract's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import fields

from pillarbox.automations.graphs import parsing
from pillarbox.automations.graphs.graph import Graph, Outcome, StepType
from pillarbox.automations.graphs.parsing import MOST_CONNECTIONS, MOST_STEPS
from pillarbox.automations.graphs.stored import StoredGraph, stored
from pillarbox.automations.graphs.wire import AutomationConnection, AutomationStep, Config
from pillarbox.automations.queries import Automation, ListedAutomation, Status
from pillarbox.kernel.http.schemas import shown_as
from pillarbox.kernel.wire.fields import ReadFields, Rules, read_before, read_by, word_reader
from pillarbox.kernel.wire.instants import DatabaseTime
from pillarbox.kernel.wire.problems import InvalidField, MissingField
from pillarbox.kernel.wire.shapes import from_row

MOST_NAME: Final = 255
STATUSES: Final[tuple[Status, ...]] = ("enabled", "disabled")

GivenStatus = Annotated[Status, read_by(word_reader(STATUSES))]
Name = Annotated[str, Meta(max_length=MOST_NAME, extra={"trimmed": True})]
OtherName = Annotated[str, Meta(min_length=1, max_length=MOST_NAME, extra={"trimmed": True})]


class ShownStep(Struct, kw_only=True):
    key: str
    type: StepType
    config: Config


class ShownConnection(Struct, kw_only=True):
    from_: str = msgspec.field(name="from")
    to: str
    type: Outcome


class NewGraph(NamedTuple):
    """A graph that a request has, and what will be stored of it."""

    graph: Graph
    stored: StoredGraph


def _array(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidField(path, "It must be an array.")
    return value


def _graph(read: ReadFields) -> None:
    """Replace the steps and connections by the graph that they are."""
    if "steps" in read:
        graph = parsing.graph(read["steps"], read["connections"])
        read["steps"] = NewGraph(graph, stored(graph))


GivenSteps = Annotated[list[AutomationStep], Meta(min_length=1, max_length=MOST_STEPS)]
GivenConnections = Annotated[list[AutomationConnection], Meta(max_length=MOST_CONNECTIONS)]

Steps = Annotated[Any, shown_as(GivenSteps), read_by(_array, empty=True)]
Connections = Annotated[list[Any], shown_as(GivenConnections), read_by(_array, empty=True)]


class NewAutomation(Struct, kw_only=True):
    missing_first: ClassVar = True
    rules: ClassVar[Rules] = {"connections": _graph}

    name: Name
    steps: Steps
    connections: Connections
    status: GivenStatus = "disabled"

    @property
    def graph(self) -> NewGraph:
        found: NewGraph = self.steps
        return found


class ChangedAutomation(Struct, kw_only=True):
    """`steps` and `connections` go together. An enabled automation keeps its steps."""

    min_properties: ClassVar[int] = 1
    rules: ClassVar[Rules] = {"connections": _graph}

    name: OtherName | UnsetType = UNSET
    status: GivenStatus | UnsetType = UNSET
    steps: Annotated[Steps, read_before("status")] | UnsetType = UNSET
    connections: Annotated[Connections, read_before("status")] | UnsetType = UNSET

    @property
    def graph(self) -> NewGraph | None:
        return None if self.steps is UNSET else self.steps

    @staticmethod
    def check_body(body: Mapping[str, Any]) -> None:
        if not any(field.encode_name in body for field in fields(ChangedAutomation)):
            raise MissingField("name")
        if ("steps" in body) != ("connections" in body):
            raise MissingField("connections" if "steps" in body else "steps")


class AutomationRef(Struct, kw_only=True):
    object: Literal["automation"]
    id: UUID


class AutomationStopped(Struct, kw_only=True):
    object: Literal["automation"]
    id: UUID
    status: Literal["disabled"]


class AutomationDeleted(Struct, kw_only=True):
    object: Literal["automation"]
    id: UUID
    deleted: Literal[True]


class AutomationItem(Struct, kw_only=True):
    id: UUID
    name: str
    status: Status
    created_at: DatabaseTime
    updated_at: DatabaseTime


class FullAutomation(Struct, kw_only=True):
    object: Literal["automation"]
    id: UUID
    name: str
    status: Status
    created_at: DatabaseTime
    updated_at: DatabaseTime
    steps: list[ShownStep]
    connections: list[ShownConnection]


def item(row: ListedAutomation) -> AutomationItem:
    return from_row(AutomationItem, row)


def full(row: Automation) -> FullAutomation:
    """Return the automation as it is shown. Its graph is stored in that form, so it is not decoded."""
    return from_row(
        FullAutomation,
        row,
        object="automation",
        steps=cast(list[ShownStep], msgspec.Raw(row.stored.steps.encode())),
        connections=cast(list[ShownConnection], msgspec.Raw(row.stored.connections.encode())),
    )
