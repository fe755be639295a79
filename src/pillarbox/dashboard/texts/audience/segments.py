"""Texts of the screens of segments."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "segments.title": "Segments",
    "segments.one": "Segment",
    "segments.words": "lists audiences groups conditions",
    "segments.name": "Name",
    "segments.kind": "Members",
    "segments.by.hand": "by hand",
    "segments.by.conditions": "by conditions",
    "segments.members": "Contacts",
    "segments.new": "New segment",
    "segments.new.words": "create list audience conditions",
    "segments.new_by_hand": "New by hand",
    "segments.new_by_conditions": "New by conditions",
    "segments.create": "Create segment",
    "segments.save": "Save",
    "segments.rename": "Rename",
    "segments.delete": "Delete segment",
    "segments.delete.text": "Its contacts stay. Broadcasts that are scheduled for it fail when they are due.",
    "segments.typed_wrong": "The name does not match, so nothing was deleted.",
    "segments.conditions": "Conditions",
    "segments.conditions.text": (
        "Whoever fits them is in the segment. It is worked out anew whenever somebody asks."
    ),
    "segments.edit_conditions": "Edit conditions",
    "segments.as_json": "As JSON",
    "segments.by_hand": "The members of this segment are added by hand.",
    "segments.by_hand.text": "Contacts are added in the table of contacts, by imports and over the API.",
    "segments.changed_meanwhile": (
        "Somebody else has changed the conditions meanwhile. Look at them, and save again."
    ),
    "segments.json_long": "Use at most 16,000 characters.",
    "segments.no_json": "It must be JSON.",
    "segments.none": "No segment yet",
    "segments.none.text": (
        "A segment is whom a broadcast goes to: contacts that you add, or all that fit conditions."
    ),
    "segments.nobody": "Nobody is in it yet",
    "segments.nobody.text": "Choose contacts in the table and add them to this segment.",
    "segments.nobody_fits": "Nobody fits",
    "segments.nobody_fits.text": "No contact fits these conditions now.",
    "done.segment_created": "The segment is created.",
    "done.segment_changed": "The segment is saved.",
    "done.segment_deleted": "The segment is deleted.",
}
