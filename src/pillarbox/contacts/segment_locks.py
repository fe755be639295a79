"""Who writes members of segments, and who deletes segments, wait for each other here (docs/decisions/0060).

Each is a statement of its own: one that waited would still see what was there before.
"""

from __future__ import annotations

from pillarbox.kernel.postgres.database import TeamDb

HOLD = """
    SELECT pg_advisory_xact_lock_shared(hashtextextended('segment members of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""

HOLD_ALONE = """
    SELECT pg_advisory_xact_lock(hashtextextended('segment members of ' || team_id, 0))
      FROM (SELECT $1::uuid AS team_id) AS held
"""


async def hold(db: TeamDb) -> None:
    """Until the transaction ends no segment of the team is deleted."""
    await db.run(HOLD)


async def hold_alone(db: TeamDb) -> None:
    """Wait until nobody writes members of the team's segments; nobody begins until the transaction ends."""
    await db.run(HOLD_ALONE)
