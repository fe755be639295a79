"""The fields that a filter of contacts offers: those of contacts, the team's properties, topics and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pillarbox.contacts.engagement.events import event_names
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t

OFFERED: Final = 100
"""Topics, segments, properties, events and broadcasts of each kind, the newest."""

CONTACT_FIELDS: Final = ("email", "first_name", "last_name", "unsubscribed", "created_at")
ENGAGEMENTS: Final = ("opened", "clicked", "bounced")


@dataclass(frozen=True, slots=True)
class FactChoices:
    """The fields in groups, each with its text, and the types of properties."""

    groups: Mapping[str, Mapping[str, str]]
    property_types: Mapping[str, str]
    segments: Mapping[str, str]
    """Segments that contacts can be added to."""

    def text_of(self, field: str) -> str:
        """Return what a field is called; its name where it is not offered."""
        return next((fields[field] for fields in self.groups.values() if field in fields), field)


async def fact_choices(visit: Visit) -> FactChoices:
    """Return what filters of the visitor's team may name."""
    properties = await _listed(visit, "/contact-properties")
    topics, segments = await _listed(visit, "/topics"), await _listed(visit, "/segments")
    broadcasts = await _listed(visit, "/broadcasts")
    by_hand = {one["id"]: one["name"] for one in segments if "conditions" not in one}
    events = {name: name for name in await event_names(visit.db, OFFERED)}
    groups = {
        t("facts.contact"): {f"contact.{name}": t(f"facts.contact.{name}") for name in CONTACT_FIELDS},
        t("facts.properties"): {f"contact.properties.{one['key']}": one["key"] for one in properties},
        t("facts.topics"): {f"topics.{one['id']}": one["name"] for one in topics},
        t("facts.segments"): {f"segments.{segment_id}": name for segment_id, name in by_hand.items()},
        t("facts.engagement"): {f"engagement.{name}": t(f"facts.engagement.{name}") for name in ENGAGEMENTS},
        t("facts.events"): {f"events.{name}": name for name in events},
        t("facts.broadcasts"): {
            f"broadcasts.{one['id']}": str(one["name"] or one["id"])
            for one in broadcasts
            if one["status"] not in ("draft", "scheduled")
        },
    }
    return FactChoices(
        {heading: fields for heading, fields in groups.items() if fields},
        {one["key"]: one["type"] for one in properties},
        by_hand,
    )


async def _listed(visit: Visit, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await visit.get(path, shown=False, limit=OFFERED))["data"]
    return found
