"""What requests want of automations, from their bodies (automations.md 4). 422 for the first violation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pillarbox.automations.graphs import parsing
from pillarbox.automations.graphs.graph import Graph
from pillarbox.automations.graphs.stored import StoredGraph, stored
from pillarbox.automations.queries import Status
from pillarbox.kernel.wire.fields import NOT_AN_OBJECT, words
from pillarbox.kernel.wire.problems import Invalid, InvalidField, MissingField

MOST_NAME: Final = 255
STATUSES: Final[tuple[Status, ...]] = ("enabled", "disabled")


class NewGraph(NamedTuple):
    """A graph that a request wants, and what will be stored of it."""

    graph: Graph
    stored: StoredGraph


@dataclass(frozen=True, slots=True)
class AutomationRequest:
    name: str
    graph: NewGraph
    status: Status


@dataclass(frozen=True, slots=True)
class AutomationChange:
    """What is None stays as it is."""

    name: str | None
    graph: NewGraph | None
    status: Status | None


def new_automation(body: object) -> AutomationRequest:
    members = _object(body)
    name = members.get("name")
    if name is None or (isinstance(name, str) and not name.strip()):
        raise MissingField("name")
    for required in ("steps", "connections"):
        if members.get(required) is None:
            raise MissingField(required)
    known = _name(name)
    graph = _graph(members)
    status = members.get("status")
    return AutomationRequest(known, graph, "disabled" if status is None else _status(status))


def automation_change(body: object) -> AutomationChange:
    members = _object(body)
    has_steps, has_connections = "steps" in members, "connections" in members
    if not (has_steps or has_connections or "name" in members or "status" in members):
        raise MissingField("name")
    if has_steps != has_connections:
        raise MissingField("connections" if has_steps else "steps")
    return AutomationChange(
        name=_name(members["name"]) if "name" in members else None,
        graph=_graph(members) if has_steps else None,
        status=_status(members["status"]) if "status" in members else None,
    )


def _object(body: object) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise Invalid(NOT_AN_OBJECT)
    return body


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField("name", "It must be a string.")
    name = value.strip()
    if not name:
        raise InvalidField("name", "Use at least 1 character.")
    if len(name) > MOST_NAME:
        raise InvalidField("name", f"Use at most {MOST_NAME} characters.")
    return name


def _status(value: object) -> Status:
    for status in STATUSES:
        if value == status:
            return status
    raise InvalidField("status", words(STATUSES))


def _graph(members: dict[str, Any]) -> NewGraph:
    for name in ("steps", "connections"):
        if not isinstance(members[name], list):
            raise InvalidField(name, "It must be an array.")
    graph = parsing.graph(members["steps"], members["connections"])
    return NewGraph(graph, stored(graph))
