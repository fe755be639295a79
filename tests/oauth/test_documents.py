"""Programs that a document of their own site describes (client ID metadata documents; oauth.md 4)."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.http_outside import answer
from kit.oauth_flow import answered, ask, exchange, parameters, refresh
from kit.people import a_person, logged_in, text_of
from kit.program_sites import HOST, PNG, URL, ProgramSite, described, document, program_site
from pillarbox.oauth.clients import document_rules
from pillarbox.oauth.failures import UnknownClient

PAGE = "text/html"


async def asked(site: ProgramSite, client_id: str = URL, **headers: str) -> httpx.Response:
    client = site.pillarbox.client(None)
    return await client.get("/oauth/authorize", params=parameters(client_id), headers=headers)


def is_begun(site: ProgramSite, reply: httpx.Response) -> bool:
    return reply.status_code == 302 and reply.headers["location"].startswith(site.pillarbox.url)


def is_unknown(reply: httpx.Response) -> bool:
    return (reply.status_code, reply.json()["error"]) == (400, "invalid_client")


async def test_a_program_is_let_in_without_registering(database_url: str, tmp_path: Path) -> None:
    """OA-09, OA-10: consent names the host, and no token needs another look at the document."""
    async with program_site(database_url, tmp_path, document(client_name="Quill by evil.example")) as site:
        team = await site.pillarbox.team()
        visit = await logged_in(site.pillarbox, await a_person(team, "ada@people.example"))
        asking = await ask(visit, URL)
        page = await asking.page()
        assert f"<strong><bdi>{HOST}</bdi></strong>" in page.text
        assert "Quill by evil.example" in page.text
        assert "unverified" not in page.text
        code = await asking.approve()
        tokens = (await exchange(site.pillarbox, URL, code)).json()
        assert (await team.using(tokens["access_token"]).get("/domains")).status_code == 200
        renewed = await refresh(site.pillarbox, URL, tokens["refresh_token"])
        assert renewed.status_code == 200, renewed.text
        secret = await refresh(site.pillarbox, URL, renewed.json()["refresh_token"], client_secret="x")
        assert (secret.status_code, secret.json()["error"]) == (401, "invalid_client")
        gone = {"client_id": URL, "token": renewed.json()["refresh_token"]}
        assert (await site.pillarbox.client(None).post("/oauth/revoke", data=gone)).status_code == 200
        [grant] = (await team.get("/oauth/grants")).json()["data"]
        assert (grant["client_id"], grant["revoked_reason"]) == (URL, "revoked_by_client")
        assert site.server.connections == 1
        [request] = site.server.requests
        lines = site.server.header_lines
        assert request.startswith(b"GET /app HTTP/1.1\r\n")
        assert f"host: {HOST}" in lines
        assert "accept: application/json" in lines
        assert not any(line.startswith(("cookie:", "authorization:", "referer:")) for line in lines)


async def test_a_document_is_asked_for_again_when_its_time_is_over(database_url: str, tmp_path: Path) -> None:
    first = document(None, "Cache-Control: max-age=600")
    async with program_site(database_url, tmp_path, first, document()) as site:
        assert is_begun(site, await asked(site))
        site.clock.advance(599)
        assert is_begun(site, await asked(site))
        assert site.server.connections == 1
        site.clock.advance(2)
        assert is_begun(site, await asked(site))
        assert site.server.connections == 2


async def test_a_name_that_moves_to_a_private_address_is_not_followed(
    database_url: str, tmp_path: Path
) -> None:
    """OA-09: SSRF: what a name means is looked up for each fetch, and checked."""
    async with program_site(database_url, tmp_path, document()) as site:
        assert is_begun(site, await asked(site))
        site.clock.advance(301 + 24 * 3600)
        site.zone.remove(HOST, "A")
        site.zone.add(HOST, "A", "10.0.0.7")
        assert is_unknown(await asked(site))
        site.zone.add(HOST, "A", "127.0.0.1")
        assert is_unknown(await asked(site)), "one private address of several is enough"
        assert site.server.connections == 1


def _not_there(name: str, octets: bytes) -> Any:
    return pytest.param(octets, id=name)


LONG = json.dumps(described(client_name="Quill", extra="a" * 6000)).encode()
PACKED = gzip.compress(json.dumps(described()).encode())


@pytest.mark.parametrize(
    "octets",
    [
        _not_there("another client_id", document(client_id=f"{URL}2")),
        _not_there("no client_id", document(client_id=None)),
        _not_there("a redirect", answer(b"", "Location: https://quill.example/app2", status="302 Found")),
        _not_there("404", document(status="404 Not Found")),
        _not_there("201", document(status="201 Created")),
        _not_there("6 KiB", document(LONG)),
        _not_there("HTML", document(media="text/html")),
        _not_there("no media type", document(media="")),
        _not_there("another charset", document(media="application/json; charset=iso-8859-1")),
        _not_there("a list", document(b"[]")),
        _not_there("nothing", document(b"")),
        _not_there("no JSON", document(b"{")),
        _not_there("not UTF-8", document(b'{"client_id": "\xff"}')),
        _not_there("compressed", document(PACKED, "Content-Encoding: gzip")),
        _not_there("a secret", document(client_secret="x")),
        _not_there("an end of a secret", document(client_secret_expires_at=0)),
        _not_there("a method", document(token_endpoint_auth_method="client_secret_post")),
        _not_there("no redirects", document(redirect_uris=[])),
        _not_there("a bad redirect", document(redirect_uris=["http://quill.example/cb"])),
        _not_there("a long name", document(client_name="a" * 201)),
        _not_there("another response type", document(response_types=["token"])),
        _not_there("no code", document(grant_types=["refresh_token"])),
        _not_there("other scopes alone", document(scope="openid profile")),
    ],
)
async def test_a_document_that_is_wrong_is_as_none(database_url: str, tmp_path: Path, octets: bytes) -> None:
    """OA-09: and what failed is asked for again, never remembered."""
    async with program_site(database_url, tmp_path, octets, document()) as site:
        assert is_unknown(await asked(site))
        assert await site.pillarbox.pool.fetchval("SELECT count(*) FROM oauth_documents") == 0
        # Two seconds to connect are real ones: on a busy machine a try may take longer.
        replies = [await asked(site) for _ in range(3)]
        assert any(is_begun(site, reply) for reply in replies)


async def test_a_site_that_says_nothing_is_not_waited_for(database_url: str, tmp_path: Path) -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(60)

    async with program_site(database_url, tmp_path, silent) as site:
        began = asyncio.get_running_loop().time()
        assert is_unknown(await asked(site))
        assert asyncio.get_running_loop().time() - began < 8


async def test_what_a_document_says_besides_counts(database_url: str, tmp_path: Path) -> None:
    answers = document(
        client_name=None,
        scope="openid emails:send",
        media="application/oauth-client+json; charset=utf-8",
        logo_uri="http://quill.example/logo.png",
        grant_types=["authorization_code"],
    )
    async with program_site(database_url, tmp_path, answers) as site:
        assert is_begun(site, await asked(site))
        row = await site.pillarbox.pool.fetchrow("SELECT * FROM oauth_requests")
        kept = json.loads(row["client"])
        assert row["scopes"] == ["emails:send"]
        assert (kept["name"], kept["logo_uri"], kept["host"]) == (HOST, None, HOST)


async def test_fetches_are_counted_by_document_and_by_address(database_url: str, tmp_path: Path) -> None:
    """oauth.md 4: who makes up documents of a host locks out nobody but themselves."""
    async with program_site(database_url, tmp_path, document(status="404 Not Found")) as site:
        for _ in range(10):
            assert is_unknown(await asked(site))
        refused = await asked(site)
        assert (refused.status_code, refused.json()["error"]) == (429, "too_many_requests")
        assert refused.headers["retry-after"] == "60"
        page = await asked(site, accept=PAGE)
        assert (page.status_code, page.headers["retry-after"]) == (429, "60")
        assert "Too many tries" in text_of(page)
        assert site.server.connections == 10
        for number in range(18):
            assert is_unknown(await asked(site, f"https://{HOST}/made-up-{number}"))
        assert (await asked(site, f"https://{HOST}/one-more")).status_code == 429, "30 for one address"
        assert site.server.connections == 28
        site.clock.advance(60)
        assert is_unknown(await asked(site))


async def test_the_operator_says_whose_documents_count(database_url: str, tmp_path: Path) -> None:
    for settings, is_taken in (
        ({"oauth_cimd_enabled": "false"}, False),
        ({"oauth_cimd_refused_hosts": HOST}, False),
        ({"oauth_cimd_hosts": "other.example"}, False),
        ({"oauth_cimd_hosts": f"other.example,{HOST}"}, True),
    ):
        async with program_site(database_url, tmp_path, document(), **settings) as site:
            reply = await asked(site)
            assert is_begun(site, reply) if is_taken else is_unknown(reply), settings
            assert site.server.connections == int(is_taken)
            token = await refresh(site.pillarbox, URL, "x")
            assert token.json()["error"] == ("invalid_grant" if is_taken else "invalid_client")


@pytest.mark.parametrize(
    "url",
    [
        "http://quill.example/app",
        "https://quill.example",
        "https:///app",
        "https://quill.example/app#part",
        "https://quill.example/app#",
        "https://user@quill.example/app",
        "https://user:secret@quill.example/app",
        "https://@quill.example/app",
        "https://quill.example/../app",
        "https://quill.example/./app",
        "https://quill.example/a/%2e%2E/app",
        "https://quill.example/a/.%2e",
        "https://quill.example:8443/app",
        "https://quill.example/a b",
        "https://quill.example/a\tb",
        "https://quill.example\\@evil.example/app",
        "https://quill.example/" + "a" * 2048,
        "https://quill..example/app",
        "https://[::1/app",
    ],
)
def test_urls_that_describe_no_program(url: str) -> None:
    """OA-09."""
    with pytest.raises(UnknownClient):
        document_rules.address_of(url)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://quill.example/app", "quill.example"),
        ("https://quill.example/", "quill.example"),
        ("https://quill.example:443/app?x=1", "quill.example"),
        ("https://Quill.example/app", "quill.example"),
        ("https://exämple.example/app", "xn--exmple-cua.example"),
        ("https://quill.example/a..b/.well-known", "quill.example"),
    ],
)
def test_urls_that_may_describe_one(url: str, host: str) -> None:
    assert document_rules.address_of(url).host == host


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (None, 300),
        ("", 300),
        ("public", 300),
        ("max-age=10", 60),
        ("max-age=600, public", 600),
        ("Max-Age=600", 600),
        ("max-age=9999999999", 86400),
        ("no-store", 60),
        ("no-cache, max-age=600", 60),
        ("max-age=x", 300),
    ],
)
def test_for_how_long_a_document_is_kept(said: str | None, seconds: int) -> None:
    assert document_rules.lifetime(said).total_seconds() == seconds


# Logos --------------------------------------------------------------------------------------------


async def with_logo(site: ProgramSite, email: str, logo_uri: str) -> tuple[Any, str]:
    team = await site.pillarbox.team()
    visit = await logged_in(site.pillarbox, await a_person(team, email))
    body = {
        "client_name": "Quill",
        "redirect_uris": ["https://quill.example/cb"],
        "logo_uri": logo_uri,
        "scope": "emails:send",
    }
    made = (await site.pillarbox.client(None).post("/oauth/register", json=body)).json()
    asking = await ask(visit, made["client_id"])
    page = await asking.page()
    path = f"{asking.path}/logo"
    assert f'<img src="{path}" alt=""' in page.text
    assert logo_uri not in page.text
    return visit, path


async def test_a_logo_is_fetched_by_us_and_shown_from_here(database_url: str, tmp_path: Path) -> None:
    # Whatever its server calls it.
    picture = answer(PNG, "Content-Type: text/html")
    async with program_site(database_url, tmp_path, picture) as site:
        visit, path = await with_logo(site, "ada@people.example", f"https://logos.{HOST}/logo.png")
        for _ in range(2):
            shown = await visit.get(path)
            assert (shown.status_code, shown.content) == (200, PNG)
            assert shown.headers["content-type"] == "image/png"
            assert "default-src 'none'" in shown.headers["content-security-policy"]
            assert shown.headers["x-content-type-options"] == "nosniff"
        assert site.server.connections == 1
        assert (await site.pillarbox.client(None).get(path)).status_code == 303
        del visit.cookies["__Host-pillarbox-authorize"]
        assert (await visit.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("uri", "octets"),
    [
        ("https://logos.quill.example/logo.svg", answer(b"<svg xmlns='http://www.w3.org/2000/svg'/>")),
        ("https://logos.quill.example/large.png", answer(PNG + bytes(256 * 1024))),
        ("https://logos.quill.example/none.png", answer(PNG, status="404 Not Found")),
        ("https://logos.quill.example/away.png", answer(b"", "Location: /x", status="302 Found")),
        ("https://inner.quill.example/logo.png", answer(PNG)),
        ("https://10.0.0.7/logo.png", answer(PNG)),
    ],
    ids=["SVG", "large", "404", "redirect", "a private address", "a private address itself"],
)
async def test_what_is_no_picture_is_not_shown(
    database_url: str, tmp_path: Path, uri: str, octets: bytes
) -> None:
    """SSRF by logo, and no programs in pictures."""
    async with program_site(database_url, tmp_path, octets) as site:
        visit, path = await with_logo(site, "ada@people.example", uri)
        assert (await visit.get(path)).status_code == 404
        assert site.server.connections == (0 if "inner" in uri or "10.0" in uri else 1)


async def test_a_logo_of_another_port_is_not_fetched(database_url: str, tmp_path: Path) -> None:
    async with program_site(database_url, tmp_path, answer(PNG)) as site:
        uri = f"https://logos.{HOST}:{site.server.port}/logo.png"
        visit, path = await with_logo(site, "ada@people.example", uri)
        assert (await visit.get(path)).status_code == 404
        assert site.server.connections == 0


async def test_a_denied_request_of_a_described_program_goes_back(database_url: str, tmp_path: Path) -> None:
    local = document(redirect_uris=["http://127.0.0.1/cb"])
    async with program_site(database_url, tmp_path, local) as site:
        team = await site.pillarbox.team()
        visit = await logged_in(site.pillarbox, await a_person(team, "ada@people.example"))
        asking = await ask(visit, URL, redirect_uri="http://127.0.0.1:49801/cb")
        page = text_of(await asking.page())
        assert "127.0.0.1:49801" in page
        assert "The access goes to a program on this computer." in page
        assert answered(await asking.decide("deny"))["error"] == "access_denied"


async def test_a_document_serves_on_for_a_day_while_its_host_fails(database_url: str, tmp_path: Path) -> None:
    """oauth.md 4: trouble of the host is no statement about its program."""
    trouble = document(status="503 Service Unavailable")
    async with program_site(database_url, tmp_path, document(), trouble) as site:
        assert is_begun(site, await asked(site))
        site.clock.advance(301)
        assert is_begun(site, await asked(site))
        assert site.server.connections == 2, "it is asked again"
        site.clock.advance(24 * 3600 - 10)
        assert is_begun(site, await asked(site))
        site.clock.advance(20)
        assert is_unknown(await asked(site))


@pytest.mark.parametrize("last", ["404 Not Found", "200 OK"])
async def test_a_host_that_withdraws_its_program_is_heard_at_once(
    database_url: str, tmp_path: Path, last: str
) -> None:
    gone = document(b"{}", status=last)
    async with program_site(database_url, tmp_path, document(), gone) as site:
        assert is_begun(site, await asked(site))
        site.clock.advance(301)
        assert is_unknown(await asked(site))


async def test_strangers_with_made_up_documents_lock_out_no_program(
    database_url: str, tmp_path: Path
) -> None:
    """oauth.md 4: other paths, other queries, and the very URL after the end of its document."""
    bad = document(status="500 Internal Server Error")
    async with program_site(
        database_url, tmp_path, document(), *[bad] * 70, document(), trusted_proxy="127.0.0.0/8"
    ) as site:
        assert is_begun(site, await asked(site))
        site.clock.advance(301)
        for number in range(7):
            address = f"10.3.{number}.1" if number % 2 else f"2001:db8:{number:x}::1"
            for query in range(10):
                made_up = f"{URL}?{number}{query}" if query % 2 else f"https://{HOST}/{number}/{query}"
                assert is_unknown(await asked(site, made_up, **{"x-forwarded-for": address}))
        assert is_begun(site, await asked(site, **{"x-forwarded-for": "10.4.0.1"}))
        assert site.server.connections == 72, "the document was fetched anew"
        site.clock.advance(301)
        for number in range(20):
            await asked(site, **{"x-forwarded-for": f"10.5.{number}.1"})
        assert is_begun(site, await asked(site, **{"x-forwarded-for": "10.4.0.1"}))
