"""The resolver against a real DNS server on loopback, and its cache (OUT-01, OUT-03)."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import pillarbox
from kit.zone import Zone, serve_zone
from pillarbox.kernel.network.dns import FAILURE_TTL, DnsResolver, Resolver, ResolverAnswer

RECORDS = """
    example.test      MX    10 MX1.example.test
    example.test      MX    20 mx2.example.test
    mx1.example.test  A     192.0.2.1
    mx1.example.test  A     192.0.2.2
    mx1.example.test  AAAA  2001:db8::1
    six.example.test  AAAA  2001:db8::6
    null.test         MX    0 .
    www.example.test  CNAME alias.example.test
    alias.example.test CNAME mx1.example.test
    lost.example.test CNAME nowhere.test
    deep.under.test   A     192.0.2.9
    1.2.0.192.in-addr.arpa  PTR  MX1.example.test
    loop.test         CNAME pool.test
    pool.test         CNAME loop.test
"""


class HandClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def boottime(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


async def both(zone: Zone, question: str, name: str, **more: bool) -> ResolverAnswer[object]:
    """The answer of the real resolver, which must be that of the zone in memory as well."""
    async with serve_zone(zone) as server:
        real: Resolver = DnsResolver([server], lifetime=0.3)
        answer: ResolverAnswer[object] = await getattr(real, question)(name, **more)
    fake: ResolverAnswer[object] = await getattr(zone, question)(name, **more)
    assert (answer.status, sorted(map(str, answer.records))) == (fake.status, sorted(map(str, fake.records)))
    return answer


async def test_out_01_mx_records_come_with_preference_and_lower_case_name() -> None:
    """OUT-01."""
    answer = await both(Zone(RECORDS), "mx", "Example.TEST.")
    assert sorted(map(str, answer.records)) == ["(10, 'mx1.example.test')", "(20, 'mx2.example.test')"]


async def test_out_02_a_null_mx_is_a_record() -> None:
    """OUT-02."""
    assert (await both(Zone(RECORDS), "mx", "null.test")).records == ((0, "."),)


async def test_addresses_are_ipv4_first_and_ipv6_on_request() -> None:
    """OUT-20."""
    zone = Zone(RECORDS)
    assert set((await both(zone, "addresses", "mx1.example.test")).records) == {"192.0.2.1", "192.0.2.2"}
    mixed = await both(zone, "addresses", "mx1.example.test", ipv6=True)
    assert mixed.records[-1] == "2001:db8::1"
    assert len(mixed.records) == 3
    assert (await both(zone, "addresses", "six.example.test", ipv6=True)).records == ("2001:db8::6",)
    assert (await both(zone, "addresses", "six.example.test")).status == "no_data"


async def test_spf_01_ipv6_addresses_and_names_of_addresses_can_be_asked_for_alone() -> None:
    """SPF-01."""
    zone = Zone(RECORDS)
    assert (await both(zone, "aaaa", "mx1.example.test")).records == ("2001:db8::1",)
    assert (await both(zone, "ptr", "1.2.0.192.in-addr.arpa")).records == ("mx1.example.test",)


async def test_txt_strings_are_joined() -> None:
    zone = Zone()
    key = "v=DKIM1; p=" + "A" * 600
    zone.add("k._domainkey.example.test", "TXT", key)
    zone.add("example.test", "TXT", '"v=spf1 -all"')
    assert (await both(zone, "txt", "k._domainkey.example.test")).records == (key,)
    assert (await both(zone, "txt", "example.test")).records == ("v=spf1 -all",)


@pytest.mark.parametrize("follows", [True, False])
async def test_out_01_cnames_are_followed(follows: bool) -> None:
    """OUT-01: whoever follows them, the server or we."""
    zone = Zone(RECORDS)
    zone.follows_cnames = follows
    assert (await both(zone, "addresses", "www.example.test")).status == "found"
    assert (await both(zone, "addresses", "lost.example.test")).status == "no_name"


@pytest.mark.parametrize("follows", [True, False])
async def test_out_01_a_cname_loop_is_a_failure(follows: bool) -> None:
    """OUT-01."""
    zone = Zone(RECORDS)
    zone.follows_cnames = follows
    assert (await both(zone, "addresses", "loop.test")).status == "failed"


@pytest.mark.parametrize("follows", [True, False])
async def test_out_01_a_cname_chain_ends_at_sixteen(follows: bool) -> None:
    """OUT-01."""
    zone = Zone()
    zone.follows_cnames = follows
    for i in range(20):
        zone.add(f"n{i}.test", "CNAME", f"n{i + 1}.test")
    zone.add("n20.test", "A", "192.0.2.20")
    async with serve_zone(zone) as server:
        resolver = DnsResolver([server], lifetime=0.5)
        assert (await resolver.addresses("n8.test")).status == "found"
        assert (await resolver.addresses("n0.test")).status == "failed"


async def test_out_03_a_missing_name_and_missing_records_differ() -> None:
    """OUT-03."""
    zone = Zone(RECORDS)
    assert (await both(zone, "mx", "gone.test")).status == "no_name"
    assert (await both(zone, "mx", "under.test")).status == "no_data"
    assert (await both(zone, "mx", "deep.under.test")).status == "no_data"


@pytest.mark.parametrize("how", ["SERVFAIL", "REFUSED", "SILENCE"])
async def test_out_03_a_failing_server_says_nothing_about_the_name(how: str) -> None:
    """OUT-03."""
    zone = Zone(RECORDS)
    zone.fail("example.test", how)
    answer = await both(zone, "mx", "example.test")
    assert answer.status == "failed"
    assert answer.detail


@pytest.mark.parametrize(
    "name", ["a..test", "x" * 64 + ".test", "", ".", "a." * 130 + "test", "é\ud800.test"]
)
async def test_what_is_no_domain_name_is_no_name(name: str) -> None:
    async with serve_zone(Zone(RECORDS)) as server:
        assert (await DnsResolver([server], lifetime=0.3).mx(name)).status in ("no_name", "no_data")


async def test_a_cut_answer_is_asked_for_again_over_tcp() -> None:
    zone = Zone(RECORDS)
    zone.truncates = True
    assert (await both(zone, "mx", "example.test")).status == "found"


@pytest.mark.parametrize(("ttl", "kept"), [(0, 60), (120, 120), (1_000_000, 3600)])
async def test_out_03_answers_are_kept_for_their_ttl_within_bounds(ttl: int, kept: int) -> None:
    """OUT-03."""
    zone, clock = Zone(RECORDS, ttl=ttl), HandClock()
    async with serve_zone(zone) as server:
        resolver = DnsResolver([server], clock=clock)
        await resolver.mx("example.test")
        clock.seconds += kept - 1
        await resolver.mx("EXAMPLE.test.")
        assert len(zone.questions) == 1
        clock.seconds += 2
        await resolver.mx("example.test")
        assert len(zone.questions) == 2


async def test_out_03_failures_are_kept_for_thirty_seconds() -> None:
    """OUT-03."""
    zone, clock = Zone(RECORDS), HandClock()
    zone.fail("example.test", "REFUSED")
    async with serve_zone(zone) as server:
        resolver = DnsResolver([server], clock=clock, lifetime=0.3)
        assert (await resolver.mx("example.test")).status == "failed"
        asked = len(zone.questions)
        zone.fail("example.test", "")
        clock.seconds += FAILURE_TTL - 1
        assert (await resolver.mx("example.test")).status == "failed"
        assert len(zone.questions) == asked
        clock.seconds += 2
        assert (await resolver.mx("example.test")).status == "found"


async def test_equal_questions_on_their_way_are_asked_once() -> None:
    zone = Zone(RECORDS)
    zone.hold = asyncio.Event()
    async with serve_zone(zone) as server:
        resolver = DnsResolver([server])
        first = asyncio.create_task(resolver.mx("example.test"))
        others = [asyncio.create_task(resolver.mx("example.test")) for _ in range(20)]
        await zone.changed.wait()
        first.cancel()
        zone.hold.set()
        answers = await asyncio.gather(*others)
        assert {answer.status for answer in answers} == {"found"}
        assert len(zone.questions) == 1


async def test_the_cache_is_bounded_and_drops_the_oldest() -> None:
    zone = Zone(RECORDS)
    async with serve_zone(zone) as server:
        resolver = DnsResolver([server], cache_size=2)
        for name in ("example.test", "null.test", "example.test", "gone.test", "example.test"):
            await resolver.mx(name)
        assert len(zone.questions) == 3
        await resolver.mx("null.test")
        assert len(zone.questions) == 4
        resolver.forget()
        await resolver.mx("null.test")
        assert len(zone.questions) == 5


async def test_a_second_server_helps_when_the_first_is_dead() -> None:
    zone = Zone(RECORDS)
    async with serve_zone(Zone()) as dead:
        pass
    async with serve_zone(zone) as server:
        resolver = DnsResolver([dead, server], lifetime=2)
        assert (await resolver.mx("example.test")).status == "found"


def test_there_is_no_other_dns_client_in_the_code() -> None:
    """Whoever asks DNS does it with the time limits and the reading of answers that all have."""
    package = Path(pillarbox.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^\s*(?:import dns\.|from dns\b|import aiodns|import pycares)", path.read_text(), re.M)
    }
    assert users == {"kernel/network/dns.py", "kernel/network/dns_query.py"}
