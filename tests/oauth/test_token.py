"""Codes, refresh tokens and their revocation (RFC 6749, RFC 7636, RFC 7009; oauth.md 6 and 7)."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID, uuid4

import httpx
import pytest

from kit.clock import ManualClock
from kit.manual_world import clock_of, manual_world
from kit.oauth_flow import (
    CHALLENGE,
    REDIRECT,
    VERIFIER,
    Allowed,
    allowed,
    ask,
    exchange,
    refresh,
    register,
    token,
)
from kit.people import Visit, a_person, logged_in
from kit.world import Team, World
from pillarbox.oauth.tokens import challenge_of


def basic(client_id: str, secret: str) -> dict[str, str]:
    text = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return {"authorization": f"Basic {b64encode(text.encode()).decode()}"}


async def somebody(pillarbox: World) -> tuple[Team, Visit]:
    team = await pillarbox.team()
    return team, await logged_in(pillarbox, await a_person(team, f"ada{team.id.hex}@people.example"))


async def a_code(pillarbox: World, **fields: Any) -> tuple[Team, dict[str, Any], str]:
    """A code for a new program of a new team."""
    team, visit = await somebody(pillarbox)
    made = await register(pillarbox, **fields)
    return team, made, await (await ask(visit, made["client_id"])).approve()


async def reasons(team: Team) -> list[str | None]:
    return [grant["revoked_reason"] for grant in (await team.get("/oauth/grants")).json()["data"]]


def is_error(answer: httpx.Response, status: int, name: str) -> bool:
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["access-control-allow-origin"] == "*"
    body = answer.json()
    assert list(body) == ["error", "error_description"], body
    return (answer.status_code, body["error"]) == (status, name)


def test_the_vector_of_the_contract() -> None:
    """OA-03: RFC 7636, 4.2, and its appendix B."""
    assert challenge_of(VERIFIER) == CHALLENGE
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


# Codes --------------------------------------------------------------------------------------------


async def test_a_code_is_for_one_request_alone(running: World) -> None:
    """OA-04: bound to client, redirect and challenge; a failure does not use it up, five do."""
    _, made, code = await a_code(running)
    client_id = made["client_id"]
    other = (await register(running))["client_id"]
    assert is_error(await exchange(running, other, code), 400, "invalid_grant")
    wrong: list[dict[str, str]] = [
        {"code_verifier": VERIFIER + "x"},
        {"code_verifier": VERIFIER.swapcase()},
        {"redirect_uri": f"{REDIRECT}/"},
        {"redirect_uri": "https://evil.example/cb"},
    ]
    for fields in wrong:
        assert is_error(await exchange(running, client_id, code, **fields), 400, "invalid_grant")
    assert (await exchange(running, client_id, code)).status_code == 200
    _, made, code = await a_code(running)
    for _ in range(5):
        answer = await exchange(running, made["client_id"], code, code_verifier=VERIFIER + "x")
        assert is_error(answer, 400, "invalid_grant")
    assert is_error(await exchange(running, made["client_id"], code), 400, "invalid_grant")


async def test_the_port_of_the_redirect_counts_at_the_exchange(running: World) -> None:
    _, visit = await somebody(running)
    made = await register(running, redirect_uris=["http://127.0.0.1/cb"])
    uri = "http://127.0.0.1:49801/cb"
    code = await (await ask(visit, made["client_id"], redirect_uri=uri)).approve()
    for other in ("http://127.0.0.1/cb", "http://127.0.0.1:49802/cb"):
        answer = await exchange(running, made["client_id"], code, redirect_uri=other)
        assert is_error(answer, 400, "invalid_grant")
    answer = await exchange(running, made["client_id"], code, redirect_uri=uri)
    assert answer.status_code == 200


async def test_a_code_ends_after_ten_minutes(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    _, made, code = await a_code(pillarbox)
    _, later, second = await a_code(pillarbox)
    clock.advance(599)
    assert (await exchange(pillarbox, made["client_id"], code)).status_code == 200
    clock.advance(1.001)
    assert is_error(await exchange(pillarbox, later["client_id"], second), 400, "invalid_grant")


async def test_a_code_that_comes_twice_ends_what_it_gave(running: World) -> None:
    """OA-04: RFC 6749, 4.1.2."""
    team, made, code = await a_code(running)
    tokens = (await exchange(running, made["client_id"], code)).json()
    acting = team.using(tokens["access_token"])
    assert (await acting.get("/domains")).status_code == 200
    assert is_error(await exchange(running, made["client_id"], code), 400, "invalid_grant")
    assert await reasons(team) == ["code_reuse"]
    assert (await acting.get("/domains")).status_code == 401
    answer = await refresh(running, made["client_id"], tokens["refresh_token"])
    assert is_error(answer, 400, "invalid_grant")


async def test_of_parallel_exchanges_one_wins(running: World) -> None:
    """OA-04."""
    team, made, code = await a_code(running)
    answers = await asyncio.gather(*(exchange(running, made["client_id"], code) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 5]
    assert await reasons(team) == ["code_reuse"]


async def test_what_a_verifier_is(database_url: str, tmp_path: Path) -> None:
    """OA-03: 43 to 128 unreserved characters."""
    cases = {
        "a" * 42: "invalid_request",
        "a" * 43: "invalid_grant",
        "a" * 128: "invalid_grant",
        "a" * 129: "invalid_request",
        "a" * 42 + "+": "invalid_request",
        "a" * 42 + "=": "invalid_request",
        "a" * 42 + "é": "invalid_request",
        "a" * 43 + "\n": "invalid_request",
        "-._~" * 11: "invalid_grant",
        "": "invalid_request",
    }
    async with manual_world(database_url, tmp_path) as pillarbox:
        _, made, code = await a_code(pillarbox)
        for verifier, expected in cases.items():
            answer = await exchange(pillarbox, made["client_id"], code, code_verifier=verifier)
            assert is_error(answer, 400, expected), verifier


# Refresh tokens -----------------------------------------------------------------------------------


async def test_each_use_gives_a_new_refresh_token_of_60_days(pillarbox: World) -> None:
    clock = clock_of(pillarbox)
    program = await allowed(pillarbox)
    assert len(program.tokens["refresh_token"]) == 43
    clock.advance((timedelta(days=60) - timedelta(seconds=1)).total_seconds())
    second = (await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])).json()
    clock.advance((timedelta(days=60) - timedelta(seconds=1)).total_seconds())
    third = (await refresh(pillarbox, program.client_id, second["refresh_token"])).json()
    assert third["scope"] == "full_access emails:send"
    clock.advance(timedelta(days=60).total_seconds())
    answer = await refresh(pillarbox, program.client_id, third["refresh_token"])
    assert is_error(answer, 400, "invalid_grant")
    assert await reasons(program.team) == [None]


async def test_a_refresh_token_that_comes_twice_ends_the_grant(running: World) -> None:
    """OA-05: reuse is told and the whole family ends (RFC 9700, 4.14)."""
    program = await allowed(running)
    old = program.tokens["refresh_token"]
    newest = (await refresh(running, program.client_id, old)).json()
    assert is_error(await refresh(running, program.client_id, old), 400, "invalid_grant")
    assert await reasons(program.team) == ["refresh_token_reuse"]
    answer = await refresh(running, program.client_id, newest["refresh_token"])
    assert is_error(answer, 400, "invalid_grant")
    acting = program.team.using(newest["access_token"])
    assert (await acting.get("/domains")).status_code == 401
    [entry] = await running.pool.fetch(
        "SELECT * FROM audit_entries WHERE what = 'grant.revoked' AND team_id = $1", program.team.id
    )
    assert json.loads(entry["details"]) == {"reason": "refresh_token_reuse"}


async def test_of_parallel_refreshes_one_wins(running: World) -> None:
    """OA-05."""
    program = await allowed(running)
    old = program.tokens["refresh_token"]
    answers = await asyncio.gather(*(refresh(running, program.client_id, old) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 5]
    assert await reasons(program.team) == ["refresh_token_reuse"]


async def test_within_the_grace_a_repeated_use_is_refused_and_forgiven(
    database_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    settings = {"oauth_refresh_reuse_grace_seconds": "10"}
    async with manual_world(database_url, tmp_path, clock, **settings) as pillarbox:
        program = await allowed(pillarbox)
        old = program.tokens["refresh_token"]
        newest = (await refresh(pillarbox, program.client_id, old)).json()["refresh_token"]
        clock.advance(10)
        assert is_error(await refresh(pillarbox, program.client_id, old), 400, "invalid_grant")
        assert await reasons(program.team) == [None]
        newest = (await refresh(pillarbox, program.client_id, newest)).json()["refresh_token"]
        clock.advance(1)
        assert is_error(await refresh(pillarbox, program.client_id, old), 400, "invalid_grant")
        assert await reasons(program.team) == ["refresh_token_reuse"]


async def test_a_scope_narrows_the_new_access_token_alone(running: World) -> None:
    program = await allowed(running)
    held = program.tokens["refresh_token"]
    for beyond in ("openid", "emails:send openid"):
        answer = await refresh(running, program.client_id, held, scope=beyond)
        assert is_error(answer, 400, "invalid_scope")
    narrow = await refresh(running, program.client_id, held, scope="emails:send")
    assert narrow.json()["scope"] == "emails:send"
    acting = program.team.using(narrow.json()["access_token"])
    assert (await acting.get("/domains")).status_code == 403
    wide = await refresh(running, program.client_id, narrow.json()["refresh_token"])
    assert wide.json()["scope"] == "full_access emails:send"
    small = await allowed(running, scope="emails:send")
    answer = await refresh(running, small.client_id, small.tokens["refresh_token"], scope="full_access")
    assert is_error(answer, 400, "invalid_scope")


async def test_a_program_without_that_grant_type_gets_no_refresh_token(running: World) -> None:
    program = await allowed(running, grant_types=["authorization_code"], scope="emails:send")
    assert list(program.tokens) == ["access_token", "token_type", "expires_in", "scope"]
    answer = await refresh(running, program.client_id, "x")
    assert is_error(answer, 400, "unauthorized_client")


async def test_a_refresh_token_of_another_program_changes_nothing(running: World) -> None:
    first, second = await allowed(running), await allowed(running)
    held = first.tokens["refresh_token"]
    for _ in range(2):
        assert is_error(await refresh(running, second.client_id, held), 400, "invalid_grant")
    assert (await refresh(running, first.client_id, held)).status_code == 200


# Who sends it -------------------------------------------------------------------------------------

METHODS = ("none", "client_secret_basic", "client_secret_post")


@pytest.mark.parametrize("method", METHODS)
async def test_a_program_proves_itself_by_its_own_method_alone(pillarbox: World, method: str) -> None:
    """OA-06: each of the registered methods against each way of sending."""
    team, made, code = await a_code(pillarbox, token_endpoint_auth_method=method)
    client_id, secret = made["client_id"], made.get("client_secret", "")
    other = (await register(pillarbox))["client_id"]
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    named = {**fields, "client_id": client_id}
    ways: dict[str, tuple[dict[str, str], dict[str, str]]] = {
        "none": (named, {}),
        "client_secret_basic": (fields, basic(client_id, secret)),
        "client_secret_post": ({**named, "client_secret": secret}, {}),
    }
    for way, (body, headers) in ways.items():
        if way == method or not secret:
            continue
        answer = await token(pillarbox, body, headers=headers)
        assert is_error(answer, 401, "invalid_client"), way
        assert ("www-authenticate" in answer.headers) is (way == "client_secret_basic")
    refused = {
        "a wrong secret": ({**named, "client_secret": "x" * 43}, {}),
        "a wrong Basic secret": (fields, basic(client_id, "x" * 43)),
        "Basic for another": ({**fields, "client_id": other}, basic(client_id, secret)),
        "an unknown client": ({**fields, "client_id": str(uuid4())}, {}),
        "a client that is none": ({**fields, "client_id": "\0"}, {}),
        "no Base64": (fields, {"authorization": "Basic !"}),
        "no colon": (fields, {"authorization": "Basic " + b64encode(b"x").decode()}),
        "not UTF-8": (fields, {"authorization": "Basic " + b64encode(b"\xff:\xff").decode()}),
        "Bearer": (named, {"authorization": f"Bearer {secret or 'x'}"}),
    }
    for name, (body, headers) in refused.items():
        answer = await token(pillarbox, body, headers=headers)
        assert is_error(answer, 401, "invalid_client"), name
        if headers:
            assert answer.headers["www-authenticate"] == 'Basic realm="pillarbox"'
    both = {**named, "client_secret": secret or "x"}
    answer = await token(pillarbox, both, headers=basic(client_id, secret or "x"))
    assert is_error(answer, 400, "invalid_request")
    assert is_error(await token(pillarbox, fields), 400, "invalid_request")
    body, headers = ways[method]
    assert (await token(pillarbox, body, headers=headers)).status_code == 200
    assert await reasons(team) == [None]


async def test_the_parts_of_basic_are_form_decoded(pillarbox: World) -> None:
    """OA-06: RFC 6749, 2.3.1: `%2D` is a hyphen, and a colon in the secret may be `%3A`."""
    _, made, code = await a_code(pillarbox, token_endpoint_auth_method="client_secret_basic")
    secret = "a secret: of+mine%"
    await pillarbox.pool.execute(
        "UPDATE oauth_clients SET secret_hash = sha256(convert_to($2, 'UTF8')) WHERE id = $1",
        UUID(made["client_id"]),
        secret,
    )
    client_id = made["client_id"].replace("-", "%2D")
    text = f"{client_id}:a+secret%3A+of%2Bmine%25"
    headers = {"authorization": f"basic {b64encode(text.encode()).decode()}"}
    fields = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    answer = await token(pillarbox, {**fields, "redirect_uri": REDIRECT}, headers=headers)
    assert answer.status_code == 200, answer.text


async def test_a_disabled_program_is_unknown(pillarbox: World) -> None:
    program = await allowed(pillarbox)
    await pillarbox.pool.execute(
        "UPDATE oauth_clients SET disabled_at = now() WHERE id = $1", UUID(program.client_id)
    )
    answer = await refresh(pillarbox, program.client_id, program.tokens["refresh_token"])
    assert is_error(answer, 401, "invalid_client")


# How it is sent -----------------------------------------------------------------------------------


async def test_bodies_that_cannot_be_read_are_refused(pillarbox: World) -> None:
    """OA-06."""
    client_id = (await register(pillarbox))["client_id"]
    client = pillarbox.client(None)
    form, is_json = "application/x-www-form-urlencoded", "application/json"
    right = f"grant_type=refresh_token&refresh_token=x&client_id={client_id}"
    cases: dict[str, tuple[str | None, bytes]] = {
        "no type": (None, right.encode()),
        "text": ("text/plain", right.encode()),
        "multipart": ("multipart/form-data; boundary=x", right.encode()),
        "nothing": (form, b""),
        "twice": (form, f"{right}&grant_type=refresh_token".encode()),
        "an unknown one twice": (form, f"{right}&x=1&x=1".encode()),
        "twice, once empty": (form, f"{right}&grant_type=".encode()),
        "not UTF-8": (form, f"{right}&x=%ff".encode()),
        "too many": (form, ("a=1&" * 2000 + right).encode()),
        "JSON twice": (is_json, b'{"grant_type":"x","grant_type":"y","client_id":"z"}'),
        "JSON of numbers": (is_json, b'{"grant_type":1,"client_id":"z"}'),
        "nested JSON": (is_json, b'{"grant_type":{"a":"b"},"client_id":"z"}'),
        "a list": (is_json, b"[]"),
        "no JSON": (is_json, b"{"),
        "deep JSON": (is_json, b"[" * 60_000),
        "no grant type": (form, f"client_id={client_id}".encode()),
        "an empty grant type": (form, f"grant_type=&client_id={client_id}".encode()),
        "no client": (form, b"grant_type=refresh_token&refresh_token=x"),
        "no token": (form, f"grant_type=refresh_token&client_id={client_id}".encode()),
        "no code": (form, f"grant_type=authorization_code&client_id={client_id}".encode()),
    }
    for name, (media, body) in cases.items():
        request = client.build_request("POST", "/oauth/token", content=body)
        request.headers.pop("content-type", None)
        if media is not None:
            request.headers["content-type"] = media
        assert is_error(await client.send(request), 400, "invalid_request"), name
    packed = await client.post(
        "/oauth/token", content=right, headers={"content-type": form, "content-encoding": "gzip"}
    )
    assert is_error(packed, 400, "invalid_request")
    large = await client.post("/oauth/token", data={"x": "a" * 70_000})
    assert is_error(large, 413, "invalid_request")
    in_query = await client.post(f"/oauth/token?{right}", data={"x": "y"})
    assert is_error(in_query, 400, "invalid_request")
    for other in ("password", "client_credentials", "implicit", "AUTHORIZATION_CODE"):
        answer = await token(pillarbox, {"grant_type": other, "client_id": client_id})
        assert is_error(answer, 400, "unsupported_grant_type")


async def test_json_is_as_good_as_a_form_and_resource_is_ignored(pillarbox: World) -> None:
    _, made, code = await a_code(pillarbox)
    body = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "client_id": made["client_id"],
        "resource": "https://mail.harbor.example",
        "client_secret": "",
    }
    answer = await pillarbox.client(None).post("/oauth/token", json=body)
    assert answer.status_code == 200, answer.text
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")


async def test_who_fails_often_is_told_to_wait(database_url: str, tmp_path: Path) -> None:
    """60 failures a minute of a program, or of an address; who is right is let in all the same."""
    clock = ManualClock()
    async with manual_world(database_url, tmp_path, clock, trusted_proxy="127.0.0.1") as pillarbox:
        program, other = await allowed(pillarbox), await allowed(pillarbox)

        async def fails(client_id: str, address: str) -> httpx.Response:
            fields = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
            return await token(pillarbox, fields, headers={"x-forwarded-for": address})

        for number in range(60):
            assert (await fails(program.client_id, f"203.0.113.{number}")).status_code == 400
        refused = await fails(program.client_id, "203.0.113.200")
        assert is_error(refused, 429, "too_many_requests")
        assert refused.headers["retry-after"] == "60"
        assert (await fails(other.client_id, "203.0.113.201")).status_code == 400
        held = program.tokens["refresh_token"]
        assert (await refresh(pillarbox, program.client_id, held)).status_code == 200
        clock.advance(60)
        assert (await fails(program.client_id, "203.0.113.200")).status_code == 400


# Revoking -----------------------------------------------------------------------------------------


async def revoked(pillarbox: World, **fields: str) -> httpx.Response:
    return await pillarbox.client(None).post("/oauth/revoke", data=fields)


async def test_what_is_not_a_refresh_token_of_the_program_changes_nothing(running: World) -> None:
    """OA-07: 200 all the same (RFC 7009, 2.2)."""
    program, other = await allowed(running), await allowed(running)
    for text in ("unknown", other.tokens["refresh_token"], program.tokens["access_token"], "\0"):
        answer = await revoked(running, client_id=program.client_id, token=text)
        assert (answer.status_code, answer.content) == (200, b""), text
        assert answer.headers["content-length"] == "0"
    for one in (program, other):
        assert await reasons(one.team) == [None]


@pytest.mark.parametrize("which", ["newest", "rotated"])
async def test_a_refresh_token_revokes_the_whole_grant(running: World, which: str) -> None:
    """OA-07."""
    program: Allowed = await allowed(running)
    held = program.tokens["refresh_token"]
    newest = (await refresh(running, program.client_id, held)).json()
    text = held if which == "rotated" else newest["refresh_token"]
    body = {"client_id": program.client_id, "token": text, "token_type_hint": "refresh_token"}
    answer = await running.client(None).post("/oauth/revoke", json=body)
    assert (answer.status_code, answer.content) == (200, b"")
    assert await reasons(program.team) == ["revoked_by_client"]
    for acting in (program.acting, program.team.using(newest["access_token"])):
        assert (await acting.get("/domains")).status_code == 401
    again = await revoked(running, client_id=program.client_id, token=text)
    assert again.status_code == 200
    answer = await refresh(running, program.client_id, newest["refresh_token"])
    assert is_error(answer, 400, "invalid_grant")


async def test_revoking_asks_who_it_is(pillarbox: World) -> None:
    made = await register(pillarbox, token_endpoint_auth_method="client_secret_post")
    client_id = made["client_id"]
    assert is_error(await revoked(pillarbox, token="x"), 400, "invalid_request")
    assert is_error(await revoked(pillarbox, client_id=client_id, token="x"), 401, "invalid_client")
    proof = {"client_id": client_id, "client_secret": made["client_secret"]}
    assert is_error(await revoked(pillarbox, **proof), 400, "invalid_request")
    answer = await revoked(pillarbox, **proof, token="x", token_type_hint="access_token")
    assert is_error(answer, 400, "invalid_request")
    assert (await revoked(pillarbox, **proof, token="x", token_type_hint="other")).status_code == 200


async def test_only_hashes_of_codes_and_tokens_are_kept(pillarbox: World) -> None:
    """OA-12."""
    _, made, code = await a_code(pillarbox)
    tokens = (await exchange(pillarbox, made["client_id"], code)).json()
    kept = [
        str([dict(row) for row in await pillarbox.pool.fetch(f"SELECT * FROM {table}")])
        for table in ("oauth_codes", "oauth_refresh_tokens", "oauth_grants", "audit_entries", "logs")
    ]
    for secret in (code, tokens["refresh_token"], tokens["access_token"]):
        assert not any(secret in text for text in kept)


@pytest.mark.parametrize("path", ["token", "revoke"])
async def test_half_a_character_in_json_is_no_json(pillarbox: World, path: str) -> None:
    for name in ("client_id", "client_secret", "token", "scope", "\\ud800"):
        body = f'{{"client_id": "{uuid4()}", "x": null}}'.replace("x", name).replace("null", '"\\ud800"')
        headers = {"content-type": "application/json"}
        answer = await pillarbox.client(None).post(f"/oauth/{path}", content=body, headers=headers)
        assert is_error(answer, 400, "invalid_request"), name
