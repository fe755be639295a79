"""Asking DNS: real packets on loopback, and everything that servers do instead of answering."""

from __future__ import annotations

import asyncio
import time
from ipaddress import ip_network
from typing import Any

import pytest

from kit.clock import ManualClock
from kit.dns_server import DnsServer
from pillarbox.domains.dns.authoritative_servers import LEFT_ALONE, REMEMBERED, SILENCES
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer, DnsQuestion, settled

KEY = "v=DKIM1; p=" + "A" * 600

SCRIPT = f"""
    harbor.example         MX    20 mx2.harbor.example
    harbor.example         MX    10 MX1.harbor.example.
    harbor.example         TXT   "v=spf1 -all"
    null.example           MX    0 .
    key.harbor.example     TXT   "{KEY}"
    two.harbor.example     TXT   "v=spf1 " "a:mx.pillar.example" " ~all"
    one.harbor.example     CNAME two.harbor.example
    zero.harbor.example    CNAME one.harbor.example
    lost.harbor.example    CNAME gone.harbor.example
    bare.harbor.example    CNAME mx1.harbor.example
    mx1.harbor.example     A     192.0.2.1
    mx1.harbor.example     AAAA  2001:db8::1
    *.wild.example         TXT   "from the wildcard"
    known.wild.example     A     192.0.2.2
    deep.under.example     A     192.0.2.3
    a.circle.example       CNAME b.circle.example
    b.circle.example       CNAME a.circle.example
"""


def uncached_resolver(
    *servers: DnsServer, timeouts: tuple[float, ...] = (0.3,), **options: Any
) -> UncachedResolver:
    """A resolver that asks only these servers."""
    return UncachedResolver(
        [server.address for server in servers], SystemClock(), timeouts=timeouts, **options
    )


async def one(server: DnsServer, name: str, kind: Any = "TXT") -> DnsAnswer:
    return settled(await uncached_resolver(server).ask(DnsQuestion(name, kind)))


async def test_what_there_is() -> None:
    async with DnsServer(SCRIPT) as dns:
        mx = await one(dns, "Harbor.example", "MX")
        assert sorted(mx.values) == ["10 mx1.harbor.example", "20 mx2.harbor.example"]
        assert (mx.kind, mx.server) == (AnswerKind.VALUES, f"127.0.0.1 port {dns.port}")
        assert (await one(dns, "null.example", "MX")).values == ("0 .",)
        both = await one(dns, "mx1.harbor.example", "ADDRESSES")
        assert both.values == ("192.0.2.1", "2001:db8::1")
        assert (await one(dns, "one.harbor.example", "CNAME")).values == ("two.harbor.example",)


async def test_dkim_06_strings_of_one_record_are_joined() -> None:
    """DKIM-06: any chunking."""
    async with DnsServer(SCRIPT) as dns:
        assert (await one(dns, "key.harbor.example")).values == (KEY,)
        assert (await one(dns, "two.harbor.example")).values == ("v=spf1 a:mx.pillar.example ~all",)


@pytest.mark.parametrize("recursive", [True, False])
async def test_dkim_06_cnames_are_followed_whoever_does_it(recursive: bool) -> None:
    """DKIM-06: by the server, or by us where it stops."""
    async with DnsServer(SCRIPT, recursive=recursive) as dns:
        found = await one(dns, "zero.harbor.example")
        assert found.values == ("v=spf1 a:mx.pillar.example ~all",)
        assert found.through == ("one.harbor.example", "two.harbor.example")
        lost = await one(dns, "lost.harbor.example")
        assert (lost.kind, lost.through) == (AnswerKind.NO_NAME, ("gone.harbor.example",))
        bare = await one(dns, "bare.harbor.example")
        assert (bare.kind, bare.through) == (AnswerKind.NO_DATA, ("mx1.harbor.example",))
        circle = await one(dns, "a.circle.example")
        assert circle.kind is AnswerKind.TROUBLE
        assert "circle" in circle.detail


