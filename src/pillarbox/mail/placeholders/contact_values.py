"""Placeholders that stand for a contact: its names, address and properties (templates.md 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pillarbox.mail.placeholders.parsing import CONTACT_PATH, UNSUBSCRIBE_URL, Placeholder
from pillarbox.mail.placeholders.rendering import EMPTY, Value, ValueOrigin, inline_fallback, printed

Scalar = str | float | bool
"""The value of a property."""

_PROPERTY: Final = f"{CONTACT_PATH}properties."

FIELDS: Final = {
    "FIRST_NAME": "first_name",
    "contact.first_name": "first_name",
    "LAST_NAME": "last_name",
    "contact.last_name": "last_name",
    "EMAIL": "email",
    "contact.email": "email",
}
"""The names of fields that every contact has."""

_NOTHING: Final = frozenset(("contact", "this"))
"""Reserved words that stand for no value."""


@dataclass(frozen=True, slots=True)
class ContactValues:
    """The values of a contact that mail may show; `fallbacks` are those of the properties that the team has
    defined. A value that is null or empty is none."""

    email: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    properties: Mapping[str, Scalar | None] = field(default_factory=dict)
    fallbacks: Mapping[str, Scalar | None] = field(default_factory=dict)


NOBODY: Final = ContactValues()
"""For mail to an address that is no contact, or to several."""


def is_of_contact(name: str) -> bool:
    """Return whether this name stands for something of a contact in every mail; a property without `contact.`
    before it does so in broadcasts alone."""
    return name in FIELDS or name in _NOTHING or name.startswith(CONTACT_PATH)


def is_link(name: str) -> bool:
    """Return whether this name stands for the URL by which the recipient unsubscribes."""
    return name in UNSUBSCRIBE_URL


def contact_value(contact: ContactValues, placeholder: Placeholder) -> Value:
    """Return the contact's own value, else the fallback of the placeholder, else that of the property,
    else nothing.

    A fallback is the sender's own text; what contacts are called is not.
    """
    key = property_key(placeholder.name)
    if key is None:
        own = getattr(contact, FIELDS[placeholder.name]) if placeholder.name in FIELDS else None
    else:
        own = contact.properties.get(key)
    if own is not None and own != "":
        return Value(printed(own), ValueOrigin.OTHERS)
    inline = inline_fallback(placeholder)
    if inline is not None:
        return inline
    fallback = None if key is None else contact.fallbacks.get(key)
    return EMPTY if fallback is None else Value(printed(fallback), ValueOrigin.SENDER)


def property_key(name: str) -> str | None:
    """Return the key of the property that a name stands for."""
    if name in FIELDS or name in _NOTHING:
        return None
    return name.removeprefix(_PROPERTY) if name.startswith(_PROPERTY) else name.removeprefix(CONTACT_PATH)
