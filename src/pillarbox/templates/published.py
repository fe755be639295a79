"""Published templates, for mail that is made of them (templates.md 8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.templates import queries
from pillarbox.templates.changes import named
from pillarbox.templates.queries import PublishedTemplate

MOST_OCTETS: Final = 25 * 1024 * 1024
"""Of the bodies of templates that one request uses."""


async def published(db: TeamDb, names: Collection[str]) -> Mapping[str, PublishedTemplate]:
    """Return those of the templates of these ids and aliases that the team has, by the name that was given.
    All are of one moment, so a request uses one version of each."""
    if not names:
        return {}
    wanted = {name: named(name) for name in names}
    ids = [one.id for one in wanted.values() if one.id is not None]
    aliases = [one.alias for one in wanted.values() if one.alias is not None]
    found = await queries.published(db, ids, aliases, MOST_OCTETS)
    by_id, by_alias = {one.id: one for one in found}, {one.alias: one for one in found}
    known = {
        name: by_alias.get(one.alias) if one.id is None else by_id.get(one.id) for name, one in wanted.items()
    }
    return {name: one for name, one in known.items() if one is not None}


__all__ = ["PublishedTemplate", "published"]
