"""MTA-STS policies: looked up, fetched, kept, renewed (RFC 8461; TLS-03)."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import NamedTuple

import asyncpg
import pytest

from kit.clock import ManualClock
from kit.http_outside import Handler, Server
from kit.smtp_sink import TlsAuthority
from kit.sts import DOMAIN, ZONE, document, policy, published, renamed
from kit.zone import Zone
from pillarbox.delivery.smtp.mta_sts_policies import (
    FETCH_SECONDS,
    LOOKUP_EVERY,
    TROUBLE_EVERY,
    Policies,
    mta_sts_periodic,
)
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.mail.smtp.mta_sts import Policy

ENFORCED = policy("enforce", f"mx.{DOMAIN}", max_age=604_800)
LISTED = Policy("enforce", (f"mx.{DOMAIN}",), 604_800)
TESTED = policy("testing", "mx9.quay.example", max_age=604_800)
DAY = 86_400


class Outside(NamedTuple):
    """A process that looks up policies, and its servers."""

    policies: Policies
    clock: ManualClock
    zone: Zone
    site: Server
    pool: asyncpg.Pool
    outbound: Outbound

    @property
    def asked(self) -> int:
        return len(self.site.requests)

    def another(self) -> Policies:
        """A second process on the same database."""
        return Policies(self.pool, self.clock, self.zone, self.outbound, self.site.port)


@asynccontextmanager
async def looking(
    database_url: str,
    *answers: bytes | Handler,
    zone: Zone | None = None,
    names: TlsAuthority | None = None,
    trusted: TlsAuthority | None = None,
    patience: float = FETCH_SECONDS,
) -> AsyncIterator[Outside]:
    pool = await open_pool(database_url, limit=2, by_key=True)
    async with published(*answers, authority=names) as (site, authority):
        found, clock = zone or Zone(ZONE), ManualClock()
        tls = (trusted or authority).trust()
        outbound = Outbound(DnsAddresses(found), [ip_network("127.0.0.0/8")], tls=tls)
        policies = Policies(pool, clock, found, outbound, site.port, patience)
        yield Outside(policies=policies, clock=clock, zone=found, site=site, pool=pool, outbound=outbound)
        await policies.close()
        await outbound.close()
    await pool.close()


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + ENFORCED)
    while True:
        writer.write(b"x: y\r\n" * 2000)
        await writer.drain()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(document(ENFORCED)[:-1])
    while True:
        await writer.drain()
        await asyncio.sleep(0.01)


REDIRECT = (
    b"HTTP/1.1 %d Elsewhere\r\nLocation: https://mta-sts.quay.example:%d/other\r\nContent-Length: 0\r\n\r\n"
)

NO_POLICIES: dict[str, bytes | Handler] = {
    "not found": document(ENFORCED, status="404 Not Found"),
    "a part": document(ENFORCED, status="206 Partial Content"),
    "html": document(ENFORCED, media="text/html"),
    "octets": document(ENFORCED, media="application/octet-stream"),
    "two media types": document(ENFORCED, media="text/plain\r\nContent-Type: text/html"),
    "compressed": document(gzip.compress(ENFORCED), media="text/plain\r\nContent-Encoding: gzip"),
    "announced to be huge": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 65537\r\n\r\n",
    "no media type": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nversion: ",
    "65 kB": document(ENFORCED + b"x: y\r\n" * 12_000),
    "endless": endless,
    "another version": document(ENFORCED.replace(b"STSv1", b"STSv2")),
    "another mode": document(ENFORCED.replace(b"enforce", b"paranoid")),
    "no servers": document(policy("enforce")),
    "no max_age": document(b"version: STSv1\r\nmode: enforce\r\nmx: mx.quay.example\r\n"),
    "no HTTP": b"220 this is a mail server\r\n",
    "empty": document(b""),
}


@pytest.mark.parametrize("case", NO_POLICIES)
async def test_what_is_no_policy_is_none(database_url: str, case: str) -> None:
    """TLS-03: status, redirects, media type, size and content; it is not asked again for five minutes."""
    async with looking(database_url, NO_POLICIES[case]) as outside:
        assert await outside.policies.of(DOMAIN) is None
        assert await outside.policies.of(DOMAIN) is None
        assert outside.asked == 1
        outside.clock.advance(TROUBLE_EVERY)
        await outside.policies.of(DOMAIN)
        await outside.policies.idle()
        assert outside.asked == 2


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (ENFORCED, "text/plain"),
        (ENFORCED.replace(b"\r\n", b"\n"), "Text/Plain; charset=utf-8"),
        (ENFORCED + b"future: field\r\n", "text/plain"),
    ],
)
async def test_a_policy_is_fetched_once_and_kept(database_url: str, body: bytes, media: str) -> None:
    """TLS-03: one TXT question and one request, for a hundred mails at once and a thousand later."""
    async with looking(database_url, document(body, media=media)) as outside:
        found = await asyncio.gather(*[outside.policies.of(DOMAIN) for _ in range(100)])
        assert set(found) == {LISTED}
        for _ in range(1000):
            assert await outside.policies.of(DOMAIN) == LISTED
        assert outside.asked == 1
        assert outside.zone.questions.count((f"_mta-sts.{DOMAIN}", "TXT")) == 1
        assert (
            b"GET /.well-known/mta-sts.txt HTTP/1.1\r\nHost: mta-sts.quay.example:"
            in outside.site.requests[0]
        )


async def test_a_domain_without_record_costs_one_question_an_hour(database_url: str) -> None:
    """TLS-03: the absence is kept too; nothing is fetched, and no mail waits for the next look-up."""
    zone = Zone("quay.example MX 10 mx.quay.example\nquay.example TXT v=spf1")
    async with looking(database_url, document(ENFORCED), zone=zone) as outside:
        for _ in range(100):
            assert await outside.policies.of(DOMAIN) is None
        assert zone.questions == [(f"_mta-sts.{DOMAIN}", "TXT")]
        outside.clock.advance(LOOKUP_EVERY)
        zone.hold = asyncio.Event()
        assert await outside.policies.of(DOMAIN) is None
        zone.hold.set()
        await outside.policies.idle()
        assert len(zone.questions) == 2
        assert outside.asked == 0


@pytest.mark.parametrize(
    "records",
    [
        ["v=STSv1; id=one", "v=STSv1; id=two"],
        ["v=STSv1;"],
        ["v=STSv1; id=not-a-name!"],
        ["V=STSV1; id=one"],
        ["v=spf1 -all"],
    ],
)
async def test_a_record_that_is_none_leads_nowhere(database_url: str, records: list[str]) -> None:
    """TLS-03, RFC 8461 3.1."""
    zone = Zone(ZONE)
    zone.remove(f"_mta-sts.{DOMAIN}", "TXT")
    zone.add(f"_mta-sts.{DOMAIN}", "TXT", *records)
    async with looking(database_url, document(ENFORCED), zone=zone) as outside:
        assert await outside.policies.of(DOMAIN) is None
        assert outside.asked == 0


async def test_a_record_may_be_an_alias(database_url: str) -> None:
    """RFC 8461 8.2: a provider hosts it."""
    zone = Zone(ZONE)
    zone.remove(f"_mta-sts.{DOMAIN}", "TXT")
    zone.add(f"_mta-sts.{DOMAIN}", "CNAME", "sts.provider.example")
    zone.add("sts.provider.example", "TXT", '"v=STSv1; id=one"')
    async with looking(database_url, document(ENFORCED), zone=zone) as outside:
        assert await outside.policies.of(DOMAIN) == LISTED


@pytest.mark.parametrize("case", ["another name", "another authority"])
async def test_the_certificate_is_that_of_the_policy_host(database_url: str, case: str) -> None:
    """TLS-03, RFC 8461 3.3."""
    named = TlsAuthority("quay.example") if case == "another name" else TlsAuthority(f"mta-sts.{DOMAIN}")
    trusted = named if case == "another name" else TlsAuthority("elsewhere.example")
    async with looking(database_url, document(ENFORCED), names=named, trusted=trusted) as outside:
        assert await outside.policies.of(DOMAIN) is None


@pytest.mark.parametrize(
    ("kind", "targets"),
    [
        ("A", ["10.0.0.7"]),
        ("A", ["127.0.0.1", "10.0.0.7"]),
        ("A", ["169.254.169.254"]),
        ("AAAA", ["::ffff:10.0.0.7"]),
        ("AAAA", ["fd00::7"]),
        ("CNAME", ["inside.provider.example"]),
    ],
)
async def test_a_policy_host_in_our_own_network_is_not_asked(
    database_url: str, kind: str, targets: list[str]
) -> None:
    """WH-06: the guarded client; a policy is an address that somebody else chose, all of them count."""
    zone = Zone(ZONE)
    zone.remove(f"mta-sts.{DOMAIN}", "A")
    zone.add(f"mta-sts.{DOMAIN}", kind, *targets)
    zone.add("inside.provider.example", "A", "10.0.0.7")
    async with looking(database_url, document(ENFORCED), zone=zone) as outside:
        assert await outside.policies.of(DOMAIN) is None
        assert outside.site.connections == 0


@pytest.mark.parametrize(
    ("name", "found"),
    [(f"mta-sts.{DOMAIN}", LISTED), ("sts.provider.example", None), (f"*.{DOMAIN}", LISTED)],
)
async def test_a_policy_host_may_be_an_alias(database_url: str, name: str, found: Policy | None) -> None:
    """RFC 8461 3.3, 8.2: the certificate is that of the policy host, not of what it is an alias of."""
    zone = Zone(ZONE)
    zone.remove(f"mta-sts.{DOMAIN}", "A")
    zone.add(f"mta-sts.{DOMAIN}", "CNAME", "sts.provider.example")
    zone.add("sts.provider.example", "A", "127.0.0.1")
    async with looking(database_url, document(ENFORCED), zone=zone, names=TlsAuthority(name)) as outside:
        assert await outside.policies.of(DOMAIN) == found
        assert outside.asked == (found is not None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(database_url: str, status: int) -> None:
    """RFC 8461 3.3: not even to the same host, where a policy is."""

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(REDIRECT % (status, writer.get_extra_info("sockname")[1]))
        await writer.drain()

    async with looking(database_url, elsewhere, document(ENFORCED)) as outside:
        assert await outside.policies.of(DOMAIN) is None
        assert outside.asked == 1


@pytest.mark.parametrize("server", [silent, drip])
async def test_a_slow_policy_host_is_left(database_url: str, server: Handler) -> None:
    """RFC 8461 3.3: a minute for all of it (here less); mail to others does not wait, and the next one to
    the same domain not either."""
    assert FETCH_SECONDS == 60
    async with looking(database_url, server, patience=1.0) as outside:
        first = asyncio.create_task(outside.policies.of(DOMAIN))
        assert await outside.policies.of("pier.example") is None
        assert not first.done()
        assert await first is None
        outside.clock.advance(TROUBLE_EVERY)
        assert await outside.policies.of(DOMAIN) is None
        assert outside.asked == 1


async def test_another_id_brings_another_policy(database_url: str) -> None:
    """TLS-03: noticed within the hour, and mail meanwhile goes on under the old one."""
    async with looking(database_url, document(ENFORCED), document(TESTED)) as outside:
        assert await outside.policies.of(DOMAIN) == LISTED
        renamed(outside.zone, "two")
        outside.clock.advance(LOOKUP_EVERY - 1)
        assert await outside.policies.of(DOMAIN) == LISTED
        outside.clock.advance(1)
        assert await outside.policies.of(DOMAIN) == LISTED
        await outside.policies.idle()
        found = await outside.policies.of(DOMAIN)
        assert found is not None
        assert found.mode == "testing"
        assert outside.asked == 2


@pytest.mark.parametrize("how", ["the server fails", "no record", "no DNS", "wrong record"])
async def test_an_old_policy_holds_while_a_new_one_cannot_be_had(database_url: str, how: str) -> None:
    """TLS-03, RFC 8461 10.2: until it expires, and not a second longer; renewed at half of its time."""
    async with looking(database_url, document(ENFORCED), document(b"", status="500 No")) as outside:
        assert await outside.policies.of(DOMAIN) == LISTED
        if how == "the server fails":
            renamed(outside.zone, "two")
        elif how == "no DNS":
            outside.zone.fail(f"_mta-sts.{DOMAIN}")
        else:
            outside.zone.remove(f"_mta-sts.{DOMAIN}", "TXT")
        if how == "wrong record":
            outside.zone.add(f"_mta-sts.{DOMAIN}", "TXT", "v=STSv1", "v=STSv1; id=x")
        for _ in range(6):
            outside.clock.advance(DAY)
            await outside.policies.of(DOMAIN)
            await outside.policies.idle()
            assert await outside.policies.of(DOMAIN) == LISTED
        outside.clock.advance(DAY - 1)
        assert await outside.policies.of(DOMAIN) == LISTED
        outside.clock.advance(1)
        assert await outside.policies.of(DOMAIN) is None


async def test_a_policy_is_renewed_when_half_of_its_time_is_over(database_url: str) -> None:
    """RFC 8461 3.2: a policy in use does not run out, though its id stays."""
    async with looking(database_url, document(ENFORCED)) as outside:
        for day in range(21):
            await outside.policies.of(DOMAIN)
            await outside.policies.idle()
            assert await outside.policies.of(DOMAIN) == LISTED
            assert outside.asked == 1 + day // 4
            outside.clock.advance(DAY)


async def test_a_policy_outlives_its_process(database_url: str) -> None:
    """TLS-03: who blocks our DNS after a restart gains nothing; expired ones are removed."""
    async with looking(database_url, document(ENFORCED)) as outside:
        assert await outside.policies.of(DOMAIN) == LISTED
        outside.zone.fail(f"_mta-sts.{DOMAIN}")
        second = outside.another()
        assert await second.of(DOMAIN) == LISTED
        assert outside.asked == 1
        [round_] = mta_sts_periodic(outside.pool, outside.clock)
        assert await round_.work() == "0 policies"
        outside.clock.advance(8 * DAY)
        assert await outside.another().of(DOMAIN) is None
        assert await round_.work() == "1 policies"


async def test_a_short_policy_is_not_fetched_for_every_mail(database_url: str) -> None:
    """A `max_age` of nothing holds for nobody, and costs a request a minute at most."""
    async with looking(database_url, document(policy("enforce", "mx.quay.example", max_age=0))) as outside:
        for _ in range(50):
            await outside.policies.of(DOMAIN)
        assert outside.asked == 1
        outside.clock.advance(60)
        await outside.policies.of(DOMAIN)
        assert outside.asked == 2


async def test_a_database_that_is_away_stops_no_mail(database_url: str) -> None:
    async with looking(database_url, document(ENFORCED)) as outside:
        assert await outside.policies.of(DOMAIN) == LISTED
        outside.clock.advance(LOOKUP_EVERY)
        await outside.pool.close()
        await outside.policies.of(DOMAIN)
        await outside.policies.idle()
        assert await outside.policies.of(DOMAIN) == LISTED
        assert await outside.policies.of("pier.example") is None
