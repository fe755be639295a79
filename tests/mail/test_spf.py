"""SPF (SPF-01, RFC 7208): the public suite, and what it does not hold."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.spf_suite import SUITE, Case, Scenario, SuiteZone, scenarios
from kit.zone import Zone
from pillarbox.mail.authentication import spf, spf_record

CASES = [
    pytest.param(scenario, case, id=f"{scenario.title} / {case.name}")
    for scenario in (scenarios(SUITE.read_text(encoding="utf-8")) if SUITE.exists() else [])
    for case in scenario.cases
]


@pytest.mark.skipif(not SUITE.exists(), reason="the suite of RFC 7208 does not lie beside the checkout")
def test_the_suite_is_whole() -> None:
    """SPF-01: 203 cases."""
    assert len(CASES) == 203


@pytest.mark.parametrize(("scenario", "case"), CASES)
async def test_the_suite_of_rfc_7208(scenario: Scenario, case: Case) -> None:
    """SPF-01: 203 of 203."""
    found = await spf.check(
        case.host, case.helo, case.mailfrom, SuiteZone(scenario), receiver="receiver.example", seconds=1
    )
    assert found.result in case.results, found.problem
    if found.result == "fail" and case.explanation:
        assert (found.explanation or "DEFAULT") == case.explanation


async def ask(
    zone: str, *, ip: str = "192.0.2.1", helo: str = "mx.a.example", sender: str = "ann@a.example"
) -> spf.Spf:
    return await spf.check(ip, helo, sender, Zone(zone))


@pytest.mark.parametrize(
    ("record", "result"),
    [
        ("v=spf1 ip4:192.0.2.0/24 -all", "pass"),
        ("v=spf1 ip4:198.51.100.1 ~all", "softfail"),
        ("v=spf1 ip4:198.51.100.1 ?all", "neutral"),
        ("v=spf1 -all", "fail"),
        ("v=spf1", "neutral"),
        ("v=spf1 +ip4:192.0.2.1 nonsense", "permerror"),
        ("v=spf10 -all", "none"),
        ("v=spf1 exists:%{ir}.%{v}.list.example -all", "pass"),
    ],
)
async def test_a_record_and_its_result(record: str, result: str) -> None:
    """RFC 7208 4.6: syntax errors anywhere spoil the record."""
    found = await ask(f"a.example TXT {record}\n1.2.0.192.in-addr.list.example A 127.0.0.2")
    assert found.result == result
    assert (found.identity, found.domain) == ("mailfrom", "a.example")


async def test_a_null_sender_is_checked_by_its_helo() -> None:
    """RFC 7208 2.4."""
    found = await ask("mx.a.example TXT v=spf1 ip4:192.0.2.1 -all", sender="")
    assert (found.result, found.identity, found.domain) == ("pass", "helo", "mx.a.example")
    assert found.mechanism == "ip4:192.0.2.1/32"


async def test_an_ipv4_client_in_ipv6_form_is_an_ipv4_client() -> None:
    assert (await ask("a.example TXT v=spf1 ip4:192.0.2.1 -all", ip="::ffff:192.0.2.1")).passed


async def test_dns_that_fails_says_nothing_about_the_sender() -> None:
    """INB-10: temperror."""
    zone = Zone("a.example TXT v=spf1 a:b.example -all")
    zone.fail("b.example")
    assert (await spf.check("192.0.2.1", "x", "ann@a.example", zone)).result == "temperror"
    zone.fail("a.example")
    assert (await spf.check("192.0.2.1", "x", "ann@a.example", zone)).result == "temperror"


async def test_a_record_that_includes_itself_ends() -> None:
    """RFC 7208 4.6.4: ten terms."""
    zone = Zone("a.example TXT v=spf1 include:a.example -all")
    found = await spf.check("192.0.2.1", "x", "ann@a.example", zone)
    assert (found.result, len(zone.questions)) == ("permerror", 11)


async def test_void_look_ups_are_counted() -> None:
    """RFC 7208 4.6.4: two void look-ups."""
    zone = Zone("a.example TXT v=spf1 a:x.example a:y.example a:z.example ip4:192.0.2.1 -all")
    assert (await spf.check("192.0.2.1", "x", "ann@a.example", zone)).result == "permerror"


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "mx",
                "ptr",
                ":",
                "/",
                "//",
                "24",
                "%{",
                "i",
                "d2r",
                "}",
                "%",
                "=",
                "exp",
                "x.y",
                "ip6",
                "-",
                " ",
            ]
        )
    )
)
def test_any_record_parses_or_is_refused(pieces: list[str]) -> None:
    text = "v=spf1 " + "".join(pieces)
    with contextlib.suppress(spf_record.RecordError):
        assert spf_record.parse(text).mechanisms is not None
