"""Operators in the text that people type to search: `from:ada has:attachment after:2026-10-01 lantern`.

The API has a parameter for each of them; what is left is its `query`.
"""

from __future__ import annotations

import re
from typing import Final

PARAMETERS: Final = {
    "from": "from",
    "to": "to",
    "cc": "cc",
    "bcc": "bcc",
    "after": "start_date",
    "before": "end_date",
}
"""Operators whose value goes to a parameter of the API."""

LONGEST: Final = 2000
"""Characters of a search that are looked at; the API refuses a `query` that is too long."""

_OPERATOR: Final = re.compile(
    r'(?<!\S)(from|to|cc|bcc|after|before|has|is):("[^"]*"|[^\s"]+)(?!\S)', re.IGNORECASE
)
_EXACT: Final = re.compile(r'"[^"]*"?')


def search_parameters(text: str) -> dict[str, str]:
    """Return the parameters of the API that a search means. What is no operator stays in `query`."""
    found: dict[str, str] = {}
    rest: list[str] = []
    begin = 0
    phrases = [(match.start(), match.end()) for match in _EXACT.finditer(text[:LONGEST])]
    for match in _OPERATOR.finditer(text[:LONGEST]):
        if any(start < match.start() < end for start, end in phrases):
            continue
        name, value = match[1].lower(), match[2].strip('"')
        parameter = _parameter(name, value)
        if parameter is None:
            continue
        rest.append(text[begin : match.start()])
        begin = match.end()
        key, given = parameter
        found[key] = f"{found[key]},{given}" if key in found and key in ("from", "to", "cc", "bcc") else given
    rest.append(text[begin:])
    query = " ".join("".join(rest).split())
    return {**found, "query": query} if query else found


def _parameter(name: str, value: str) -> tuple[str, str] | None:
    """Return the parameter and its value; None for an operator that means nothing here."""
    if name == "has":
        return ("has_attachment", "true") if value.lower() in ("attachment", "attachments") else None
    if name == "is":
        read = {"unread": "false", "read": "true"}.get(value.lower())
        return None if read is None else ("read", read)
    return PARAMETERS[name], value
