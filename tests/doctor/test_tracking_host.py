"""The doctor and the hosts of tracked links: whether they answer, with a certificate that is valid."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.clock import ManualClock
from kit.dns_server import DnsServer
from kit.smtp_listener import trusting
from pillarbox.doctor.checks import Level
from pillarbox.doctor.domain import tracking_host_check
from pillarbox.doctor.outside import OutsideWorld, Tcp, TlsHandshake
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.security.certificates import self_made

ZONE = """
    go.harbor.example    A   127.0.0.1
    away.harbor.example  A   127.0.0.9
"""


@asynccontextmanager
async def proxy(folder: Path | None, name: str = "go.harbor.example") -> AsyncIterator[int]:
    """The port of a server; with a folder it speaks TLS, and its certificate for this name is there."""
    context = None
    if folder is not None:
        made = self_made(folder, name, SystemClock().now())
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(made)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def found(host: str, url: str, trust: ssl.SSLContext | None = None) -> tuple[str, Level, str]:
    async with DnsServer(ZONE) as dns:
        clock = ManualClock()
        resolver = UncachedResolver([dns.address], clock, timeouts=(0.3, 1.0))
        handshake = TlsHandshake(trust, seconds=5)
        outside = OutsideWorld(resolver, clock, Tcp(), lambda _: False, handshake=handshake)
        check = await tracking_host_check(outside, host, url)
    assert (check.step is None) == (check.level is Level.OK)
    return check.name, check.level, check.found


async def test_a_valid_certificate(tmp_path: Path) -> None:
    async with proxy(tmp_path) as port:
        name, level, _ = await found("go.harbor.example", f"https://mail.example:{port}", trusting(tmp_path))
    assert (name, level) == ("tracking_host", Level.OK)


@pytest.mark.parametrize("fault", ["other name", "nobody's", "plain"])
async def test_a_certificate_that_clients_refuse(tmp_path: Path, fault: str) -> None:
    folder = None if fault == "plain" else tmp_path
    named = "mail.example" if fault == "other name" else "go.harbor.example"
    async with proxy(folder, named) as port:
        trust = trusting(tmp_path) if fault == "other name" else None
        name, level, said = await found("go.harbor.example", f"https://mail.example:{port}", trust)
    assert (name, level) == ("tracking_host.certificate", Level.PROBLEM)
    assert ("does not speak TLS" if fault == "plain" else "certificate is not valid") in said


async def test_without_https_the_port_alone_counts() -> None:
    async with proxy(None) as port:
        name, level, _ = await found("go.harbor.example", f"http://mail.example:{port}")
        assert (name, level) == ("tracking_host", Level.OK)
        name, level, said = await found("away.harbor.example", f"http://mail.example:{port}")
    assert (name, level) == ("tracking_host.away", Level.PROBLEM)
    assert "127.0.0.9" in said


async def test_a_host_without_an_address() -> None:
    assert (await found("none.harbor.example", "https://mail.example"))[0] == "tracking_host.no_dns"
