"""Registering programs (RFC 7591; oauth.md 3)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit.client import error
from kit.manual_world import clock_of, manual_world
from kit.oauth_flow import REDIRECT, registration
from kit.world import World
from pillarbox.oauth.clients import redirects
from pillarbox.oauth.clients.clients import hashed

DEFAULTS = ["client_id", "client_id_issued_at", "client_name", "redirect_uris", "grant_types"]
DEFAULTS += ["response_types", "token_endpoint_auth_method", "scope"]


def bad(why: str, *, error: str = "invalid_request", **fields: Any) -> Any:
    return pytest.param(fields, error, id=why)


LONG = "https://quill.example/" + "a" * (2048 - len("https://quill.example/"))

REFUSED = [
    bad("no name", client_name=None),
    bad("an empty name", client_name=""),
    bad("a name of spaces", client_name="   "),
    bad("a name that nobody sees", client_name="\u200b\u2060\u034f"),
    bad("201 characters", client_name="é" * 201),
    bad("a number as a name", client_name=7),
    bad("a control character", client_name="Qu\u0007ill"),
    bad("a NUL", client_name="Qu\u0000ill"),
    bad("a line break", client_name="Qu\nill"),
    bad("no redirects", redirect_uris=None),
    bad("an empty list", redirect_uris=[]),
    bad("11 redirects", redirect_uris=[f"{REDIRECT}/{number}" for number in range(11)]),
    bad("a text for a list", redirect_uris=REDIRECT),
    bad("a number in the list", redirect_uris=[7]),
    bad("an empty redirect", redirect_uris=[""]),
    bad("2049 characters", redirect_uris=[LONG + "a"]),
    *(
        bad(f"redirect {uri}", redirect_uris=[uri])
        for uri in (
            "http://quill.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://localhost.evil.example/cb",
            "http://[::ffff:127.0.0.1]/cb",
            "http://localhost@evil.example/cb",
            "http://127.0.0.1@evil.example/cb",
            "http://user@localhost/cb",
            "http://127.0.0.2/cb",
            "http://localhost:99999/cb",
            "http:///cb",
            "http:cb",
            "https://",
            "https:///cb",
            "https:quill.example",
            "https:/quill.example/cb",
            "https://quill.example:x/cb",
            "https://quill.example/cb#part",
            "https://quill.example/cb#",
            "https://quill.example/a b",
            "https://quill.example/\\evil",
            "https://quill.example\\@evil.example/cb",
            " https://quill.example/cb",
            "https://quill.example/cb\n",
            "https://quill.example/é",
            "/cb",
            "cb",
            "://cb",
            "1app:/cb",
            "app:",
            "//quill.example/cb",
            "file:///etc/passwd",
            "ftp://quill.example/cb",
            "data:text/html,x",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "blob:https://quill.example/x",
            "about:blank",
            "VBScript:x",
        )
    ),
    bad("a good and a bad one", redirect_uris=[REDIRECT, "http://quill.example"]),
    bad("no code", grant_types=["refresh_token"]),
    bad("no grant types", grant_types=[]),
    bad("a grant type that is none", grant_types=["authorization_code", "password"]),
    bad("a text of grant types", grant_types="authorization_code"),
    bad("response type token", response_types=["token"]),
    bad("response types code and token", response_types=["code", "token"]),
    bad("no response types", response_types=[]),
    bad("a scope that is none", error="invalid_scope", scope="domains:read"),
    bad("a scope and one that is none", error="invalid_scope", scope="emails:send openid"),
    bad("an empty scope", error="invalid_scope", scope=""),
    bad("two spaces", error="invalid_scope", scope="emails:send  full_access"),
    bad("a list of scopes", scope=["emails:send"]),
    bad("a method that is none", token_endpoint_auth_method="private_key_jwt"),
    bad("a number as method", token_endpoint_auth_method=7),
    bad("a client_uri that is none", client_uri="quill"),
    bad("a client_uri of 2049", client_uri=LONG + "a"),
    bad("a client_uri of javascript", client_uri="javascript:alert(1)"),
    bad("a logo over http", logo_uri="http://quill.example/logo.png"),
    bad("a logo of data", logo_uri="data:image/png;base64,aGk="),
    bad("a bad redirect before a bad scope", redirect_uris=["http://quill.example"], scope="openid"),
]


async def asked(pillarbox: World, body: Any = None, **options: Any) -> Any:
    given = {"json": body} if body is not None else {}
    return await pillarbox.client(None).post("/oauth/register", **given, **options)


async def test_bad_registrations_write_nothing(pillarbox: World) -> None:
    """OA-01: a table of bodies."""
    wrong = {}
    for case in REFUSED:
        fields, expected = case.values
        answer = await asked(pillarbox, registration(**fields))
        if (answer.status_code, answer.json()["error"]) != (400, expected):
            wrong[case.id] = answer.text
        text = answer.json()["error_description"]
        assert re.fullmatch(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+", text), text
        assert list(answer.json()) == ["error", "error_description"]
    assert wrong == {}
    assert await pillarbox.pool.fetchval("SELECT count(*) FROM oauth_clients WHERE NOT is_built_in") == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"null", b"\xff", b"[" * 100_000, b'{"client_name": "\\ud800"}'],
    ids=["nothing", "a bracket", "a list", "a text", "null", "not UTF-8", "deep", "a lone surrogate"],
)
async def test_bodies_that_are_no_object_are_refused(pillarbox: World, body: bytes) -> None:
    for media in ("application/json", "text/plain"):
        answer = await asked(pillarbox, content=body, headers={"content-type": media})
        # More than a registration may have is too large, whatever it is.
        assert answer.status_code == (413 if len(body) > 65536 else 400), answer.text
        assert answer.json()["error"] == "invalid_request"
        assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_registration_gets_defaults_and_is_echoed_in_order(pillarbox: World) -> None:
    answer = await asked(pillarbox, registration(scope="emails:send", unknown={"a": [1]}))
    made = answer.json()
    assert answer.status_code == 201
    assert list(made) == DEFAULTS
    assert UUID(made["client_id"]).version == 4
    assert made["client_id_issued_at"] == int(pillarbox.clock.now().timestamp())
    assert made["redirect_uris"] == [REDIRECT]
    assert made["grant_types"] == ["authorization_code", "refresh_token"]
    assert made["response_types"] == ["code"]
    assert (made["token_endpoint_auth_method"], made["scope"]) == ("none", "emails:send")
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_what_is_given_is_given_back(pillarbox: World) -> None:
    """OA-01."""
    uris = [
        *("http://127.0.0.1/cb", "http://localhost:1/cb?a=b", "http://[::1]:65535", "http://localhost"),
        *("cursor://any/cb", "com.example.app:/cb", "HTTPS://Quill.example:8443/CB?x=%2F&", LONG),
        *("https://user@quill.example/", REDIRECT),
    ]
    wanted = registration(
        client_name=f"  {'ü' * 200}  ",
        redirect_uris=[*uris, *uris[:0]],
        grant_types=["authorization_code", "authorization_code"],
        response_types=["code"],
        scope="emails:send full_access emails:send",
        token_endpoint_auth_method="client_secret_post",
        client_uri="http://quill.example",
        logo_uri="https://quill.example/logo.png",
    )
    made = (await asked(pillarbox, wanted)).json()
    extra = ["client_uri", "logo_uri", "client_secret", "client_secret_expires_at"]
    assert list(made) == DEFAULTS + extra
    assert made["client_name"] == "ü" * 200
    assert made["redirect_uris"] == uris
    assert made["grant_types"] == ["authorization_code"]
    assert made["scope"] == "emails:send full_access"
    assert (made["client_uri"], made["logo_uri"]) == (wanted["client_uri"], wanted["logo_uri"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", made["client_secret"])
    assert made["client_secret_expires_at"] == 0
    row = await pillarbox.pool.fetchrow("SELECT * FROM oauth_clients WHERE id = $1", UUID(made["client_id"]))
    assert row["secret_hash"] == hashed(made["client_secret"])
    assert made["client_secret"] not in str(dict(row))
    assert row["redirect_uris"] == uris
    assert row["is_verified"] is False


async def test_duplicates_are_collapsed_and_null_is_absent(pillarbox: World) -> None:
    body = {**registration(redirect_uris=[REDIRECT, REDIRECT]), "scope": None, "grant_types": None}
    made = (await asked(pillarbox, body)).json()
    assert made["redirect_uris"] == [REDIRECT]
    assert made["scope"] == "full_access emails:send"


async def test_a_body_without_content_type_and_a_foreign_credential_are_taken(pillarbox: World) -> None:
    body = b'{"client_name": "Quill", "redirect_uris": ["https://quill.example/cb"]}'
    client = pillarbox.client("re_nobody")
    request = client.build_request("POST", "/oauth/register", content=body)
    request.headers.pop("content-type", None)
    assert (await client.send(request)).status_code == 201


async def test_the_21st_registration_of_an_hour_is_put_off(pillarbox: World) -> None:
    """OA-01: RFC 7591 point of section 10; each of the last 60 minutes counts, and failures do not."""
    clock = clock_of(pillarbox)
    for number in range(20):
        assert (await asked(pillarbox, registration(client_name=""))).status_code == 400
        assert (await asked(pillarbox, registration())).status_code == 201, number
        clock.advance(60)
    refused = await asked(pillarbox, registration(client_name=""))
    assert (refused.status_code, refused.json()["error"]) == (429, "too_many_requests")
    assert refused.headers["retry-after"] == str(3600 - 20 * 60)
    clock.advance(3600 - 20 * 60 - 1)
    assert (await asked(pillarbox, registration())).status_code == 429
    clock.advance(1)
    assert (await asked(pillarbox, registration())).status_code == 201
    assert (await asked(pillarbox, registration())).status_code == 429
    clock.advance(60)
    assert (await asked(pillarbox, registration())).status_code == 201


async def test_an_address_of_ipv6_counts_by_its_network(database_url: str, tmp_path: Path) -> None:
    async with manual_world(database_url, tmp_path, trusted_proxy="127.0.0.1") as pillarbox:

        async def comes_from(address: str) -> int:
            answer = await asked(pillarbox, registration(), headers={"x-forwarded-for": address})
            return int(answer.status_code)

        for number in range(20):
            assert await comes_from(f"2001:db8:1:2::{number:x}") == 201
        assert await comes_from("2001:db8:1:2:ffff::1") == 429
        assert await comes_from("2001:db8:1:3::1") == 201
        assert await comes_from("203.0.113.7") == 201


async def test_other_methods_and_preflights(pillarbox: World) -> None:
    client = pillarbox.client(None)
    answer = await client.get("/oauth/register")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    for path, allowed in (
        ("/oauth/register", "POST"),
        ("/oauth/token", "POST"),
        ("/oauth/revoke", "POST"),
        ("/.well-known/jwks.json", "GET, HEAD"),
        ("/.well-known/oauth-authorization-server", "GET, HEAD"),
        ("/.well-known/oauth-protected-resource", "GET, HEAD"),
    ):
        for method in ("DELETE", "PATCH"):
            wrong = await client.request(method, path, headers={"origin": "https://app.example"})
            assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (405, "*")
        preflight = await client.options(path, headers={"origin": "https://app.example"})
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert preflight.headers["access-control-allow-methods"] == allowed
        allowed_headers = preflight.headers["access-control-allow-headers"]
        assert {"Authorization", "MCP-Protocol-Version"} < set(allowed_headers.split(", "))
    for path in ("/oauth/authorize", "/oauth/authorize/x"):
        preflight = await client.options(path, headers={"origin": "https://app.example"})
        assert preflight.status_code == 204
        assert "access-control-allow-origin" not in preflight.headers
    assert error(await client.get("/.well-known/openid-configuration"))[0] == 404


@pytest.mark.parametrize(
    ("registered", "given", "is_one"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:49801/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", True),
        ("http://localhost/cb", "http://localhost:3/cb", True),
        ("http://[::1]/cb", "http://[::1]:3/cb", True),
        ("http://localhost?a=b", "http://localhost:3?a=b", True),
        ("http://localhost/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1/cb", "http://localhost/cb", False),
        ("http://127.0.0.1/cb", "http://[::1]/cb", False),
        ("http://127.0.0.1/cb", "https://127.0.0.1:3/cb", False),
        ("http://127.0.0.1/cb", "HTTP://127.0.0.1:3/cb", False),
        ("http://localhost/cb", "http://LOCALHOST:3/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3/cb/", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3/cb?x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3/CB", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3/cb#x", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3@evil.example/cb", False),
        ("http://127.0.0.1/cb", "http://user@127.0.0.1:3/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:/cb", False),
        ("http://127.0.0.1/cb", "http://127.0.0.1:3\\cb", False),
        ("http://127.0.0.1", "http://127.0.0.1:3", True),
        ("http://127.0.0.1", "http://127.0.0.1:3/", False),
        ("https://good.example/cb", "https://good.example:443/cb", False),
        ("https://good.example/cb", "https://good.example:8443/cb", False),
        ("https://good.example/cb", "https://good.example/cb/", False),
        ("https://good.example/cb", "https://GOOD.example/cb", False),
        ("https://good.example/cb", "https://good.example/cb?x=1", False),
        ("https://good.example/cb", "https://good.example/%63b", False),
        ("https://good.example/cb", "https://good.example@evil.example/cb", False),
        ("https://good.example/cb", "https://good.example.evil.example/cb", False),
        ("cursor://any/cb", "cursor://any:1/cb", False),
        ("cursor://any/cb", "cursor://any/cb", True),
    ],
)
def test_which_redirect_is_a_registered_one(registered: str, given: str, is_one: bool) -> None:
    """OA-02: to the letter, but for the port of a loopback URI (RFC 8252, 7.3)."""
    assert redirects.matches(given, [registered]) is is_one


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://quill.example/cb", "https://quill.example/cb?code=a+b%26&iss=x"),
        ("https://quill.example/cb?a=b", "https://quill.example/cb?a=b&code=a+b%26&iss=x"),
        ("https://quill.example/cb?", "https://quill.example/cb?code=a+b%26&iss=x"),
        ("cursor://any/cb", "cursor://any/cb?code=a+b%26&iss=x"),
        ("com.example.app:/cb", "com.example.app:/cb?code=a+b%26&iss=x"),
    ],
)
def test_how_an_answer_is_added(uri: str, expected: str) -> None:
    assert redirects.with_answer(uri, {"code": "a b&", "state": None, "iss": "x"}) == expected


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://quill.example/cb", "quill.example"),
        ("https://good.example@evil.example:8443/cb", "evil.example:8443"),
        ("http://[::1]:49801/cb", "[::1]:49801"),
        ("cursor://good.example/cb", "cursor:"),
    ],
)
def test_what_people_are_shown_of_a_redirect(uri: str, shown: str) -> None:
    assert redirects.place(uri) == shown


@pytest.mark.parametrize(
    "host", ["ex%61mple.com", "example%2ecom", "exam ple.com", "ex\u0430mple.com", "a,b.example"]
)
async def test_a_redirect_host_is_what_people_read(host: str, pillarbox: World) -> None:
    """oauth.md 3: a host that is written otherwise than it is understood is no host."""
    body = {"client_name": "Quill", "redirect_uris": [f"https://{host}/cb"]}
    answer = await pillarbox.client(None).post("/oauth/register", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error_description"].startswith("redirect_uris[0]: must ")
