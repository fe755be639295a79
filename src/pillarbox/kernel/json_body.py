"""One decoder for every JSON body (TRAP-09): what it returns can be stored, hashed and walked safely."""

from __future__ import annotations

from typing import Any

import msgspec

from pillarbox.kernel.problems import BadRequest, Invalid

MOST_DEPTH = 64
MOST_CONTAINERS = 100_000
MOST_STRINGS = 500_000
SMALL = 1024 * 1024
"""What a body of this size holds fits into memory whatever it is, so it is counted when it is parsed: that
is faster than to look at every byte once more."""


_CONTAINERS = (dict, list)
_decode = msgspec.json.Decoder().decode

NOT_JSON = "The request body is not valid JSON."
TOO_DEEP = f"The request body is nested more than {MOST_DEPTH} levels deep."
TOO_MANY = "The request body has too many values."
WITH_NUL = "The request body may not contain NUL characters."


def decode(data: bytes | bytearray) -> Any:
    """The body as Python values, `{}` for an empty one; 400 for anything that is not sound JSON."""
    if not data:
        return {}
    suspect = len(data) > SMALL and _many_containers(data)
    try:
        body = _decode(data)
    except RecursionError:
        raise BadRequest(TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeError, ValueError):
        raise BadRequest(NOT_JSON) from None
    if suspect or len(data) <= SMALL:
        _refuse_shape(body)
    return body


def may_hold_nul(data: bytes | bytearray) -> bool:
    """False when no string of the body can hold U+0000: raw control characters are no JSON at all."""
    return b"\\u0000" in data


def refuse_nul(body: Any) -> None:
    """422 when any string of the body holds U+0000, which PostgreSQL cannot store."""
    if _holds_nul(body):
        raise Invalid(WITH_NUL)


def _many_containers(data: bytes | bytearray) -> bool:
    """True where a large body may be nested too deep; refuses masses of small values."""
    containers = data.count(b"[") + data.count(b"{")
    if containers > MOST_CONTAINERS or data.count(b'"') > 2 * MOST_STRINGS:
        _refuse_masses(data)
    return containers > MOST_DEPTH


def _refuse_masses(data: bytes | bytearray) -> None:
    """Small tokens take many times their size once parsed: bound their number before parsing.

    Counted on a copy without escapes, in which quotes come in pairs, so that the count itself takes
    little time and memory whatever the body holds.
    """
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * MOST_STRINGS:
        raise BadRequest(TOO_MANY)
    outside = b"".join(plain.split(b'"')[::2])
    if outside.count(b"[") + outside.count(b"{") > MOST_CONTAINERS:
        raise BadRequest(TOO_MANY)


def _refuse_shape(body: Any) -> None:
    """400 for containers that are nested too deep or too many."""
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