@pytest.mark.parametrize("recursive", [True, False])
async def test_a_chain_ends_at_sixteen(recursive: bool) -> None:
    script = "\n".join(f"n{at}.example CNAME n{at + 1}.example" for at in range(20))
    async with DnsServer(f"{script}\nn20.example TXT there", recursive=recursive) as dns:
        assert (await one(dns, "n8.example")).values == ("there",)
        assert (await one(dns, "n0.example")).kind is AnswerKind.TROUBLE


async def test_no_name_and_no_data_differ_also_beside_a_wildcard() -> None:
    """RFC 4592: a wildcard stands for names that do not exist, and for no others."""
    async with DnsServer(SCRIPT) as dns:
        assert (await one(dns, "gone.example")).kind is AnswerKind.NO_NAME
        assert (await one(dns, "under.example")).kind is AnswerKind.NO_DATA
        assert (await one(dns, "any.wild.example")).values == ("from the wildcard",)
        assert (await one(dns, "a.b.wild.example")).values == ("from the wildcard",)
        assert (await one(dns, "known.wild.example")).kind is AnswerKind.NO_DATA


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("SERVFAIL", "answers SERVFAIL"),
        ("REFUSED", "answers REFUSED"),
        ("SILENCE", "does not answer in time"),
        ("GARBAGE", "does not answer in time"),
    ],
)
async def test_trouble_is_an_answer_with_words(fault: str, words: str) -> None:
    async with DnsServer(f"{SCRIPT}\nharbor.example ! {fault}") as dns:
        found = await one(dns, "harbor.example")
        assert (found.kind, found.values) == (AnswerKind.TROUBLE, ())
        assert found.detail == f"127.0.0.1 port {dns.port} {words}"


async def test_a_server_that_is_not_there() -> None:
    async with DnsServer() as dns:
        pass
    found = await one(dns, "harbor.example")
    assert found.kind is AnswerKind.TROUBLE
    assert "does not accept questions" in found.detail


async def test_a_cut_answer_is_asked_for_again_over_tcp() -> None:
    async with DnsServer(f"{SCRIPT}\nkey.harbor.example ! CUT") as dns:
        assert (await one(dns, "key.harbor.example")).values == (KEY,)
        assert [asked.over for asked in dns.asked] == ["udp", "tcp"]


async def test_a_server_that_does_not_know_edns_is_asked_without() -> None:
    async with DnsServer(f"{SCRIPT}\nharbor.example ! NO_EDNS") as dns:
        assert (await one(dns, "harbor.example")).values == ("v=spf1 -all",)


async def test_a_forged_answer_is_passed_over() -> None:
    async with DnsServer(f"{SCRIPT}\nharbor.example ! FORGED") as dns:
        assert (await one(dns, "harbor.example")).values == ("v=spf1 -all",)


@pytest.mark.parametrize("fault", ["SERVFAIL", "REFUSED", "SILENCE"])
async def test_the_next_server_is_asked_where_one_fails(fault: str) -> None:
    async with DnsServer(f"{SCRIPT}\n* ! {fault}") as sick, DnsServer(SCRIPT) as well:
        [found] = await uncached_resolver(sick, well).ask(DnsQuestion("harbor.example", "TXT"))
        assert (found.values, found.server) == (("v=spf1 -all",), f"127.0.0.1 port {well.port}")


async def test_a_lost_datagram_is_asked_for_in_a_second_round() -> None:
    async with DnsServer(SCRIPT) as dns:
        dns.fault("harbor.example", "SILENCE")
        pending = asyncio.create_task(
            uncached_resolver(dns, timeouts=(0.05, 2.0)).ask(DnsQuestion("harbor.example", "TXT"))
        )
        await dns.changed.wait()
        dns.fault("harbor.example")
        [found] = await pending
        assert found.values == ("v=spf1 -all",)


@pytest.mark.parametrize("name", ["a..example", "x" * 64 + ".example", "", "a." * 130 + "example"])
async def test_what_is_no_name_does_not_exist(name: str) -> None:
    async with DnsServer() as dns:
        assert (await one(dns, name)).kind in (AnswerKind.NO_NAME, AnswerKind.NO_DATA)


