"""A graph from JSON, of a request or of a stored version, with the checks of automations.md 2.

First every step by itself, then every connection, then the whole; 422 for the first violation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pillarbox.automations.graphs.graph import Graph, GraphEdge, GraphStep, topological
from pillarbox.automations.graphs.wire import AutomationConnection, AutomationStep
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.problems import Invalid, InvalidField

MOST_STEPS: Final = 150
MOST_CONNECTIONS: Final = 500


def graph(steps: Sequence[object], connections: Sequence[object]) -> Graph:
    """Return the graph of these JSON values."""
    found = _steps(steps)
    return checked(Graph(found, _connections(connections, found)))


def checked(whole: Graph) -> Graph:
    """Return the same graph; 422 where it breaks a rule that concerns all of it."""
    if not whole.triggers:
        raise Invalid("The automation needs at least one `trigger` step.")
    order = topological(len(whole.steps), whole.connections)
    if len(order) < len(whole.steps):
        inside = next(step for step in whole.steps if step.position not in order)
        raise Invalid(f"The steps form a cycle, which `{inside.key}` belongs to or follows.")
    reached = _reached(whole)
    for step in whole.steps:
        if step.position not in reached:
            raise Invalid(f"The step `{step.key}` cannot be reached from a trigger.")
    return whole


def _steps(given: Sequence[object]) -> tuple[GraphStep, ...]:
    if not given:
        raise InvalidField("steps", "Use at least 1 item.")
    if len(given) > MOST_STEPS:
        raise InvalidField("steps", f"Use at most {MOST_STEPS} items.")
    found: list[GraphStep] = []
    keys: set[str] = set()
    for position, item in enumerate(given):
        step = parse(AutomationStep, item, f"steps[{position}]")
        if step.key in keys:
            raise InvalidField(f"steps[{position}].key", f"`{step.key}` is the key of another step.")
        keys.add(step.key)
        found.append(GraphStep(position, step.key, step.config))
    return tuple(found)


def _connections(given: Sequence[object], steps: tuple[GraphStep, ...]) -> tuple[GraphEdge, ...]:
    """Return the connections in the order in which they were sent, each once."""
    if len(given) > MOST_CONNECTIONS:
        raise InvalidField("connections", f"Use at most {MOST_CONNECTIONS} items.")
    positions = {step.key: step for step in steps}
    return tuple(
        dict.fromkeys(
            _connection(f"connections[{index}]", item, positions) for index, item in enumerate(given)
        )
    )


def _connection(path: str, item: object, steps: dict[str, GraphStep]) -> GraphEdge:
    one = parse(AutomationConnection, item, path, steps)
    source, target = steps[one.from_], steps[one.to]
    if one.type not in source.outcomes:
        allowed = " or ".join(f"`{outcome}`" for outcome in source.outcomes)
        raise InvalidField(f"{path}.type", f"From a step of type `{source.type}` it must be {allowed}.")
    return GraphEdge(source.position, target.position, one.type)


def _reached(whole: Graph) -> set[int]:
    found: set[int] = set()
    to_see = [step.position for step in whole.triggers]
    while to_see:
        position = to_see.pop()
        if position not in found:
            found.add(position)
            for outcome in whole.steps[position].outcomes:
                to_see.extend(whole.following(position, outcome))
    return found
