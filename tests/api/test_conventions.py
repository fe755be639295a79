"""The conventions that hold for every endpoint (conventions.md sections 0 to 5)."""

from __future__ import annotations

import json
from ipaddress import ip_network
from uuid import UUID, uuid4

import pytest

from kit import probe_routes
from kit.client import HttpServer, error, http_server, sending_key
from kit.database_link import database_link
from pillarbox.api_keys.credentials import KeyCredentials
from pillarbox.kernel.http.pipeline import HttpSettings
from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.teams.bootstrap import TeamStatus, set_status

UNKNOWN = "re_AAAAAAAA_AAAAAAAAAAAAAAAAAAAAAAAA"


async def test_routing_answers_before_authentication(database_url: str) -> None:
    """Unknown routes, wrong methods, HEAD, OPTIONS, slashes and case (section 1)."""
    async with http_server(database_url) as api, api.client() as anyone:
        assert error(await anyone.get("/nothing"))[:2] == (404, "not_found")
        assert error(await anyone.post("/nothing", content=b"{"))[:2] == (404, "not_found")
        assert error(await anyone.get("/Api-Keys"))[:2] == (404, "not_found")
        assert error(await anyone.get("/api-keys//"))[:2] == (404, "not_found")
        wrong = await anyone.put("/api-keys")
        assert error(wrong)[:2] == (405, "method_not_allowed")
        assert wrong.headers["allow"] == "GET, HEAD, POST"
        single = await anyone.get(f"/api-keys/{uuid4()}")
        assert error(single)[:2] == (405, "method_not_allowed")
        assert single.headers["allow"] == "DELETE, PATCH"
        options = await anyone.options("/api-keys/")
        assert (options.status_code, options.content) == (204, b"")
        assert options.headers["allow"] == "GET, HEAD, POST"
        assert "ratelimit-limit" not in options.headers


async def test_trailing_slash_and_percent_encoding_name_the_same_route(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for path in ("/api-keys", "/api-keys/", "/api%2Dkeys"):
                assert (await client.get(path)).status_code == 200, path
            one = f"/probe/{uuid4()}".upper().replace("/PROBE", "/probe")
            raw = (await client.get(f"{one}/a%40b")).json()
            assert raw == {"id": one[7:].lower(), "name": "a@b"}
            assert (await client.get(f"{one}/a@b")).json()["name"] == "a@b"
            assert (await client.get(f"{one}/a%252Fb")).json()["name"] == "a%2Fb"
            assert (await client.get(f"{one}/a%2Fb")).json()["name"] == "a/b"


async def test_a_target_without_a_path_is_answered_to_browsers_too(database_url: str) -> None:
    """`OPTIONS *` asks about the whole server (RFC 9112, 3.2.4)."""
    async with http_server(database_url) as api:
        for method in ("OPTIONS", "GET"):
            for accept in ("*/*", "text/html"):
                head = f"{method} * HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
                answer = await api.raw(head.encode())
                assert answer.startswith(b"HTTP/1.1 404 "), (method, accept)
                assert b'"name":"not_found"' in answer


async def test_several_slashes_at_the_beginning_are_one(database_url: str) -> None:
    """A client whose base URL ends with a slash asks for `//emails`. Nothing else becomes shorter by it."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()

        async def status(target: str, token: str = team.token) -> bytes:
            head = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            return (await api.raw(head.encode() + b"Connection: close\r\n\r\n"))[9:12]

        for target in ("//api-keys", "///api-keys/?limit=1", "//api%2Dkeys"):
            assert await status(target) == b"200", target
            assert await status(target, "re_wrong") == b"403", target
        for target in (
            "//",
            "/",
            "//else.example/api-keys",
            "//ada@x:80/api-keys",
            "/%2Fapi-keys",
            "/x//page",
        ):
            assert await status(target) == b"404", target
        assert await status("//page") == b"200"
        assert await status("http://else.example//api-keys") == b"400", "an absolute URL is none of ours"


async def test_head_is_get_without_a_body(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            got, head = await client.get("/domains"), await client.head("/domains")
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(got.content))
            assert error(await client.get("/domains/x"))[0] == (await client.head("/domains/x")).status_code


async def test_every_answer_carries_the_standing_headers(database_url: str) -> None:
    """API-11: no store, nosniff, our own Server, no CORS; ids differ from answer to answer."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answers = [
                await client.get("/domains", headers={"origin": "https://evil.example"}),
                await client.get("/nothing"),
                await client.get("/domains", headers={"authorization": ""}),
                await client.get("/openapi.json"),
                await client.options("/domains"),
            ]
        for answer in answers:
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["server"] == "pillarbox"
            assert not [name for name in answer.headers if name.startswith("access-control")]
        assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)
        fresh = await api.raw(
            b"GET /domains HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n"
        )
        assert fresh.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("header", "status", "name"),
    [
        (None, 401, "missing_api_key"),
        ("", 401, "missing_api_key"),
        ("Bearer", 401, "missing_api_key"),
        ("Bearer   ", 401, "missing_api_key"),
        ("Basic cmU6eA==", 401, "missing_api_key"),
        (UNKNOWN, 401, "missing_api_key"),
        (f"Bearer {UNKNOWN}", 403, "invalid_api_key"),
        ("Bearer re_", 403, "invalid_api_key"),
        ("Bearer re_" + "x" * 5000, 403, "invalid_api_key"),
        ("Bearer sk_live", 403, "invalid_api_key"),
        ("Bearer a.b", 403, "invalid_api_key"),
        ("Bearer a.b.c.d", 403, "invalid_api_key"),
        ("Bearer eyJh.eyJz.c2ln", 401, "invalid_token"),
    ],
)
async def test_failed_authentication(database_url: str, header: str | None, status: int, name: str) -> None:
    """Rows 1, 2, 6 and 8 of section 3; a body that could not be parsed does not matter yet (API-03)."""
    line = "" if header is None else f"Authorization: {header}\r\n"
    request = f"POST /api-keys HTTP/1.1\r\nHost: x\r\n{line}Connection: close\r\nContent-Length: 1\r\n\r\n{{"
    async with http_server(database_url) as api:
        head, _, body = (await api.raw(request.encode())).decode().partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert json.loads(body)["name"] == name
    assert ('www-authenticate: Bearer realm="pillarbox"' in head) == (status == 401)
    assert "ratelimit-limit" not in head


