"""The personal values of a broadcast's copy, as they were when it was made: `recipients.personal`."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from pillarbox.emails.broadcast_copies.parts import SharedParts
from pillarbox.mail.placeholders.contact_values import FIELDS, ContactValues, Scalar, is_link, property_key


class PersonalValues(msgspec.Struct, omit_defaults=True):
    """Values are those alone that the content has placeholders for; `subject` is there where it has some."""

    contact: UUID
    subject: str | None = None
    email: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    properties: dict[str, Scalar] = msgspec.field(default_factory=dict)
    fallbacks: dict[str, Scalar] = msgspec.field(default_factory=dict)

    @property
    def values(self) -> ContactValues:
        return ContactValues(
            email=self.email,
            first_name=self.first_name,
            last_name=self.last_name,
            properties=self.properties,
            fallbacks=self.fallbacks,
        )


class NeededValues:
    """The values of a contact that a content has placeholders for."""

    def __init__(self, parts: SharedParts) -> None:
        names = {found.name for found in parts.placeholders if not is_link(found.name)}
        self.fields = {FIELDS[name] for name in names if name in FIELDS}
        self.properties = {key for name in names if (key := property_key(name)) is not None}
        self._parts = parts

    def of(self, contact_id: UUID, values: ContactValues) -> PersonalValues:
        """Return the values of a contact to store with the copy; properties without one get the fallback."""
        own = {key: values.properties.get(key) for key in self.properties}
        kept = {key: value for key, value in own.items() if value is not None and value != ""}
        personal = PersonalValues(
            contact=contact_id,
            subject=None,
            email=values.email if "email" in self.fields else None,
            first_name=values.first_name if "first_name" in self.fields else None,
            last_name=values.last_name if "last_name" in self.fields else None,
            properties=kept,
            fallbacks=_fallbacks(self.properties - kept.keys(), values.fallbacks),
        )
        if self._parts.subject.placeholders:
            personal.subject = self._parts.subject_for(personal.values)
        return personal


def _fallbacks(keys: set[str], known: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
    return {key: value for key in sorted(keys) if (value := known.get(key)) is not None}


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(PersonalValues).decode
