"""A graph as JSON, in the form in which it is shown and stored (automations.md 1 and 3): `parsing.graph`
makes the same graph of it. Optional members that were not given are absent."""

from __future__ import annotations

from pillarbox.automations.graphs.graph import (
    AddToSegment,
    Condition,
    Config,
    ContactDelete,
    ContactUpdate,
    Delay,
    Graph,
    SendEmail,
    Trigger,
    WaitForEvent,
)
from pillarbox.automations.graphs.rules import UNARY, AllOf, Comparison, Constant, Rule, Value

Json = dict[str, object]


def steps(graph: Graph) -> list[Json]:
    return [{"key": step.key, "type": step.type, "config": config(step.config)} for step in graph.steps]


def connections(graph: Graph) -> list[Json]:
    keys = [step.key for step in graph.steps]
    return [
        {"from": keys[one.source], "to": keys[one.target], "type": one.outcome} for one in graph.connections
    ]


def config(one: Config) -> Json:
    match one:
        case Trigger():
            return {"event_name": one.event_name}
        case Delay():
            return {"duration": one.duration.text}
        case SendEmail():
            return _send_email(one)
        case WaitForEvent():
            return _without_none(
                event_name=one.event_name,
                timeout=one.timeout and one.timeout.text,
                filter_rule=one.filter_rule and rule(one.filter_rule),
            )
        case Condition():
            return rule(one.rule)
        case ContactUpdate():
            return _contact_update(one)
        case ContactDelete():
            return {}
        case AddToSegment():
            return {"segment_id": str(one.segment_id)}


def _send_email(one: SendEmail) -> Json:
    template = _without_none(id=one.template, variables=_values(one.variables))
    rest = {
        "subject": one.subject,
        "from": one.sender,
        "reply_to": list(one.reply_to) if isinstance(one.reply_to, tuple) else one.reply_to,
        "topic_id": one.topic_id and str(one.topic_id),
    }
    return {"template": template, **{name: found for name, found in rest.items() if found is not None}}


def _contact_update(one: ContactUpdate) -> Json:
    """A member of null clears, so it is shown."""
    members = {"first_name": one.first_name, "last_name": one.last_name, "unsubscribed": one.unsubscribed}
    shown: Json = {name: value(found) for name, found in members.items() if found is not None}
    if one.properties is not None:
        shown["properties"] = _values(one.properties)
    return shown


def rule(one: Rule) -> Json:
    if isinstance(one, Comparison):
        shown: Json = {"type": "rule", "field": one.field.text, "operator": one.operator}
        return shown if one.operator in UNARY else {**shown, "value": one.value}
    return {"type": "and" if isinstance(one, AllOf) else "or", "rules": [rule(each) for each in one.rules]}


def value(one: Value) -> object:
    return one.value if isinstance(one, Constant) else {"var": one.field.text}


def _values(found: tuple[tuple[str, Value], ...] | None) -> Json | None:
    return None if found is None else {key: value(one) for key, one in found}


def _without_none(**members: object) -> Json:
    return {name: found for name, found in members.items() if found is not None}