# Without --dns: the domain's own servers and the system's resolvers.

LOOPBACK = [ip_network("127.0.0.0/8")]


def resolver_with_authoritative(
    resolver: DnsServer, port: int, clock: Any = None, allowed: Any = LOOPBACK
) -> UncachedResolver:
    """A resolver that asks a recursive server, and the servers that NS records name, on `port`."""
    return UncachedResolver(
        None,
        clock or SystemClock(),
        allowed=allowed,
        resolvers=[resolver.address],
        port=port,
        timeouts=(0.2,),
    )


DELEGATION = """
    harbor.example      NS ns1.harbor.example
    ns1.harbor.example  A  127.0.0.1
    send.harbor.example MX 10 old.pillar.example
"""


async def test_the_domains_own_servers_are_asked_besides_the_resolvers() -> None:
    """They know at once what resolvers learn when their cache is over."""
    async with (
        DnsServer(DELEGATION) as resolver,
        DnsServer("send.harbor.example MX 10 mx.pillar.example", recursive=False) as own,
    ):
        first, second = await resolver_with_authoritative(resolver, own.port).ask(
            DnsQuestion("send.harbor.example", "MX")
        )
        assert (first.values, first.server) == (
            ("10 mx.pillar.example",),
            f"ns1.harbor.example (127.0.0.1 port {own.port})",
        )
        assert second.values == ("10 old.pillar.example",)
        assert [asked.recursion for asked in own.asked] == [False]
        assert all(asked.recursion for asked in resolver.asked)


async def test_with_servers_named_only_those_are_asked() -> None:
    async with DnsServer(DELEGATION) as named:
        [found] = await uncached_resolver(named).ask(DnsQuestion("send.harbor.example", "MX"))
        assert found.values == ("10 old.pillar.example",)
        assert [(asked.name, asked.kind) for asked in named.asked] == [("send.harbor.example", "MX")]


async def test_a_zone_that_is_cut_off_is_asked_for_at_its_own_servers() -> None:
    resolver_script = f"{DELEGATION}\nns9.harbor.example A 127.0.0.9"
    async with (
        DnsServer(resolver_script) as resolver,
        DnsServer(recursive=False) as own,
        DnsServer("k.sub.harbor.example TXT there", recursive=False, at="127.0.0.9", port=own.port) as below,
    ):
        own.cut("sub.harbor.example", "ns9.harbor.example")
        first, _ = await resolver_with_authoritative(resolver, own.port).ask(
            DnsQuestion("k.sub.harbor.example", "TXT")
        )
        assert first.values == ("there",)
        assert first.server == f"ns9.harbor.example (127.0.0.9 port {below.port})"


async def test_a_cname_out_of_the_zone_goes_on_at_the_resolvers() -> None:
    async with (
        DnsServer(f"{DELEGATION}\nkeys.quay.example TXT there") as resolver,
        DnsServer("k.harbor.example CNAME keys.quay.example", recursive=False) as own,
    ):
        first, _ = await resolver_with_authoritative(resolver, own.port).ask(
            DnsQuestion("k.harbor.example", "TXT")
        )
        assert (first.values, first.through) == (("there",), ("keys.quay.example",))


async def test_a_server_that_is_not_responsible_says_nothing_about_the_name() -> None:
    async with (
        DnsServer(DELEGATION) as resolver,
        DnsServer("* ! LAME", recursive=True) as own,
    ):
        first, second = await resolver_with_authoritative(resolver, own.port).ask(
            DnsQuestion("send.harbor.example", "MX")
        )
        assert (first.kind, second.kind) == (AnswerKind.TROUBLE, AnswerKind.VALUES)
        assert "not responsible" in first.detail


async def test_wh_06_servers_on_private_addresses_are_not_asked() -> None:
    """A name server's address is a stranger's word (WH-06)."""
    async with DnsServer(DELEGATION) as resolver, DnsServer(recursive=False) as own:
        [found] = await resolver_with_authoritative(resolver, own.port, allowed=()).ask(
            DnsQuestion("send.harbor.example", "MX")
        )
        assert found.values == ("10 old.pillar.example",)
        assert own.asked == []


