"""The visitor of a page: a person with a full session, and their current team."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from pillarbox.kernel.postgres.database import Source
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.people import session_queries, sessions
from pillarbox.people.roles import Right, TeamAct, TeamRole, may, may_do
from pillarbox.people.session_queries import LookedAtTeam
from pillarbox.people.sessions import CONFIRMED_FOR, SessionStage


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who asks for a page with a full session. `team_id` is the team that is looked at: the one that
    was chosen, else the first one that the person belongs to. `ways` are how the person proved who it is.
    `is_operator`: the person may see and change the whole installation."""

    person_id: UUID
    email: str
    name: str | None
    session_id: UUID
    confirmed_at: datetime
    ways: tuple[str, ...]
    team_id: UUID | None
    team_name: str | None
    role: TeamRole | None
    team: LookedAtTeam | None = field(repr=False)
    form_token: str = field(repr=False)
    token: str = field(repr=False)
    is_operator: bool = False

    @property
    def shown_name(self) -> str:
        return self.name or self.email

    def may(self, right: Right) -> bool:
        """Return whether the person has the right in the team that they view."""
        return self.role is not None and may(self.role, right)

    def may_do(self, act: TeamAct, *, is_own: bool = True) -> bool:
        """Return whether the person may do so in the team that they view."""
        return may_do(self.role, act, is_own=is_own)

    @property
    def is_team_blocked(self) -> bool:
        """Whether the operator has blocked the team: its members look, and take access away."""
        return self.team is not None and self.team.status != "active"

    def caller(self) -> Caller:
        """Return the credential by which pages call the API for the person: full access to the team."""
        if self.team is None:
            raise RuntimeError("a person without a team asked for a caller")
        return Caller(
            team_id=self.team.team_id,
            team_number=self.team.number,
            key_id=None,
            permission=Permission.FULL,
            person_id=self.person_id,
            rate_limit=self.team.rate_limit,
            daily_quota=self.team.daily_quota,
            monthly_quota=self.team.monthly_quota,
            log_days=self.team.log_days,
            metrics_days=self.team.metrics_days,
        )

    def is_confirmed(self, instant: datetime) -> bool:
        """Return whether the person has proved lately who they are."""
        return instant - self.confirmed_at <= CONFIRMED_FOR


async def visitor_of(
    source: Source, now: datetime, token: str | None, *, is_used: bool = True
) -> Visitor | None:
    """Return the person behind a cookie; None without a full session."""
    found = await sessions.find(source, now, token, is_used=is_used)
    if found is None or token is None or found.stage != SessionStage.FULL.value:
        return None
    team = await session_queries.looked_at(source, found.person_id, found.team_id)
    return Visitor(
        person_id=found.person_id,
        email=found.email,
        name=found.name,
        session_id=found.id,
        confirmed_at=found.confirmed_at,
        ways=tuple(found.ways),
        team_id=team.team_id if team else None,
        team_name=team.name if team else None,
        role=TeamRole(team.role) if team else None,
        team=team,
        form_token=sessions.form_token(token),
        token=token,
        is_operator=found.is_operator,
    )
