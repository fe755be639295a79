"""Verification from the verify call to what a domain may do (domains.md sections 2, 3 and 4.6)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from kit.client import error
from kit.dns_server import DnsServer
from kit.domain_dns import BOTH, Place, checked
from kit.manual_world import clock_of, manual_world
from kit.webhook_events import published_events, published_kinds, subscribe
from kit.world import mail
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.domains.senders import Senders
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.work.claim_queries import LEASE
from pillarbox.kernel.work.jobs import Jobs

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ALL = {"capabilities": BOTH, "tracking_subdomain": "links"}
RECORDS = ("SPF MX", "SPF TXT", "DKIM TXT", "Receiving MX", "Tracking CNAME")
SECOND = timedelta(seconds=1)


def all_are(status: str, domain: str | None = None) -> dict[str, str]:
    return {"domain": domain or status, **dict.fromkeys(RECORDS, status)}


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> AbstractAsyncContextManager[Place]:
    return checked(database_url, tmp_path)


async def test_a_domain_from_its_creation_to_verified(place: Place) -> None:
    await subscribe(place.team)
    domain = await place.adds(**ALL)
    assert await domain.states() == all_are("not_started")
    assert await domain.due() is None, "creating looks at nothing"
    await domain.publishes()
    assert error(await place.team.post("/emails", mail()))[0] == 403
    await domain.verifies()
    assert await domain.states() == all_are("pending")
    assert await domain.may() == ""
    assert await place.checks() == 1
    assert await domain.states() == all_are("verified")
    assert await domain.may() == "send receive track"
    assert (await place.team.post("/emails", mail())).status_code == 200
    assert await published_kinds(place.team) == ["domain.created", "domain.updated", "domain.updated"]
    last = (await published_events(place.team))[-1]["data"]
    assert list(last) == ["id", "name", "status", "created_at", "region", "records"]
    assert (last["id"], last["status"]) == (domain.id, "verified")
    assert [record["record"] for record in last["records"]][3] == "Receiving MX"
    assert {record["status"] for record in last["records"]} == {"verified"}


async def test_what_was_seen_is_kept_with_where_and_when(place: Place) -> None:
    domain = await place.adds()
    place.dns.add("send.harbor.example", "MX", "10 mx.quay.example")
    await domain.publishes("DKIM")
    await domain.verifies()
    await place.checks()
    found = await domain.results()
    assert {key: result.match for key, result in found.items()} == {
        "spf_mx": "different",
        "spf_txt": "absent",
        "dkim": "match",
    }
    mx = found["spf_mx"]
    assert (mx.name, mx.type, mx.expected, mx.found) == (
        "send.harbor.example", "MX", "mx.pillar.example", ("10 mx.quay.example",),
    )  # fmt: skip
    assert mx.where == f"127.0.0.1 port {place.dns.port}"
    assert mx.at == "2026-10-03T08:15:00.001Z"
    assert mx.advice[0].code == "other_mx"
    assert found["spf_txt"].advice[0].code == "absent"
    assert found["dkim"].advice == ()
    assert await domain.states() == {
        "domain": "pending", "SPF MX": "pending", "SPF TXT": "pending", "DKIM TXT": "verified",
    }  # fmt: skip


ONE_BY_ONE = [("SPF", "MX"), ("SPF", "TXT"), ("DKIM", "TXT"), ("Receiving", "MX"), ("Tracking", "CNAME")]


@pytest.mark.parametrize(("record", "type_"), ONE_BY_ONE)
async def test_each_record_absent_wrong_right_and_in_trouble(
    database_url: str, tmp_path: Path, record: str, type_: str
) -> None:
    """Fake DNS: each record × {absent, wrong, right, SERVFAIL}, while the others are right."""
    wrong = {"MX": "5 mx.quay.example", "TXT": "p=nothing", "CNAME": "quay.example"}[type_]
    async with checked(database_url, tmp_path) as at:
        domain = await at.adds(**ALL)
        await domain.publishes()
        [own] = [r for r in domain.made["records"] if (r["record"], r["type"]) == (record, type_)]
        name, label = domain.owner_of(own), f"{record} {type_}"
        at.dns.put(name, type_)
        await domain.verifies()

        async def state() -> str:
            await at.checks()
            return (await domain.states())[label]

        assert await state() == "pending"
        at.dns.put(name, type_, wrong)
        clock_of(at.world).advance(MINUTE)
        assert await state() == "pending"
        await domain.publishes()
        clock_of(at.world).advance(MINUTE)
        assert await state() == "verified"
        clock_of(at.world).advance(2 * DAY)
        at.dns.fault(name, "SERVFAIL")
        assert await state() == "verified", "one failed look-up changes nothing"
        at.dns.fault(name)
        at.dns.put(name, type_, wrong)
        clock_of(at.world).advance(2 * DAY)
        assert await state() == "temporary_failure"
        assert (await domain.states())["domain"] == "verified"
        at.dns.put(name, type_)
        clock_of(at.world).advance(HOUR)
        assert await state() == "temporary_failure"
        await domain.publishes()
        clock_of(at.world).advance(HOUR)
        assert await state() == "verified"


async def test_seventy_two_hours_without_a_record(place: Place) -> None:
    """The schedule of section 4.6, to the second, and the end of it."""
    await subscribe(place.team)
    domain = await place.adds()
    await domain.verifies()
    begin = place.now()
    times = await place.checks_until(begin + 10 * DAY)
    after = [time - begin for time in times]
    assert [gap // MINUTE for gap in after][:8] == [0, 1, 2, 5, 10, 30, 60, 120]
    assert [round(gap / HOUR) for gap in after[6:]] == list(range(1, 73))
    assert await domain.states() == {"domain": "failed", **dict.fromkeys(RECORDS[:3], "failed")}
    assert await domain.due() is None, "nothing automatic leads out of failed"
    assert await published_kinds(place.team) == ["domain.created", "domain.updated", "domain.updated"]
    await domain.publishes()
    await domain.verifies()
    assert (await domain.states())["domain"] == "pending"
    await place.checks()
    assert (await domain.states())["domain"] == "verified"


async def test_verified_then_lost_for_seventy_two_hours(place: Place) -> None:
    await subscribe(place.team)
    domain = await (await place.adds(capabilities=BOTH)).verified()
    assert await domain.due() == DAY
    domain.withdraws("DKIM")
    first = place.now() + DAY
    times = await place.checks_until(first + 71 * HOUR)
    assert [round((time - first) / HOUR) for time in times] == list(range(72))
    assert (await domain.states())["DKIM TXT"] == "temporary_failure"
    assert await domain.may() == "send receive"
    assert (await place.team.post("/emails", mail())).status_code == 200
    await place.checks_until(first + 72 * HOUR)
    assert await domain.states() == {
        "domain": "partially_failed", "SPF MX": "verified", "SPF TXT": "verified",
        "DKIM TXT": "failed", "Receiving MX": "verified",
    }  # fmt: skip
    assert await domain.may() == "receive"
    assert error(await place.team.post("/emails", mail()))[0] == 403
    updates = (await published_kinds(place.team)).count("domain.updated")
    assert updates == 4, "pending, verified, temporary failure, failed: one event for each pass"


async def test_a_verify_call_on_what_works_interrupts_nothing(place: Place) -> None:
    domain = await (await place.adds(**ALL)).verified()
    domain.fails("SERVFAIL")
    await domain.verifies()
    await place.checks()
    assert await domain.states() == all_are("pending")
    assert await domain.may() == "send receive track"
    sender = await place.world.app.need(Senders).find(place.team.id, "harbor.example")
    assert sender is not None
    assert (sender.may_send, sender.tracking_host) == (True, "links.harbor.example")
    assert (await place.team.post("/emails", mail())).status_code == 200


@pytest.mark.parametrize("how", ["SERVFAIL", "REFUSED", "SILENCE"])
async def test_trouble_in_dns_changes_no_state(place: Place, how: str) -> None:
    await subscribe(place.team)
    domain = await (await place.adds()).verified()
    events = await published_kinds(place.team)
    domain.fails(how)
    assert await place.checks(2 * DAY) == 1
    assert set((await domain.states()).values()) == {"verified"}
    assert await domain.may() == "send"
    assert await published_kinds(place.team) == events
    assert {result.match for result in (await domain.results()).values()} == {"unknown"}
    assert {result.advice[0].code for result in (await domain.results()).values()} == {"trouble"}
    assert await domain.due() is not None


async def test_trouble_does_not_stop_the_clock_of_the_verify_call(place: Place) -> None:
    domain = await place.adds()
    domain.fails("SERVFAIL")
    await domain.verifies()
    await place.checks(71 * HOUR)
    assert (await domain.states())["domain"] == "pending"
    await place.checks(HOUR)
    assert (await domain.states())["domain"] == "failed"


async def test_a_second_verify_call_restarts_the_clock_and_tells_nothing(place: Place) -> None:
    await subscribe(place.team)
    domain = await place.adds()
    await domain.verifies()
    await place.checks()
    events = await published_kinds(place.team)
    await place.checks(71 * HOUR)
    await domain.verifies()
    assert await domain.due() is not None
    assert await place.checks() == 1
    assert await place.checks(2 * HOUR) == 1
    assert (await domain.states())["domain"] == "pending", "73 hours after the first call"
    assert await published_kinds(place.team) == events
    jobs = await place.world.pool.fetchval("SELECT count(*) FROM jobs WHERE kind = 'domain.check'")
    assert jobs == 1


async def test_daily_checks_are_spread(database_url: str, tmp_path: Path) -> None:
    """24 h ± 10 %, by the chance that is handed in."""
    for chance, hours in ((0.0, 21.6), (1.0, 26.4)):
        async with checked(database_url, tmp_path, chance=chance) as at:
            domain = await (await at.adds(f"d{int(chance)}.example")).verified()
            assert await domain.due() == hours * HOUR


async def test_a_verify_call_during_a_check_gets_a_check_of_its_own(place: Place) -> None:
    """What is on its way looked before the call; its outcome no longer counts."""
    domain = await place.adds()
    await domain.verifies()
    clock_of(place.world).advance(SECOND)
    assert await place.world.app.need(Jobs).look() == 1
    await place.dns.changed.wait()
    await domain.verifies()
    await domain.publishes()
    await place.world.app.need(Jobs).idle()
    assert (await domain.states())["domain"] == "pending"
    assert await place.checks() == 1
    assert (await domain.states())["domain"] == "verified"


async def test_a_change_during_a_check_is_judged_as_it_is_then(place: Place) -> None:
    domain = await place.adds(**ALL)
    await domain.publishes()
    await domain.verifies()
    place.dns.hold = asyncio.Event()
    clock_of(place.world).advance(SECOND)
    assert await place.world.app.need(Jobs).look() == 1
    await place.dns.changed.wait()
    changed = await place.team.call("PATCH", f"/domains/{domain.id}", {"tracking_subdomain": "track"})
    assert changed.status_code == 200, changed.text
    place.dns.hold.set()
    await place.world.app.need(Jobs).idle()
    assert await domain.states() == all_are("verified") | {"Tracking CNAME": "not_started"}
    assert await domain.may() == "send receive"


async def test_a_domain_that_is_deleted_during_a_check(place: Place) -> None:
    domain = await place.adds()
    await domain.verifies()
    clock_of(place.world).advance(SECOND)
    assert await place.world.app.need(Jobs).look() == 1
    await place.dns.changed.wait()
    assert (await place.team.call("DELETE", f"/domains/{domain.id}")).status_code == 200
    await place.world.app.need(Jobs).idle()
    assert await place.world.pool.fetchval("SELECT count(*) FROM jobs") == 0
    assert await place.world.pool.fetchval("SELECT count(*) FROM domains") == 0


async def test_a_process_that_dies_in_a_check_leaves_it_to_another(place: Place) -> None:
    """Section 7: killed between the verify call and the end of the check, it still happens, and once."""
    await subscribe(place.team)
    domain = await place.adds()
    await domain.publishes()
    await domain.verifies()
    claimed = "UPDATE jobs SET owner = $1, leased_until = $2, attempt = attempt + 1"
    await place.world.pool.execute(claimed, UUID(int=9), place.now() + LEASE)
    assert await place.checks() == 0
    assert await place.checks(LEASE) == 1
    assert (await domain.states())["domain"] == "verified"
    assert (await published_kinds(place.team)).count("domain.updated") == 2
    assert await place.checks() == 0


async def test_a_check_that_is_due_survives_a_restart(database_url: str, tmp_path: Path) -> None:
    async with checked(database_url, tmp_path) as before:
        await (await before.adds()).verifies()
    async with checked(database_url, tmp_path) as after:
        assert await after.checks() == 1
        assert len(after.dns.asked) > 0
        assert await after.checks() == 0


async def test_domains_in_a_black_hole_delay_no_other_domain(database_url: str, tmp_path: Path) -> None:
    async with DnsServer("hole.example ! SILENCE") as dns:
        resolver = UncachedResolver(
            [dns.address], SystemClock(), timeouts=(60.0,), in_flight=4, quick_seconds=0.02
        )
        async with manual_world(database_url, tmp_path, asks=resolver) as pillarbox:
            at = Place(pillarbox, dns, await pillarbox.team())
            holes = [await at.adds(f"hole{number}.example") for number in range(6)]
            for hole in holes:
                hole.fails("SILENCE")
                await hole.verifies()
            good = await at.adds()
            await good.publishes()
            await good.verifies()
            clock_of(pillarbox).advance(SECOND)
            jobs = pillarbox.app.need(Jobs)
            while await jobs.look():
                pass
            async with asyncio.timeout(20):
                while (await good.states())["domain"] != "verified":
                    await asyncio.sleep(0.01)
            assert {(await hole.states())["domain"] for hole in holes} == {"pending"}
            waiting = "SELECT count(*) FROM jobs WHERE owner IS NOT NULL"
            assert await pillarbox.pool.fetchval(waiting) == len(holes)
            await jobs.stop(0)


async def test_a_domain_that_is_trusted_stays_able_whatever_dns_says(place: Place) -> None:
    """Contract decision 21: the operator's word is not taken back by a check."""
    made = await place.team.domain()
    assert (await place.team.http.post(f"/domains/{made}/verify")).status_code == 200
    await place.checks_until(place.now() + 4 * DAY)
    assert (await place.team.get(f"/domains/{made}")).json()["status"] == "failed"
    assert (await place.team.post("/emails", mail())).status_code == 200


async def test_hostile_text_in_dns_is_kept_as_text(place: Place) -> None:
    """UI-01: NUL, control characters, markup, braces and bytes that are no UTF-8."""
    domain = await place.adds()
    hostile = '"\\000\\255<script>{owner}%s$1\\"\\010" "' + "x" * 200 + '"'
    place.dns.add("send.harbor.example", "TXT", hostile)
    place.dns.add("send.harbor.example", "MX", "10 a\\000b\\032c.example.")
    place.dns.add("pillarbox._domainkey.harbor.example", "TXT", '"p=;p=;;=;\\000=\\001"')
    await domain.verifies()
    assert await place.checks() == 1
    assert (await domain.states())["domain"] == "pending"
    found = await domain.results()
    assert "<script>{owner}%s$1" in found["spf_txt"].found[0]
    assert [result.advice[0].code for result in found.values()] == [
        "other_mx", "spf_not_there", "empty_key",
    ]  # fmt: skip
