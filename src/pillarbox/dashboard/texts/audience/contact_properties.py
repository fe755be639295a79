"""Texts of the screens of contact properties."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "properties.title": "Properties",
    "properties.words": "contact properties, custom fields, attributes, merge fields, personalisation",
    "properties.key": "Key",
    "properties.key.hint": "1 to 50 letters, digits and underscores.",
    "properties.type": "Type",
    "properties.type.hint": "Key and type cannot be changed later.",
    "properties.type.string": "Text",
    "properties.type.number": "Number",
    "properties.type.boolean": "Yes or no",
    "properties.fallback": "Fallback",
    "properties.fallback.hint": "Stands in mails to contacts that have no value. Leave it empty for none.",
    "properties.created": "Created",
    "properties.example": "In a mail",
    "properties.none": "No property yet",
    "properties.none.text": "Properties are what you know of contacts beside name and address: a plan, a "
    "city, a number of orders. Mails name them, and segments and automations decide by them.",
    "properties.new": "Create property",
    "properties.new.words": "new property, custom field",
    "properties.new.lead": "Something that every contact can have a value of.",
    "properties.make": "Create",
    "properties.back": "Back",
    "properties.no_number": "Enter a number, such as 12 or 1.5.",
    "properties.no_boolean": "Enter true or false.",
    "property.title": "Property",
    "property.use": "Broadcasts and templates name it between braces; with a bar, what follows stands for "
    "contacts without a value.",
    "property.edit": "Edit",
    "property.save": "Save",
    "property.delete": "Delete",
    "property.delete.title": "Delete {name}?",
    "property.delete.text": "All values that contacts have of it are removed. This cannot be undone.",
    "property.typed_wrong": "Type the key of the property to delete it.",
    "done.property_created": "The property is created.",
    "done.property_changed": "The property is saved.",
    "done.property_deleted": "The property is deleted.",
}
