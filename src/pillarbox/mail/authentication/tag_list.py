"""Tag lists: `name=value; name=value`, as DKIM and its relatives write them (RFC 6376, 3.2)."""

from __future__ import annotations

import re

_TAG = re.compile(r"[ \t\r\n]*([A-Za-z][A-Za-z0-9_]*)[ \t\r\n]*=(.*)", re.DOTALL)
_BLANKS = " \t\r\n"


class TagError(ValueError):
    """Text that is no tag list."""


def parse(text: str) -> dict[str, str]:
    """Return the values by tag name, without white space at their ends; a tag that occurs twice is
    an error."""
    tags: dict[str, str] = {}
    items = text.split(";")
    if items and not items[-1].strip(_BLANKS):
        items.pop()
    for item in items:
        found = _TAG.fullmatch(item)
        if found is None:
            raise TagError("there is an item without name or value")
        if found[1] in tags:
            raise TagError(f"{found[1]}= occurs twice")
        tags[found[1]] = found[2].strip(_BLANKS)
    return tags


def names(text: str, separator: str = ":") -> list[str]:
    """Return the items of a value that is a list, without white space around them."""
    return [item.strip(_BLANKS) for item in text.split(separator)]
