"""Random automations and events, such that the order of what they do is promised.

A step that changes what others read, or that may fail, is behind a delay of its own, so nothing else takes
place at its instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kit.automation_rows import connection, step

Json = dict[str, Any]

NAMES: Final = ("e0", "e1", "e2")
WAYS: Final = {
    "condition": ("condition_met", "condition_not_met"),
    "wait_for_event": ("event_received", "timeout"),
}


@dataclass
class Place:
    """What graphs may name. `short` says that time is real: delays take a second, `e1` ends the waits, and no
    step reads what another one changes."""

    segment: str
    short: bool = False


@dataclass
class Made:
    """A graph, with the length of its delays and timeouts in seconds."""

    graph: Json
    lengths: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    at: float
    email: str
    name: str
    payload: Json


def a_graph(random: Random, place: Place, number: int, *, forced: tuple[str, ...] = ()) -> Made:
    """With `forced` kinds of steps in it, one behind the other."""
    made = Made({"steps": [], "connections": []})
    kinds = list(forced) + [
        random.choice(
            ["mail", "mail", "number", "delay", "wait", "wait", "wait", "condition", "condition"]
            + ["update", "segment"]
            + (["timeout"] if place.short else ["delete"])
        )
        for _ in range(random.randint(0, 6))
    ]
    has_delete = "delete" in kinds
    steps, connections = made.graph["steps"], made.graph["connections"]
    triggers = 1 if has_delete or place.short else random.randint(1, 2)
    for index in range(triggers):
        name = "e0" if place.short else random.choice(NAMES)
        steps.append(step(f"t{index}", "trigger", event_name=name))
    exponents = list(range(14))
    random.shuffle(exponents)

    def length(key: str) -> str:
        if place.short:
            made.lengths[key] = 1
            return "1 second"
        unit = 60 + number
        made.lengths[key] = unit * 2 ** exponents.pop()
        return f"{made.lengths[key]:.0f} s"

    def lead(source: Json, target: str, way: str | None = None) -> None:
        ways = WAYS.get(source["type"], ("default",))
        connections.append(connection(source["key"], target, way or random.choice(ways)))

    sources = list(steps)
    for index, kind in enumerate(kinds):
        key = f"s{index}"
        one = _step(random, place, number, key, kind, length)
        if one["type"] == "wait_for_event":
            made.lengths.setdefault(key, 30 * 86_400)
        entry = key
        if kind in ("number", "update", "delete") and not place.short:
            entry = f"d{index}"
            steps.append(step(entry, "delay", duration=length(entry)))
            connections.append(connection(entry, key, "default"))
        steps.append(one)
        # The way that is taken in any case, for kinds that must be passed.
        if index < len(forced):
            lead(sources[-1], entry, _sure_way(sources[-1]))
        elif index == 0 and triggers > 1:
            for source in sources:
                lead(source, entry)
        else:
            lead(random.choice(sources), entry)
        for _ in range(random.randint(0, 1) if index >= len(forced) else 0):
            lead(random.choice(sources), entry)
        sources.append(one)
    return made


def _sure_way(source: Json) -> str | None:
    return "event_received" if source["type"] == "wait_for_event" else None


def _step(random: Random, place: Place, number: int, key: str, kind: str, length: Any) -> Json:
    subject = f"a{number}.{key}"
    match kind:
        case "mail":
            return step(key, "send_email", template={"id": "plain"}, subject=subject)
        case "number":
            values = {"N": {"var": "event.n"}}
            template = {"id": "number", "variables": values}
            return step(key, "send_email", template=template, subject=f"{subject} {{{{{{N}}}}}}")
        case "delay":
            return step(key, "delay", duration=length(key))
        case "timeout":
            return step(key, "wait_for_event", event_name="never.sent", timeout=length(key))
        case "wait" if place.short:
            return step(key, "wait_for_event", event_name="e1")
        case "wait":
            config: Json = {"event_name": random.choice(NAMES), "timeout": length(key)}
            if random.random() < 0.4:
                config["filter_rule"] = _leaf(random, ("event.n", "event.word"))
            return step(key, "wait_for_event", **config)
        case "condition":
            fields = ["event.n", "event.word", "wait_events.e1.n"]
            if not place.short:
                fields += ["contact.first_name", "wait_events.e2.n", "contact.email"]
            rule = _leaf(random, fields)
            if random.random() < 0.3:
                others = [rule, _leaf(random, fields)]
                rule = {"type": random.choice(["and", "or"]), "rules": others}
            return step(key, "condition", **rule)
        case "update":
            change: Json = {"first_name": random.choice(["Ada", None, {"var": "event.word"}])}
            if random.random() < 0.5 and not place.short:
                change["unsubscribed"] = random.random() < 0.6
            return step(key, "contact_update", **change)
        case "segment":
            return step(key, "add_to_segment", segment_id=place.segment)
        case _:
            return step(key, "contact_delete")


def _leaf(random: Random, fields: Any) -> Json:
    name = random.choice(list(fields))
    value: object
    if name.endswith(".n"):
        operator, value = random.choice(["gt", "lte", "eq", "neq"]), random.randint(0, 5)
    else:
        operator, value = (
            random.choice(["eq", "neq", "starts_with"]),
            random.choice(["Ada", "ada", "Bo", "x"]),
        )
    if random.random() < 0.2:
        return {"type": "rule", "field": name, "operator": random.choice(["exists", "is_empty"])}
    return {"type": "rule", "field": name, "operator": operator, "value": value}


def some_events(random: Random, emails: list[str], most: int) -> list[Event]:
    """At least two seconds apart, and never at an instant at which a timer rings that an event has begun."""
    found, minutes = [], 0
    for number in range(random.randint(1, most)):
        minutes += random.choice([1, 3, 10, 50, 200, 1000, 5000])
        name = "e0" if number == 0 else random.choice(NAMES)
        found.append(
            Event(
                at=minutes * 60 + 3.0 * number,
                email=random.choice(emails),
                name=name,
                payload=a_payload(random),
            )
        )
    return found


def a_payload(random: Random) -> Json:
    payload: Json = {}
    if random.random() < 0.8:
        payload["n"] = random.randint(0, 5)
    if random.random() < 0.6:
        payload["word"] = random.choice(["Ada", "Bo", "x"])
    return payload
