"""What a person let programs do ends for good with the right to let them (oauth.md 8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kit.manual_world import clock_of
from kit.oauth_flow import Allowed, allowed, refresh
from kit.people import a_person
from kit.world import World
from pillarbox.kernel.postgres.database import transaction
from pillarbox.people import accounts
from pillarbox.people.audit import OPERATOR
from pillarbox.people.membership import members
from pillarbox.people.membership.members import MemberChange, MemberChangeActor
from pillarbox.people.roles import TeamRole

End = Callable[[World, Allowed], Awaitable[None]]

MEMBER = "SELECT id FROM team_members WHERE team_id = $1 AND person_id = $2"


async def disabled(pillarbox: World, program: Allowed) -> None:
    now = clock_of(pillarbox).now()
    async with transaction(pillarbox.pool) as conn:
        assert await accounts.disable(conn, now, program.person.id)


async def made_a_viewer(pillarbox: World, program: Allowed) -> None:
    member = await program.team.world.pool.fetchval(MEMBER, program.team.id, program.person.id)
    actor = MemberChangeActor(OPERATOR, clock_of(pillarbox).now())
    assert await members.set_role(program.team.db, actor, member, TeamRole.VIEWER) is MemberChange.DONE


@pytest.mark.parametrize("end", [disabled, made_a_viewer])
async def test_tokens_end_with_the_right_of_who_let_the_program_in(end: End, pillarbox: World) -> None:
    program = await allowed(pillarbox)
    await a_person(program.team, "second-owner@people.example", TeamRole.OWNER)
    assert (await program.acting.get("/domains")).status_code == 200
    await end(pillarbox, program)
    clock_of(pillarbox).advance(2)
    assert (await program.acting.get("/domains")).status_code == 401
    refused = await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    if end is disabled:
        assert await accounts.enable(pillarbox.pool, program.person.id)
        clock_of(pillarbox).advance(2)
        again = await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])
        assert again.status_code == 400, "a grant lives again after enabling"
