"""API keys (api-keys.md section 7)."""

from __future__ import annotations

import asyncio
import re
from uuid import UUID, uuid4

import pytest

from kit.client import error, http_server, sending_key
from pillarbox.api_keys import keys
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.teams.bootstrap import create_team, first_team, list_teams

TOKEN = re.compile(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}")
STYLE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00")


async def test_a_created_key_works_at_once_and_is_stored_nowhere(database_url: str) -> None:
    """SEC-01."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answers = [await client.post("/api-keys", json={"name": "printer"}) for _ in range(3)]
            tokens = {answer.json()["token"] for answer in answers}
            assert [answer.status_code for answer in answers] == [201] * 3
            assert list(answers[0].json()) == ["id", "token"]
            assert len(tokens) == 3
            for token in tokens:
                assert TOKEN.fullmatch(token)
                async with api.client(token) as fresh:
                    assert (await fresh.get("/domains")).status_code == 200
        tables = ("api_keys", "directory_keys", "teams", "team_members")
        rows = [str(await api.pool.fetch(f"SELECT * FROM {table}")) for table in tables]
        dump = "".join(rows)
        for token in tokens:
            assert token not in dump
            assert token[12:] not in dump
            assert token[:11] in dump


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        ({}, "missing_required_field", "Missing `name` field."),
        ({"name": None}, "missing_required_field", "Missing `name` field."),
        ({"name": "x" * 51}, "validation_error", "Invalid `name` field. Use at most 50 characters."),
        ({"name": "🔑" * 51}, "validation_error", "Invalid `name` field. Use at most 50 characters."),
        ({"name": 7}, "validation_error", "Invalid `name` field. It must be a string."),
        ({"name": ["x"]}, "validation_error", "Invalid `name` field. It must be a string."),
        (
            {"name": "x", "permission": "all"},
            "invalid_access",
            "Invalid `permission` field. Use `full_access` or `sending_access`.",
        ),
        (
            {"name": "x", "permission": 1},
            "invalid_access",
            "Invalid `permission` field. Use `full_access` or `sending_access`.",
        ),
        (
            {"name": "x", "permission": "sending_access", "domain_id": "x"},
            "invalid_parameter",
            "The `domain_id` must be a valid UUID.",
        ),
        (
            {"name": "x", "permission": "sending_access", "domain_id": 5},
            "invalid_parameter",
            "The `domain_id` must be a valid UUID.",
        ),
    ],
)
async def test_bad_fields(database_url: str, body: dict[str, object], name: str, message: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            assert error(await client.post("/api-keys", json=body)) == (422, name, message)
            assert len((await client.get("/api-keys")).json()["data"]) == 1


async def test_names_are_kept_as_given(database_url: str) -> None:
    names = ["", " spaced ", "x" * 50, "🔑" * 50, "é", "same", "same"]
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for name in names:
                made = await client.post("/api-keys", json={"name": name, "permission": None, "extra": 1})
                assert made.status_code == 201
            listed = (await client.get("/api-keys")).json()
            assert [item["name"] for item in listed["data"]][:-1] == names[::-1]


async def test_the_domain_counts_only_with_sending_access(database_url: str) -> None:
    async with http_server(database_url) as api:
        team, other = await api.team("One"), await api.team("Two")
        async with api.client(team.token) as client, api.client(other.token) as stranger:
            for domain_id in ("nonsense", 5, str(uuid4())):
                body = {"name": "x", "permission": "full_access", "domain_id": domain_id}
                assert (await client.post("/api-keys", json=body)).status_code == 201
            domain = (await client.post("/domains", json={"name": "harbor.example"})).json()["id"]
            restricted = {"name": "x", "permission": "sending_access", "domain_id": domain.upper()}
            assert (await client.post("/api-keys", json=restricted)).status_code == 201
            foreign = await stranger.post("/api-keys", json=restricted)
            assert error(foreign) == (404, "not_found", "Domain not found")
            unknown = await client.post("/api-keys", json={**restricted, "domain_id": str(uuid4())})
            assert error(unknown) == error(foreign)


async def test_the_list_shows_all_states_and_nothing_secret(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            await sending_key(client)
            await api.pool.execute("UPDATE api_keys SET status = 'inactive' WHERE name = 'sender'")
            listed = (await client.get("/api-keys")).json()
            assert list(listed) == ["object", "has_more", "data"]
            assert (listed["object"], listed["has_more"]) == ("list", False)
            for item in listed["data"]:
                assert list(item) == ["id", "name", "created_at", "last_used_at"]
                assert STYLE.fullmatch(item["created_at"])
            assert [item["name"] for item in listed["data"]] == ["sender", "First key"]


async def test_last_used_at(database_url: str) -> None:
    """Set by any authenticated request, a refused one too; not by an unauthenticated one."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client, api.client("re_unknown") as stranger:
            token = await sending_key(client)
            await stranger.get("/api-keys")

            async def used() -> dict[str, str | None]:
                listed = (await client.get("/api-keys")).json()["data"]
                return {item["name"]: item["last_used_at"] for item in listed}

            first = await used()
            assert first["sender"] is None
            assert first["First key"] is not None
            assert STYLE.fullmatch(first["First key"])
            async with api.client(token) as sender:
                assert (await sender.get("/domains")).status_code == 401
            second = await used()
            assert second["sender"] is not None
            assert second["First key"] is not None
            assert second["First key"] > first["First key"]


