"""Where mail goes (OUT-01 to OUT-04, OUT-20, RFC 7505)."""

from __future__ import annotations

import ipaddress
import random

import pytest

from kit.zone import Zone
from pillarbox.mail.reports.replies import DeliveryOutcome, classify
from pillarbox.mail.smtp.mx import HostPolicy, Hosts, NoHosts, hosts_for
from pillarbox.mail.smtp.reply import SmtpStage

PUBLIC = HostPolicy()


def keep(names: list[str]) -> None:
    """A shuffle that changes nothing."""


async def hosts(
    zone: Zone, domain: str = "example.test", policy: HostPolicy = PUBLIC
) -> list[tuple[str, ...]]:
    found = await hosts_for(domain, zone, shuffle=keep, policy=policy)
    assert isinstance(found, Hosts), found
    return [(host.name, *host.addresses) for host in found.hosts]


async def refused(zone: Zone, domain: str = "example.test", policy: HostPolicy = PUBLIC) -> NoHosts:
    found = await hosts_for(domain, zone, shuffle=keep, policy=policy)
    assert isinstance(found, NoHosts), found
    return found


async def test_out_01_hosts_come_by_preference_with_their_addresses() -> None:
    """OUT-01."""
    zone = Zone("""
        example.test MX 20 b.test
        example.test MX 10 A.test.
        example.test MX 30 c.test
        a.test A 8.8.1.1
        a.test A 8.8.1.2
        b.test A 8.8.2.1
        c.test A 8.8.3.1
    """)
    assert await hosts(zone) == [
        ("a.test", "8.8.1.1", "8.8.1.2"),
        ("b.test", "8.8.2.1"),
        ("c.test", "8.8.3.1"),
    ]


async def test_out_01_equal_preferences_are_shuffled_and_only_those() -> None:
    """OUT-01."""
    zone = Zone("last.test A 8.8.9.9\nexample.test MX 20 last.test")
    for name in "abcd":
        zone.add("example.test", "MX", f"10 {name}.test")
        zone.add(f"{name}.test", "A", "8.8.1.1")
    orders = set()
    dice = random.Random(7)
    for _ in range(100):
        found = await hosts_for("example.test", zone, shuffle=dice.shuffle, policy=HostPolicy())
        assert isinstance(found, Hosts)
        names = [host.name for host in found.hosts]
        orders.add(tuple(names))
        assert sorted(names[:4]) == ["a.test", "b.test", "c.test", "d.test"]
        assert names[4] == "last.test"
    assert len(orders) > 10


async def test_out_01_without_mx_the_name_itself_is_the_host() -> None:
    """OUT-01."""
    assert await hosts(Zone("example.test A 8.8.1.1")) == [("example.test", "8.8.1.1")]


async def test_out_01_mx_through_a_cname() -> None:
    """OUT-01."""
    zone = Zone("""
        example.test CNAME other.test
        other.test MX 10 mx.test
        mx.test CNAME real.test
        real.test A 8.8.1.1
    """)
    assert await hosts(zone) == [("mx.test", "8.8.1.1")]


async def test_out_01_unusable_mx_hosts_are_no_reason_to_use_the_address() -> None:
    """OUT-01: MX present but unusable: no A fallback; not the address's fault."""
    failure = await refused(Zone("example.test MX 10 gone.test\nexample.test A 8.8.1.1"))
    assert (failure.reply.enhanced, failure.reply.code < 500) == ("5.4.4", False)
    assert not classify(failure.reply, SmtpStage.ROUTE).suppresses


async def test_out_02_a_null_mx_is_a_permanent_refusal_without_another_question() -> None:
    """OUT-02."""
    zone = Zone("example.test MX 0 .\nexample.test A 8.8.1.1")
    failure = await refused(zone)
    assert (failure.reply.code, failure.reply.enhanced) == (556, "5.1.10")
    assert classify(failure.reply, SmtpStage.ROUTE).suppresses
    assert zone.questions == [("example.test", "MX")]


async def test_out_02_a_null_mx_among_others_is_skipped() -> None:
    """OUT-02, RFC 7505 3."""
    zone = Zone("example.test MX 0 .\nexample.test MX 10 a.test\na.test A 8.8.1.1")
    assert await hosts(zone) == [("a.test", "8.8.1.1")]


@pytest.mark.parametrize("text", ["", "example.test TXT hello"])
async def test_out_03_a_domain_that_cannot_take_mail_is_a_bad_address(text: str) -> None:
    """OUT-03: NXDOMAIN, and a name with neither MX nor address."""
    failure = await refused(Zone(text))
    assert failure.reply.enhanced == "5.1.2"
    assert classify(failure.reply, SmtpStage.ROUTE).suppresses


@pytest.mark.parametrize("how", ["SERVFAIL", "REFUSED", "SILENCE"])
@pytest.mark.parametrize("name", ["example.test", "a.test"])
async def test_out_03_a_dns_failure_is_temporary(name: str, how: str) -> None:
    """OUT-03: of the MX question or of every host's address."""
    zone = Zone("example.test MX 10 a.test")
    zone.fail(name, how)
    failure = await refused(zone)
    assert (failure.reply.code, failure.reply.enhanced, failure.reply.code < 500) == (451, "4.4.3", True)
    assert classify(failure.reply, SmtpStage.ROUTE).outcome is DeliveryOutcome.DELAYED


