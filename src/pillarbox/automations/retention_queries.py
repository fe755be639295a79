"""SQL of what is removed with age."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from pillarbox.kernel.postgres.database import Source, TeamDb

# Across teams: the next one that has automations.
NEXT_TEAM: Final = """
    SELECT team_id FROM automations WHERE team_id > $1 ORDER BY team_id LIMIT 1
"""

REMOVE_RUNS: Final = """
    WITH old AS MATERIALIZED (
        SELECT id
          FROM automation_runs
         WHERE team_id = $1 AND completed_at IS NOT NULL AND completed_at < $2
         ORDER BY completed_at
         LIMIT $3
           FOR UPDATE SKIP LOCKED
    ), steps AS (
        DELETE FROM automation_steps s
         USING old
         WHERE s.team_id = $1 AND s.run_id = old.id
    )
    DELETE FROM automation_runs r
     USING old
     WHERE r.team_id = $1 AND r.id = old.id
"""

# No run starts on a version that is not the newest: an enabled automation keeps its graph.
REMOVE_VERSIONS: Final = """
    WITH old AS MATERIALIZED (
        SELECT v.automation_id, v.version
          FROM automation_versions v
          JOIN automations a ON a.team_id = $1 AND a.id = v.automation_id
         WHERE v.team_id = $1 AND v.version < a.version
    ), used AS MATERIALIZED (
        SELECT DISTINCT r.automation_id, r.version
          FROM (SELECT DISTINCT automation_id FROM old) AS o
          JOIN automation_runs r ON r.team_id = $1 AND r.automation_id = o.automation_id
    )
    DELETE FROM automation_versions v
     USING old
     WHERE v.team_id = $1 AND v.automation_id = old.automation_id AND v.version = old.version
       AND NOT EXISTS (SELECT FROM used u
                        WHERE u.automation_id = old.automation_id AND u.version = old.version)
"""


async def next_team(source: Source, after: UUID) -> UUID | None:
    found: UUID | None = await source.fetchval(NEXT_TEAM, after)
    return found


async def remove_runs(db: TeamDb, before: datetime, limit: int) -> int:
    """Remove runs that ended before then, with their steps; returns how many."""
    return await db.run(REMOVE_RUNS, before, limit)


async def remove_versions(db: TeamDb) -> int:
    """Remove versions that are not the newest and have no runs; returns how many."""
    return await db.run(REMOVE_VERSIONS)
