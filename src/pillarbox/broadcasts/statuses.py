"""The states of a broadcast, and what may be done in each (broadcasts.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

Status: TypeAlias = Literal["draft", "scheduled", "queued", "sent", "canceled", "failed"]
Operation: TypeAlias = Literal["change", "delete", "send", "schedule", "cancel", "begin", "finish", "fail"]

STATUSES: Final[tuple[Status, ...]] = ("draft", "scheduled", "queued", "sent", "canceled", "failed")

GONE: Final = "gone"
"""The result of deleting a broadcast, in place of a status."""

TRANSITIONS: Final[Mapping[Operation, Mapping[Status, Status | Literal["gone"]]]] = {
    "change": {"draft": "draft", "scheduled": "scheduled"},
    "delete": {"draft": GONE, "scheduled": GONE},
    "send": {"draft": "queued"},
    "schedule": {"draft": "scheduled"},
    "cancel": {"scheduled": "draft", "queued": "canceled"},
    "begin": {"scheduled": "queued"},
    "finish": {"queued": "sent"},
    "fail": {"queued": "failed"},
}
"""The status that each operation gives a broadcast, by the status before. In another status the operation is
refused, or does nothing where it is ours. The name alone may be changed in every state, and every broadcast
may be duplicated and read."""


def becomes(operation: Operation, status: str) -> str | None:
    """Return the state after the operation; None where it is not allowed."""
    found: Mapping[Any, str] = TRANSITIONS[operation]
    return found.get(status)
