"""Which paths are there under which name: some names are not for the API (docs/decisions/0086)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostRules:
    """`serves` says whether a path is there under the name that the header `Host` has; a higher slice
    provides it."""

    serves: Callable[[bytes | None, str], Awaitable[bool]]
