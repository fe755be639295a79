"""Request bodies: forms, limits and bad JSON (conventions section 2, TRAP-09)."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from kit import probe_routes
from kit.client import error, http_server
from pillarbox.kernel.http.protocol import ConnectionLimits, Protocol

MIB = 1024 * 1024


async def test_empty_bodies_and_content_types(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for headers in ({}, {"content-type": "application/json"}, {"content-type": "text/plain"}):
                answer = await client.post("/probe", content=b"", headers=headers)
                assert answer.json() == {"keys": []}
            plain = await client.post("/probe", content=b'{"a":1}', headers={"content-type": "text/plain"})
            assert plain.json() == {"keys": ["a"]}
            form = await client.post("/probe", files={"file": b"x"})
            assert error(form)[:2] == (415, "validation_error")
            gzip = await client.post("/probe", content=b"{}", headers={"content-encoding": "gzip"})
            assert error(gzip)[:2] == (415, "validation_error")


async def test_a_body_on_get_and_delete_is_read_and_ignored(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for body in (b"{}", b"{", b"\xff" * 5000):
                assert (await client.request("GET", "/domains", content=body)).status_code == 200
                gone = await client.request("DELETE", f"/api-keys/{uuid4()}", content=body)
                assert gone.status_code == 404

            async def parts() -> AsyncIterator[bytes]:
                yield b"{}"

            assert (await client.request("GET", "/domains", content=parts())).status_code == 200


BAD_JSON: list[tuple[bytes, int]] = [
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b'{"a":"\xff"}', 400),
    (b'{"a":"\xed\xa0\x80"}', 400),
    (b'\xef\xbb\xbf{"a":1}', 400),
    (b'{"a":"\\ud800"}', 400),
    (b'{"a":"\\udc00\\ud800"}', 400),
    (b'{"a":NaN}', 400),
    (b'{"a":Infinity}', 400),
    (b'{"a":1e400}', 400),
    (b'{"a":' + b"1" * 5000 + b"}", 400),
    (b'{"a":"' + b"\x00" + b'"}', 400),
    (b"{'a':1}", 400),
    (b'{"a":1,}', 400),
    (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", 400),
    (b"[" * 10_000, 400),
    (b"[" * 10_000 + b"]" * 10_000, 400),
    (b'{"a":' * 100_000, 400),
    (b"[]", 422),
    (b"null", 422),
    (b'"text"', 422),
    (b"7", 422),
    (b'{"a":"\\u0000"}', 422),
    (b'{"a":[{"b":"x\\u0000"}]}', 422),
    (b'{"\\u0000":1}', 422),
]


@pytest.mark.parametrize(("body", "status"), BAD_JSON, ids=range(len(BAD_JSON)))
async def test_bad_json_is_refused_in_bounded_time(database_url: str, body: bytes, status: int) -> None:
    """TRAP-09: each of these is 4xx, never 5xx, and the connection stays usable."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            start = time.process_time()
            answer = await client.post("/probe", content=body)
            assert error(answer)[:2] == (status, "validation_error")
            assert time.process_time() - start < 2
            assert "connection" not in answer.headers


async def test_sound_json_at_the_edges_is_taken(database_url: str) -> None:
    """Depth 64, an escaped backslash before u0000, huge exponents towards zero, repeated keys."""
    bodies = [
        b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
        b'{"a":"\\\\u0000"}',
        b'{"a":1e-400}',
        b'{"a":1,"a":2}',
        b'{"a":"' + b"{[" * 5000 + b'"}',
        b'{"a":' + b"9" * 40 + b"}",
    ]
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            for body in bodies:
                assert (await client.post("/probe", content=body)).json() == {"keys": ["a"]}
            assert (await client.post("/probe/array", json=[1, 2])).json() == {"items": 2}
            assert error(await client.post("/probe/array", json=7))[0] == 422


