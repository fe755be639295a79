"""The team that people join by the domain of their address. It is named or the only one, never guessed."""

from __future__ import annotations

from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.teams import bootstrap


async def joined_team(source: Source, policy: OpenIdPolicy) -> UUID | None:
    """Return the team that the setting names or, without one, the only team besides the demo's; None where
    there is none, there are several, or it is disabled."""
    teams = await bootstrap.list_teams(source)
    if policy.team is None:
        # Disabled ones count: the team of somebody else must not become the only one.
        found = [team for team in teams if not team.is_demo]
    else:
        found = [team for team in teams if str(team.id) == policy.team]
    return found[0].id if len(found) == 1 and found[0].status != "disabled" else None
