"""One decoder for every JSON body (TRAP-09): what it returns can be stored, hashed and walked safely."""

from __future__ import annotations

from typing import Any

import msgspec

from pillarbox.kernel.wire import large_json
from pillarbox.kernel.wire.problems import BadRequest, Invalid

MOST_DEPTH = 64
MOST_CONTAINERS = 100_000
SMALL = 1024 * 1024
"""A body up to this size fits into memory whatever it holds. Larger ones are read in pieces
(`kernel.wire.large_json`), which belongs in a thread."""


_CONTAINERS = (dict, list)
_decode = msgspec.json.Decoder().decode

_NUL = b"u0000"
"""An escaped NUL without its backslash: Python looks for six octets in a large body five times as long as for
five."""

NOT_JSON = "The request body is not valid JSON."
TOO_DEEP = f"The request body is nested more than {MOST_DEPTH} levels deep."
TOO_MANY = "The request body has too many values."
WITH_NUL = "The request body may not contain NUL characters."


def decode(data: bytes | bytearray) -> Any:
    """Return the body as Python values, `{}` for an empty one; raise 400 for anything that is not
    sound JSON."""
    if not data:
        return {}
    try:
        body = _decode(data) if len(data) <= SMALL else large_json.decode(data)
    except RecursionError:
        raise BadRequest(TOO_DEEP) from None
    except large_json.TooMuch:
        raise BadRequest(TOO_MANY) from None
    except (large_json.NotJson, msgspec.DecodeError, UnicodeError, ValueError):
        raise BadRequest(NOT_JSON) from None
    _refuse_shape(body)
    return body


def decoded(data: bytes | bytearray) -> tuple[Any, bool]:
    """Return the body, and whether a string of it holds a NUL."""
    body = decode(data)
    return body, may_hold_nul(data) and _holds_nul(body)


def may_hold_nul(data: bytes | bytearray) -> bool:
    """Return False when no string of the body can hold U+0000: raw control characters are no JSON at all."""
    return _NUL in data


def refuse_nul(body: Any) -> None:
    """Raise 422 when any string of the body holds U+0000, which PostgreSQL cannot store."""
    if _holds_nul(body):
        raise Invalid(WITH_NUL)


def _refuse_shape(body: Any) -> None:
    """Raise 400 for containers that are nested too deep or too many."""
    level = [body] if type(body) in _CONTAINERS else []
    seen = 0
    for _ in range(MOST_DEPTH):
        if not level:
            return
        seen += len(level)
        if seen > MOST_CONTAINERS:
            raise BadRequest(TOO_MANY)
        level = [
            child
            for value in level
            for child in (value.values() if type(value) is dict else value)
            if type(child) in _CONTAINERS
        ]
    if level:
        raise BadRequest(TOO_DEEP)


def _holds_nul(body: Any) -> bool:
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if type(value) is str:
            if "\0" in value:
                return True
        elif type(value) is dict:
            waiting.extend(value)
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return False
