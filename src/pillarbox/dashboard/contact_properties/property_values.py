"""Values of properties as forms have them: text that is read by the type of the property."""

from __future__ import annotations

import math
from typing import Any

from pillarbox.dashboard.texts import t
from pillarbox.kernel.wire.problems import InvalidField


def value_of(text: str, kind: str, name: str) -> str | float | bool | None:
    """Return what a field means for a property of this type; None where it is empty. 422 for text that is no
    number or no truth value; `name` is the property's."""
    if kind == "string":
        return text or None
    text = text.strip()
    if not text:
        return None
    if kind == "boolean":
        if text not in ("true", "false"):
            raise InvalidField(name, t("properties.no_boolean"))
        return text == "true"
    return _number(text, name)


def text_of_value(value: Any) -> str:
    """Return a value as a field shows it; "" where there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _number(text: str, name: str) -> float:
    try:
        number = int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        raise InvalidField(name, t("properties.no_number")) from None
    if not math.isfinite(number):
        raise InvalidField(name, t("properties.no_number"))
    return number
