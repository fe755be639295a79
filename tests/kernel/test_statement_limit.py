"""A statement that takes too long is ended by the database, and its connection is as it was."""

from __future__ import annotations

from uuid import UUID

import pytest

from pillarbox.kernel.postgres.database import StatementLimitError, TeamDb, open_pool

TEAM = UUID(int=1)
SLEEP = "SELECT pg_sleep(5) WHERE $1::uuid IS NOT NULL"


async def test_a_statement_that_takes_too_long_costs_no_connection(database_url: str) -> None:
    pool = await open_pool(database_url, limit=1)
    try:
        backend = await pool.fetchval("SELECT pg_backend_pid()")
        db = TeamDb(pool, TEAM)
        with pytest.raises(StatementLimitError):
            async with db.statement_limit(0.05) as limited:
                await limited.value(SLEEP)
        assert await pool.fetchval("SELECT pg_backend_pid()") == backend
        assert await pool.fetchval("SHOW statement_timeout") == "0"
        async with db.statement_limit(5) as limited:
            assert await limited.value("SELECT $1::uuid") == TEAM
            with pytest.raises(RuntimeError):
                async with limited.statement_limit(5):
                    pass
        assert await pool.fetchval("SHOW statement_timeout") == "0"
    finally:
        await pool.close()
