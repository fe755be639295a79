"""Texts of the screens of an audience, in German: one module for each group of screens.

Begin with `contact.py`.
"""

from __future__ import annotations

from typing import Final

from pillarbox.dashboard.texts.german.audience import (
    broadcasts,
    contact,
    contact_properties,
    contacts,
    forms,
    imports,
    person,
    segments,
    topics,
)

TEXTS: Final[dict[str, str]] = {
    **broadcasts.TEXTS,
    **contact.TEXTS,
    **contact_properties.TEXTS,
    **contacts.TEXTS,
    **forms.TEXTS,
    **imports.TEXTS,
    **person.TEXTS,
    **segments.TEXTS,
    **topics.TEXTS,
}