async def test_out_03_one_broken_host_does_not_matter_while_another_works() -> None:
    """OUT-03."""
    zone = Zone("example.test MX 10 a.test\nexample.test MX 20 b.test\nb.test A 8.8.1.1")
    zone.fail("a.test")
    assert await hosts(zone) == [("b.test", "8.8.1.1")]


@pytest.mark.parametrize("target", ["8.8.8.8", "a..test", "-", "x" * 64 + ".test", "[8.8.8.8]", "a/b.test"])
async def test_out_03_targets_that_are_no_names_are_skipped(target: str) -> None:
    """OUT-03: an IP literal or an empty label."""
    zone = Zone(f"example.test MX 10 {target}\nexample.test MX 20 b.test\nb.test A 8.8.1.1")
    zone.add(target, "A", "8.8.4.4")
    names = [name for name, *_ in await hosts(zone)]
    assert names == (["-", "b.test"] if target == "-" else ["b.test"])


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *(
            "100.64.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.9",
        ),
        *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("2002:7f00:1::1", "64:ff9b::7f00:1", "2001:0:7f00:1::", "::7f00:1", "fec0::1", "100::1"),
    ],
)
async def test_out_04_addresses_that_are_not_public_are_not_reached(address: str) -> None:
    """OUT-04."""
    kind = "AAAA" if ":" in address else "A"
    zone = Zone(f"example.test MX 10 a.test\na.test {kind} {address}")
    failure = await refused(zone, policy=HostPolicy(ipv6=True))
    assert failure.reply.enhanced == "5.4.4"
    assert not classify(failure.reply, SmtpStage.ROUTE).suppresses
    zone.add("example.test", "MX", "20 b.test")
    zone.add("b.test", "A", "8.8.1.1")
    assert await hosts(zone, policy=HostPolicy(ipv6=True)) == [("b.test", "8.8.1.1")]


async def test_out_04_the_operator_may_allow_networks() -> None:
    """OUT-04."""
    zone = Zone(
        "example.test MX 10 a.test\na.test A 127.0.0.2\na.test A 10.0.0.1\na.test AAAA ::ffff:127.0.0.3"
    )
    policy = HostPolicy(allowed=(ipaddress.ip_network("127.0.0.0/8"),), ipv6=True)
    assert await hosts(zone, policy=policy) == [("a.test", "127.0.0.2", "::ffff:127.0.0.3")]


async def test_out_04_our_own_address_is_a_loop() -> None:
    """OUT-04: 5.4.6, also inside an allowed network and in its mapped form."""
    zone = Zone("example.test MX 10 a.test\na.test A 8.8.1.1\na.test AAAA ::ffff:8.8.1.1")
    policy = HostPolicy(allowed=(ipaddress.ip_network("8.8.0.0/16"),), own={"8.8.1.1"}, ipv6=True)
    failure = await refused(zone, policy=policy)
    assert (failure.reply.enhanced, failure.reply.code < 500) == ("5.4.6", False)


async def test_out_04_as_a_backup_we_send_to_better_hosts_only() -> None:
    """OUT-04, RFC 5321 5.1."""
    zone = Zone("""
        example.test MX 10 a.test
        example.test MX 20 us.harbor.test
        example.test MX 20 b.test
        example.test MX 30 c.test
        a.test A 8.8.1.1
        b.test A 8.8.2.1
        c.test A 8.8.3.1
    """)
    policy = HostPolicy(own={"us.harbor.test"})
    assert await hosts(zone, policy=policy) == [("a.test", "8.8.1.1")]
    zone.remove("example.test", "MX")
    zone.add("example.test", "MX", "10 us.harbor.test", "20 c.test")
    assert (await refused(zone, policy=policy)).reply.enhanced == "5.4.6"


async def test_out_20_ipv6_is_off_unless_asked_for() -> None:
    """OUT-20: IPv4 first."""
    zone = Zone("example.test MX 10 a.test\na.test A 8.8.1.1\na.test AAAA 2606:4700::1")
    assert await hosts(zone) == [("a.test", "8.8.1.1")]
    assert await hosts(zone, policy=HostPolicy(ipv6=True)) == [("a.test", "8.8.1.1", "2606:4700::1")]


async def test_at_most_five_addresses_are_tried() -> None:
    """Standards section 0."""
    zone = Zone()
    for i in range(40):
        zone.add("example.test", "MX", f"{i} mx{i}.test")
        zone.add(f"mx{i}.test", "A", f"8.8.{i}.1", f"8.8.{i}.2")
    assert sum(len(host) - 1 for host in await hosts(zone)) == 5
    assert len(zone.questions) < 15


@pytest.mark.parametrize(
    "domain", ["", ".", "a..b", "[192.0.2.1]", "x" * 64 + ".test", "a b.test", "müll.test"]
)
async def test_what_is_no_domain_is_never_looked_up(domain: str) -> None:
    """OUT-03."""
    zone = Zone()
    assert (await refused(zone, domain)).reply.enhanced == "5.1.2"
    assert zone.questions == []
