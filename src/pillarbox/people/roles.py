"""The rights of the members of a team: on pages, by API keys that act for them, and by programs.

Pure, and the only place where it is said.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class TeamRole(Enum):
    """From the one that may most to the one that may least."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


class Right(Enum):
    """A right that pages ask for."""

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


class TeamAct(Enum):
    """An act with keys and programs of a team, on pages and by the API."""

    SEE_KEYS = "see the API keys"
    MAKE_KEY = "make an API key"
    RENAME_KEY = "rename an API key"
    DELETE_KEY = "delete an API key"
    KEEP_KEY = "make an API key the team's own"
    SEE_PROGRAMS = "see the programs that may act"
    LET_PROGRAM_ACT = "let a program act"
    REVOKE_PROGRAM = "shut a program out"


class ActRule(NamedTuple):
    """The right that an act needs on what is one's own, and on what others have made."""

    own: Right
    others: Right


ACT_RULES: Final = {
    TeamAct.SEE_KEYS: ActRule(Right.VIEW, Right.VIEW),
    TeamAct.MAKE_KEY: ActRule(Right.USE, Right.USE),
    TeamAct.RENAME_KEY: ActRule(Right.USE, Right.MANAGE),
    TeamAct.DELETE_KEY: ActRule(Right.USE, Right.MANAGE),
    TeamAct.KEEP_KEY: ActRule(Right.MANAGE, Right.MANAGE),
    TeamAct.SEE_PROGRAMS: ActRule(Right.VIEW, Right.MANAGE),
    TeamAct.LET_PROGRAM_ACT: ActRule(Right.USE, Right.USE),
    TeamAct.REVOKE_PROGRAM: ActRule(Right.USE, Right.MANAGE),
}


def may(role: TeamRole, right: Right) -> bool:
    """Return whether members with this role have the right."""
    return right in RIGHTS[role]


def may_do(role: TeamRole | None, act: TeamAct, *, is_own: bool = True) -> bool:
    """Return whether members with this role may do so with what is their own, or with what others have
    made."""
    rule = ACT_RULES[act]
    return role is not None and may(role, rule.own if is_own else rule.others)


ACTING_ROLES: Final = tuple(role.value for role in TeamRole if may(role, Right.USE))
"""Members with these roles have keys and programs that act for them."""


def may_manage(acting: TeamRole, other: TeamRole) -> bool:
    """Return whether members with the one role may invite, change or remove members with the other: owners
    all of them, admins those below them."""
    if acting is TeamRole.OWNER:
        return True
    return acting is TeamRole.ADMIN and other in (TeamRole.MEMBER, TeamRole.VIEWER)
