"""A graph as JSON, in the form in which it is shown and stored (automations.md 1 and 3): `parsing.graph`
makes the same graph of it. Optional members that were not given are absent."""

from __future__ import annotations

import msgspec

from pillarbox.automations.graphs.graph import (
    AddToSegment,
    Condition,
    Config,
    ContactDelete,
    ContactUpdate,
    Delay,
    Graph,
    SendEmailStep,
    Trigger,
    WaitForEvent,
)
from pillarbox.automations.graphs.rules import (
    UNARY,
    AllOf,
    Comparison,
    Constant,
    FromField,
    JsonValue,
    Rule,
    Value,
)

Json = dict[str, object]


def steps(graph: Graph) -> list[Json]:
    return [{"key": step.key, "type": step.type, "config": config(step.config)} for step in graph.steps]


def connections(graph: Graph) -> list[Json]:
    keys = [step.key for step in graph.steps]
    return [
        {"from": keys[one.source], "to": keys[one.target], "type": one.outcome} for one in graph.connections
    ]


def config(config: Config) -> Json:
    match config:
        case Trigger():
            return {"event_name": config.event_name}
        case Delay():
            return {"duration": config.duration.text}
        case SendEmailStep():
            return _send_email(config)
        case WaitForEvent():
            return _without_none(
                event_name=config.event_name,
                timeout=config.timeout and config.timeout.text,
                filter_rule=config.filter_rule and rule(config.filter_rule),
            )
        case Condition():
            return rule(config.rule)
        case ContactUpdate():
            return _contact_update(config)
        case ContactDelete():
            return {}
        case AddToSegment():
            return {"segment_id": str(config.segment_id)}


def _send_email(send_email_step: SendEmailStep) -> Json:
    template = _without_none(id=send_email_step.template, variables=_values(send_email_step.variables))
    rest = {
        "subject": send_email_step.subject,
        "from": send_email_step.sender,
        "reply_to": list(send_email_step.reply_to)
        if isinstance(send_email_step.reply_to, tuple)
        else send_email_step.reply_to,
        "topic_id": send_email_step.topic_id and str(send_email_step.topic_id),
    }
    return {"template": template, **{name: found for name, found in rest.items() if found is not None}}


def _contact_update(contact_update: ContactUpdate) -> Json:
    """Return the config as it is shown. A member of null clears, so it is shown."""
    members = {
        "first_name": contact_update.first_name,
        "last_name": contact_update.last_name,
        "unsubscribed": contact_update.unsubscribed,
    }
    shown: Json = {name: value(found) for name, found in members.items() if found is not None}
    if contact_update.properties is not None:
        shown["properties"] = _values(contact_update.properties)
    return shown


def rule(condition: Rule) -> Json:
    if isinstance(condition, Comparison):
        shown: Json = {"type": "rule", "field": condition.field.text, "operator": condition.operator}
        return shown if condition.operator in UNARY else {**shown, "value": condition.value}
    return {
        "type": "and" if isinstance(condition, AllOf) else "or",
        "rules": [rule(each) for each in condition.rules],
    }


def value(value: Value) -> object:
    match value:
        case Constant():
            return value.value
        case FromField():
            return {"var": value.field.text}
        case JsonValue():
            return msgspec.json.decode(value.text)


def _values(variables: tuple[tuple[str, Value], ...] | None) -> Json | None:
    return None if variables is None else {key: value(one) for key, one in variables}


def _without_none(**members: object) -> Json:
    return {name: found for name, found in members.items() if found is not None}
