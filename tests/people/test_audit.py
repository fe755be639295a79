"""The log of acts (SEC-07): who did what, when, from where; nobody changes it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.kernel.postgres.database import TeamDb, open_pool
from pillarbox.kernel.wire.paging import Page
from pillarbox.oauth import grants
from pillarbox.oauth.clients.clients import NONE, Client
from pillarbox.oauth.grant_queries import GrantRef
from pillarbox.people.audit import NO_TEAM, OPERATOR, Act, Actor, plain, record
from pillarbox.people.audit import queries as audit_queries
from pillarbox.people.audit.retention import AuditRetention
from pillarbox.teams.bootstrap import create_team

PROGRAM = Client(
    id="x",
    name="Quill",
    redirect_uris=("http://127.0.0.1/cb",),
    grant_types=("authorization_code",),
    auth_method=NONE,
    scopes=("full_access",),
)
IDS = Ids(SystemClock())


@asynccontextmanager
async def connected(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    made = await asyncpg.connect(database_url)
    try:
        yield made
    finally:
        await made.close()


async def entries(conn: asyncpg.Connection, team_id: UUID) -> list[audit_queries.AuditEntry]:
    return await audit_queries.page(TeamDb(conn, team_id), Page(100))


async def test_an_entry_says_who_did_what_when_and_from_where(database_url: str) -> None:
    """SEC-07."""
    async with connected(database_url) as conn:
        team = (await create_team(conn, name="Harbor", email="ada@harbor.example", ids=IDS)).id
        at, person = IDS.stamp()[::-1]
        actor = Actor(person, name="ada@harbor.example", address="192.0.2.7", user_agent="Browser/1")
        await record(
            conn,
            at,
            Act.KEY_CREATED,
            team_id=team,
            actor=actor,
            target="printer",
            details={"permission": "all"},
        )
        [entry] = await entries(conn, team)
        assert (entry.what, entry.at, entry.person_id) == ("key.created", at, person)
        assert (entry.actor, entry.target) == ("ada@harbor.example", "printer")
        assert (entry.address, entry.user_agent) == ("192.0.2.7", "Browser/1")
        assert json.loads(entry.details or "") == {"permission": "all"}
        assert first_id(at) <= entry.id


async def test_a_key_is_named_as_it_was_called_then(database_url: str) -> None:
    async with connected(database_url) as conn:
        team = (await create_team(conn, name="Harbor", email="ada@harbor.example", ids=IDS)).id
        other = (await create_team(conn, name="Quay", email="ada@quay.example", ids=IDS)).id
        key = await conn.fetchval("SELECT id FROM api_keys WHERE team_id = $1", team)
        at = IDS.now()
        for owner in (team, other):
            await record(conn, at, Act.DOMAIN_DELETED, team_id=owner, actor=Actor(key_id=key))
        await conn.execute("DELETE FROM api_keys WHERE team_id = $1", team)
        [entry] = await entries(conn, team)
        assert (entry.actor, entry.key_id) == ("First key", key)
        [foreign] = await entries(conn, other)
        assert foreign.actor is None


async def test_a_program_is_named_as_it_was_known_then(database_url: str) -> None:
    async with connected(database_url) as conn:
        team = (await create_team(conn, name="Harbor", email="ada@harbor.example", ids=IDS)).id
        grant, at = IDS.stamp()
        await grants.add(
            conn,
            at,
            GrantRef(team, grant),
            client_id="x",
            client=PROGRAM.snapshot(),
            person_id=IDS.new(),
            scopes=["full_access"],
        )
        await record(conn, at, Act.KEY_CREATED, team_id=team, actor=Actor(grant_id=grant))
        [entry] = await entries(conn, team)
        assert (entry.actor, entry.grant_id) == ("Quill", grant)


async def test_the_newest_entry_is_the_first(database_url: str) -> None:
    async with connected(database_url) as conn:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for number, act in enumerate((Act.LOGIN_FAILED, Act.LOGIN_SUCCEEDED, Act.LOGGED_OUT)):
            await record(conn, start + timedelta(seconds=number), act, team_id=None, actor=OPERATOR)
        found = await entries(conn, NO_TEAM)
        assert [entry.what for entry in found] == ["login.ended", "login.succeeded", "login.failed"]
        older = await audit_queries.page(TeamDb(conn, NO_TEAM), Page(1, after=found[0].id))
        assert [entry.what for entry in older] == ["login.succeeded", "login.failed"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_entries SET actor = 'somebody else'",
        "UPDATE audit_entries SET at = at - interval '31 days'",
        "DELETE FROM audit_entries",
    ],
)
async def test_the_database_refuses_changes(database_url: str, sql: str) -> None:
    """SEC-07."""
    async with connected(database_url) as conn:
        await record(conn, IDS.now(), Act.LOGIN_SUCCEEDED, team_id=None, actor=OPERATOR)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(sql)
        assert [entry.what for entry in await entries(conn, NO_TEAM)] == ["login.succeeded"]


async def test_only_what_is_old_is_removed(database_url: str) -> None:
    """Not even a clock that is far ahead removes what is younger than 30 days."""
    async with connected(database_url) as conn:
        now = IDS.now()
        ages = (0, 29, 31, 400)
        for days in ages:
            await record(
                conn,
                now - timedelta(days=days),
                Act.LOGIN_SUCCEEDED,
                team_id=None,
                actor=OPERATOR,
                target=str(days),
            )

        async def left() -> list[Any]:
            return [entry.target for entry in await entries(conn, NO_TEAM)]

        assert await audit_queries.remove_old(conn, now - timedelta(days=365), 100) == 1
        assert await left() == ["0", "29", "31"]
        assert await audit_queries.remove_old(conn, now + timedelta(days=365), 100) == 1
        assert await left() == ["0", "29"]


async def test_entries_and_invitations_go_when_they_are_old(database_url: str) -> None:
    """An invitation that can still be accepted stays, and an entry for as many days as the setting says."""
    async with connected(database_url) as conn:
        team = (await create_team(conn, name="Harbor", email="ada@harbor.example", ids=IDS)).id
        now = IDS.now()
        for days in (1, 89, 91):
            at = now - timedelta(days=days)
            await record(conn, at, Act.LOGIN_SUCCEEDED, team_id=team, actor=OPERATOR, target=str(days))
            await conn.execute(
                "INSERT INTO team_invitations (team_id, id, email, role, created_at, expires_at) "
                "VALUES ($1, $2, 'x@quay.example', 'viewer', $3, $4)",
                team,
                IDS.new(),
                at,
                at + timedelta(days=7),
            )
        pool = await open_pool(database_url, limit=1)
        try:
            done = await AuditRetention(pool, SystemClock(), 90).collect()
        finally:
            await pool.close()
        assert done == "1 audit entries, 2 invitations"
        assert [entry.target for entry in await entries(conn, team)] == ["1", "89"]


async def test_what_a_client_sends_is_kept_as_plain_text(database_url: str) -> None:
    """A header is shown in terminals and on pages: no control characters, no endless text."""
    async with connected(database_url) as conn:
        hostile = "\x1b[2J\u202eevil\x00" + "x" * 5000
        await record(
            conn, IDS.now(), Act.LOGIN_FAILED, team_id=None, actor=Actor(user_agent=hostile), target="a\nb"
        )
        [entry] = await entries(conn, NO_TEAM)
        assert entry.user_agent is not None
        assert len(entry.user_agent) == 300
        assert entry.user_agent.startswith(" [2J evil x")
        assert entry.target == "a b"
        assert plain(None) is None


def test_acts_are_named_by_what_was_acted_on() -> None:
    names = [act.value for act in Act]
    assert len(names) == len(set(names)) == len(Act)
    assert all(name.count(".") == 1 for name in names)


def test_a_person_is_named_by_their_address() -> None:
    """Somebody who calls themselves "operator" does not look like the operator."""
    with pytest.raises(ValueError, match="address"):
        Actor(person_id=UUID(int=1), name="operator")
    assert Actor(person_id=UUID(int=1), name="ada@harbor.example").name == "ada@harbor.example"
    assert OPERATOR.name == "operator"
