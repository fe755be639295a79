"""The doctor on the way out: port 25 with the cause named, the smarthost, the name in HELO."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from kit.clock import ManualClock
from kit.dns_server import DnsServer
from kit.smtp_sink import Act, Sink
from pillarbox.doctor.checks import Check, Level
from pillarbox.doctor.listeners import listening, return_path_check
from pillarbox.doctor.naming import naming
from pillarbox.doctor.outside import ConnectReport, ConnectStage, OutsideWorld, Tcp
from pillarbox.doctor.outward import CAUSES, EffectiveRoute, outgoing
from pillarbox.doctor.smarthost import Smarthost
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.kernel.settings import kinds
from pillarbox.kernel.settings.kinds import HostPort, RouteKind

WORLD = """
    one.example       MX  10 mx1.one.example
    one.example       MX  20 mx2.one.example
    mx1.one.example   A   192.0.2.1
    mx2.one.example   A   192.0.2.9
    one.example       A   192.0.2.11
    two.example       MX  10 mx1.two.example
    mx1.two.example   A   192.0.2.2
    two.example       A   192.0.2.12
"""
DOMAINS = ("one.example", "two.example")
GREETING = ConnectReport(ConnectStage.BANNER, "220 mx.example ESMTP")
OPEN = ConnectReport(ConnectStage.SILENT)


@asynccontextmanager
async def outside(
    script: str, contacts: Mapping[tuple[str, int], ConnectReport] | None = None, **more: Any
) -> AsyncIterator[OutsideWorld]:
    """A world whose DNS is a real server on loopback; who answers at which address is scripted."""
    known = contacts or {}

    async def connect(address: str, port: int, greeting: bool) -> ConnectReport:
        return known.get((address, port), ConnectReport(ConnectStage.TIMEOUT))

    async with DnsServer(script) as dns:
        clock = ManualClock()
        resolver = UncachedResolver([dns.address], clock, timeouts=(0.3, 1.0))
        given = {"connect": connect, "is_ours": lambda address: address == "192.0.2.80", **more}
        yield OutsideWorld(resolver, clock, **given)


def at_25(first: ConnectReport, second: ConnectReport) -> dict[tuple[str, int], ConnectReport]:
    return {("192.0.2.1", 25): first, ("192.0.2.2", 25): second}


WEB = {("192.0.2.11", 443): OPEN}


async def direct(script: str, contacts: Mapping[tuple[str, int], ConnectReport]) -> Check:
    async with outside(script, contacts) as found:
        return await outgoing(found, EffectiveRoute(kinds.route("direct")), 25, DOMAINS)


async def test_all_servers_greet() -> None:
    check = await direct(WORLD, at_25(GREETING, GREETING))
    assert (check.name, check.level, check.step) == ("outgoing", Level.OK, None)
    assert check.found == "mx1.one.example says 220 mx.example ESMTP"


async def test_some_servers_greet() -> None:
    check = await direct(WORLD, at_25(GREETING, ConnectReport(ConnectStage.TIMEOUT)))
    assert (check.name, check.level) == ("outgoing", Level.WARNING)
    assert "not reached: two.example" in check.found


TIMEOUT, REFUSED = ConnectReport(ConnectStage.TIMEOUT), ConnectReport(ConnectStage.REFUSED)
NO_ROUTE, FORBIDDEN = ConnectReport(ConnectStage.NO_ROUTE), ConnectReport(ConnectStage.FORBIDDEN)
SENT_AWAY = ConnectReport(ConnectStage.BANNER, "554 5.7.1 your address is listed")


@pytest.mark.parametrize(
    ("cause", "script", "contacts", "said"),
    [
        ("no_dns", "* ! SERVFAIL", {}, "DNS does not answer"),
        ("no_dns", "* ! SILENCE", {}, "DNS does not answer"),
        ("no_route", WORLD, at_25(NO_ROUTE, NO_ROUTE), "no route"),
        ("no_route", WORLD, at_25(FORBIDDEN, FORBIDDEN), "no route"),
        ("filtered", WORLD, at_25(TIMEOUT, TIMEOUT), "no connection gets out at all"),
        ("blocked", WORLD, at_25(TIMEOUT, TIMEOUT) | WEB, "port 25 does not"),
        ("refused", WORLD, at_25(REFUSED, REFUSED) | WEB, "port 25 is refused at once"),
        ("refused", WORLD, at_25(FORBIDDEN, FORBIDDEN) | WEB, "port 25 is refused at once"),
        ("rejected", WORLD, at_25(SENT_AWAY, TIMEOUT), "554 5.7.1 your address is listed"),
        ("silent", WORLD, at_25(OPEN, OPEN) | WEB, "no mail server speaks"),
    ],
)
async def test_why_nothing_gets_out(
    cause: str, script: str, contacts: dict[tuple[str, int], ConnectReport], said: str
) -> None:
    """OPS-01."""
    check = await direct(script, contacts)
    assert (check.name, check.level) == (f"outgoing.{cause}", Level.PROBLEM)
    assert said in check.found
    assert check.step == CAUSES[cause].step
    assert check.expected is not None


async def test_nothing_is_asked_of_the_world_where_nothing_leaves() -> None:
    async with outside("* ! SERVFAIL") as found:
        check = await outgoing(found, EffectiveRoute(kinds.route("capture")), 25, DOMAINS)
    assert check.level is Level.SKIPPED
    assert "capture" in check.found


RELAY = "smart.example A 192.0.2.50"


@pytest.mark.parametrize(
    ("contact", "name", "level"),
    [
        (GREETING, "outgoing", Level.OK),
        (SENT_AWAY, "outgoing.banner", Level.PROBLEM),
        (REFUSED, "outgoing.refused", Level.PROBLEM),
        (TIMEOUT, "outgoing.timeout", Level.PROBLEM),
        (NO_ROUTE, "outgoing.no_route", Level.PROBLEM),
        (FORBIDDEN, "outgoing.forbidden", Level.PROBLEM),
        (ConnectReport(ConnectStage.SILENT, "it says nothing"), "outgoing.silent", Level.PROBLEM),
    ],
)
async def test_a_smarthost(contact: ConnectReport, name: str, level: Level) -> None:
    async with outside(RELAY, {("192.0.2.50", 587): contact}) as found:
        check = await outgoing(
            found, EffectiveRoute(kinds.route("relay:smtp://user:secret@smart.example:587")), 25, DOMAINS
        )
    assert (check.name, check.level) == (name, level)
    assert (check.step is None) == (level is Level.OK)
    assert "secret" not in repr(check)


async def test_a_smarthost_with_implicit_tls_need_not_greet_in_clear() -> None:
    async with outside(RELAY, {("192.0.2.50", 465): OPEN}) as found:
        check = await outgoing(
            found, EffectiveRoute(kinds.route("relay:smtps://smart.example:465")), 25, DOMAINS
        )
        unknown = await outgoing(
            found, EffectiveRoute(kinds.route("relay:smtp://nowhere.example:25")), 25, DOMAINS
        )
    assert check.level is Level.OK
    assert unknown.name == "outgoing.no_dns"


# Real sockets -------------------------------------------------------------------------------------


@contextmanager
def full_backlog() -> Any:
    """A port whose listener takes nobody in: further packets to it are dropped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(4):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(listener.getsockname())
                waiting.append(one)
            yield listener.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


