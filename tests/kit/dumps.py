"""What is stored, as plain values: to see that a request changed nothing, or exactly one thing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg

TOUCHED_BY_USE = {"last_used_at"}
"""Every authenticated request moves it, whatever else it does."""


NO_EFFECTS = {"logs"}
"""Every authenticated request leaves a row there, also one that is refused."""


async def tenant_tables(pool: asyncpg.Pool) -> list[str]:
    """Return every table that has rows of a team and tells of effects."""
    rows = await pool.fetch(
        """
        SELECT table_name FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name = 'team_id' ORDER BY table_name
        """
    )
    return [row["table_name"] for row in rows if row["table_name"] not in NO_EFFECTS]


async def counts(pool: asyncpg.Pool) -> dict[str, int]:
    """Return how many rows each table has."""
    return {name: await pool.fetchval(f"SELECT count(*) FROM {name}") for name in await tenant_tables(pool)}


async def rows_of(pool: asyncpg.Pool, team_id: UUID) -> dict[str, list[str]]:
    """Return every row of a team, table by table, in an order of its own."""
    return {
        name: sorted(
            _shown(row) for row in await pool.fetch(f"SELECT * FROM {name} WHERE team_id = $1", team_id)
        )
        for name in await tenant_tables(pool)
    }


def _shown(row: Any) -> str:
    return repr({name: value for name, value in row.items() if name not in TOUCHED_BY_USE})