async def test_the_scheme_is_case_insensitive_and_spaces_are_trimmed(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client() as client:
            for form in (f"bearer {team.token}", f"BEARER    {team.token}"):
                answer = await client.get("/domains", headers={"authorization": form})
                assert answer.status_code == 200, form
            in_query = await client.get(
                "/domains", params={"api_key": team.token, "access_token": team.token}
            )
            assert error(in_query)[:2] == (401, "missing_api_key")


async def test_states_of_keys_and_teams(database_url: str) -> None:
    """Rows 3, 4 and 9 of section 3."""
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for status, expected in (
                (TeamStatus.BLOCKED, (451, "security_error")),
                (TeamStatus.DISABLED, (403, "restricted_api_key")),
            ):
                await set_status(api.pool, team.id, status)
                settle(api, team.id)
                assert error(await client.get("/domains"))[:2] == expected
            await set_status(api.pool, team.id, TeamStatus.ACTIVE)
            for key_status, expected in (
                ("suspended", (403, "suspended_api_key")),
                ("inactive", (403, "restricted_api_key")),
            ):
                await api.pool.execute("UPDATE api_keys SET status = $1", key_status)
                settle(api, team.id)
                assert error(await client.get("/domains"))[:2] == expected


async def test_a_sending_key_may_only_send(database_url: str) -> None:
    """Row 5, generated from the route table (TEN-03): new routes join by themselves."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as owner:
            token = await sending_key(owner)
        async with api.client(token) as client:
            for entry in api.table.routes:
                path = entry.path.replace("{name}", "x")
                for parameter in entry.uuids:
                    path = path.replace(f"{{{parameter}}}", str(uuid4()))
                if entry.path == "/probe/slow":
                    continue
                if entry.needs is Access.FULL:
                    answer = await client.request(entry.method, path)
                    assert error(answer)[:2] == (401, "restricted_api_key"), path
                    assert answer.headers["www-authenticate"] == 'Bearer realm="pillarbox"'
            api.services.add(probe_routes.Count())
            assert (await client.post("/probe/once")).status_code == 200
            assert (await client.get("/probe/list")).status_code == 200


async def test_path_ids_must_be_uuids(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for wrong in (
                "x",
                "0199a3c0",
                "0199a3c0-0d11-7a42-b6f5-81c93e2d7f6g",
                "%00",
                "{id}",
                "é",
                "a" * 36,
            ):
                answer = await client.delete(f"/api-keys/{wrong}")
                assert error(answer) == (422, "invalid_parameter", "The `api_key_id` must be a valid UUID.")
            unknown = await client.delete(f"/api-keys/{uuid4()}")
            assert error(unknown) == (404, "not_found", "API key not found")


async def test_stages_answer_in_the_order_of_the_contract(database_url: str) -> None:
    """Section 1: each request breaks two rules, the earlier stage answers."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as owner:
            token = await sending_key(owner)
        big = b"[" * 2000
        async with api.client() as anyone, api.client(token) as sender, api.client(team.token) as owner:
            assert (await anyone.post("/nothing", content=big)).status_code == 404
            assert (await anyone.put("/probe/small", content=big)).status_code == 405
            assert (await anyone.post("/probe/small", content=big)).status_code == 413
            assert (await anyone.post("/probe/small", content=b"{")).status_code == 401
            assert error(await sender.post("/probe/small", content=b"{"))[1] == "restricted_api_key"
            bad_key = {"idempotency-key": ""}
            first = await owner.post("/probe/once", content=b"{", headers=bad_key)
            assert error(first)[:2] == (400, "invalid_idempotency_key")
            assert (await owner.patch("/api-keys/x", content=b"{")).status_code == 400
            assert error(await owner.patch("/api-keys/x", json={}))[1] == "invalid_parameter"
            assert error(await owner.patch("/api-keys/x", json=[]))[1] == "invalid_parameter"
            unknown = f"/api-keys/{uuid4()}"
            assert error(await owner.patch(unknown, json={}))[1] == "missing_required_field"
            assert error(await owner.patch(unknown, json={"name": "x"}))[:2] == (404, "not_found")


async def test_an_unforeseen_failure_is_500_without_details(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            status, name, message = error(await client.post("/probe/fail"))
            assert (status, name) == (500, "application_error")
            assert "secret" not in message
            assert (await client.get("/domains")).status_code == 200


async def test_values_that_postgresql_refuses_are_422(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answer = await client.post("/probe/store", json={"number": 10**12})
            assert error(answer)[:2] == (422, "validation_error")


async def test_a_lock_that_cannot_be_had_is_409(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client, api.pool.acquire() as conn, conn.transaction():
            await conn.execute("SELECT FROM teams WHERE id = $1 FOR UPDATE", team.id)
            assert error(await client.post("/probe/lock"))[:2] == (409, "resource_locked")


async def test_a_lost_database_is_503_with_retry_after(database_url: str) -> None:
    async with database_link(database_url) as wire, http_server(wire.url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            assert (await client.get("/health")).json() == {"status": "ok"}
            wire.cut()
            answer = await client.get("/health")
            assert error(answer)[:2] == (503, "service_unavailable")
            answer = await client.get("/domains")
            assert error(answer)[:2] == (503, "service_unavailable")
            assert int(answer.headers["retry-after"]) >= 1


async def test_public_answers_choose_their_own_form(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api, api.client() as anyone:
        page = await anyone.get("/page")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers.get_list("cache-control") == ["private"]
        part = await anyone.get("/part")
        assert (part.status_code, part.content) == (206, b"ell")
        assert part.headers["content-range"] == "bytes 1-3/5"
        streamed = await anyone.get("/stream")
        assert (streamed.content, streamed.headers["content-length"]) == (b"onetwo", "6")
        assert (await anyone.head("/stream")).content == b""


async def test_forwarded_addresses_count_only_from_trusted_proxies(database_url: str) -> None:
    """API-04: the hop that the proxy vouches for, never what the client wrote in front of it."""
    forged = {"x-forwarded-for": "198.51.100.7, 203.0.113.9"}
    async with http_server(database_url, probe_routes) as api, api.client() as anyone:
        assert (await anyone.get("/who", headers=forged)).json() == {"client": "127.0.0.1"}
    behind = HttpSettings(rate_limit=0, trusted_proxies=(ip_network("127.0.0.0/8"),))
    async with http_server(database_url, probe_routes, settings=behind) as api, api.client() as anyone:
        assert (await anyone.get("/who", headers=forged)).json() == {"client": "203.0.113.9"}
        chain = {"x-forwarded-for": "198.51.100.7, 203.0.113.9, 127.0.0.5"}
        assert (await anyone.get("/who", headers=chain)).json() == {"client": "203.0.113.9"}
        broken = {"x-forwarded-for": "198.51.100.7, nonsense"}
        assert (await anyone.get("/who", headers=broken)).json() == {"client": "127.0.0.1"}


async def test_a_user_agent_can_be_required(database_url: str) -> None:
    strict = HttpSettings(rate_limit=0, require_user_agent=True)
    async with http_server(database_url, settings=strict) as api, api.client() as anyone:
        bare = await api.raw(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert bare.startswith(b"HTTP/1.1 403 ")
        assert (await anyone.get("/health")).status_code == 200


def test_a_route_without_access_does_not_import() -> None:
    with pytest.raises(TypeError):

        @route("GET", "/open")  # type: ignore[call-arg]
        async def forgotten(request: Request) -> Reply:
            return Reply({})


def test_a_route_without_an_answer_type_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match="says what it answers"):

        @route("GET", "/untyped", needs=Access.PUBLIC)
        async def untyped(request: Request) -> Reply:
            return Reply({})


async def test_query_values_follow_the_list_and_scalar_rules(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answer = await client.get("/probe/list?a=x,y&a=z&a=%20x%20,,&b=1&b=p+q&unknown=1")
            assert answer.json() == {"object": "list", "items": ["x", "y", "z"], "b": "p q"}
            assert error(await client.get("/probe/list?a=%00"))[:2] == (422, "validation_error")


def settle(api: HttpServer, team_id: UUID) -> None:
    """Changes made directly in the database count once the remembered callers are forgotten."""
    api.services.use(KeyCredentials).forget(team_id)
