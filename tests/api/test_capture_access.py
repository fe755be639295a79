"""Who may look at captured mail: this machine, under a known name, with the token of this start."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import httpx

from kit.captured import TOKEN, CaptureWorld, capture_world
from kit.client import error
from pillarbox.capture.access import CaptureAccess
from pillarbox.kernel.http.pipeline import Api

PAGES = ("/capture", "/capture/0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44", "/capture/x/html", "/capture/x/raw")
PARTS = ("/capture/0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44/parts/2", "/capture/x/parts/y")
JSON = ("/capture.json", "/capture.json/0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44")


def from_address(world: CaptureWorld, address: str) -> httpx.AsyncClient:
    """A client whose connection comes from that address."""
    app = Api(world.http_server.table, world.http_server.services)
    transport = httpx.ASGITransport(app, client=(address, 40000))  # type: ignore[arg-type]
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


async def test_the_printed_link_leaves_a_cookie_and_no_token_in_the_address(capture: CaptureWorld) -> None:
    """UI-05, UI-06: HttpOnly, SameSite=Strict."""
    async with capture.http_server.client() as browser:
        answer = await browser.get("/capture", params={"token": TOKEN, "q": "a&b"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/capture?q=a%26b"
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("pillarbox_capture=")
        assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert answer.headers["referrer-policy"] == "no-referrer"
        for path in ("/capture", "/capture.json"):
            assert (await browser.get(path)).status_code == 200


async def test_slashes_at_the_beginning_open_nothing(capture: CaptureWorld) -> None:
    """`//capture` is `/capture`: guarded like it, and its redirect stays on this host (UI-07)."""
    for query, status in (("", b"403"), (f"?token={TOKEN}x", b"403"), (f"?token={TOKEN}", b"303")):
        head = f"GET //capture{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = await capture.http_server.raw(head.encode())
        assert answer[9:12] == status
        assert (b"\r\nlocation: /capture\r\n" in answer) == (status == b"303")
    foreign = f"GET //evil.example/capture?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\n"
    assert (await capture.http_server.raw(foreign.encode() + b"Connection: close\r\n\r\n"))[9:12] == b"404"


async def test_a_wrong_token_is_refused_everywhere(capture: CaptureWorld) -> None:
    async with capture.http_server.client() as browser:
        for token in ("", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "ü" * 300):
            for path in PAGES:
                answer = await browser.get(path, params={"token": token})
                assert answer.status_code == 403, token
                assert "set-cookie" not in answer.headers
            bearer = {"authorization": f"Bearer  {token}x".encode()}
            for path in JSON:
                refused = await browser.get(path, headers=bearer, params={"token": TOKEN})  # type: ignore[arg-type]
                assert error(refused)[:2] == (403, "validation_error"), token


async def test_without_the_token_pages_say_where_the_link_is(capture: CaptureWorld) -> None:
    async with capture.http_server.client() as browser:
        for path in (*PAGES, *PARTS):
            answer = await browser.get(path)
            assert answer.status_code == 403
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "pillarbox serve" in answer.text
            assert "default-src 'none'" in answer.headers["content-security-policy"]
        for path in JSON:
            refused = await browser.get(path)
            assert error(refused)[0] == 403
            assert "Authorization: Bearer" in refused.json()["message"], "a program cannot follow a link"
        assert error(await browser.delete("/capture.json"))[0] == 403
        assert (await browser.post("/capture/clear")).status_code == 403


async def test_a_wrong_cookie_is_refused(capture: CaptureWorld) -> None:
    async with capture.http_server.client() as browser:
        for cookie in ("", "wrong", TOKEN, capture.guard.derived("form")):
            headers = {"cookie": f"pillarbox_capture={cookie}"}
            assert (await browser.get("/capture", headers=headers)).status_code == 403, cookie
            assert (await browser.get("/capture.json", headers=headers)).status_code == 403, cookie


async def test_only_names_of_this_machine_are_answered_to(database_url: str, tmp_path: Path) -> None:
    """DNS rebinding: a foreign name that points to loopback gets nothing, even with the token."""
    known = [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1:8080",
        "[::1]:8080",
        "pillar.example",
        "app.pillar.example",
    ]
    foreign = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "127.0.0.2",
        "",
    ]
    async with capture_world(database_url, tmp_path) as world, world.program() as program:
        for name in known:
            assert (await program.get("/capture.json", headers={"host": name})).status_code == 200, name
        for name in foreign:
            assert (await program.get("/capture.json", headers={"host": name})).status_code == 403, name
            page = await program.get("/capture", params={"token": TOKEN}, headers={"host": name})
            assert page.status_code == 403, name
            assert "set-cookie" not in page.headers
        assert (await program.get("/capture.json", headers={"host": "["})).status_code == 400


async def test_only_connections_of_this_machine_are_answered(capture: CaptureWorld) -> None:
    for address in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"):
        async with from_address(capture, address) as client:
            assert (await client.get("/capture.json")).status_code == 200, address
    for address in ("192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "fe80::1", "not an address"):
        async with from_address(capture, address) as client:
            headers = {"x-forwarded-for": "127.0.0.1"}
            assert error(await client.get("/capture.json", headers=headers))[0] == 403, address
            assert (await client.get("/capture", params={"token": TOKEN})).status_code == 403, address


async def test_a_host_that_holds_more_than_a_name_is_no_name_of_this_machine(
    database_url: str, tmp_path: Path
) -> None:
    """It would stand in the policy of the page; our own protocol does not even take such a request."""
    hosts = (
        "localhost:80; script-src *",
        "localhost *",
        "localhost,evil.example",
        "localhost/x",
        "x@localhost",
    )
    async with capture_world(database_url, tmp_path) as world, from_address(world, "127.0.0.1") as client:
        captured = await world.captured_id(await world.mail())
        assert (await client.get(f"/capture/{captured}/html")).status_code == 200
        for host in hosts:
            refused = await client.get(f"/capture/{captured}/html", headers={"host": host})
            assert refused.status_code == 403, host
            assert "script-src *" not in refused.headers["content-security-policy"]


async def test_a_change_with_the_cookie_must_come_from_our_own_page(capture: CaptureWorld) -> None:
    """UI-06: cross-site forms and scripts change nothing."""
    await capture.mail()
    form = {"form": capture.guard.derived("form")}
    foreign = [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": capture.http_server.url},
        {"sec-fetch-site": "none"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {},
    ]
    async with capture.person() as browser:
        for headers in foreign:
            posted = await browser.post("/capture/clear", data=form, headers=headers)
            assert posted.status_code == 403, headers
            deleted = await browser.delete("/capture.json", headers=headers)
            assert error(deleted)[0] == 403, headers
        own = {"sec-fetch-site": "same-origin"}
        many = {f"field{number}": "x" for number in range(20)}
        for fields in ({}, {"form": "wrong"}, {"form": capture.guard.derived("cookie")}, many):
            refused = await browser.post("/capture/clear", data=fields, headers=own)
            assert refused.status_code == 403, fields
        assert (await browser.get("/capture/clear", headers=own)).status_code == 405
        assert await capture.http_server.pool.fetchval("SELECT count(*) FROM captured") == 1
        cleared = await browser.post("/capture/clear", data=form, headers={"origin": capture.http_server.url})
        assert (cleared.status_code, cleared.headers["location"]) == (303, "/capture")
    assert await capture.http_server.pool.fetchval("SELECT count(*) FROM captured") == 0


async def test_the_key_of_a_picture_opens_that_picture_alone(capture: CaptureWorld) -> None:
    async with capture.http_server.client() as nobody:
        captured = await capture.captured_id(await capture.mail())
        key = capture.guard.picture_key(captured, 2)
        for path in (
            f"/capture/{captured}/parts/1",
            f"/capture/{captured}/raw",
            f"/capture/{captured}",
            "/capture",
        ):
            assert (await nobody.get(path, params={"key": key})).status_code == 403, path


def test_the_token_is_in_no_repr() -> None:
    """SEC-05."""
    assert TOKEN not in repr(CaptureAccess.named(TOKEN, [], "http://localhost:8080"))


async def test_a_network_that_the_operator_named_may_look_with_the_token_alone(
    database_url: str, tmp_path: Path
) -> None:
    """In a container the machine around it has an address of the container's network."""
    networks = (ip_network("172.16.0.0/12"), ip_network("fd00::/8"))
    async with capture_world(database_url, tmp_path, networks=networks) as world:
        for address in ("172.18.0.1", "::ffff:172.18.0.1", "fd12::1", "127.0.0.1"):
            async with from_address(world, address) as near:
                assert (await near.get("/capture.json")).status_code == 200, address
                assert (await near.get("/capture.json", headers={"host": "evil.example"})).status_code == 403
                refused = await near.get("/capture.json", headers={"authorization": "Bearer wrong"})
                assert refused.status_code == 403, address
        for address in ("192.168.1.2", "fe80::1", "203.0.113.9"):
            async with from_address(world, address) as far:
                assert "capture_networks" in (await far.get("/capture.json")).json()["message"], address
