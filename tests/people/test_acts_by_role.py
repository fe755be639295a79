"""One table says what a role may do with keys and programs; pages, API keys and programs keep to it.

Each act × role × way × whose thing it is, made from the table (TEN-03, OA-11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from kit.people import SESSION, Person, Visit, a_grant, visit
from kit.programs import a_member, program
from kit.world import Team, World, world
from pillarbox.api_keys import keys
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.people import accounts, sessions
from pillarbox.people.audit import OPERATOR
from pillarbox.people.membership import members
from pillarbox.people.membership.members import KeysOfMember, MemberChange, MemberChangeActor
from pillarbox.people.roles import ACT_RULES, TeamAct, TeamRole, may_do
from pillarbox.people.sessions import SessionOrigin

Place = tuple[str, Path]


@dataclass(frozen=True, slots=True)
class Thing:
    """A key and a program of somebody."""

    key_id: UUID
    grant_id: UUID
    program: str


@dataclass(frozen=True, slots=True)
class Way:
    """How an act is asked for on a page and by the API; None where that way has no such act."""

    page: Callable[[Visit, Thing], Awaitable[httpx.Response]] | None
    api: Callable[[Team, Thing], Awaitable[httpx.Response]] | None


WAYS = {
    TeamAct.SEE_KEYS: Way(lambda by, _: by.get("/team/keys"), lambda by, _: by.get("/api-keys")),
    TeamAct.MAKE_KEY: Way(
        lambda by, _: by.post("/team/keys", name="new", permission="full_access"),
        lambda by, _: by.post("/api-keys", {"name": "new"}),
    ),
    TeamAct.RENAME_KEY: Way(
        None, lambda by, it: by.call("PATCH", f"/api-keys/{it.key_id}", {"name": "other"})
    ),
    TeamAct.DELETE_KEY: Way(
        lambda by, it: by.post(f"/team/keys/{it.key_id}/delete"),
        lambda by, it: by.call("DELETE", f"/api-keys/{it.key_id}"),
    ),
    TeamAct.KEEP_KEY: Way(lambda by, it: by.post(f"/team/keys/{it.key_id}/keep"), None),
    TeamAct.SEE_PROGRAMS: Way(
        lambda by, _: by.get("/team/programs"), lambda by, _: by.get("/oauth/grants?limit=100")
    ),
    TeamAct.LET_PROGRAM_ACT: Way(None, None),
    TeamAct.REVOKE_PROGRAM: Way(
        lambda by, it: by.post(f"/team/programs/{it.grant_id}/revoke"),
        lambda by, it: by.call("DELETE", f"/oauth/grants/{it.grant_id}"),
    ),
}
"""Letting a program act is asked for by a browser alone: test_consent.py goes through the roles."""


@pytest.fixture(scope="module")
def place(databases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    url = databases.fresh()
    yield url, tmp_path_factory.mktemp("acts-by-role")
    databases.drop(url)


async def a_thing(team: Team, person_id: UUID) -> Thing:
    """A key and a program of this person."""
    made = await keys.create(team.db, Ids(team.world.clock), name="theirs", created_by=person_id)
    name = f"Program of the key {made.id}"
    return Thing(made.id, await a_grant(team, Person(person_id, ""), name), name)


async def browser_of(here: World, person_id: UUID) -> Visit:
    ids = here.app.need(Ids)
    async with transaction(here.pool) as conn:
        token = await sessions.begin(
            conn, ids.now(), ids.new(), person_id, ["password"], SessionOrigin(None, None)
        )
    assert token is not None
    found = visit(here)
    found.cookies[SESSION] = token
    found.csrf = sessions.form_token(token)
    return found


async def key_of(team: Team, person_id: UUID) -> Team:
    """The team through a full-access key that acts for the person."""
    made = await keys.create(team.db, Ids(team.world.clock), name="acting", created_by=person_id)
    return team.using(made.token)


def test_every_act_has_a_rule_and_a_way() -> None:
    assert ACT_RULES.keys() == WAYS.keys() == set(TeamAct)


@pytest.mark.parametrize("act", [act for act in TeamAct if act is not TeamAct.LET_PROGRAM_ACT])
async def test_pages_keys_and_programs_keep_to_the_table(place: Place, act: TeamAct) -> None:
    wrong = []
    async with world(*place, started=False) as here:
        team = await here.team()
        await a_member(team, TeamRole.OWNER)
        for role in TeamRole:
            for is_own in (True, False):
                person_id, other = await a_member(team, role), await a_member(team, TeamRole.OWNER)
                by_page = await browser_of(here, person_id)
                by_key = await key_of(team, person_id)
                by_program = (await program(team, person_id=person_id)).acting
                for name, by in (("page", by_page), ("key", by_key), ("program", by_program)):
                    ask: Any = WAYS[act].page if name == "page" else WAYS[act].api
                    if ask is None:
                        continue
                    thing = await a_thing(team, person_id if is_own else other)
                    answer = await ask(by, thing)
                    # Whoever may not have keys acts by none, not even to look.
                    is_allowed = may_do(role, act, is_own=is_own) and (
                        name == "page" or may_do(role, TeamAct.MAKE_KEY)
                    )
                    if act is TeamAct.SEE_PROGRAMS:
                        is_done = answer.status_code == 200 and thing.program in answer.text
                    else:
                        is_done = answer.status_code in (200, 201, 303)
                    if is_done != is_allowed or answer.status_code >= 500:
                        wrong.append((role.value, is_own, name, answer.status_code, answer.text[:200]))
    assert wrong == []


async def test_a_key_of_the_team_may_do_all(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        thing = await a_thing(team, await a_member(team, TeamRole.OWNER))
        assert str(thing.grant_id) in (await team.get("/oauth/grants")).text
        assert (await team.call("DELETE", f"/oauth/grants/{thing.grant_id}")).status_code == 200
        assert (await team.call("PATCH", f"/api-keys/{thing.key_id}", {"name": "x"})).status_code == 200
        assert (await team.call("DELETE", f"/api-keys/{thing.key_id}")).status_code == 200
        made = (await team.post("/api-keys", {"name": "of the team"})).json()
        assert (
            await here.pool.fetchval("SELECT created_by FROM api_keys WHERE id = $1", UUID(made["id"]))
            is None
        )


async def test_a_refusal_of_a_role_says_so_and_changes_nothing(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        thing = await a_thing(team, await a_member(team, TeamRole.OWNER))
        member = await key_of(team, await a_member(team, TeamRole.MEMBER))
        answer = await member.call("DELETE", f"/api-keys/{thing.key_id}")
        assert (answer.status_code, answer.json()["name"]) == (403, "invalid_permission")
        assert (await member.call("DELETE", f"/api-keys/{UUID(int=7)}")).status_code == 404
        assert await here.pool.fetchval("SELECT count(*) FROM api_keys WHERE id = $1", thing.key_id) == 1


async def set_role(team: Team, person_id: UUID, role: TeamRole) -> None:
    member = await members.member_of(team.db, person_id)
    assert member is not None
    actor = MemberChangeActor(OPERATOR, team.world.clock.now())
    assert await members.set_role(team.db, actor, member, role) is MemberChange.DONE


async def take_out(team: Team, person_id: UUID, made_keys: KeysOfMember = KeysOfMember.END) -> None:
    member = await members.member_of(team.db, person_id)
    assert member is not None
    actor = MemberChangeActor(OPERATOR, team.world.clock.now())
    assert await members.remove(team.db, actor, member, made_keys=made_keys) is MemberChange.DONE


async def disable(team: Team, person_id: UUID) -> None:
    async with transaction(team.world.pool) as conn:
        assert await accounts.disable(conn, team.world.clock.now(), person_id)


async def status_of(by: Team) -> tuple[int, str | None]:
    by.world.app.need(KeyCredentials).forget(by.id)
    answer = await by.get("/domains")
    return answer.status_code, answer.json().get("name")


WORKS = (200, None)
ENDED = (403, "restricted_api_key")


async def test_a_key_acts_with_the_role_of_its_maker_as_it_is_now(place: Place) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        await a_member(team, TeamRole.OWNER)
        person_id = await a_member(team, TeamRole.ADMIN)
        key = await key_of(team, person_id)
        child = team.using((await key.post("/api-keys", {"name": "child"})).json()["token"])
        for by in (key, child):
            assert await status_of(by) == WORKS
        await set_role(team, person_id, TeamRole.VIEWER)
        for by in (key, child):
            assert await status_of(by) == ENDED
        await set_role(team, person_id, TeamRole.MEMBER)
        for by in (key, child):
            assert await status_of(by) == WORKS
        await disable(team, person_id)
        for by in (key, child):
            assert await status_of(by) == ENDED
        assert await accounts.enable(here.pool, person_id)
        assert await status_of(key) == WORKS
        await take_out(team, person_id)
        for by in (key, child):
            assert await status_of(by) == ENDED


@pytest.mark.parametrize("end", ["revoked", "disabled", "taken out", "viewer"])
async def test_a_key_that_a_program_made_ends_with_it(place: Place, end: str) -> None:
    """For good: enabling the person, or another role, brings neither the grant nor its keys back."""
    async with world(*place, started=False) as here:
        team = await here.team()
        await a_member(team, TeamRole.OWNER)
        person_id = await a_member(team, TeamRole.MEMBER)
        quill = await program(team, person_id=person_id)
        made = (await quill.acting.post("/api-keys", {"name": "by program"})).json()
        key = team.using(made["token"])
        child = team.using((await key.post("/api-keys", {"name": "by its key"})).json()["token"])
        for by in (key, child):
            assert await status_of(by) == WORKS
        if end == "revoked":
            await quill.revoke()
        elif end == "disabled":
            await disable(team, person_id)
            await accounts.enable(here.pool, person_id)
        elif end == "viewer":
            await set_role(team, person_id, TeamRole.VIEWER)
            await set_role(team, person_id, TeamRole.MEMBER)
        else:
            await take_out(team, person_id)
        for by in (key, child):
            assert await status_of(by) == ENDED
        assert await keys.keep(TeamDb(here.pool, team.id), UUID(made["id"]))
        assert await status_of(key) == WORKS
        assert await status_of(child) == ENDED


@pytest.mark.parametrize("choice", KeysOfMember)
async def test_what_becomes_of_the_keys_of_a_member_who_is_taken_out(
    place: Place, choice: KeysOfMember
) -> None:
    async with world(*place, started=False) as here:
        team = await here.team()
        await a_member(team, TeamRole.OWNER)
        person_id = await a_member(team, TeamRole.MEMBER)
        key = await key_of(team, person_id)
        await take_out(team, person_id, choice)
        wanted = {
            KeysOfMember.END: ENDED,
            KeysOfMember.KEEP: WORKS,
            KeysOfMember.DELETE: (403, "invalid_api_key"),
        }
        assert await status_of(key) == wanted[choice]
