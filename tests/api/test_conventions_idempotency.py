"""`Idempotency-Key` (conventions section 9, API-05)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest

from kit import probe_routes
from kit.client import HttpServer, error, http_server, sending_key


def counted(api: HttpServer) -> probe_routes.Count:
    """The counter of effects, new."""
    count = probe_routes.Count()
    api.services.add(count)
    return count


async def test_a_repeat_is_answered_byte_for_byte_without_effect(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team, count = await api.team(), counted(api)
        key = {"idempotency-key": "order 1"}
        async with api.client(team.token) as client:
            first = await client.post("/probe/once", json={"a": 1, "b": [2]}, headers=key)
            again = await client.post("/probe/once", content=b'{"b":[2], "a": 1}', headers=key)
            alias = await client.post("/probe/again/", json={"a": 1, "b": [2]}, headers=key)
            assert "idempotent-replayed" not in first.headers
            for answer in (again, alias):
                assert answer.status_code == 200
                assert answer.content == first.content
                assert answer.headers["idempotent-replayed"] == "true"
                assert answer.headers["x-request-id"] != first.headers["x-request-id"]
            other = await client.post("/probe/once", json={"a": 2}, headers=key)
            assert error(other)[:2] == (409, "invalid_idempotent_request")
            assert count.effects == 1
            second_credential = await sending_key(client)
        async with api.client(second_credential) as sender:
            replay = await sender.post("/probe/once", json={"a": 1, "b": [2]}, headers=key)
            assert replay.content == first.content


async def test_the_key_belongs_to_one_team_and_lives_for_a_day(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        one, two, count = await api.team("One"), await api.team("Two"), counted(api)
        key = {"idempotency-key": "k"}
        async with api.client(one.token) as first, api.client(two.token) as second:
            assert (await first.post("/probe/once", headers=key)).json() == {"effect": 1}
            assert (await second.post("/probe/once", json={"x": 1}, headers=key)).json() == {"effect": 2}
            await api.pool.execute(
                "UPDATE idempotency_keys SET created_at = created_at - $1::interval", timedelta(hours=24)
            )
            # The row is too old to be an answer; whoever makes effects replaces it, the probe does not.
            stale = await first.post("/probe/once", headers=key)
            assert error(stale)[:2] == (409, "concurrent_idempotent_requests")
        assert count.effects == 3


@pytest.mark.parametrize("value", ["", "x" * 257, "tab\there", "caf\xe9"])
async def test_bad_keys_are_400(database_url: str, value: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        counted(api)
        async with api.client(team.token) as client:
            answer = await client.post("/probe/once", headers=[(b"idempotency-key", value.encode("latin-1"))])
            assert error(answer)[:2] == (400, "invalid_idempotency_key")
            ignored = await client.post("/probe", headers=[(b"idempotency-key", b"")])
            assert ignored.status_code == 200


async def test_long_and_odd_keys_are_kept_apart(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        counted(api)
        async with api.client(team.token) as client:
            for number, value in enumerate(("x" * 256, "x", "X", "x!", "~}", '"x"'), 1):
                answer = await client.post("/probe/once", headers={"idempotency-key": value})
                assert answer.json() == {"effect": number}


async def test_while_the_first_runs_a_second_is_409(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team, gate = await api.team(), probe_routes.Gate()
        api.services.add(gate)
        key = {"idempotency-key": "k"}
        async with api.client(team.token) as client:
            first = asyncio.create_task(client.post("/probe/slow", json={"a": 1}, headers=key))
            await asyncio.wait_for(gate.entered.wait(), 5)
            same = await client.post("/probe/slow", json={"a": 1}, headers=key)
            assert error(same)[:2] == (409, "concurrent_idempotent_requests")
            other = await client.post("/probe/slow", json={"a": 2}, headers=key)
            assert error(other)[:2] == (409, "invalid_idempotent_request")
            gate.open.set()
            answer: httpx.Response = await first
            assert answer.json() == {"done": True}
            # Nothing was stored by that handler, so the key is free again.
            assert (await client.post("/probe/slow", json={"a": 2}, headers=key)).status_code == 200


async def test_two_processes_with_one_key_make_one_effect(database_url: str) -> None:
    """The second one's insert meets the row and its whole transaction is undone."""
    async with http_server(database_url, probe_routes) as one, http_server(database_url, probe_routes) as two:
        team = await one.team()
        counted(one), counted(two)
        key = {"idempotency-key": "k"}
        async with one.client(team.token) as first, two.client(team.token) as second:
            answers = await asyncio.gather(
                *(client.post("/probe/once", headers=key) for client in (first, second) * 10),
            )
        done = [answer for answer in answers if answer.status_code == 200]
        assert len({answer.content for answer in done}) == 1
        assert all(error(a)[1] == "concurrent_idempotent_requests" for a in answers if a not in done)
        assert await one.pool.fetchval("SELECT count(*) FROM idempotency_keys") == 1


async def test_after_an_error_the_key_is_free(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        counted(api)
        key = {"idempotency-key": "k"}
        async with api.client(team.token) as client:
            assert error(await client.post("/probe/once", json=[], headers=key))[0] == 422
            assert error(await client.post("/probe/once", content=b"{", headers=key))[0] == 400
            assert (await client.post("/probe/once", json={"fixed": True}, headers=key)).status_code == 200
