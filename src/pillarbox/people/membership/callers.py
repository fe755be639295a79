"""Callers of the API, as members of the team or as the team itself: their role is asked for at each act."""

from __future__ import annotations

from pillarbox.kernel.http.request import Request
from pillarbox.kernel.wire.problems import NotFound, Problem
from pillarbox.people.audit import caller_of
from pillarbox.people.membership.members import MemberChange, MemberChangeActor


class RoleMayNot(Problem):
    """The credential acts for somebody whose role does not allow it, as it is now."""

    status, name = 403, "invalid_permission"

    def __init__(self) -> None:
        super().__init__("The role of the person for whom this credential acts does not allow this.")


def acting_caller(request: Request) -> MemberChangeActor:
    """Return who acts by this request, and when."""
    return MemberChangeActor(caller_of(request), request.at)


def refuse_unless_done(change: MemberChange, resource: str) -> None:
    """Raise what the API answers where nothing was changed."""
    if change is MemberChange.GONE:
        raise NotFound(resource)
    if change is not MemberChange.DONE:
        raise RoleMayNot
