"""A graph from JSON, of a request or of a stored version, with the checks of automations.md 2.

First every step by itself, then every connection, then the whole; 422 for the first violation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast, get_args

from pillarbox.automations.graphs import step_parsing
from pillarbox.automations.graphs.graph import (
    Graph,
    GraphEdge,
    GraphStep,
    Outcome,
    StepType,
    Trigger,
    topological,
)
from pillarbox.automations.graphs.members import as_object, required, text, word
from pillarbox.kernel.wire.problems import Invalid, InvalidField

MOST_STEPS: Final = 150
MOST_CONNECTIONS: Final = 500
MOST_KEY: Final = 100

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)

_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)


def graph(steps: Sequence[object], connections: Sequence[object]) -> Graph:
    """The graph of these JSON values."""
    found = _steps(steps)
    return checked(Graph(found, _connections(connections, found)))


def checked(whole: Graph) -> Graph:
    """The same graph; 422 where a rule of the whole is broken."""
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
        step = _step(position, item)
        if step.key in keys:
            raise InvalidField(f"steps[{position}].key", f"`{step.key}` is the key of another step.")
        keys.add(step.key)
        found.append(step)
    return tuple(found)


def _step(position: int, item: object) -> GraphStep:
    path = f"steps[{position}]"
    body = as_object(item, path)
    key = text(required(body, "key", path), f"{path}.key")
    if _KEY.fullmatch(key) is None:
        reason = f"Use 1 to {MOST_KEY} ASCII letters, digits, underscores, dots and hyphens."
        raise InvalidField(f"{path}.key", reason)
    kind = word(required(body, "type", path), f"{path}.type", step_parsing.TYPES)
    return GraphStep(
        position, key, step_parsing.config(cast(StepType, kind), body.get("config"), f"{path}.config")
    )


def _connections(given: Sequence[object], steps: tuple[GraphStep, ...]) -> tuple[GraphEdge, ...]:
    """In the order in which they were sent, each once."""
    if len(given) > MOST_CONNECTIONS:
        raise InvalidField("connections", f"Use at most {MOST_CONNECTIONS} items.")
    positions = {step.key: step for step in steps}
    return tuple(
        dict.fromkeys(
            _connection(f"connections[{index}]", item, positions) for index, item in enumerate(given)
        )
    )


def _connection(path: str, item: object, steps: dict[str, GraphStep]) -> GraphEdge:
    body = as_object(item, path)
    ends = []
    for name in ("from", "to"):
        key = text(required(body, name, path), f"{path}.{name}")
        if key not in steps:
            raise InvalidField(f"{path}.{name}", "There is no step of this key.")
        ends.append(steps[key])
    source, target = ends
    if isinstance(target.config, Trigger):
        raise InvalidField(f"{path}.to", "Nothing leads to a trigger.")
    if source is target:
        raise InvalidField(f"{path}.to", "A step cannot lead to itself.")
    given = body.get("type")
    kind = word("default" if given is None else given, f"{path}.type", OUTCOMES)
    if kind not in source.outcomes:
        allowed = " or ".join(f"`{outcome}`" for outcome in source.outcomes)
        raise InvalidField(f"{path}.type", f"From a step of type `{source.type}` it must be {allowed}.")
    return GraphEdge(source.position, target.position, kind)


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