async def test_masses_of_small_values_are_refused_before_they_are_built(database_url: str) -> None:
    """A body of 20 MB must not become a gigabyte of objects; as text inside one string it is fine."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            many = b'{"a":[' + b"[]," * 5_000_000 + b"[]]}"
            assert error(await client.post("/probe", content=many))[0] == 400
            text = b'{"a":"' + b"[{:" * 5_000_000 + b'"}'
            assert (await client.post("/probe", content=text)).status_code == 200
            numbers = b'{"a":[' + b"7," * 5_000_000 + b"7]}"
            assert (await client.post("/probe", content=numbers)).status_code == 200


async def test_masses_of_strings_are_counted_in_bounded_time_and_memory(database_url: str) -> None:
    """Strings, and quotes inside of one: telling which is which must not cost what it guards against."""
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            tracemalloc.start()
            try:
                many = b'{"a":[' + b'"",' * 5_000_000 + b'""]}'
                assert error(await client.post("/probe", content=many))[0] == 400
                quotes = b'{"a":"' + b'\\"' * 8_000_000 + b'"}'
                assert (await client.post("/probe", content=quotes)).status_code == 200
                escapes = b'{"a":"' + b"\\\\" * 500_000 + b'","b":"' + b'[\\"' * 2_000_000 + b'"}'
                assert (await client.post("/probe", content=escapes)).json() == {"keys": ["a", "b"]}
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 200 * 1024 * 1024


async def test_declared_sizes_over_the_limit_are_refused_before_reading(database_url: str) -> None:
    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        head = (
            f"POST /probe/small HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
            "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head.encode())
        answer = await asyncio.wait_for(reader.readuntil(b"}"), 5)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer
        writer.close()
        async with api.client(team.token) as client:
            exact = b'{"a":"' + b"x" * (1000 - 8) + b'"}'
            assert (await client.post("/probe/small", content=exact)).status_code == 200
            assert error(await client.post("/probe/small", content=exact + b" "))[0] == 413


async def test_sixty_megabytes_without_a_length_are_413(database_url: str) -> None:
    """The limit holds while streaming, and the client that sends everything still reads the answer."""

    async def megabytes(count: int) -> AsyncIterator[bytes]:
        yield b'{"a":"'
        for _ in range(count):
            yield b"x" * MIB
        yield b'"}'

    async with http_server(database_url, probe_routes) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            answer = await client.post("/domains", content=megabytes(60))
            assert error(answer)[:2] == (413, "validation_error")
            assert answer.headers["connection"] == "close"
            assert (await client.post("/probe", content=megabytes(60))).status_code == 200
        async with api.client("re_unknown") as stranger:
            assert (await stranger.post("/domains", content=megabytes(2))).status_code == 413
            small = await stranger.post("/domains", content=megabytes(0))
            assert error(small)[:2] == (403, "invalid_api_key")


async def test_half_a_body_and_silence_is_408_and_closed(database_url: str) -> None:
    class Hasty(Protocol):
        limits = ConnectionLimits(body_seconds=0.3)

    async with http_server(database_url, probe_routes, protocol=Hasty) as api:
        team = await api.team()
        for length in ("Content-Length: 100", "Transfer-Encoding: chunked"):
            head = (
                f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n{length}\r\n\r\n"
            )
            answer = await api.raw(head.encode() + b'5\r\n{"a":')
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"connection: close" in answer
            assert b'"statusCode":408' in answer
            # Whoever is refused before the body was read does not hold the connection open either.
            stranger = await api.raw(f"POST /probe HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode())
            assert stranger.startswith(b"HTTP/1.1 401 ") or length.startswith("Transfer")
            assert stranger.count(b"HTTP/1.1 ") == 1


async def test_a_large_body_does_not_wait_for_one_that_is_only_announced(database_url: str) -> None:
    """Bodies count with what has come of them: there is room for one that comes."""

    class Hasty(Protocol):
        limits = ConnectionLimits(body_seconds=1.5)

    async with http_server(database_url, probe_routes, protocol=Hasty) as api:
        team = await api.team()
        head = f"POST /probe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"

        async def ask(size: int, body: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
            writer.write(f"{head}Connection: close\r\nContent-Length: {size}\r\n\r\n".encode() + body)
            answer = await reader.read()
            writer.close()
            return answer

        silent = asyncio.create_task(ask(50 * MIB, b"x" * MIB))
        whole = b'{"from":"' + b"x" * (20 * MIB) + b'"}'
        waiting = asyncio.create_task(ask(len(whole), whole))
        assert (await silent).startswith(b"HTTP/1.1 408 ")
        assert (await waiting).startswith(b"HTTP/1.1 200 ")


async def test_the_connection_stays_usable_after_errors(database_url: str) -> None:
    async with http_server(database_url) as api:
        team = await api.team()
        auth = f"Authorization: Bearer {team.token}\r\n"
        requests = (
            "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            "POST /domains HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
            f"POST /domains HTTP/1.1\r\nHost: x\r\n{auth}Content-Length: 1\r\n\r\n{{",
            f"POST /domains HTTP/1.1\r\nHost: x\r\n{auth}Content-Length: 2\r\n\r\n{{}}",
            f"GET /domains HTTP/1.1\r\nHost: x\r\n{auth}Connection: close\r\n\r\n",
        )
        answer = await api.raw("".join(requests).encode())
        statuses = [line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        # A JSON body ends without a line end, so the next status line follows it directly.
        found = answer.count(b"HTTP/1.1 ")
        assert found == 5
        assert statuses[0] == b"404"
        assert answer.rindex(b"HTTP/1.1 200 ") > answer.index(b"HTTP/1.1 422 ")


async def test_who_reads_nothing_of_an_answer_is_let_go(database_url: str) -> None:
    """An answer of 30 MB waits in memory until it is read, but not for ever (architecture 6.5)."""
    gone = asyncio.Event()

    class Hasty(Protocol):
        limits = ConnectionLimits(reading_seconds=0.3)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            gone.set()

    async with http_server(database_url, probe_routes, protocol=Hasty) as api:
        team = await api.team()
        async with api.client(team.token) as client:
            size = 30 * MIB
            read = await client.post("/probe/large", json={"size": size})
            assert len(read.json()["text"]) == size
        gone.clear()
        head = f"POST /probe/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", api.port, limit=1024)
        writer.write(head.encode() + b'Content-Length: 17\r\n\r\n{"size":31457280}')
        await asyncio.wait_for(gone.wait(), 10)
        writer.close()


async def test_who_reads_slowly_gets_it_all(database_url: str) -> None:
    class Hasty(Protocol):
        limits = ConnectionLimits(reading_seconds=1.0)

    async with http_server(database_url, probe_routes, protocol=Hasty) as api:
        team = await api.team()
        head = f"POST /probe/large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {team.token}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port, limit=1024)
        writer.write(head.encode() + b'Connection: close\r\nContent-Length: 17\r\n\r\n{"size":12582912}')
        size, started = 0, time.monotonic()
        while part := await reader.read(MIB // 4):
            size += len(part)
            await asyncio.sleep(0.03)
        assert size > 12 * MIB
        assert time.monotonic() - started > 1.0, "it took longer than who reads nothing may take"
        writer.close()
