"""Members of JSON objects, each with the path by which messages name it: for bodies that no struct
describes."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.kernel.wire.fields import words
from pillarbox.kernel.wire.problems import InvalidField, MissingField, NotAUuid
from pillarbox.kernel.wire.uuids import well_formed

Path = str
Body = dict[str, object]

SHOWN: Final = 50
"""So much of a key of a request stands in a message."""


def as_object(value: object, path: Path) -> Body:
    if not isinstance(value, dict):
        raise InvalidField(path, "It must be an object.")
    return value


def as_array(value: object, path: Path, limit: int) -> list[object]:
    if not isinstance(value, list):
        raise InvalidField(path, "It must be an array.")
    if len(value) > limit:
        raise InvalidField(path, f"Use at most {limit} items.")
    return value


def required(body: Body, name: str, path: Path) -> object:
    """Return a member that must be there, and be neither null nor empty."""
    value = body.get(name)
    if value is None or value == "" or (isinstance(value, str) and not value.strip()):
        raise MissingField(f"{path}.{name}")
    return value


def text(value: object, path: Path, limit: int | None = None) -> str:
    if not isinstance(value, str):
        raise InvalidField(path, "It must be a string.")
    if limit is not None and len(value) > limit:
        raise InvalidField(path, f"Use at most {limit} characters.")
    return value


def word(value: object, path: Path, allowed: tuple[str, ...]) -> str:
    """Return the value, if it is one of these words; raises InvalidField."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidField(path, words(allowed))
    return value


def reference(value: object, path: Path) -> UUID:
    """Return the id of another resource."""
    if not isinstance(value, str) or not well_formed(value):
        raise NotAUuid(path)
    return UUID(value)


def shown(key: str) -> str:
    """Return the key as messages show it: cut where it is long."""
    return key if len(key) <= SHOWN else f"{key[:SHOWN]}…"
