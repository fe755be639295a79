"""Labels as threads show them."""

from __future__ import annotations

import msgspec

from pillarbox.inboxes.events import ThreadLabel

_labels = msgspec.json.Decoder(list[ThreadLabel]).decode


def labels_of(text: str | None) -> list[ThreadLabel]:
    """Return the labels of a thread from the JSON that the database makes; the oldest first."""
    return [] if text is None else _labels(text)
