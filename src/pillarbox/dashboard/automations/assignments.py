"""Values as people type them: `PLAN = {{event.plan}}`, `seats = 3`, `name = Ada`.

`{{FIELD}}` is read when the step begins. JSON is that value, and anything else is a text as it stands. A text
that would be taken for something else is in quotes, so every value comes back as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pillarbox.dashboard.frame.json_text import parsed_here

_FIELD: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_LINE: Final = re.compile(r"([^=]+?)\s*=\s*(.*)", re.DOTALL)


class AssignmentError(ValueError):
    """A line without `=`."""


def typed(text: str) -> Any:
    """Return the value that a text stands for."""
    text = text.strip()
    if field := _FIELD.fullmatch(text):
        return {"var": field[1]}
    try:
        return parsed_here(text)
    except ValueError:
        return text


def shown(value: Any) -> str:
    """Return the text that stands for a value."""
    if isinstance(value, dict) and list(value) == ["var"] and isinstance(value["var"], str):
        text = f"{{{{{value['var']}}}}}"
        if typed(text) == value:
            return text
    if isinstance(value, str) and typed(value) == value and "\n" not in value and "\r" not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


def typed_lines(text: str) -> dict[str, Any]:
    """Return the values of lines `NAME = VALUE`; empty lines count for nothing."""
    found: dict[str, Any] = {}
    for line in text.replace("\r", "\n").split("\n"):
        if line.strip():
            parts = _LINE.fullmatch(line.strip())
            if parts is None:
                raise AssignmentError(line.strip())
            found[parts[1].strip()] = typed(parts[2])
    return found


def shown_lines(values: Mapping[str, Any]) -> str:
    """Return a line for each value."""
    return "\n".join(f"{name} = {shown(value)}" for name, value in values.items())
