"""The changes of a contact: only fields that are given change (contacts.md 1 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

Subscription = Literal["opt_in", "opt_out"]

MOST_LISTED: Final = 100
"""Segments or topics that one request may name."""


@dataclass(frozen=True, slots=True)
class ContactChange:
    """Names are trimmed, and None where there is none. `properties` are values by key, None clears."""

    first_name: str | UnsetType | None = UNSET
    last_name: str | UnsetType | None = UNSET
    unsubscribed: bool | UnsetType = UNSET
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContactMemberships:
    """Segments that a contact is added to, and what it chooses of topics."""

    segments: Sequence[UUID] = ()
    topics: Mapping[UUID, Subscription] = field(default_factory=dict)


NOTHING: Final = ContactChange()
NOWHERE: Final = ContactMemberships()
