"""What members may do by their roles."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pillarbox.people.roles import RIGHTS, Right, Role, may, may_manage


def test_each_role_may_all_that_the_next_one_may() -> None:
    assert RIGHTS.keys() == set(Role)
    assert all(RIGHTS[more] > RIGHTS[less] for more, less in pairwise(Role))


@pytest.mark.parametrize(
    ("acting", "managed"),
    [
        (Role.OWNER, set(Role)),
        (Role.ADMIN, {Role.MEMBER, Role.VIEWER}),
        (Role.MEMBER, set()),
        (Role.VIEWER, set()),
    ],
)
def test_whom_somebody_may_manage(acting: Role, managed: set[Role]) -> None:
    assert {other for other in Role if may_manage(acting, other)} == managed
    assert may(acting, Right.MANAGE) == bool(managed)