async def test_a_silent_server_of_a_domain_is_left_alone_for_a_while() -> None:
    clock = ManualClock()
    async with DnsServer(DELEGATION) as resolver, DnsServer("* ! SILENCE", recursive=False) as own:
        uncached = resolver_with_authoritative(resolver, own.port, clock)
        for _ in range(SILENCES + 2):
            first, second = await uncached.ask(DnsQuestion("send.harbor.example", "MX"))
            assert (first.kind, second.kind) == (AnswerKind.TROUBLE, AnswerKind.VALUES)
        assert len(own.asked) == SILENCES
        own.fault("*")
        clock.advance(LEFT_ALONE + REMEMBERED)
        own.add("send.harbor.example", "MX", "10 mx.pillar.example")
        first, _ = await uncached.ask(DnsQuestion("send.harbor.example", "MX"))
        assert first.values == ("10 mx.pillar.example",)


async def test_the_servers_of_a_zone_are_asked_for_once_a_minute() -> None:
    clock = ManualClock()
    async with DnsServer(DELEGATION) as resolver, DnsServer(recursive=False) as own:
        uncached = resolver_with_authoritative(resolver, own.port, clock)
        await asyncio.gather(*(uncached.ask(DnsQuestion(f"n{at}.harbor.example", "TXT")) for at in range(5)))
        assert [asked.kind for asked in resolver.asked].count("NS") == 1
        clock.advance(REMEMBERED)
        await uncached.ask(DnsQuestion("harbor.example", "TXT"))
        assert [asked.kind for asked in resolver.asked].count("NS") == 2


# Nobody delays another.


async def test_a_black_hole_delays_nobody_else() -> None:
    """Four times as many silent questions as there are places, and the others go through at once."""
    script = "\n".join(f"hole{at}.example ! SILENCE" for at in range(40))
    async with DnsServer(f"{SCRIPT}\n{script}") as dns:
        uncached = uncached_resolver(dns, timeouts=(30.0,), in_flight=10, quick_seconds=0.02)
        holes = [
            asyncio.create_task(uncached.ask(DnsQuestion(f"hole{at}.example", "TXT"))) for at in range(40)
        ]
        began = time.monotonic()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(
                *(uncached.ask(DnsQuestion("harbor.example", "TXT")) for _ in range(50))
            )
        assert all(found.values for [found] in answers)
        assert time.monotonic() - began < 5, (
            "a thirtieth of what one silence takes, with room for a busy machine"
        )
        assert not any(hole.done() for hole in holes)
        for hole in holes:
            hole.cancel()
        await asyncio.gather(*holes, return_exceptions=True)


async def test_slow_questions_are_bounded_too() -> None:
    async with DnsServer("* ! SILENCE") as dns:
        uncached = uncached_resolver(dns, timeouts=(30.0,), in_flight=5, most_slow=3, quick_seconds=0.02)
        asked = [asyncio.create_task(uncached.ask(DnsQuestion(f"n{at}.example", "TXT"))) for at in range(10)]
        async with asyncio.timeout(20):
            while len(asked) > 3:
                await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                asked = [task for task in asked if not task.done()]
        await asyncio.wait(asked, timeout=0.1)
        assert not any(task.done() for task in asked), "so many wait on; to the others nobody answers"
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def test_no_more_questions_are_on_their_way_than_allowed() -> None:
    async with DnsServer(SCRIPT) as dns:
        dns.hold = asyncio.Event()
        uncached = uncached_resolver(dns, timeouts=(5.0,), in_flight=4, quick_seconds=5.0)
        asked = [asyncio.create_task(uncached.ask(DnsQuestion(f"n{at}.example", "TXT"))) for at in range(12)]
        while len(dns.asked) < 4:
            await dns.changed.wait()
            dns.changed.clear()
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(dns.asked) == 4
        dns.hold.set()
        await asyncio.gather(*asked)
        assert len(dns.asked) == 12
