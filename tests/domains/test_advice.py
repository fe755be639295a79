"""Forty broken zones, and the advice that each must give (DKIM-06); DNS is queried for real, over UDP."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from kit.client import HERE
from kit.clock import ManualClock
from kit.dns_cases import BROKEN, KEY, OLD, UNWISE, Broken, script_of
from kit.dns_server import DnsServer
from pillarbox.domains.checks.inspection import ExpectedRecords, Inspector, wanted_of
from pillarbox.domains.checks.record_results import RecordResult
from pillarbox.domains.dns.advice_table import ADVICE
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.domains.queries import Domain
from pillarbox.kernel.clock import SystemClock


def domain_of(name: str, **fields: object) -> Domain:
    """A domain that wants every record there is."""
    return Domain(
        **{
            "id": UUID(int=1),
            "name": name,
            "region": "us-east-1",
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "return_path": "send",
            "tracking_subdomain": "links",
            "open_tracking": False,
            "click_tracking": False,
            "tls": "opportunistic",
            "sending": True,
            "receiving": True,
            "selector": "pillarbox",
            "public_key": KEY,
            **fields,
        }  # type: ignore[arg-type]
    )


async def inspected(case: Broken) -> RecordResult:
    """What is found of the record that the zone is about."""
    whole = wanted_of(domain_of(case.domain), [], HERE, proof=True)
    wanted = ExpectedRecords(case.domain, {case.record: whole.records[case.record]}, (OLD,))
    async with DnsServer(script_of(case)) as server:
        resolver = UncachedResolver([server.address], SystemClock(), timeouts=(1.0,))
        return (await Inspector(resolver, ManualClock()).inspect(wanted))[case.record]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: re.sub(r"\W+", "-", case.what))
async def test_a_broken_zone_gets_its_advice(case: Broken) -> None:
    result = await inspected(case)
    assert result.match != "match"
    first = result.advice[0]
    assert first.code == case.code
    assert case.says in f"{first.problem} {first.step}"
    assert "{" not in first.problem + first.step


@pytest.mark.parametrize("case", UNWISE, ids=lambda case: re.sub(r"\W+", "-", case.what))
async def test_what_counts_but_is_unwise_gets_advice_too(case: Broken) -> None:
    result = await inspected(case)
    assert result.match == "match"
    assert [advice.code for advice in result.advice] == [case.code]
    assert case.says in f"{result.advice[0].problem} {result.advice[0].step}"


def test_there_are_forty_broken_zones_and_every_advice_is_among_them() -> None:
    assert len(BROKEN) >= 40
    shown = {case.code for case in (*BROKEN, *UNWISE)}
    assert set(ADVICE) - shown == {"name_too_long", "owned_elsewhere"}, "they have tests of their own"


async def test_a_right_zone_needs_no_advice() -> None:
    script = f"""
        send.harbor.example                 MX    10 MX.pillar.example.
        send.harbor.example                 TXT   "v=spf1 a:mx.pillar.example -all"
        pillarbox._domainkey.harbor.example TXT   "v=DKIM1; k=rsa; t=s; " "p={KEY[:200]}" " {KEY[200:]}"
        harbor.example                      MX    10 mx.pillar.example
        harbor.example                      MX    20 mx.quay.example
        links.harbor.example                CNAME track.pillar.example
    """
    async with DnsServer(script) as server:
        resolver = UncachedResolver([server.address], SystemClock(), timeouts=(1.0,))
        wanted = wanted_of(domain_of("harbor.example"), [], HERE, proof=True)
        found = await Inspector(resolver, ManualClock()).inspect(wanted)
        assert {key: result.match for key, result in found.items()} == dict.fromkeys(wanted.records, "match")
        codes = {key: tuple(advice.code for advice in result.advice) for key, result in found.items()}
        assert codes == dict.fromkeys(wanted.records, ())
        assert len(server.asked) == len(wanted.records), "what is right costs one question each"
        spf = found["spf_txt"]
        assert (spf.name, spf.found) == ("send.harbor.example", ("v=spf1 a:mx.pillar.example -all",))
        assert spf.where == f"127.0.0.1 port {server.port}"
        assert spf.at.startswith("2026-10-03T08:15:00")


async def test_a_name_that_leaves_no_room_for_its_records() -> None:
    """253 characters: the domain is one, but `send.` before it is none any more."""
    name = ".".join(["a" * 63] * 3 + ["b" * 53, "example"])
    assert len(name) == 253
    case = Broken(
        what="longest name", record="spf_mx", zone="", code="name_too_long", says="253", domain=name
    )
    result = await inspected(case)
    assert (result.match, result.advice[0].code) == ("absent", "name_too_long")
