"""Large answers as JSON in pieces, so that a thread that encodes one lets the event loop run in between.

The usual encoder is one call of a C library: a body of 25 MB keeps the lock of Python for a tenth of a
second. Here no call gets more than `LARGE` at once. Together the pieces are what the usual encoder writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import astuple

from pillarbox.kernel.process.offload import in_thread

LARGE: Final = 128 * 1024
"""Characters of text; the loop encodes so much in a millisecond or two."""
VALUE: Final = 8
"""Characters that a value of any kind counts for."""
PIECE: Final = 48 * 1024
"""Characters or octets of a text that are encoded at once; divisible by three, for base64."""

_encode = msgspec.json.Encoder().encode


def is_large(body: Any) -> bool:
    """Return whether the body of an answer has more than the event loop should encode."""
    left = LARGE
    waiting = [body]
    while waiting:
        value = waiting.pop()
        members = _members(value)
        if members is None:
            left -= _length(value) + VALUE
        else:
            for member in members:
                kind = type(member)
                if kind is str:
                    left -= len(member) + VALUE
                elif kind is int or kind is bool or member is None:
                    left -= VALUE
                else:
                    waiting.append(member)
                if left < 0:
                    return True
        if left < 0:
            return True
    return False


def _members(value: Any) -> Iterable[Any] | None:
    """Return the members of a value; None for one that has none."""
    if isinstance(value, Struct):
        return astuple(value)
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else None


def _length(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return memoryview(value).nbytes if isinstance(value, Raw) else 0


async def as_json(body: Any) -> bytes:
    """Return the body as JSON, of a large one from a thread."""
    return await in_thread(encoded, body) if is_large(body) else _encode(body)


def encoded(body: Any) -> bytes:
    """Return the body as JSON."""
    return b"".join(_pieces(body))


def _pieces(value: Any) -> Iterator[bytes]:
    if not is_large(value):
        yield _encode(value)
    elif isinstance(value, str | bytes):
        yield b'"'
        for start in range(0, len(value), PIECE):
            yield _encode(value[start : start + PIECE])[1:-1]
        yield b'"'
    elif isinstance(value, Raw):
        octets = memoryview(value)
        for start in range(0, octets.nbytes, PIECE):
            yield octets[start : start + PIECE].tobytes()
    elif isinstance(value, list | tuple):
        yield from _listed(b"[", (_pieces(member) for member in value), b"]")
    elif isinstance(value, dict):
        yield from _listed(b"{", (_member(_name(key), member) for key, member in value.items()), b"}")
    elif isinstance(value, Struct):
        yield from _listed(b"{", _fields(value), b"}")
    else:
        yield _encode(value)


def _listed(first: bytes, members: Iterable[Iterator[bytes]], last: bytes) -> Iterator[bytes]:
    yield first
    for number, pieces in enumerate(members):
        if number:
            yield b","
        yield from pieces
    yield last


def _member(name: bytes, value: Any) -> Iterator[bytes]:
    yield name
    yield from _pieces(value)


def _name(key: Any) -> bytes:
    """Return the name of a member with its colon, as the usual encoder writes it."""
    return _encode({key: 0})[1:-2]


def _fields(value: Struct) -> Iterator[Iterator[bytes]]:
    config = value.__struct_config__
    if config.array_like or config.omit_defaults:
        raise TypeError(f"{type(value).__name__}: answers have all of their fields, by name")
    if config.tag_field is not None:
        yield _member(_name(config.tag_field), config.tag)
    for name, member in zip(value.__struct_encode_fields__, astuple(value), strict=True):
        if member is not UNSET:
            yield _member(_name(name), member)
