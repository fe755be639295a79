"""WH-03, WH-07, WH-08: the one HTTP client for the outside (architecture 2.9)."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
import trustme

import pillarbox
from kit.http_outside import Handler, Zone, answer, client, failure, get, serving
from pillarbox.kernel.network.dns import ResolverAnswer
from pillarbox.kernel.network.fetch_result import HttpLimits
from pillarbox.kernel.network.host_addresses import DnsAddresses, SystemAddresses
from pillarbox.kernel.network.outbound import Outbound


async def test_a_fetch_gives_status_headers_and_body() -> None:
    reply = answer(b"made", "X-One: 1", "X-Two: a", "x-two: b", status="201 Created")
    async with serving(reply) as server, client() as outbound:
        got = await get(outbound, f"http://hook.example:{server.port}/a?b=c")
        assert (got.status, got.body, got.cut) == (201, b"made", False)
        assert got.headers["x-one"] == "1"
        assert got.headers["x-two"] == "a, b"
        assert server.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")


async def test_a_request_carries_what_it_was_given_and_nothing_of_ours() -> None:
    """WH-08: no cookies, no credentials, no internal headers; the signed bytes are the sent bytes."""
    reply = answer(b"", "Set-Cookie: a=b")
    body = b'{"a": "\xc3\xa4"}'
    async with serving(reply) as server, client() as outbound:
        for _ in range(2):
            await outbound.fetch(
                "POST",
                f"http://hook.example:{server.port}/",
                HttpLimits(max_bytes=10),
                headers={"Content-Type": "application/json", "svix-id": "msg_1", "User-Agent": "Mine"},
                body=body,
            )
        assert server.requests[1].endswith(b"\r\n\r\n" + body)
        assert sorted(server.header_lines) == [
            "accept-encoding: identity",
            "accept: */*",
            "connection: close",
            f"content-length: {len(body)}",
            "content-type: application/json",
            f"host: hook.example:{server.port}",
            "svix-id: msg_1",
            "user-agent: mine",
        ]


async def test_each_fetch_looks_up_once_and_connects_anew() -> None:
    zone = Zone(hook_example=["127.0.0.1"])
    async with serving(answer()) as server, client(zone) as outbound:
        for count in (1, 2, 3):
            await get(outbound, f"http://hook.example:{server.port}/")
            assert (len(zone.asked), server.connections) == (count, count)


async def test_redirects_are_followed_only_when_asked() -> None:
    """WH-03: for a webhook a redirect is an answer like any other."""
    moved = answer(b"moved", "Location: /b", status="307 Temporary Redirect")
    async with serving(moved) as server, client() as outbound:
        got = await get(outbound, f"http://127.0.0.1:{server.port}/")
        assert (got.status, got.body, got.headers["location"]) == (307, b"moved", "/b")
        with pytest.raises(ValueError, match="only GET"):
            await outbound.fetch("POST", "http://hook.example/", HttpLimits(max_bytes=1, redirects=1))
        with pytest.raises(ValueError, match="HEAD"):
            await outbound.fetch("HEAD", "http://hook.example/", HttpLimits(max_bytes=1))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_up_to_the_limit(status: int) -> None:
    """Contract decision 28."""
    hops = [answer(b"x" * 2000, f"Location: /{hop}", status=f"{status} Moved") for hop in range(5)]
    async with serving(*hops, answer(b"there")) as server, client() as outbound:
        url = f"http://127.0.0.1:{server.port}/"
        assert (await get(outbound, url, redirects=5)).body == b"there"
        assert server.requests[-1].startswith(b"GET /4 ")
        server.requests.clear()
        assert await failure(outbound, url, redirects=4) == "redirects"


async def test_an_answer_that_only_looks_like_a_redirect_is_an_answer() -> None:
    for reply in (answer(b"", status="302 Found"), answer(b"", "Location: /x", status="304 Not Modified")):
        async with serving(reply) as server, client() as outbound:
            assert (await get(outbound, f"http://127.0.0.1:{server.port}/", redirects=5)).status in (302, 304)


async def test_headers_stay_with_the_first_origin() -> None:
    """WH-08."""
    async with serving(answer()) as other, client() as outbound:
        away = answer(b"", f"Location: http://hook.example:{other.port}/", status="302 Found")
        same = answer(b"", "Location: /same", status="302 Found")
        async with serving(same, away) as server:
            url = f"http://hook.example:{server.port}/"
            await get(outbound, url, redirects=5, headers={"Authorization": "Bearer secret"})
            assert "authorization: bearer secret" in server.header_lines
            assert not [line for line in other.header_lines if "secret" in line]


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
        await writer.drain()


async def test_an_endless_body_ends_at_the_limit() -> None:
    """WH-03, WH-06."""
    async with serving(endless) as server, client() as outbound:
        url = f"http://127.0.0.1:{server.port}/"
        assert await failure(outbound, url, max_bytes=100_000) == "too_large"
        got = await get(outbound, url, max_bytes=20_000, cut=True)
        assert (got.body, got.cut) == (b"x" * 20_000, True)


async def test_a_body_of_exactly_the_limit_is_whole() -> None:
    async with serving(answer(b"x" * 1000)) as server, client() as outbound:
        url = f"http://127.0.0.1:{server.port}/"
        for cut in (True, False):
            got = await get(outbound, url, max_bytes=1000, cut=cut)
            assert (len(got.body), got.cut) == (1000, False)
        assert await failure(outbound, url, max_bytes=999) == "too_large"
        assert (await get(outbound, url, max_bytes=0, cut=True)).cut


async def test_an_announced_length_over_the_limit_is_not_read() -> None:
    async def huge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        await writer.drain()
        await reader.read()

    async with serving(huge) as server, client() as outbound:
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/") == "too_large"


async def one_byte_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 50_000)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def test_the_limit_counts_the_body_and_not_its_framing() -> None:
    async with serving(one_byte_chunks) as server, client() as outbound:
        got = await get(outbound, f"http://127.0.0.1:{server.port}/", max_bytes=50_000)
        assert got.body == b"x" * 50_000


async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half a body without a length, then a reset."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_a_reset_is_no_end_of_a_body() -> None:
    async with serving(cut_off) as server, client() as outbound:
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/") == "protocol"


async def test_the_body_of_a_redirect_is_not_waited_for() -> None:
    async def slow_redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 100000\r\n\r\n")
        await reader.read()

    async with serving(slow_redirect, answer(b"there")) as server, client() as outbound:
        assert (await get(outbound, f"http://127.0.0.1:{server.port}/", redirects=1)).body == b"there"


async def test_a_compressed_bomb_stays_compressed() -> None:
    """A thousandfold body costs what its compressed bytes cost."""
    bomb = gzip.compress(bytes(10_000_000))
    reply = answer(bomb, "Content-Encoding: gzip")
    async with serving(reply) as server, client() as outbound:
        got = await get(outbound, f"http://127.0.0.1:{server.port}/", max_bytes=20_000)
        assert got.body == bomb
        assert got.headers["content-encoding"] == "gzip"


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("handler", [drip, silent])
async def test_a_slow_server_is_left(handler: Handler) -> None:
    async with serving(handler) as server, client() as outbound:
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/", total=0.1) == "timeout"


async def test_a_slow_handshake_and_a_slow_look_up_end_in_time() -> None:
    class Stuck(Zone):
        async def addresses(self, host: str) -> Sequence[str]:
            await asyncio.Event().wait()
            return []

    async with serving(silent) as server, client() as outbound:
        url = f"https://127.0.0.1:{server.port}/"
        assert await failure(outbound, url, connect=0.1) == "timeout"
    async with client(Stuck()) as outbound:
        assert await failure(outbound, "http://hook.example/", total=0.1) == "timeout"


@pytest.mark.parametrize(
    "reply",
    [
        *(
            b"",
            b"SSH-2.0-x\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
            b"HTTP/1.1 banana\r\n\r\n",
        ),
        *(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000,
        ),
    ],
)
async def test_an_answer_that_is_not_http_is_a_failure(reply: bytes) -> None:
    async with serving(reply) as server, client() as outbound:
        assert await failure(outbound, f"http://127.0.0.1:{server.port}/") == "protocol"


async def test_nobody_there() -> None:
    async with client() as outbound:
        async with serving(answer()) as server:
            port = server.port
        assert await failure(outbound, f"http://127.0.0.1:{port}/") == "connect"
        assert await failure(outbound, "http://unknown.example/") == "dns"


async def test_the_name_is_verified_though_the_address_was_looked_up_by_us() -> None:
    """WH-06: TLS checks the name of the URL, or the address when the URL has one."""
    ca, other = trustme.CA(), trustme.CA()
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    zone = Zone(hook_example=["127.0.0.1"], wrong_example=["127.0.0.1"])
    for issuer, host, expected in (
        (ca, "hook.example", "200"),
        (ca, "127.0.0.1", "200"),
        (ca, "wrong.example", "tls"),
        (other, "hook.example", "tls"),
    ):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issuer.issue_cert("hook.example", "127.0.0.1").configure_cert(context)
        async with serving(answer(), tls=context) as server, client(zone, tls=trusting) as outbound:
            url = f"https://{host}:{server.port}/"
            outcome = (
                str((await get(outbound, url)).status) if expected == "200" else await failure(outbound, url)
            )
            assert outcome == expected, host


async def test_tls_against_a_server_without_it_fails() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ready\r\n")
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server, client() as outbound:
        port = server.sockets[0].getsockname()[1]
        assert await failure(outbound, f"https://127.0.0.1:{port}/") == "tls"


async def test_proxies_of_the_environment_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """WH-06; nor are passwords of a netrc file sent."""
    async with serving(answer()) as proxy, serving(answer(b"direct")) as server, client() as outbound:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        assert (await get(outbound, f"http://127.0.0.1:{server.port}/")).body == b"direct"
        assert proxy.connections == 0
        assert not [line for line in server.header_lines if line.startswith("authorization")]


async def test_many_at_once() -> None:
    async with serving(answer()) as server, client() as outbound:
        got = await asyncio.gather(
            *[get(outbound, f"http://hook.example:{server.port}/") for _ in range(150)]
        )
        assert {each.body for each in got} == {b"ok"}


async def test_a_client_that_was_closed_can_be_used_again() -> None:
    async with serving(answer()) as server, client() as outbound:
        for _ in range(2):
            assert (await get(outbound, f"http://127.0.0.1:{server.port}/")).status == 200
            await outbound.close()


async def test_the_system_look_up_is_checked_too() -> None:
    async with serving(answer()) as canary:
        outbound = Outbound()
        assert await failure(outbound, f"http://localhost:{canary.port}/") == "refused"
        await outbound.close()
        assert canary.connections == 0
    assert "127.0.0.1" in await SystemAddresses().addresses("localhost")


class Records:
    """The program's resolver, with one name."""

    async def mx(self, name: str) -> ResolverAnswer[tuple[int, str]]:
        return ResolverAnswer("no_data")

    async def addresses(self, name: str, *, ipv6: bool = False) -> ResolverAnswer[str]:
        return (
            ResolverAnswer("found", ("192.0.2.7", "2001:db8::7"))
            if name == "a.example" and ipv6
            else ResolverAnswer("no_name")
        )

    async def txt(self, name: str) -> ResolverAnswer[str]:
        return ResolverAnswer("no_data")


