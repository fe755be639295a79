"""Whether what a condition names is there: a condition that is stored names nothing that is not."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from pillarbox.contact_properties import definitions
from pillarbox.contacts.conditions import reference_queries
from pillarbox.contacts.conditions.language import Condition, comparisons
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.wire.problems import InvalidField

NAMES: Final = {"topics": "topic", "segments": "segment", "broadcasts": "broadcast"}


async def refuse_unknown(db: TeamDb, condition: Condition, path: str) -> None:
    """Raise a 422 for a property, topic, segment or broadcast that the team has not, and for a segment that
    has conditions itself."""
    fields = list(dict.fromkeys([one.field for one in comparisons(condition)]))
    keys = [one.property_key for one in fields if one.property_key is not None]
    known = {one.key for one in await definitions.named(db, keys)} if keys else set[str]()
    ids = [UUID(one.name) for one in fields if one.source in NAMES]
    present = await reference_queries.present(db, ids) if ids else {}
    for field in fields:
        if field.property_key is not None and field.property_key not in known:
            raise InvalidField(path, f"There is no property `{field.property_key}`.")
        if field.source not in NAMES:
            continue
        kind = NAMES[field.source]
        found = present.get((kind, UUID(field.name)))
        if found is None:
            raise InvalidField(path, f"There is no {kind} `{field.name}`.")
        if found:
            raise InvalidField(path, f"The segment `{field.name}` is defined by conditions itself.")