async def test_uses_are_written_in_the_background_and_survive_trouble(database_url: str) -> None:
    """SEC-06."""
    async with http_server(database_url) as api:
        team = await api.team()
        last_used = LastUsed(api.pool, SystemClock())
        key_id = await api.pool.fetchval("SELECT id FROM api_keys")
        last_used.touch(team.id, key_id)
        last_used.touch(team.id, uuid4())
        await api.pool.execute("ALTER TABLE api_keys RENAME TO away")
        with pytest.raises(Exception, match="api_keys"):
            await last_used.flush()
        await api.pool.execute("ALTER TABLE away RENAME TO api_keys")
        task = asyncio.create_task(last_used.run())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await api.pool.fetchval("SELECT last_used_at FROM api_keys") is not None


async def test_renaming(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            key = (await client.get("/api-keys")).json()["data"][0]["id"]
            answer = await client.patch(f"/api-keys/{key.upper()}", json={"name": "new", "permission": "x"})
            assert (answer.status_code, answer.json()) == (200, {"object": "api_key", "id": key})
            assert (await client.get("/api-keys")).json()["data"][0]["name"] == "new"
            assert error(await client.patch(f"/api-keys/{key}", json={}))[1] == "missing_required_field"
            assert error(await client.patch(f"/api-keys/{key}", json={"name": 1}))[1] == "validation_error"


async def test_deleting_a_key(database_url: str) -> None:
    """At once in the process that does it; the own key and the last key may go."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            token = await sending_key(client)
            async with api.client(token) as sender:
                assert error(await sender.get("/domains"))[1] == "restricted_api_key"
                listed = (await client.get("/api-keys")).json()["data"]
                gone = await client.delete(f"/api-keys/{listed[0]['id']}")
                assert gone.json() == {"object": "api_key", "id": listed[0]["id"], "deleted": True}
                assert error(await sender.get("/domains"))[:2] == (403, "invalid_api_key")
            again = await client.delete(f"/api-keys/{listed[0]['id']}")
            assert error(again) == (404, "not_found", "API key not found")
            own = await client.delete(f"/api-keys/{listed[1]['id']}")
            assert own.status_code == 200
            assert error(await client.get("/domains"))[:2] == (403, "invalid_api_key")
        assert await api.pool.fetchval("SELECT count(*) FROM directory_keys") == 0


async def test_a_key_deleted_in_one_process_is_refused_in_another_within_a_second(database_url: str) -> None:
    """Contract decision 33."""
    async with http_server(database_url) as one, http_server(database_url) as two:
        team = await one.team()
        async with one.client(team.token) as first, two.client(team.token) as second:
            assert (await second.get("/domains")).status_code == 200
            key = (await first.get("/api-keys")).json()["data"][0]["id"]
            await first.delete(f"/api-keys/{key}")
            async with asyncio.timeout(10):
                while (await second.get("/domains")).status_code == 200:
                    await asyncio.sleep(0.05)
            assert error(await second.get("/domains"))[1] == "invalid_api_key"


async def test_another_teams_key_is_an_unknown_one(database_url: str) -> None:
    """TEN-02, API-07."""
    async with http_server(database_url) as api:
        one, two = await api.team("One"), await api.team("Two")
        async with api.client(one.token) as client, api.client(two.token) as stranger:
            key = (await client.get("/api-keys")).json()["data"][0]["id"]
            for method, body in (("PATCH", b'{"name":"mine"}'), ("DELETE", b"")):
                foreign = await stranger.request(method, f"/api-keys/{key}", content=body)
                unknown = await stranger.request(method, f"/api-keys/{uuid4()}", content=body)
                assert error(foreign) == error(unknown) == (404, "not_found", "API key not found")
            assert (await stranger.get(f"/api-keys?after={key}")).status_code == 200
            assert (await client.get("/api-keys")).json()["data"][0]["name"] == "First key"


async def test_suspending_is_reversible(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        db = TeamDb(api.pool, team.id)
        (key,) = await keys.listed(db)
        credentials = api.services.use(KeyCredentials)
        async with api.client(team.token) as client:
            assert await keys.suspend(db, key.id)
            assert not await keys.suspend(db, key.id)
            credentials.forget(team.id)
            assert error(await client.get("/domains"))[:2] == (403, "suspended_api_key")
            assert await keys.resume(db, key.id)
            credentials.forget(team.id)
            assert (await client.get("/domains")).status_code == 200
            assert not await keys.resume(db, key.id)
            assert not await keys.suspend(db, uuid4())


async def test_pages_of_keys(database_url: str) -> None:
    """Conventions section 10 and contract decision 5, on the first list there is."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for number in range(4):
                await client.post("/api-keys", json={"name": str(number)})
            everything = (await client.get("/api-keys")).json()["data"]
            ids = [item["id"] for item in everything]
            assert ids == sorted(ids, reverse=True)

            async def page(query: str) -> tuple[list[int], bool]:
                body = (await client.get(f"/api-keys?{query}")).json()
                return [ids.index(item["id"]) for item in body["data"]], body["has_more"]

            assert await page("limit=2") == ([0, 1], True)
            assert await page(f"limit=2&after={ids[1]}") == ([2, 3], True)
            assert await page(f"limit=2&after={ids[2]}") == ([3, 4], False)
            assert await page(f"after={ids[2]}") == ([3, 4], False)
            assert await page(f"limit=2&after={ids[4]}") == ([], False)
            assert await page(f"limit=2&before={ids[3]}") == ([1, 2], True)
            assert await page(f"limit=2&before={ids[2]}") == ([0, 1], False)
            assert await page(f"before={ids[3]}") == ([0, 1, 2], False)
            assert await page(f"limit=5&after=&before={ids[3].upper()}") == ([0, 1, 2], False)
            assert await page(f"limit=1&limit=100&after={UUID(int=0)}") == ([], False)
            assert await page(f"limit=100&before={UUID(int=0)}") == ([0, 1, 2, 3, 4], False)
            await client.delete(f"/api-keys/{ids[1]}")
            assert (await client.get(f"/api-keys?limit=1&after={ids[1]}")).json()["data"][0]["id"] == ids[2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *(
            (f"limit={value}&after=x&before=y", "Invalid `limit` parameter. Use an integer from 1 to 100.")
            for value in ("0", "101", "-1", "1.0", "", "x", "%201", "+1", "1e1", "٣", "9999999999")
        ),
        ("after=x&before=y", "Use either `after` or `before`, not both."),
        ("after=x", "Invalid `after` parameter. Use the id of an item of the list."),
        ("before=%00", "Invalid `before` parameter. It may not contain a NUL character."),
        (f"after={uuid4().hex}", "Invalid `after` parameter. Use the id of an item of the list."),
        (f"before={{{uuid4()}}}", "Invalid `before` parameter. Use the id of an item of the list."),
    ],
)
async def test_bad_pages(database_url: str, query: str, message: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            assert error(await client.get(f"/api-keys?{query}")) == (422, "validation_error", message)


async def test_the_first_team_is_made_once(database_url: str) -> None:
    """However many processes start at the same time."""
    async with http_server(database_url) as api:
        ids = api.services.use(Ids)

        async def start() -> str | None:
            async with api.pool.acquire() as conn:
                return await first_team(conn, email="ada@quay.example", ids=ids)

        tokens = [token for token in await asyncio.gather(*(start() for _ in range(5))) if token]
        assert len(tokens) == 1
        (team,) = await list_teams(api.pool)
        assert (team.email, team.status, team.number) == ("ada@quay.example", "active", 1)
        assert await api.pool.fetchval("SELECT email FROM team_members") == "ada@quay.example"
        async with api.client(tokens[0]) as client:
            assert (await client.get("/domains")).status_code == 200


async def test_the_first_key_can_be_given(database_url: str) -> None:
    async with http_server(database_url) as api:
        ids = api.services.use(Ids)
        for wrong in ("", "re_", "re_short", "sk_0123456789abcdef0123456789", "re_with space 0123456789abc"):
            with pytest.raises(ValueError, match="API key"):
                await first_team(api.pool, email="ada@quay.example", initial_key=wrong, ids=ids)
        given = "re_0123456789abcdefghij"
        assert await first_team(api.pool, email="ada@quay.example", initial_key=given, ids=ids) == given
        assert await first_team(api.pool, email="ada@quay.example", initial_key=given, ids=ids) is None
        async with api.client(given) as client:
            assert (await client.get("/api-keys")).json()["data"][0]["name"] == "First key"
        shown = await api.pool.fetchval("SELECT display FROM api_keys")
        assert given.startswith(shown)
        assert len(shown) <= len(given) // 3
        with pytest.raises(ValueError, match="name"):
            await create_team(api.pool, name=" ", email="ada@quay.example", ids=ids)
