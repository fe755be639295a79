"""What members may do by their roles."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pillarbox.people.roles import RIGHTS, Right, TeamRole, may, may_manage


def test_each_role_may_all_that_the_next_one_may() -> None:
    assert RIGHTS.keys() == set(TeamRole)
    assert all(RIGHTS[more] > RIGHTS[less] for more, less in pairwise(TeamRole))


@pytest.mark.parametrize(
    ("acting", "managed"),
    [
        (TeamRole.OWNER, set(TeamRole)),
        (TeamRole.ADMIN, {TeamRole.MEMBER, TeamRole.VIEWER}),
        (TeamRole.MEMBER, set()),
        (TeamRole.VIEWER, set()),
    ],
)
def test_whom_somebody_may_manage(acting: TeamRole, managed: set[TeamRole]) -> None:
    assert {other for other in TeamRole if may_manage(acting, other)} == managed
    assert may(acting, Right.MANAGE) == bool(managed)
