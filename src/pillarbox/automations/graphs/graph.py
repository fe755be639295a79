"""The types of a graph: steps with what each does, and the connections between them (automations.md 2 and 3).

All are frozen. A step is known by its key, and inside of the program by its `position`, its place in the
list of steps as it was sent. A graph that `parsing.graph` has made has the properties of section 2: it has
a trigger, no cycle, every step is reachable, and each connection has a type that its source may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Final, Literal
from uuid import UUID

from pillarbox.automations.graphs.rules import Rule, Value, comparisons

StepType = Literal[
    "trigger",
    "delay",
    "send_email",
    "wait_for_event",
    "condition",
    "contact_update",
    "contact_delete",
    "add_to_segment",
]

Outcome = Literal["default", "condition_met", "condition_not_met", "event_received", "timeout"]
"""How a step ended, which is the type of the connections that are followed then."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time, and the text that it is shown as."""

    length: timedelta
    text: str


LONGEST: Final = timedelta(days=30)
"""The longest delay and the longest wait; a wait without a timeout lasts as long."""


LIGHT: Final = 500
"""So many comparisons are decided for many runs in one transaction; each may look through 100 KB."""


@dataclass(frozen=True, slots=True)
class Trigger:
    event_name: str


@dataclass(frozen=True, slots=True)
class Delay:
    duration: Duration


@dataclass(frozen=True, slots=True)
class SendEmailStep:
    """`template` is an id or an alias. `variables` are in the order in which they were sent."""

    template: str
    variables: tuple[tuple[str, Value], ...] | None = None
    subject: str | None = None
    sender: str | None = None
    reply_to: tuple[str, ...] | str | None = None
    topic_id: UUID | None = None


MAIL_EVENTS: Final = {
    f"resend:email.{word}": f"email.{word}"
    for word in ("opened", "clicked", "bounced", "delivered", "complained", "failed", "suppressed")
}
"""The names of mail events in waits, and their names in webhooks."""


@dataclass(frozen=True, slots=True)
class WaitForEvent:
    event_name: str
    timeout: Duration | None = None
    filter_rule: Rule | None = None

    @property
    def longest(self) -> timedelta:
        """The time after which the outcome is `timeout`."""
        return LONGEST if self.timeout is None else self.timeout.length

    @property
    def is_of_mail(self) -> bool:
        """Whether it waits for what happens to mail."""
        return self.event_name in MAIL_EVENTS


@dataclass(frozen=True, slots=True)
class Condition:
    rule: Rule


@dataclass(frozen=True, slots=True)
class ContactUpdate:
    """The config of a `contact_update` step. A member that is None stays as it is; a constant of None clears
    it."""

    first_name: Value | None = None
    last_name: Value | None = None
    unsubscribed: Value | None = None
    properties: tuple[tuple[str, Value], ...] | None = None


@dataclass(frozen=True, slots=True)
class ContactDelete:
    pass


@dataclass(frozen=True, slots=True)
class AddToSegment:
    segment_id: UUID


Config = (
    Trigger | Delay | SendEmailStep | WaitForEvent | Condition | ContactUpdate | ContactDelete | AddToSegment
)

TYPES: Final[dict[type[Config], StepType]] = {
    Trigger: "trigger",
    Delay: "delay",
    SendEmailStep: "send_email",
    WaitForEvent: "wait_for_event",
    Condition: "condition",
    ContactUpdate: "contact_update",
    ContactDelete: "contact_delete",
    AddToSegment: "add_to_segment",
}

_OUTCOMES: Final[dict[type[Config], tuple[Outcome, ...]]] = {
    Condition: ("condition_met", "condition_not_met"),
    WaitForEvent: ("event_received", "timeout"),
}

NEEDS_CONTACT: Final = (SendEmailStep, ContactUpdate, AddToSegment, WaitForEvent)
"""Steps that are skipped when their contact is deleted."""


@dataclass(frozen=True, slots=True)
class GraphStep:
    position: int
    key: str
    config: Config

    @property
    def type(self) -> StepType:
        return TYPES[type(self.config)]

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcomes that the step can have, which are the types of its outgoing connections."""
        return _OUTCOMES.get(type(self.config), ("default",))


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """From one step to another, by their positions, where the first one ends with that outcome."""

    source: int
    target: int
    outcome: Outcome


@dataclass(frozen=True)
class Graph:
    """Steps in the order in which they were sent, and connections, each once."""

    steps: tuple[GraphStep, ...]
    connections: tuple[GraphEdge, ...] = field(default=())

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each key."""
        return {step.key: step.position for step in self.steps}

    @cached_property
    def triggers(self) -> tuple[GraphStep, ...]:
        return tuple(step for step in self.steps if isinstance(step.config, Trigger))

    @cached_property
    def _outgoing(self) -> dict[tuple[int, str], tuple[int, ...]]:
        found: dict[tuple[int, str], dict[int, None]] = {}
        for one in self.connections:
            found.setdefault((one.source, one.outcome), {})[one.target] = None
        return {key: tuple(sorted(targets)) for key, targets in found.items()}

    def following(self, position: int, outcome: Outcome) -> tuple[int, ...]:
        """Return the positions of the steps that a step leads to with this outcome; none where the run ends
        there."""
        return self._outgoing.get((position, outcome), ())

    @cached_property
    def is_heavy(self) -> bool:
        """Whether its rules are so many that a run is carried out by itself."""
        rules = [step.config.rule for step in self.steps if isinstance(step.config, Condition)]
        return sum(comparisons(rule) for rule in rules) > LIGHT

    @cached_property
    def has_heavy_filters(self) -> bool:
        """Whether a wait has so large a filter that nothing may be held while it is decided."""
        waits = [step.config for step in self.steps if isinstance(step.config, WaitForEvent)]
        return any(one.filter_rule is not None and comparisons(one.filter_rule) > LIGHT for one in waits)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The positions in topological order, ties by position: the order in which a run shows its steps."""
        return topological(len(self.steps), self.connections)


def topological(count: int, connections: Sequence[GraphEdge]) -> tuple[int, ...]:
    """Return the positions from 0 in topological order, of those that are free the least first. Positions
    that stand in a cycle, or behind one, are left out."""
    pairs = {(one.source, one.target) for one in connections}
    incoming = [0] * count
    for _, target in pairs:
        incoming[target] += 1
    targets: dict[int, list[int]] = {}
    for source, target in pairs:
        targets.setdefault(source, []).append(target)
    free = sorted(position for position in range(count) if incoming[position] == 0)
    found: list[int] = []
    while free:
        position = free.pop(0)
        found.append(position)
        for target in targets.get(position, ()):
            incoming[target] -= 1
            if incoming[target] == 0:
                free.append(target)
        free.sort()
    return tuple(found)
