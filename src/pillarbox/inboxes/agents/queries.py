"""SQL of agent settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

GET: Final = """
    SELECT id, instructions, tone, actions FROM inbox_agents WHERE team_id = $1 AND inbox_id = $2
"""

PUT: Final = """
    INSERT INTO inbox_agents (team_id, inbox_id, id, instructions, tone, actions, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (team_id, inbox_id) DO UPDATE
       SET instructions = excluded.instructions, tone = excluded.tone, actions = excluded.actions,
           updated_at = excluded.updated_at
"""


class Agent(NamedTuple):
    """The settings of an inbox for an agent."""

    id: UUID
    instructions: str | None = None
    tone: str | None = None
    actions: Sequence[str] = ()


async def get(db: TeamDb, inbox_id: UUID) -> Agent | None:
    return await db.one(Agent, GET, inbox_id)


async def put(db: TeamDb, inbox_id: UUID, agent: Agent, now: datetime) -> None:
    await db.run(PUT, inbox_id, *agent, now)
