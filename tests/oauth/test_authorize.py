"""The endpoint that people are sent to (RFC 6749, 4.1; oauth.md 5)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import httpx
import pytest

from kit.oauth_flow import REDIRECT, answered, parameters, register
from kit.people import SESSION, a_person, logged_in, text_of, visit
from kit.world import World
from pillarbox.oauth.authorization import MOST_OF_ADDRESS

BUILT_IN = "7136aa0b-625c-4c9c-8820-e9784c8eb141"
PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
REPEATED = ("response_type", "scope", "state", "code_challenge", "code_challenge_method")


async def asked(
    pillarbox: World, fields: dict[str, str] | str, method: str = "GET", **headers: str
) -> httpx.Response:
    query = fields if isinstance(fields, str) else str(httpx.QueryParams(fields))
    client = pillarbox.client(None)
    return await client.request(method, f"/oauth/authorize?{query}", headers=headers, follow_redirects=False)


async def vouched(pillarbox: World) -> str:
    """The cookie of somebody who has logged in, where the operator has verified the programs there are."""
    await pillarbox.pool.execute("UPDATE oauth_clients SET is_verified = true")
    person = await a_person(await pillarbox.team(), "verity@people.example")
    browser = await logged_in(pillarbox, person)
    return f"{SESSION}={browser.cookies[SESSION]}"


async def rows(pillarbox: World) -> int:
    return int(await pillarbox.pool.fetchval("SELECT count(*) FROM oauth_requests"))


async def test_whoever_may_not_be_sent_on_sees_why(pillarbox: World) -> None:
    """OA-02: an unknown client, or a redirect that is not its own, is answered here (RFC 6749, 4.1.2.1)."""
    made = await register(pillarbox, redirect_uris=[REDIRECT, "http://127.0.0.1/cb"])
    right = parameters(made["client_id"])
    twice = f"{httpx.QueryParams(right)}&"
    disabled = (await register(pillarbox))["client_id"]
    await pillarbox.pool.execute("UPDATE oauth_clients SET disabled_at = now() WHERE id = $1", disabled)
    cases: list[tuple[str, Any, str]] = [
        ("no client", {**right, "client_id": ""}, "invalid_request"),
        ("two clients", f"{twice}client_id={made['client_id']}", "invalid_request"),
        ("an unknown client", {**right, "client_id": str(uuid4())}, "invalid_client"),
        ("a client that is none", {**right, "client_id": "quill"}, "invalid_client"),
        ("a client over http", {**right, "client_id": "http://quill.example/app"}, "invalid_client"),
        ("a NUL", {**right, "client_id": "https://quill.example/\0"}, "invalid_client"),
        ("a disabled client", {**right, "client_id": disabled}, "invalid_client"),
        ("no redirect", {**right, "redirect_uri": ""}, "invalid_request"),
        ("two redirects", f"{twice}redirect_uri={REDIRECT}", "invalid_request"),
        *(
            (uri, {**right, "redirect_uri": uri}, "invalid_request")
            for uri in (
                *("https://evil.example/cb", f"{REDIRECT}/", f"{REDIRECT}?x=1", f"{REDIRECT}#x"),
                *("https://quill.example/CB", "https://quill.example@evil.example/cb"),
                *("https://quill.example:443/cb", "http://quill.example/cb", "javascript:alert(1)"),
                *("http://localhost/cb", "http://127.0.0.1:80/other", "https://quill.example/%63b"),
            )
        ),
        (
            "a bad scope too",
            {**right, "redirect_uri": "https://evil.example", "scope": "x"},
            "invalid_request",
        ),
    ]
    for name, fields, expected in cases:
        answer = await asked(pillarbox, fields)
        assert (answer.status_code, answer.json()["error"]) == (400, expected), name
        assert "location" not in answer.headers, name
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer", name
        page = await asked(pillarbox, fields, accept=PAGE)
        assert (page.status_code, page.headers["content-type"]) == (400, "text/html; charset=utf-8"), name
        assert "location" not in page.headers
        assert page.headers["referrer-policy"] == "no-referrer", name
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert await rows(pillarbox) == 0


async def test_what_is_wrong_otherwise_is_told_to_the_program(pillarbox: World) -> None:
    """OA-03: RFC 6749, 4.1.2.1, with the issuer of RFC 9207; the state comes back as it went."""
    made = await register(pillarbox, scope="emails:send")
    state = 'a b&c=d%+é"\\<>'
    right = parameters(made["client_id"], state=state)
    one = str(httpx.QueryParams(right))
    cases: list[tuple[str, Any, str]] = [
        *(
            (f"two {name}", f"{one}&{name}=x&{name}=y", "invalid_request")
            for name in REPEATED
            if name != "state"
        ),
        ("two prompts", f"{one}&prompt=none&prompt=login", "invalid_request"),
        ("two of a long name", f"{one}&{'%22' * 2000}=1&{'%22' * 2000}=1", "invalid_request"),
        ("no response type", {**right, "response_type": ""}, "invalid_request"),
        ("token", {**right, "response_type": "token"}, "unsupported_response_type"),
        ("code token", {**right, "response_type": "code token"}, "unsupported_response_type"),
        ("fragments", {**right, "response_mode": "fragment"}, "invalid_request"),
        ("a request object", {**right, "request": "a.b.c"}, "invalid_request"),
        ("a request URI", {**right, "request_uri": "https://x.example"}, "invalid_request"),
        ("no challenge", {**right, "code_challenge": ""}, "invalid_request"),
        ("42 characters", {**right, "code_challenge": "a" * 42}, "invalid_request"),
        ("44 characters", {**right, "code_challenge": "a" * 44}, "invalid_request"),
        ("padding", {**right, "code_challenge": "a" * 42 + "="}, "invalid_request"),
        ("plus", {**right, "code_challenge": "a" * 42 + "+"}, "invalid_request"),
        ("plain", {**right, "code_challenge_method": "plain"}, "invalid_request"),
        ("s256", {**right, "code_challenge_method": "s256"}, "invalid_request"),
        ("no method", {**right, "code_challenge_method": ""}, "invalid_request"),
        ("a scope beyond", {**right, "scope": "full_access"}, "invalid_scope"),
        ("one of two beyond", {**right, "scope": "emails:send full_access"}, "invalid_scope"),
        ("a scope that is none", {**right, "scope": "openid"}, "invalid_scope"),
        (
            "a bad challenge and a bad scope",
            {**right, "code_challenge": "x", "scope": "x"},
            "invalid_request",
        ),
    ]
    cookie = await vouched(pillarbox)
    for name, fields, expected in cases:
        answer = await asked(pillarbox, fields, accept=PAGE, cookie=cookie)
        assert answer.status_code == 302, f"{name}: {answer.text}"
        location = urlsplit(answer.headers["location"])
        assert f"{location.scheme}://{location.netloc}{location.path}" == REDIRECT, name
        said = dict(parse_qsl(location.query, strict_parsing=True))
        assert list(said) == ["error", "error_description", "state", "iss"], name
        assert (said["error"], said["state"], said["iss"]) == (expected, state, pillarbox.url), name
        assert location.fragment == ""
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
    assert await rows(pillarbox) == 0


@pytest.mark.parametrize("state", ["a" * 1025, "a%00b", "%ff", "two"], ids=["long", "NUL", "octets", "two"])
async def test_a_state_that_cannot_come_back_is_left_out(pillarbox: World, state: str) -> None:
    query = str(httpx.QueryParams(parameters((await register(pillarbox))["client_id"], state=None)))
    given = "state=a&state=b" if state == "two" else f"state={state}"
    cookie = await vouched(pillarbox)
    said = answered(await asked(pillarbox, f"{query}&{given}", cookie=cookie))
    assert list(said) == ["error", "error_description", "iss"]
    assert said["error"] == "invalid_request"


async def test_a_request_in_order_waits_for_somebody(pillarbox: World) -> None:
    made = await register(pillarbox)
    longest = "é" * 1024
    fields = parameters(
        *(made["client_id"],),
        state=longest,
        scope="emails:send",
        resource="https://mail.harbor.example",
        prompt="none",
        nonce="n",
        login_hint="ada@people.example",
        response_mode="query",
    )
    answer = await asked(pillarbox, fields)
    assert answer.status_code == 302
    base = f"{pillarbox.url}/oauth/authorize/"
    assert answer.headers["location"].startswith(base)
    request_id = answer.headers["location"].removeprefix(base)
    assert len(request_id) == 43
    cookie = answer.headers["set-cookie"]
    name, _, attributes = cookie.partition("; ")
    assert name.startswith("__Host-pillarbox-authorize=")
    assert attributes == "Path=/; Secure; HttpOnly; SameSite=Lax"
    row = await pillarbox.pool.fetchrow("SELECT * FROM oauth_requests")
    assert (row["state"], row["scopes"], row["decided_at"]) == (longest, ["emails:send"], None)
    for secret in (request_id, name.partition("=")[2]):
        assert secret not in str(dict(row)), "only hashes are kept"


async def test_head_leaves_nothing_behind_and_post_is_none(pillarbox: World) -> None:
    fields = parameters((await register(pillarbox))["client_id"])
    head = await asked(pillarbox, fields, "HEAD")
    assert (head.status_code, head.content) == (302, b"")
    assert await rows(pillarbox) == 0
    refused = await asked(pillarbox, fields, "POST")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_the_built_in_client_of_the_command_line(pillarbox: World) -> None:
    """It logs in without registering, on any port of the machine (RFC 8252, 7.3)."""
    fields = parameters(BUILT_IN, redirect_uri="http://127.0.0.1:49801/oauth/callback", scope="full_access")
    assert (await asked(pillarbox, fields)).headers["location"].startswith(pillarbox.url)
    for uri in ("http://localhost:49801/oauth/callback", "http://127.0.0.1:49801/oauth/other"):
        assert (await asked(pillarbox, {**fields, "redirect_uri": uri})).status_code == 400


async def test_the_host_header_changes_no_address(pillarbox: World) -> None:
    fields = parameters((await register(pillarbox))["client_id"])
    answer = await asked(pillarbox, fields, host="evil.example")
    assert answer.headers["location"].startswith(f"{pillarbox.url}/oauth/authorize/")
    described = await pillarbox.client(None).get(
        "/.well-known/oauth-authorization-server", headers={"host": "evil.example"}
    )
    assert described.json()["issuer"] == pillarbox.url


async def test_one_browser_may_have_several_requests(running: World) -> None:
    fields = parameters((await register(running))["client_id"])
    browser = visit(running)
    for _ in range(2):
        await browser.ask("GET", "/oauth/authorize", params=fields)
    assert await running.pool.fetchval("SELECT count(DISTINCT browser_hash) FROM oauth_requests") == 1
    other = visit(running)
    other.cookies["__Host-pillarbox-authorize"] = "chosen-by-somebody"
    await other.ask("GET", "/oauth/authorize", params=fields)
    assert other.cookies["__Host-pillarbox-authorize"] != "chosen-by-somebody"


async def test_a_fault_of_ours_is_told_to_the_program(pillarbox: World) -> None:
    fields = parameters((await register(pillarbox))["client_id"])
    cookie = await vouched(pillarbox)
    await pillarbox.pool.execute("ALTER TABLE oauth_requests RENAME TO gone")
    said = answered(await asked(pillarbox, fields, cookie=cookie))
    assert (said["error"], said["state"]) == ("server_error", "k7")
    here = await asked(pillarbox, fields)
    assert (here.status_code, here.json()["error"]) == (503, "server_error")


async def test_a_program_that_nobody_vouches_for_sends_no_browser_away(pillarbox: World) -> None:
    """OA-02: anybody registers a program, so its redirect URI may be any site (RFC 9700, 4.11.2)."""
    evil = "https://phisher.example/log-in-again"
    made = await register(pillarbox, redirect_uris=[evil], client_name="Your bank")
    wrong = parameters(made["client_id"], redirect_uri=evil, scope="nonsense")
    person = await a_person(await pillarbox.team(), "victor@people.example")
    session = f"{SESSION}={(await logged_in(pillarbox, person)).cookies[SESSION]}"
    for cookie in ("", session):
        page = await asked(pillarbox, wrong, accept=PAGE, cookie=cookie)
        assert (page.status_code, "location" in page.headers) == (400, False)
        assert "Your bank is at phisher.example." in text_of(page)
        assert (f'href="{evil}' in page.text) == (cookie == session), "a link is for who has logged in"
        answer = await asked(pillarbox, wrong, cookie=cookie)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
    await pillarbox.pool.execute("UPDATE oauth_clients SET is_verified = true")
    assert (await asked(pillarbox, wrong, accept=PAGE)).status_code == 400, "nobody has logged in"
    assert (await asked(pillarbox, wrong, accept=PAGE, cookie=session)).status_code == 302


async def test_an_address_can_begin_only_so_many_requests(pillarbox: World) -> None:
    """Each is a row, and nobody has logged in yet."""
    right = parameters((await register(pillarbox))["client_id"])
    for _ in range(MOST_OF_ADDRESS):
        assert (await asked(pillarbox, right)).status_code == 302
    refused = await asked(pillarbox, right)
    assert (refused.status_code, refused.json()["error"]) == (429, "too_many_requests")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    page = await asked(pillarbox, right, accept=PAGE)
    assert (page.status_code, page.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert await rows(pillarbox) == MOST_OF_ADDRESS
    wrong = await asked(pillarbox, {**right, "scope": "openid"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_scope")
    pillarbox.clock.advance(60)
    assert (await asked(pillarbox, right)).status_code == 302


async def test_several_resources_may_be_named(pillarbox: World) -> None:
    """RFC 8707, 2: one parameter for each; they are ignored (oauth.md 5)."""
    made = await register(pillarbox, scope="emails:send")
    query = httpx.QueryParams(parameters(made["client_id"]))
    page = await asked(pillarbox, f"{query}&resource=https://a.example&resource=https://b.example")
    assert "/oauth/authorize/" in page.headers["location"]
    assert "error=" not in page.headers["location"]
