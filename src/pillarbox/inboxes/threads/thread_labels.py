"""Labels as threads show them."""

from __future__ import annotations

from uuid import UUID

import msgspec


class ThreadLabel(msgspec.Struct, frozen=True):
    """A label of an inbox on a thread."""

    id: UUID
    name: str
    color: str


_labels = msgspec.json.Decoder(list[ThreadLabel]).decode


def labels_of(text: str | None) -> list[ThreadLabel]:
    """The labels of a thread from the JSON that the database makes; the oldest first."""
    return [] if text is None else _labels(text)
