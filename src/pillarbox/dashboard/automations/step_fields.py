"""The form of one step: which fields a config is shown in, and the config that is typed in them.

Every text that is typed is kept, right or wrong: the config holds it until the API says what is wrong.
Only text that has no place in a config (lines without `=`, JSON that is none) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pillarbox.dashboard.automations.assignments import (
    AssignmentError,
    shown,
    shown_lines,
    typed,
    typed_lines,
)
from pillarbox.dashboard.automations.step_words import OPERATORS, UNARY
from pillarbox.dashboard.frame.json_text import parsed_here
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t

MOST_RULES: Final = 20
BLANK_RULES: Final = 2
"""Empty rows below the rules that there are."""

TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "trigger": ("event_name",),
    "delay": ("duration",),
    "wait_for_event": ("event_name", "timeout"),
    "add_to_segment": ("segment_id",),
}
"""Types whose fields are texts of the same name."""


class FieldError(ValueError):
    """A field whose text has no place in a config; the first argument says what to do."""


def fields_of(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a step's form."""
    match kind:
        case "wait_for_event":
            return {**_texts(kind, config), **_rule_fields(config.get("filter_rule"))}
        case "condition":
            return _rule_fields(config)
        case "send_email":
            template = config.get("template")
            inside = template if isinstance(template, dict) else {}
            reply_to = config.get("reply_to")
            variables = inside.get("variables")
            return {
                "template": _text(inside.get("id")),
                "variables": shown_lines(variables) if isinstance(variables, dict) else "",
                **{name: _text(config.get(name)) for name in ("subject", "from", "topic_id")},
                "reply_to": ", ".join(map(str, reply_to)) if isinstance(reply_to, list) else _text(reply_to),
            }
        case "contact_update":
            properties = config.get("properties")
            return {
                **{
                    name: shown(config[name]) if name in config else ""
                    for name in ("first_name", "last_name", "unsubscribed")
                },
                "properties": shown_lines(properties) if isinstance(properties, dict) else "",
            }
    return _texts(kind, config)


def config_of(kind: str, form: Form) -> dict[str, Any]:
    """Return the config that is typed; FieldError where a text has no place in one."""
    match kind:
        case "wait_for_event":
            rule = _rule(form)
            return {**_typed_texts(kind, form), **({"filter_rule": rule} if rule else {})}
        case "condition":
            return _rule(form) or {}
        case "send_email":
            variables = _lines(form, "variables")
            reply_to = [one.strip() for one in form.get("reply_to").split(",") if one.strip()]
            template = {"id": form.get("template").strip(), **({"variables": variables} if variables else {})}
            return {
                "template": template,
                **_given(form, "subject", "from"),
                **({"reply_to": reply_to[0] if len(reply_to) == 1 else reply_to} if reply_to else {}),
                **_given(form, "topic_id"),
            }
        case "contact_update":
            changes = {
                name: typed(form.get(name))
                for name in ("first_name", "last_name", "unsubscribed")
                if form.get(name).strip()
            }
            properties = _lines(form, "properties")
            return {**changes, **({"properties": properties} if properties else {})}
    return _typed_texts(kind, form)


def typed_fields(kind: str, form: Form) -> dict[str, Any]:
    """Return the fields of a form as they were typed, for a page that shows them again."""
    names = {
        **dict.fromkeys(TEXTS.get(kind, ()), ""),
        **(dict.fromkeys(("template", "variables", "subject", "from", "reply_to", "topic_id"), "")),
        **(dict.fromkeys(("first_name", "last_name", "unsubscribed", "properties"), "")),
    }
    found: dict[str, Any] = {name: form.get(name) for name in names}
    if kind in ("condition", "wait_for_event"):
        found |= {
            "match": form.get("match", "and"),
            "rules": _typed_rows(form),
            "rule_json": form.get("rule_json") if form.get("as_json") else None,
        }
    return found


# Rules ----------------------------------------------------------------------------------------------


def _rule_fields(rule: Any) -> dict[str, Any]:
    """Return the rows of a rule; one that has others in it is shown as JSON."""
    rules = rule if isinstance(rule, dict) and rule else None
    rows: list[dict[str, str]] = []
    match, is_flat = "and", True
    if rules is not None:
        kind, inner = rules.get("type"), rules.get("rules")
        parts = inner if kind in ("and", "or") and isinstance(inner, list) else [rules]
        match = "or" if kind == "or" else "and"
        is_flat = len(parts) <= MOST_RULES and all(_is_comparison(part) for part in parts)
        if is_flat:
            rows = [_row(part) for part in parts]
    blank = {"field": "", "operator": "eq", "value": ""}
    rows += [dict(blank) for _ in range(min(BLANK_RULES, MOST_RULES - len(rows)))]
    text = None if is_flat else msgspec.json.format(msgspec.json.encode(rules), indent=2).decode()
    return {"match": match, "rules": rows, "rule_json": text}


def _is_comparison(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("type") == "rule" and rule.get("operator") in OPERATORS


def _row(rule: Mapping[str, Any]) -> dict[str, str]:
    value = "" if rule["operator"] in UNARY else shown(rule.get("value"))
    return {"field": _text(rule.get("field")), "operator": rule["operator"], "value": value}


def _typed_rows(form: Form) -> list[dict[str, str]]:
    names, operators, values = form.every("field"), form.every("operator"), form.every("value")
    rows = [
        {"field": name, "operator": operator, "value": value}
        for name, operator, value in zip(names, operators, values, strict=False)
    ]
    return rows[:MOST_RULES]


def _rule(form: Form) -> dict[str, Any] | None:
    if form.get("as_json"):
        return _json_rule(form.get("rule_json"))
    rules = []
    for row in _typed_rows(form):
        if row["field"].strip() or row["value"].strip():
            operator = row["operator"]
            value = {} if operator in UNARY else {"value": typed(row["value"])}
            rules.append({"type": "rule", "field": row["field"].strip(), "operator": operator, **value})
    if len(rules) <= 1:
        return rules[0] if rules else None
    return {"type": "or" if form.get("match") == "or" else "and", "rules": rules}


def _json_rule(text: str) -> dict[str, Any] | None:
    if not text.strip():
        return None
    try:
        rule = parsed_here(text)
    except ValueError:
        raise FieldError(t("automation.no_json")) from None
    if not isinstance(rule, dict):
        raise FieldError(t("automation.no_json"))
    return rule


# Fields ---------------------------------------------------------------------------------------------


def _lines(form: Form, name: str) -> dict[str, Any]:
    try:
        return typed_lines(form.get(name))
    except AssignmentError as line:
        raise FieldError(t("automation.no_assignment", line=str(line))) from None


def _texts(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(config.get(name)) for name in TEXTS.get(kind, ())}


def _typed_texts(kind: str, form: Form) -> dict[str, Any]:
    first, *others = [*TEXTS.get(kind, ()), ""]
    named = {first: form.get(first).strip()} if first else {}
    return {**named, **_given(form, *(name for name in others if name))}


def _given(form: Form, *names: str) -> dict[str, Any]:
    return {name: form.get(name).strip() for name in names if form.get(name).strip()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
