"""The common part of pages about a team: the current team, and who acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.texts import t
from pillarbox.kernel.http.request import Html, Reply, Request
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.people.audit import visitor_actor
from pillarbox.people.membership.members import MemberChange, MemberChangeActor
from pillarbox.people.roles import TeamRole, may_manage
from pillarbox.people.visitors import Visitor

ROLES: Final = {
    TeamRole.OWNER: "role.owner",
    TeamRole.ADMIN: "role.admin",
    TeamRole.MEMBER: "role.member",
    TeamRole.VIEWER: "role.viewer",
}

REFUSED: Final = {
    MemberChange.GONE: (404, "team.gone"),
    MemberChange.NOT_ALLOWED: (403, "team.not_allowed"),
    MemberChange.LAST_OWNER: (409, "team.last_owner"),
}
"""The status and the key of the sentence for each change that was refused."""


def team_db(request: Request, visitor: Visitor) -> TeamDb:
    """Return the database of the team that the visitor views; pages that ask for a right have one."""
    if visitor.team_id is None:
        raise RuntimeError("a page without a team asked for its database")
    return TeamDb(request.use(asyncpg.Pool), visitor.team_id)


def by(request: Request, visitor: Visitor) -> MemberChangeActor:
    """Return who acts now."""
    return MemberChangeActor(visitor_actor(request, visitor), request.at)


async def draw_team(
    template: str,
    request: Request,
    visitor: Visitor,
    here: str,
    *,
    title: str,
    status: int = 200,
    problem: str | None = None,
    notice: str | None = None,
    **values: Any,
) -> Reply[Html]:
    """Return a page about the team. `title`, `problem` and `notice` are keys of texts; `here` is the screen
    that is marked in the navigation."""
    return await Visit(request, visitor, here, title).draw(
        template,
        status=status,
        problem=t(problem) if problem else None,
        notice=t(notice) if notice else None,
        here=here,
        role_texts={role.value: t(key) for role, key in ROLES.items()},
        **values,
    )


def done_text(request: Request, texts: Mapping[str, str]) -> str | None:
    """Return the key of the text to show after a form was sent, as the address of the page has it."""
    return texts.get(request.query.last("done") or "")


def role_of(text: str) -> TeamRole | None:
    """Return the role that a form names."""
    return next((role for role in TeamRole if role.value == text), None)


def manageable(role: TeamRole | None) -> list[str]:
    """Return the roles whose members a person with this role may invite, change and remove."""
    return [other.value for other in TeamRole if role is not None and may_manage(role, other)]
