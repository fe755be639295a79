"""Parameters of OAuth requests: each at most once but `resource` (RFC 8707, 2), and an empty one is none
(RFC 6749, 3.1 and 3.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl

from pillarbox.kernel.http.request import Request
from pillarbox.oauth.failures import InvalidRequest

FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"
MOST: Final = 100

REPEATABLE: Final = frozenset({"resource"})
"""RFC 8707, 2: one for each resource."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Parameters:
    """The parameters of one request."""

    __slots__ = ("_values", "repeated")

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        self.repeated: set[str] = set()
        for name, value in pairs:
            if name in self._values and name not in REPEATABLE:
                self.repeated.add(name)
            self._values[name] = value

    def get(self, name: str) -> str | None:
        """Return the value; None where it is absent or empty."""
        return self._values.get(name) or None

    def given(self) -> dict[str, str]:
        """Return the parameters that have a value."""
        return {name: value for name, value in self._values.items() if value}


def need(name: str, value: str | None) -> str:
    """Return the value of the parameter of this name; InvalidRequest where there is none."""
    if not value:
        raise InvalidRequest(f"{name}: is missing")
    return value


def of_query(query: bytes) -> Parameters:
    """Return the parameters of a URL. Octets that are not UTF-8 become surrogates, which `is_storable`
    finds."""
    return Parameters(_pairs(query, "surrogateescape"))


def is_storable(text: str) -> bool:
    """Return whether a text can be kept: no NUL, and no octets that are not UTF-8."""
    return "\0" not in text and not _SURROGATE.search(text)


def of_body(request: Request) -> dict[str, str]:
    """Return the parameters with a value of a form, or of a flat JSON object; raises InvalidRequest."""
    media = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if (request.header("content-encoding") or "identity").strip().lower() not in ("", "identity"):
        raise InvalidRequest("the body must not be compressed")
    raw = bytes(request.raw)
    if media == FORM:
        found = Parameters(_form(raw))
    elif media == JSON:
        found = Parameters(_flat(raw))
    else:
        raise InvalidRequest(f"the body must be {FORM} or {JSON}")
    for name in sorted(found.repeated):
        raise InvalidRequest(f"{name}: is there more than once")
    return found.given()


def _pairs(raw: bytes, errors: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode("latin-1"), keep_blank_values=True, errors=errors, max_num_fields=MOST)
    except ValueError:
        raise InvalidRequest(f"the parameters must be UTF-8, and at most {MOST}") from None


def _form(raw: bytes) -> list[tuple[str, str]]:
    return _pairs(raw, "strict")


def _flat(raw: bytes) -> list[tuple[str, str]]:
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not valid JSON") from None
    if not isinstance(found, _Members) or not all(isinstance(value, str | None) for _, value in found):
        raise InvalidRequest("the body must be a JSON object whose members are texts")
    if any(_SURROGATE.search(text) for pair in found for text in pair if text):
        raise InvalidRequest("the body is not valid JSON")
    return [(name, value or "") for name, value in found]


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, repeated ones too."""
