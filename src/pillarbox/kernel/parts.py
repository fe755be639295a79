"""The parts of a process, looked up by type.

The kernel must not import a slice, and a slice must not build its own engine: the kit (`kernel.slices`)
registers one instance of each part, and a handler asks for the part it needs.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

T = TypeVar("T")


class PartRegistry:
    """One instance per type; a missing part is a programming error."""

    def __init__(self, *parts: object) -> None:
        self._parts: dict[type[Any], object] = {}
        for part in parts:
            self.add(part)

    def add(self, part: object, kind: type[Any] | None = None) -> None:
        """Offer `part` under its own type, or under the protocol or base `kind`."""
        self._parts[kind or type(part)] = part

    def use(self, kind: type[T]) -> T:
        """Return the part of that type."""
        return cast(T, self._parts[kind])

    def find(self, kind: type[T]) -> T | None:
        """Return the part of that type, or None where the application has none."""
        return cast("T | None", self._parts.get(kind))
