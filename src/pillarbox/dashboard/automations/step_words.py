"""Steps in words: a line that says what one does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pillarbox.automations.overview.views import StepOutline
from pillarbox.dashboard.pages import size
from pillarbox.dashboard.texts import t

LONGEST: Final = 200
DEEPEST: Final = 6


def detail_of(step: StepOutline, names: Mapping[str, str]) -> str:
    """Return what the step does in few words. `names` has the names of segments by their ids."""
    config = step.config
    if config is None:
        return t("automation.long_config", size=size(step.octets))
    return words_of(step.type, config, names)[:LONGEST]


def words_of(kind: str, config: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return what a config says, whatever is in it: it may be what somebody is still typing."""
    match kind:
        case "trigger":
            return _text(config.get("event_name"))
        case "wait_for_event":
            name, timeout = _text(config.get("event_name")), config.get("timeout")
            return f"{name}, ≤ {_text(timeout)}" if timeout else name
        case "delay":
            return _text(config.get("duration"))
        case "send_email":
            template = config.get("template")
            return _text(template.get("id") if isinstance(template, dict) else template)
        case "condition":
            return rule_words(config)
        case "contact_update":
            properties = config.get("properties")
            inside = properties if isinstance(properties, dict) else {}
            return ", ".join([*(name for name in config if name != "properties"), *inside])
        case "add_to_segment":
            segment = _text(config.get("segment_id"))
            return names.get(segment, segment)
    return ""


def rule_words(rule: Any, depth: int = 0) -> str:
    """Return a rule as one line."""
    if not isinstance(rule, dict) or depth > DEEPEST:
        return "…"
    kind, rules = rule.get("type"), rule.get("rules")
    if kind in ("and", "or") and isinstance(rules, list):
        word = t(f"automation.rule.{kind}")
        text = f" {word} ".join(rule_words(each, depth + 1) for each in rules[:20])
        return f"({text})" if depth else text
    operator = rule.get("operator")
    words = SIGNS.get(str(operator)) or (
        t(f"automation.operator.{operator}") if operator in OPERATORS else _text(operator)
    )
    value = "" if operator in UNARY else f" {json.dumps(rule.get('value'), ensure_ascii=False)[:80]}"
    return f"{_text(rule.get('field'))} {words}{value}"


OPERATORS: Final = (
    *("eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "ends_with"),
    *("exists", "is_empty"),
)
SIGNS: Final = {"eq": "=", "neq": "≠", "gt": ">", "gte": "≥", "lt": "<", "lte": "≤"}
UNARY: Final = ("exists", "is_empty")
"""Operators without a value."""


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else "" if value is None else str(value)[:LONGEST]
