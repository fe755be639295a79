"""A graph while somebody works on it: it travels in the form, so nothing typed is lost and nothing is stored.

It may be anything in between: with steps that nothing leads to, or with settings that are not finished. The
API checks it when it is saved.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pillarbox.automations.graphs.graph import Outcome, StepType
from pillarbox.automations.graphs.parsing import MOST_CONNECTIONS, MOST_STEPS
from pillarbox.dashboard.frame.json_text import parsed_here

LARGEST: Final = 256 * 1024
"""Octets of a graph as JSON that the form takes; larger ones are changed as a file."""

LARGEST_PACKED: Final = 400_000

OUTCOMES: Final[dict[str, tuple[Outcome, ...]]] = {
    "condition": ("condition_met", "condition_not_met"),
    "wait_for_event": ("event_received", "timeout"),
}
NEW: Final[dict[StepType, dict[str, Any]]] = {
    "trigger": {"event_name": ""},
    "delay": {"duration": "1 day"},
    "send_email": {"template": {"id": ""}},
    "wait_for_event": {"event_name": "", "timeout": "3 days"},
    "condition": {"type": "rule", "field": "", "operator": "eq", "value": ""},
    "contact_update": {},
    "contact_delete": {},
    "add_to_segment": {"segment_id": ""},
}
"""The types of steps, with what a new one has."""

KEYS: Final[dict[str, str]] = {
    "trigger": "start",
    "delay": "delay",
    "send_email": "mail",
    "wait_for_event": "wait",
    "condition": "if",
    "contact_update": "update",
    "contact_delete": "delete",
    "add_to_segment": "segment",
}
"""How the keys of new steps begin."""


class DraftError(ValueError):
    """A text that holds no draft, or too large a one."""


def outcomes_of(kind: str) -> tuple[str, ...]:
    """Return the outcomes of a type of steps."""
    return OUTCOMES.get(kind, ("default",))


@dataclass(slots=True)
class GraphDraft:
    """Name, steps and connections as JSON has them. `base` is the edition that it was made of."""

    name: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    connections: list[dict[str, str]] = field(default_factory=list)
    base: str = ""

    # As text ----------------------------------------------------------------------------------------

    def packed(self) -> str:
        """Return the draft as the form carries it."""
        document = [self.name, self.steps, self.connections, self.base]
        return urlsafe_b64encode(zlib.compress(json.dumps(document).encode(), 6)).decode()

    @property
    def octets(self) -> int:
        """How large the graph is as JSON."""
        return len(json.dumps([self.steps, self.connections]))

    # Changes ----------------------------------------------------------------------------------------

    def position_of(self, key: str) -> int | None:
        """Return the place of the first step with this key."""
        return next((place for place, step in enumerate(self.steps) if step["key"] == key), None)

    def targets(self, position: int, outcome: str) -> list[str]:
        """Return the keys of the steps that a step leads to with an outcome."""
        key = self.steps[position]["key"]
        return [one["to"] for one in self.connections if one["from"] == key and one["type"] == outcome]

    def add(self, kind: StepType, after: int | None = None, outcome: str = "default") -> int:
        """Add a step: by itself, or behind another step, before those that it led to. Return its place."""
        if len(self.steps) >= MOST_STEPS:
            return len(self.steps) - 1
        step: dict[str, Any] = {"key": self._free_key(kind), "type": kind, "config": dict(NEW[kind])}
        if after is not None:
            key, through = self.steps[after]["key"], outcomes_of(kind)[0]
            moved = [one for one in self.connections if one["from"] == key and one["type"] == outcome]
            self.connections = [one for one in self.connections if one not in moved]
            self.connect(key, step["key"], outcome)
            if kind != "trigger":
                for one in moved:
                    self.connect(step["key"], one["to"], through)
        self.steps.append(step)
        return len(self.steps) - 1

    def remove(self, position: int) -> None:
        """Remove a step; what led to it leads on to the steps behind it."""
        key = self.steps[position]["key"]
        first = outcomes_of(self.steps[position]["type"])[0]
        behind = [one["to"] for one in self.connections if one["from"] == key and one["type"] == first]
        before = [(one["from"], one["type"]) for one in self.connections if one["to"] == key]
        del self.steps[position]
        self.connections = [one for one in self.connections if key not in (one["from"], one["to"])]
        for source, outcome in before:
            for target in behind:
                self.connect(source, target, outcome)

    def rename(self, position: int, key: str) -> None:
        """Give a step another key, in its connections too."""
        old = self.steps[position]["key"]
        self.steps[position]["key"] = key
        for one in self.connections:
            for end in ("from", "to"):
                if one[end] == old:
                    one[end] = key

    def connect(self, source: str, target: str, outcome: str) -> None:
        """Add a connection, if it is not there and there is room."""
        one = {"from": source, "to": target, "type": outcome}
        if one not in self.connections and len(self.connections) < MOST_CONNECTIONS:
            self.connections.append(one)

    def disconnect(self, source: str, target: str, outcome: str) -> None:
        """Remove a connection."""
        gone = {"from": source, "to": target, "type": outcome}
        self.connections = [one for one in self.connections if one != gone]

    def unreached(self) -> list[str]:
        """Return the keys of steps that no trigger leads to."""
        reached = {step["key"] for step in self.steps if step["type"] == "trigger"}
        waiting = list(reached)
        while waiting:
            key = waiting.pop()
            for one in self.connections:
                if one["from"] == key and one["to"] not in reached:
                    reached.add(one["to"])
                    waiting.append(one["to"])
        return [step["key"] for step in self.steps if step["key"] not in reached]

    def nearest(self, place: int, count: int) -> list[int]:
        """Return the places of so many steps that the fewest connections lead to from this one, in order;
        steps that none leads to come last."""
        positions = {step["key"]: position for position, step in enumerate(self.steps)}
        near: dict[int, list[int]] = {}
        for one in self.connections:
            source, target = positions.get(one["from"]), positions.get(one["to"])
            if source is not None and target is not None:
                near.setdefault(source, []).append(target)
                near.setdefault(target, []).append(source)
        reached = [place] if self.steps else []
        for position in reached:
            reached += [one for one in dict.fromkeys(near.get(position, ())) if one not in reached]
        others = [position for position in range(len(self.steps)) if position not in reached]
        return sorted([*reached, *others][:count])

    def _free_key(self, kind: str) -> str:
        used, stem = {step["key"] for step in self.steps}, KEYS[kind]
        return next(
            key for number in range(1, MOST_STEPS + 2) if (key := _numbered(stem, number)) not in used
        )


def _numbered(stem: str, number: int) -> str:
    return stem if number == 1 else f"{stem}-{number}"


def draft_of(document: Any, base: str = "") -> GraphDraft:
    """Return the draft of an automation as the API shows it; DraftError where it has another form."""
    if not isinstance(document, dict):
        raise DraftError("It must be an object.")
    name = document.get("name") or ""
    steps, connections = document.get("steps"), document.get("connections")
    if not isinstance(name, str) or not isinstance(steps, list) or not isinstance(connections, list):
        raise DraftError("It must have `steps` and `connections`.")
    if len(steps) > MOST_STEPS or len(connections) > MOST_CONNECTIONS:
        raise DraftError(f"Use at most {MOST_STEPS} steps and {MOST_CONNECTIONS} connections.")
    draft = GraphDraft(name, _steps(steps), _connections(connections), base)
    if draft.octets > LARGEST:
        raise DraftError("too large")
    return draft


def unpacked(text: str) -> GraphDraft:
    """Return the draft that a form carries; DraftError where it carries none."""
    try:
        if len(text) > LARGEST_PACKED:
            raise DraftError("too large")
        inflate = zlib.decompressobj()
        plain = inflate.decompress(urlsafe_b64decode(text.encode("ascii")), 2 * LARGEST)
        if inflate.unconsumed_tail:
            raise DraftError("too large")
        name, steps, connections, base = parsed_here(plain.decode())
        if not isinstance(base, str):
            raise DraftError("wrong")
    except (ValueError, TypeError, zlib.error):
        raise DraftError("unreadable") from None
    return draft_of({"name": name, "steps": steps, "connections": connections}, base)


def _steps(given: Sequence[Any]) -> list[dict[str, Any]]:
    steps = []
    for one in given:
        key, kind = (one.get("key"), one.get("type")) if isinstance(one, dict) else (None, None)
        if not isinstance(key, str) or not isinstance(kind, str) or kind not in NEW:
            raise DraftError("A step needs `key` and `type`.")
        config = one.get("config")
        steps.append({"key": key, "type": kind, "config": config if isinstance(config, dict) else {}})
    return steps


def _connections(given: Sequence[Any]) -> list[dict[str, str]]:
    connections = []
    for one in given:
        found = one if isinstance(one, dict) else {}
        connection = {
            "from": found.get("from"),
            "to": found.get("to"),
            "type": found.get("type") or "default",
        }
        if not all(isinstance(text, str) for text in connection.values()):
            raise DraftError("A connection needs `from` and `to`.")
        connections.append({name: str(text) for name, text in connection.items()})
    return connections