async def test_what_real_connections_come_to() -> None:
    reach = Tcp(connect_seconds=0.4, banner_seconds=0.2)
    async with Sink() as sink:
        assert (await reach("127.0.0.1", sink.port, True)).line.startswith("220 ")
        assert await reach("127.0.0.1", sink.port, False) == OPEN
        sink.script("CONNECT", "554 go away", Act.SILENCE, Act.CLOSE, Act.DROP, b"\xff" * 2000, b"\r\n")
        assert (await reach("127.0.0.1", sink.port, True)).line == "554 go away"
        said = [await reach("127.0.0.1", sink.port, True) for _ in range(5)]
        assert {contact.reached for contact in said} == {ConnectStage.SILENT}
        assert said[0].line == "it says nothing"
        port = sink.port
    assert await reach("127.0.0.1", port, True) == REFUSED
    with full_backlog() as port:
        assert await reach("127.0.0.1", port, True) == TIMEOUT


@pytest.mark.parametrize(
    ("user", "host", "name", "words"),
    [
        ("harbor:right@", "127.0.0.1", "outgoing", "220 mx.sink.test"),
        ("harbor:mistaken@", "127.0.0.1", "outgoing.login", "refuses our user name or password (535"),
        ("harbor:right@", "127.0.0.2", "outgoing.tls", "gives no TLS that can be trusted"),
        ("", "127.0.0.1", "outgoing", "220 mx.sink.test"),
    ],
)
async def test_a_session_with_the_smarthost_is_opened_with_our_password(
    user: str, host: str, name: str, words: str
) -> None:
    """OUT-22: what delivery would meet is found without a mail."""
    async with (
        Sink(users={"harbor": "right"}, host=host) as sink,
        outside("", connect=Tcp(), open_session=Smarthost("mx.pillar.example")) as world,
    ):
        route = kinds.route(f"relay:smtp://{user}{host}:{sink.port}")
        check = await outgoing(world, EffectiveRoute(route), 25, DOMAINS)
        assert check.name == name
        assert words in check.found
        assert "mistaken" not in repr(check)
        assert (check.step is None) == (name == "outgoing")
        assert not [session for session in sink.sessions if "MAIL" in session.verbs]


# The name -----------------------------------------------------------------------------------------

