"""Making teams: the first one by itself, the others by the operator."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from pillarbox.api_keys import keys
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import Source, TeamDb, transaction
from pillarbox.kernel.settings.kinds import API_KEY
from pillarbox.teams import queries
from pillarbox.teams.team import Team

FIRST_START_LOCK = 0x70696C6C6172
FIRST_TEAM = "My team"
FIRST_KEY = "First key"

_EMAIL = re.compile(r"[^\s@]+@[^\s@]+", re.ASCII)


class TeamStatus(Enum):
    ACTIVE = "active"
    BLOCKED = "blocked"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class MadeTeam:
    """A new team with its first key; the token is nowhere else."""

    id: UUID
    token: str


async def first_team(
    conn: Source, *, email: str, ids: Ids, initial_key: str | None = None, name: str = FIRST_TEAM
) -> str | None:
    """Make the first team with a member and a full-access key, and return the key's token.

    None when there is a team already, however many processes start at once. ValueError when the given
    key does not have the form of one.
    """
    if initial_key is not None and not API_KEY.fullmatch(initial_key):
        raise ValueError("An API key is `re_` and at least 16 letters, digits or underscores.")
    async with transaction(conn) as inner:
        await queries.lock_first_start(inner, FIRST_START_LOCK)
        if await queries.exists_any(inner):
            return None
        made = await create_team(inner, name=name, email=email, ids=ids, token=initial_key)
    return made.token


async def create_team(
    source: Source, *, name: str, email: str, ids: Ids, token: str | None = None
) -> MadeTeam:
    """Create a team with one member and one full-access key; ValueError for an invalid name or address."""
    if not name.strip() or not _EMAIL.fullmatch(email):
        raise ValueError("A team needs a name and the email address of its member.")
    stamp = ids.stamp()
    async with transaction(source) as conn:
        db = TeamDb(conn, stamp.id)
        await queries.insert(db, name, email, stamp.at)
        member = ids.stamp()
        await queries.insert_member(db, member.id, email, member.at)
        key = await keys.create(db, ids, name=FIRST_KEY, token=token)
    return MadeTeam(stamp.id, key.token)


async def operators_team(source: Source) -> UUID | None:
    """Return the team that gets mail for the operator: the oldest, if there is any."""
    return await queries.first(source)


async def list_teams(source: Source) -> Sequence[Team]:
    """Return all teams, the oldest first."""
    return await queries.every(source)


async def set_status(source: Source, team_id: UUID, status: TeamStatus) -> bool:
    """Block, disable or reactivate a team; False when there is none of that id."""
    return await queries.set_status(TeamDb(source, team_id), status.value)


async def set_limits(source: Source, team_id: UUID, limits: Mapping[str, int | None]) -> bool:
    """Give a team limits and retentions of its own, by the names of `Team`: a quota that is None is none, all
    else that is None is the installation's. False when there is no such team."""
    return await queries.set_limits(TeamDb(source, team_id), json.dumps(dict(limits)))
