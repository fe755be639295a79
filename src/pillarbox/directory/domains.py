"""The global index of domain names: many teams may hold a name, at most one owns it."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from pillarbox.kernel.db import TeamDb


async def add(db: TeamDb, name: str, domain_id: UUID) -> None:
    """Note that the team holds the name."""
    await db.run(
        "INSERT INTO directory_domains (name, team_id, domain_id) VALUES ($2, $1, $3)", name, domain_id
    )


async def owned_elsewhere(db: TeamDb, name: str) -> bool:
    """True when another team has shown that the name is its own."""
    found: bool = await db.value(
        "SELECT EXISTS (SELECT FROM directory_domains WHERE name = $2 AND owned AND team_id <> $1)", name
    )
    return found


async def own(db: TeamDb, name: str) -> bool:
    """Make the team the owner of a name that it holds; False when another team is."""
    try:
        async with db.transaction() as inner:
            await inner.run(
                "UPDATE directory_domains SET owned = true WHERE name = $2 AND team_id = $1 AND NOT owned",
                name,
            )
    except asyncpg.UniqueViolationError as clash:
        if clash.constraint_name != "directory_domains_owner":
            raise
        return False
    return True