NAMED = """
    mx.pillar.example          A    192.0.2.80
    80.2.0.192.in-addr.arpa    PTR  mx.pillar.example
"""


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (NAMED, {"helo": Level.OK, "ptr": Level.OK}),
        ("mx.pillar.example A 192.0.2.80", {"helo": Level.OK, "ptr.absent": Level.PROBLEM}),
        (
            "mx.pillar.example A 192.0.2.80\n80.2.0.192.in-addr.arpa PTR vps80.host.example\n"
            "vps80.host.example A 192.0.2.80",
            {"helo": Level.OK, "ptr.other": Level.WARNING},
        ),
        (
            "mx.pillar.example A 192.0.2.80\n80.2.0.192.in-addr.arpa PTR vps80.host.example",
            {"helo": Level.OK, "ptr.unconfirmed": Level.PROBLEM},
        ),
        (
            "mx.pillar.example A 192.0.2.80\n80.2.0.192.in-addr.arpa ! SERVFAIL",
            {"helo": Level.OK, "ptr.unknown": Level.WARNING},
        ),
        (
            "mx.pillar.example A 192.0.2.81\n81.2.0.192.in-addr.arpa PTR MX.pillar.example.",
            {"helo.elsewhere": Level.WARNING, "ptr": Level.OK},
        ),
        (
            "mx.pillar.example A 192.0.2.80\nmx.pillar.example AAAA 2001:db8::80\n"
            "80.2.0.192.in-addr.arpa PTR mx.pillar.example\n"
            "0.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR mx.pillar.example",
            {"helo": Level.OK, "ptr": Level.OK},
        ),
        ("", {"helo.no_address": Level.PROBLEM}),
        ("mx.pillar.example ! SERVFAIL", {"helo.unknown": Level.WARNING}),
    ],
)
async def test_the_host_name_and_its_pointer(script: str, found: dict[str, Level]) -> None:
    """OPS-01."""
    async with outside(script) as world:
        checks = await naming(world, "mx.pillar.example", RouteKind.DIRECT)
    assert {check.name: check.level for check in checks} == found
    for check in checks:
        assert (check.step is None) == (check.level is Level.OK)


@pytest.mark.parametrize(
    ("route", "level"),
    [
        (RouteKind.DIRECT, Level.PROBLEM),
        (RouteKind.RELAY, Level.WARNING),
        (RouteKind.CAPTURE, Level.SKIPPED),
    ],
)
@pytest.mark.parametrize("name", ["localhost", "vm", "192.0.2.80"])
async def test_a_host_name_without_a_domain(name: str, route: RouteKind, level: Level) -> None:
    async with outside("") as world:
        [check] = await naming(world, name, route)
    assert (check.name, check.level) == ("helo.no_domain", level)


# The way back -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (None, "--smtp 0.0.0.0:25"),
        (HostPort("127.0.0.1", 2525), "for this machine alone"),
        (HostPort("0.0.0.0", 2525), "forward 25 to 2525"),
        (HostPort("0.0.0.0", 25), "firewall"),
    ],
)
async def test_nobody_answers_where_bounces_come(at: HostPort | None, said: str) -> None:
    async with outside(NAMED) as world:
        check = await return_path_check(world, "mx.pillar.example", RouteKind.DIRECT, at, receives=False)
        worse = await return_path_check(world, "mx.pillar.example", RouteKind.DIRECT, at, receives=True)
        local = await return_path_check(world, "mx.pillar.example", RouteKind.CAPTURE, at, receives=False)
    assert (check.name, check.level, worse.level) == ("return_path", Level.WARNING, Level.PROBLEM)
    assert local.level is Level.SKIPPED
    assert check.step is not None
    assert said in check.step


async def test_somebody_answers_where_bounces_come() -> None:
    async with outside(NAMED, {("192.0.2.80", 25): GREETING}) as world:
        check = await return_path_check(world, "mx.pillar.example", RouteKind.DIRECT, None, receives=True)
    assert check.level is Level.OK


async def test_listeners_that_are_open_and_one_that_is_not() -> None:
    async with Sink() as sink, outside("", connect=Tcp()) as world:
        with socket.socket() as unheard:
            unheard.bind(("127.0.0.1", 0))
            listeners = {
                "http": HostPort("0.0.0.0", sink.port),
                "smtp": HostPort("127.0.0.1", sink.port),
                "submission": HostPort("127.0.0.1", unheard.getsockname()[1]),
                "lmtp": HostPort("127.0.0.1", sink.port),
            }
            checks = await listening(world, listeners, running=True)
        [alone] = await listening(world, {}, running=False)
    assert [(check.name, check.level) for check in checks] == [
        ("listener.http", Level.OK),
        ("listener.smtp", Level.OK),
        ("listener.submission", Level.PROBLEM),
        ("listener.lmtp", Level.OK),
    ]
    assert "220 " in checks[1].found
    assert "nothing listens" in checks[2].found
    assert "220 " in checks[3].found
    assert (alone.level, "pillarbox serve" in str(alone.step)) == (Level.SKIPPED, True)