async def test_names_of_the_hosts_file_come_before_dns(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# names\n\n10.0.0.7 Receiver receiver.lan # inside\nfd00::7 receiver\n192.0.2.9\n")
    look = DnsAddresses(Records(), hosts)
    assert await look.addresses("receiver") == ["10.0.0.7", "fd00::7"]
    assert await look.addresses("receiver.lan") == ["10.0.0.7"]
    assert await look.addresses("localhost") == ["127.0.0.1", "::1"]
    assert list(await look.addresses("a.example")) == ["192.0.2.7", "2001:db8::7"]
    assert not await look.addresses("b.example")
    assert not await DnsAddresses(Records(), tmp_path / "none").addresses("receiver")


def test_there_is_no_other_http_client_in_the_code() -> None:
    """WH-07."""
    package = Path(pillarbox.__file__).parent
    client_import = re.compile(
        r"^\s*(?:import|from) (?:aiohttp|httptools|httpx|requests|urllib3|urllib\.request|http\.client"
        r"|pillarbox\.kernel\.network\.(?:http_connection|connection_pool))\b",
        re.M,
    )
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if client_import.search(path.read_text())
    }
    listeners = {"kernel/http/protocol.py"}
    assert users - listeners == {
        "kernel/network/outbound.py",
        "kernel/network/http_connection.py",
        "kernel/network/connection_pool.py",
    }
