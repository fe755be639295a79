"""What a member of a team may do there. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Final


class TeamRole(Enum):
    """From the one that may most to the one that may least."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


class Right(Enum):
    """What pages ask for."""

    VIEW = "see the team, its members and its API keys"
    USE = "make API keys, and let programs act for the team"
    MANAGE = "invite, change and remove people, revoke what others made, read the audit log"
    OWN = "make and remove owners and admins, rename the team"


RIGHTS: Final = {
    TeamRole.OWNER: frozenset(Right),
    TeamRole.ADMIN: frozenset({Right.VIEW, Right.USE, Right.MANAGE}),
    TeamRole.MEMBER: frozenset({Right.VIEW, Right.USE}),
    TeamRole.VIEWER: frozenset({Right.VIEW}),
}


def may(role: TeamRole, right: Right) -> bool:
    """Whether members with this role have the right."""
    return right in RIGHTS[role]


def may_manage(acting: TeamRole, other: TeamRole) -> bool:
    """Whether the one may invite, change or remove members with the other role: owners all of them, admins
    those below them."""
    if acting is TeamRole.OWNER:
        return True
    return acting is TeamRole.ADMIN and other in (TeamRole.MEMBER, TeamRole.VIEWER)
