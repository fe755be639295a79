"""What is not a sound HTTP request gets a clear answer in the contract's shape (API-02, API-10)."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from kit import probe_routes
from kit.client import http_server
from pillarbox.kernel.http.protocol import ConnectionLimits, Protocol
from pillarbox.kernel.http.request import ONCE

HOST = b"Host: x\r\n"
BAD: dict[str, bytes] = {
    "both lengths": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "both lengths, other order": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"
    ),
    "two equal lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "list of lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\nx",
    "signed length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx",
    "obs-fold": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "bare LF in the head": b"GET / HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
    "bare CR": b"GET / HTTP/1.1\r\nHost: x\rX-A: b\r\n\r\n",
    "NUL in a header name": b"GET / HTTP/1.1\r\nHost: x\r\nX-\x00A: b\r\n\r\n",
    "NUL in a header value": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\x00\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "chunked twice": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
    ),
    "chunked is not last": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a policy in the Host": b"GET / HTTP/1.1\r\nHost: localhost:1; script-src *\r\n\r\n",
    "a list of Hosts": b"GET / HTTP/1.1\r\nHost: localhost, evil.example\r\n\r\n",
    "a user in the Host": b"GET / HTTP/1.1\r\nHost: evil@localhost\r\n\r\n",
    "a path in the Host": b"GET / HTTP/1.1\r\nHost: localhost/x\r\n\r\n",
    "an absolute URL": b"GET http://x/emails HTTP/1.1\r\nHost: x\r\n\r\n",
    "an absolute URL without a path": b"GET http://x HTTP/1.1\r\nHost: x\r\n\r\n",
    "an absolute URL of another host": b"GET https://evil.example/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "CONNECT": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    "two lengths behind an upgrade": (
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
        b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "unknown method": b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
    "raw UTF-8 in the path": b"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "head over 32 kB": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"b" * 33_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n",
    "URL over 16 kB": b"GET /" + b"a" * 16_400 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "endless header": b"GET / HTTP/1.1\r\nX-A: " + b"b" * 300_000,
    "endless URL": b"GET /" + b"a" * 300_000,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
async def test_malformed_requests_get_400_and_are_closed(database_url: str, data: bytes) -> None:
    async with http_server(database_url) as api:
        answer = await api.raw(data)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        parsed = json.loads(body)
        assert list(parsed) == ["statusCode", "message", "name"]
        assert (parsed["statusCode"], parsed["name"]) == (400, "validation_error")
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        assert lines[b"content-type"] == b"application/json; charset=utf-8"
        assert lines[b"connection"] == b"close"
        assert lines[b"server"] == b"pillarbox"
        assert lines[b"cache-control"] == b"no-store"
        assert int(lines[b"content-length"]) == len(body)
        assert UUID(lines[b"x-request-id"].decode()).version == 7


@pytest.mark.parametrize("name", sorted(ONCE - {b"host", b"content-length"}))
async def test_a_header_that_decides_something_may_be_there_once(database_url: str, name: bytes) -> None:
    """Two of them could mean one thing to us and another to a proxy before us."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        token = team.token.encode()
        lines = [b"POST /probe HTTP/1.1", b"Host: x", b"Content-Length: 2", b"Connection: close"]
        values = {b"authorization": b"Bearer %b" % token, b"transfer-encoding": b"gzip"}
        own = [b"%b: %b" % (name.upper(), values.get(name, b"identity"))]
        key = [] if name == b"authorization" else [b"Authorization: Bearer %b" % token]
        if name == b"transfer-encoding":
            lines.remove(b"Content-Length: 2")
            own.append(b"Transfer-Encoding: chunked")
        else:
            own += own
        body = b"2\r\n{}\r\n0\r\n\r\n" if name == b"transfer-encoding" else b"{}"
        answer = await api.raw(b"\r\n".join([*lines, *key, *own, b"", body]))
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        parsed = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert list(parsed) == ["statusCode", "message", "name"]
        assert parsed["name"] == "validation_error"
        assert f"`{name.decode().title()}`" in parsed["message"]


async def test_other_headers_may_be_repeated(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = (
            f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\nConnection: close\r\n"
        )
        twice = b"X-Any: 1\r\nUser-Agent: a\r\nCookie: a=b\r\nX-Forwarded-For: 192.0.2.1\r\n" * 2
        answer = await api.raw(head.encode() + twice + b"Content-Length: 2\r\n\r\n{}")
        assert answer.startswith(b"HTTP/1.1 200 "), answer


async def test_an_unsupported_transfer_encoding_is_415(database_url: str) -> None:
    async with http_server(database_url) as api:
        answer = await api.raw(
            b"POST /domains HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 415 ")


async def test_a_broken_chunk_ends_the_request(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        answer = await api.raw(head.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
        # The same in two packets, so that the request is already being worked on.
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        await writer.drain()
        await _worked_on(api.services)
        writer.write(b"zz\r\n")
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 400 ")
        writer.close()


async def test_a_trailer_is_no_header(database_url: str) -> None:
    """RFC 9110 section 6.5.1: behind the body nobody changes who is calling."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        chunks = b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
        trailers = b"Authorization: Bearer re_other\r\nContent-Encoding: gzip\r\n\r\n"
        answer = await api.raw(head.encode() + chunks + trailers)
        assert answer.startswith(b"HTTP/1.1 200 "), answer


@pytest.mark.parametrize("start", [b"0\r\nX-A: ", b"0\r\n", b"2;"], ids=["one trailer", "many", "extension"])
async def test_what_is_no_body_of_a_chunked_request_is_bounded(database_url: str, start: bytes) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + start)
        writer.write((b"X-A: b\r\n" if start == b"0\r\n" else b"bbbbbbbb") * 50_000)
        answer = await asyncio.wait_for(reader.read(), 5)
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert b"larger than 32768 bytes" in answer
        writer.close()


async def test_rubbish_after_a_request_does_not_spoil_its_answer(database_url: str) -> None:
    async with http_server(database_url) as api:
        answer = await api.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nrubbish \x00\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_head_in_pieces_must_be_complete_in_time(database_url: str) -> None:
    class Hasty(Protocol):
        limits = ConnectionLimits(head_seconds=0.3)

    async with http_server(database_url, protocol=Hasty) as api:
        assert await api.raw(b"") == b""
        assert await api.raw(b"GET /health HT") == b""
        second = await api.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHo")
        assert second.count(b"HTTP/1.1 200 ") == 1


async def test_a_head_in_pieces_is_taken(database_url: str) -> None:
    async with http_server(database_url) as api:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        for byte in b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            writer.write(bytes((byte,)))
            await writer.drain()
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_an_upgrade_that_is_not_offered_is_ignored(database_url: str) -> None:
    """Some clients offer h2c with every request in clear text."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = (
            f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
            'Content-Length: 7\r\n\r\n{"a":1}'
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head.encode())
        answer = await asyncio.wait_for(reader.readuntil(b"]}"), 5)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b'{"keys":["a"]}')
        writer.close()


async def _worked_on(services: object) -> None:
    """Give the server's task its turns; nothing is waited for that could take time."""
    for _ in range(20):
        await asyncio.sleep(0)
