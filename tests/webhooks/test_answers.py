"""What receivers answer, and what the log says (webhooks.md sections 2.3, 3, 6, 8; WH-03, WH-06, WH-08)."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from uuid import uuid4

import pytest
import trustme

from kit.http_outside import LOOPBACK, Zone, serving
from kit.receiver import Arrival, hangs, receiver, resets, status
from kit.webhooks import hook, publish
from kit.world import world
from kit.zone import Zone as WholeZone
from pillarbox.kernel.network.address_policy import AddressPolicy
from pillarbox.kernel.network.fetch_result import HttpLimits
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.webhooks.dispatch.deliveries import SCHEDULED, AttemptResult, Delivery, Endpoint
from pillarbox.webhooks.dispatch.posting import LIMITS, MOST_KEPT, Poster
from pillarbox.webhooks.endpoints import EndpointRules

NOW = datetime(2026, 10, 2, 8, 0, tzinfo=UTC)
SHORT = replace(LIMITS, connect=0.4, total=0.8)
RULES = EndpointRules(allow_http=True, allow_private=LOOPBACK)


def delivery(body: bytes = b"{}") -> Delivery:
    return Delivery(
        team_id=uuid4(),
        webhook_id=uuid4(),
        event_id=uuid4(),
        replay=SCHEDULED,
        at=NOW,
        attempt=1,
        tries=0,
        body=body,
        deadline=float("inf"),
    )


@asynccontextmanager
async def poster(
    zone: Zone | None = None, limits: HttpLimits = SHORT, rules: EndpointRules = RULES, **options: object
) -> AsyncIterator[Poster]:
    reach = AddressPolicy(rules.allow_private, ports=rules.permits_port)
    outbound = Outbound(zone or Zone(), policy=reach, **options)  # type: ignore[arg-type]
    made = Poster(outbound, rules, limits)
    try:
        yield made
    finally:
        await made.close()


async def tried(by: Poster, url: str) -> AttemptResult:
    return await by.attempt(delivery(), Endpoint(url, [bytes(24)], 0), NOW)


@pytest.mark.parametrize("code", [200, 201, 204, 299, 300, 301, 302, 304, 400, 404, 410, 429, 500, 503, 599])
async def test_2xx_is_success_and_everything_else_is_not(code: int) -> None:
    """No code has a meaning of its own; a redirect is an answer like any other."""
    body = b"" if code in (204, 304) else b"said"
    async with receiver() as at, receiver() as other, poster() as by:
        at.answers(status(code, body, f"Location: {other.url}", "Retry-After: 1"))
        found = await tried(by, at.url)
        assert found == AttemptResult(code, body.decode())
        assert found.succeeded == (200 <= code <= 299)
        assert (len(at.arrivals), other.connections) == (1, 0)


async def test_an_interim_answer_is_none() -> None:
    async with receiver() as at, poster() as by:
        at.answers(b"HTTP/1.1 199 Wait\r\n\r\n")
        assert await tried(by, at.url) == AttemptResult(0, "no complete answer in time", True)
        at.answers(b"HTTP/1.1 103 Early\r\n\r\n" + status(200))
        assert (await tried(by, at.url)).succeeded


async def slowly(arrival: Arrival, seconds: float) -> bytes:
    arrival.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
    await asyncio.sleep(seconds)
    return b"cd"


async def test_the_time_counts_to_the_end_of_the_body() -> None:
    """A body that ends in time is an answer, one that does not is none, whatever the status said."""
    async with receiver() as at, poster(limits=replace(LIMITS, total=0.6)) as by:
        at.answers(lambda arrival: slowly(arrival, 0.3), lambda arrival: slowly(arrival, 0.9))
        assert await tried(by, at.url) == AttemptResult(200, "abcd")
        assert await tried(by, at.url) == AttemptResult(0, "no complete answer in time", True)


def test_the_limits_are_those_of_the_contract() -> None:
    assert (LIMITS.connect, LIMITS.total, LIMITS.max_bytes) == (5.0, 15.0, 64 * 1024)


async def byte_by_byte(arrival: Arrival) -> bytes | None:
    for byte in status(200):
        arrival.writer.write(bytes([byte]))
        await asyncio.sleep(0.05)
    return b""


async def endless(arrival: Arrival) -> bytes | None:
    arrival.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not arrival.writer.is_closing():
        arrival.writer.write(b"2000\r\n" + b"x" * 8192 + b"\r\n")
        await arrival.writer.drain()
    return None


async def many_headers(_: Arrival) -> bytes:
    return status(200, b"ok", *[f"X-{number}: {number}" for number in range(10_000)])


async def long_header(_: Arrival) -> bytes:
    return status(200, b"ok", "X: " + "x" * 1_000_000)


async def not_http(_: Arrival) -> bytes:
    return b"SSH-2.0-OpenSSH_9.2\r\n\r\n"


async def test_hostile_receivers_cost_their_time_limit_at_most() -> None:
    async with receiver() as at, poster() as by:
        for answer, expected in (
            (hangs, "no complete answer in time"),
            (byte_by_byte, "no complete answer in time"),
            (resets, "no complete HTTP answer"),
            (many_headers, "no complete HTTP answer"),
            (long_header, "no complete HTTP answer"),
            (not_http, "no complete HTTP answer"),
        ):
            at.answers(answer)
            found = await tried(by, at.url)
            assert (found.code, found.response) == (0, expected), answer.__name__


async def test_an_answer_is_read_to_its_limit_and_kept_to_another() -> None:
    async with receiver() as at, poster() as by:
        at.answers(endless)
        found = await tried(by, at.url)
        assert found == AttemptResult(200, "x" * MOST_KEPT)
        bomb = gzip.compress(bytes(50_000_000))
        at.answers(status(200, bomb, "Content-Encoding: gzip"))
        found = await tried(by, at.url)
        assert found.code == 200
        assert len(found.response.encode("utf-8", "replace")) < 4 * MOST_KEPT
        at.answers(status(500, b"a\0b\xffc"))
        assert (await tried(by, at.url)).response == "a\ufffdb\ufffdc"


async def test_connections_are_kept_for_addresses_that_are_checked_each_time() -> None:
    zone = Zone(hook_example=["127.0.0.1"])
    async with receiver() as at, poster(zone) as by:
        for _ in range(3):
            assert (await tried(by, f"http://hook.example:{at.port}/")).succeeded
        assert (at.connections, len(zone.asked)) == (1, 3)
        zone.hosts["hook.example"] = ["10.0.0.1"]
        refused = await tried(by, f"http://hook.example:{at.port}/")
        assert refused == AttemptResult(0, "address not allowed")
        assert len(at.arrivals) == 3, "the kept connection is no way round the check"


async def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing() -> None:
    async def last(arrival: Arrival) -> bytes | None:
        arrival.writer.write(status(200))
        return None

    async with receiver() as at, poster() as by:
        at.answers(last)
        for _ in range(4):
            assert (await tried(by, at.url)).succeeded
        assert at.connections == 4


async def test_a_reset_on_a_new_connection_is_not_tried_twice() -> None:
    async with receiver() as at, poster() as by:
        at.answers(resets)
        assert (await tried(by, at.url)).code == 0
        assert len(at.arrivals) == 1


async def test_a_dead_address_beside_a_good_one() -> None:
    """The first address takes no connection, the second one does."""
    zone = Zone(two_example=["127.0.0.9", "127.0.0.1"])
    rules = EndpointRules(allow_http=True, allow_private=[ip_network("127.0.0.0/8")])
    async with receiver() as at, poster(zone, rules=rules) as by:
        assert (await tried(by, f"http://two.example:{at.port}/")).succeeded
        assert await tried(by, "http://127.0.0.1:9/") == AttemptResult(0, "connection failed")


async def test_names_that_change_their_mind_reach_nothing() -> None:
    """DNS rebinding: a canary on loopback sees no connection, whatever the second look-up would answer."""
    zone = Zone(
        rebind_example=[["8.8.8.8"], ["127.0.0.1"], ["127.0.0.1"]],
        inside_example=["127.0.0.1"],
        mixed_example=["8.8.8.8", "127.0.0.1"],
        mapped_example=["::ffff:127.0.0.1"],
        metadata_example=["169.254.169.254"],
        none_example=[],
    )
    rules = EndpointRules(allow_http=True)
    async with serving(status(200)) as canary, poster(zone, rules=rules) as by:
        for host in ("inside", "mixed", "mapped", "metadata"):
            found = await tried(by, f"http://{host}.example:{canary.port}/")
            assert found == AttemptResult(0, "address not allowed"), host
        for host in (
            "127.0.0.1",
            "0x7f.1",
            "2130706433",
            "127.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
        ):
            assert await tried(by, f"http://{host}:{canary.port}/") == AttemptResult(
                0, "address not allowed"
            ), host
        assert await tried(by, f"http://rebind.example:{canary.port}/") == AttemptResult(
            0, "connection failed"
        )
        assert await tried(by, f"http://rebind.example:{canary.port}/") == AttemptResult(
            0, "address not allowed"
        )
        assert await tried(by, f"http://none.example:{canary.port}/") == AttemptResult(
            0, "host name not resolved"
        )
        for port in (25, 465, 587):
            assert await tried(by, f"http://8.8.8.8:{port}/") == AttemptResult(0, "address not allowed")
        assert canary.connections == 0


def secured(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_certificates_are_verified_by_name() -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    zone = Zone(hook_example=["127.0.0.1"], other_example=["127.0.0.1"])
    async with (
        receiver(tls=secured(authority, "hook.example")) as good,
        receiver(tls=secured(stranger, "hook.example")) as unknown,
        poster(zone, tls=trusting(authority)) as by,
    ):
        for _ in range(2):
            assert (await tried(by, f"https://hook.example:{good.port}/")).succeeded
        assert good.connections == 1
        for url in (f"https://other.example:{good.port}/", f"https://hook.example:{unknown.port}/"):
            assert await tried(by, url) == AttemptResult(0, "TLS handshake failed")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_old_tls_is_refused() -> None:
    authority = trustme.CA()
    old = secured(authority, "hook.example")
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    zone = Zone(hook_example=["127.0.0.1"])
    async with receiver(tls=old) as at, poster(zone, tls=trusting(authority)) as by:
        assert (await tried(by, f"https://hook.example:{at.port}/")).code == 0
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert (await tried(by, f"https://hook.example:{at.port}/")).succeeded
        assert len(at.arrivals) == 1


async def test_nothing_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with receiver() as at, poster() as by:
        at.answers(status(200, b"ok", "Set-Cookie: a=b"))
        for _ in range(2):
            assert (await tried(by, at.url)).succeeded
        assert "cookie" not in at.arrivals[1].headers


async def test_a_refused_address_is_a_failed_attempt_that_names_no_address(
    database_url: str, tmp_path: Path
) -> None:
    """Section 6: it follows the schedule like any other."""
    zone = WholeZone("inside.example A 127.0.0.1")
    async with world(database_url, tmp_path, zone=zone, webhooks_allow_http="true") as pillarbox:
        team = await pillarbox.team()
        on = await hook(team, endpoint="http://inside.example:8080/")
        await publish(team)
        async with asyncio.timeout(10):
            while (await on.events())[0]["status"] == "pending":
                await asyncio.sleep(0.02)
        (event,) = await on.events()
        assert event["status"] == "attempting"
        (attempt,) = (await on.get(f"/events/{event['id']}/attempts"))["data"]
        assert (attempt["http_status_code"], attempt["response"]) == (0, "address not allowed")
