"""Parts of several screens of the installation: teams by id, and the command that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from uuid import UUID

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.kernel.wire.uuids import well_formed
from pillarbox.teams import bootstrap
from pillarbox.teams.team import Team


async def all_teams(visit: Visit) -> Sequence[Team]:
    """Return every team of the installation, the oldest first."""
    return await bootstrap.list_teams(visit.pool)


def names_of(teams: Sequence[Team]) -> Mapping[UUID, str]:
    """Return the names of the teams by their ids."""
    return {team.id: team.name for team in teams}


def team_of(teams: Sequence[Team], text: str | None) -> Team | None:
    """Return the team of this id; None where there is none."""
    if not text or not well_formed(text):
        return None
    return next((team for team in teams if team.id == UUID(text)), None)


def shell(*words: str, **options: str | None) -> str:
    """Return a command line of `pillarbox`; options that are None are left out."""
    given = [f"--{name} {shlex.quote(value)}" for name, value in options.items() if value is not None]
    return " ".join(["pillarbox", *words, *given])
