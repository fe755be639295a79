"""Query parameters by the rules of conventions section 2."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from pillarbox.kernel.wire.problems import InvalidParameter

_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


class Query:
    """The parameters of one request; unknown ones are simply never asked for."""

    __slots__ = ("_values",)

    def __init__(self, query_string: bytes) -> None:
        self._values: dict[str, list[str]] = {}
        if query_string:
            for pair in query_string.decode("latin-1").split("&"):
                name, _, value = pair.partition("=")
                self._values.setdefault(_decoded(name), []).append(_decoded(value))

    def last(self, name: str) -> str | None:
        """Return the value as it stands, "" included; None when the parameter is absent."""
        values = self._values.get(name)
        if values is None:
            return None
        if "\0" in values[-1]:
            raise InvalidParameter(name, "It may not contain a NUL character.")
        return values[-1]

    def text(self, name: str) -> str | None:
        """Return a string or cursor: empty is the same as absent."""
        return self.last(name) or None

    def integer(self, name: str, reason: str = "Use an integer.") -> int | None:
        """Return a number of digits only; empty is invalid."""
        value = self.last(name)
        if value is None:
            return None
        if not _INTEGER.fullmatch(value):
            raise InvalidParameter(name, reason)
        return int(value)

    def boolean(self, name: str) -> bool | None:
        """Return the value of exactly `true` or `false`; empty is invalid."""
        value = self.last(name)
        if value is None:
            return None
        if value not in _BOOLEANS:
            raise InvalidParameter(name, "Use `true` or `false`.")
        return _BOOLEANS[value]

    def choice(self, name: str, *allowed: str) -> str | None:
        """Return one of a few words; empty is invalid."""
        value = self.last(name)
        if value is None:
            return None
        if value not in allowed:
            raise InvalidParameter(name, "Use " + ", ".join(f"`{word}`" for word in allowed) + ".")
        return value

    def items(self, name: str) -> list[str]:
        """Return the items, comma-separated or repeated or both; trimmed, without empty items
        and repetitions."""
        found: dict[str, None] = {}
        for value in self._values.get(name, ()):
            if "\0" in value:
                raise InvalidParameter(name, "It may not contain a NUL character.")
            for item in value.split(","):
                if trimmed := item.strip(" \t\r\n\f\v"):
                    found[trimmed] = None
        return list(found)


def _decoded(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text
