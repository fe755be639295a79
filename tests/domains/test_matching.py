"""When a record counts as published (domains.md section 2)."""

from __future__ import annotations

import pytest

from pillarbox.domains.dns.matching import ExpectedRecord, Match, RecordKind, judge, judge_tracking
from pillarbox.kernel.network.dns_answers import AnswerKind, DnsAnswer

HOST = "mx.pillar.example"
SPF = "v=spf1 a:mx.pillar.example include:spf.pillar.example ip4:192.0.2.7 ip6:2001:DB8:0::1 ~all"
KEY = "MIIBIjANBgkqhkiG9w0BAQEF" + "Ab+/" * 80

MX = ExpectedRecord(kind=RecordKind.SPF_MX, owner="send.harbor.example", shown="send", type="MX", value=HOST)
TXT = ExpectedRecord(
    kind=RecordKind.SPF_TXT, owner="send.harbor.example", shown="send", type="TXT", value=SPF
)
DKIM = ExpectedRecord(
    kind=RecordKind.DKIM,
    owner="k._domainkey.harbor.example",
    shown="k._domainkey",
    type="TXT",
    value=f"p={KEY}",
)
RECEIVING = ExpectedRecord(
    kind=RecordKind.RECEIVING, owner="harbor.example", shown="harbor.example", type="MX", value=HOST
)
TRACKING = ExpectedRecord(
    kind=RecordKind.TRACKING,
    owner="links.harbor.example",
    shown="links",
    type="CNAME",
    value="track.pillar.example",
)

ALL = "a:mx.pillar.example include:spf.pillar.example ip4:192.0.2.7 ip6:2001:db8::1"


def values(*found: str) -> DnsAnswer:
    return DnsAnswer(AnswerKind.VALUES, found, "somebody")


NO_NAME, NO_DATA, TROUBLE = (
    DnsAnswer(said) for said in (AnswerKind.NO_NAME, AnswerKind.NO_DATA, AnswerKind.TROUBLE)
)


@pytest.mark.parametrize(
    ("expected", "found", "match"),
    [
        (MX, ["10 mx.pillar.example"], Match.MATCH),
        (MX, ["50 mx.pillar.example"], Match.MATCH),
        (MX, ["1 mx.quay.example", "50 mx.pillar.example"], Match.MATCH),
        (MX, ["10 mx.quay.example"], Match.DIFFERENT),
        (MX, ["0 ."], Match.DIFFERENT),
        (TXT, [f"v=spf1 {ALL} ~all"], Match.MATCH),
        (TXT, [f"v=spf1 {ALL} -all"], Match.MATCH),
        (TXT, [f"V=SPF1 {ALL.upper()} ?ALL"], Match.MATCH),
        (TXT, [f"v=spf1  mx +{ALL} redirect=x.example"], Match.MATCH),
        (TXT, [f"v=spf1 {ALL.replace('192.0.2.7', '192.0.2.7/32')}"], Match.MATCH),
        (TXT, [f"v=spf1 {ALL} ~all", "site-verification=1"], Match.MATCH),
        (TXT, [f"v=spf1 {ALL} ~all", f"v=spf1 {ALL} ~all "], Match.DIFFERENT),
        (TXT, [f"v=spf1 {ALL.replace('192.0.2.7', '192.0.2.8')} ~all"], Match.DIFFERENT),
        (TXT, [f"v=spf1 -{ALL} ~all"], Match.DIFFERENT),
        (TXT, [f"v=spf10 {ALL} ~all"], Match.DIFFERENT),
        (TXT, [f"spf1 {ALL} ~all"], Match.DIFFERENT),
        (TXT, ["v=spf1"], Match.DIFFERENT),
        (TXT, [""], Match.DIFFERENT),
        (DKIM, [f"p={KEY}"], Match.MATCH),
        (DKIM, [f"v=DKIM1; k=rsa; t=s; p={KEY}"], Match.MATCH),
        (DKIM, [f" v = DKIM1 ;\tp = {KEY[:100]} {KEY[100:]}\r\n ;"], Match.MATCH),
        (DKIM, ["v=spf1 -all", f"p={KEY}"], Match.MATCH),
        (DKIM, [f"p={KEY}A"], Match.DIFFERENT),
        (DKIM, [f"p={KEY.lower()}"], Match.DIFFERENT),
        (DKIM, [f"v=DKIM1 p={KEY}"], Match.DIFFERENT),
        (DKIM, ["p="], Match.DIFFERENT),
        (DKIM, [";;=;p"], Match.DIFFERENT),
        (RECEIVING, ["10 mx.pillar.example"], Match.MATCH),
        (RECEIVING, ["10 mx.pillar.example", "11 mx.quay.example"], Match.MATCH),
        (RECEIVING, ["10 mx.pillar.example", "10 mx.quay.example"], Match.DIFFERENT),
        (RECEIVING, ["10 mx.pillar.example", "9 mx.quay.example"], Match.DIFFERENT),
        (RECEIVING, ["10 mx.pillar.example", "20 mx.pillar.example"], Match.MATCH),
        (RECEIVING, ["0 ."], Match.DIFFERENT),
        (TRACKING, ["track.pillar.example"], Match.MATCH),
        (TRACKING, ["track.quay.example"], Match.DIFFERENT),
    ],
)
def test_what_is_found(expected: ExpectedRecord, found: list[str], match: Match) -> None:
    assert judge(expected, (values(*found),)).match is match


@pytest.mark.parametrize("expected", [MX, TXT, DKIM, RECEIVING, TRACKING])
def test_what_is_not_found(expected: ExpectedRecord) -> None:
    assert judge(expected, (NO_NAME,)).match is Match.ABSENT
    assert judge(expected, (NO_DATA,)).match is Match.ABSENT
    assert judge(expected, (TROUBLE,)).match is Match.UNKNOWN


def test_one_party_that_sees_the_right_record_is_enough() -> None:
    right, wrong = values("10 mx.pillar.example"), values("10 mx.quay.example")
    for seen in ((right, wrong), (wrong, right), (NO_NAME, right), (TROUBLE, right), (right, TROUBLE)):
        assert judge(MX, seen) == (Match.MATCH, right)
    assert judge(MX, (NO_DATA, wrong)) == (Match.DIFFERENT, wrong)
    assert judge(MX, (TROUBLE, NO_NAME)) == (Match.ABSENT, NO_NAME)
    assert judge(MX, (TROUBLE, TROUBLE)).match is Match.UNKNOWN


OURS = values("192.0.2.80", "2001:db8::80")


@pytest.mark.parametrize(
    ("cname", "theirs", "ours", "match"),
    [
        (NO_DATA, values("2001:db8::80", "192.0.2.80"), OURS, Match.MATCH),
        (values("proxy.quay.example"), values("192.0.2.80", "2001:db8::80"), OURS, Match.MATCH),
        (NO_DATA, values("192.0.2.80"), OURS, Match.DIFFERENT),
        (NO_DATA, values("203.0.113.1"), OURS, Match.DIFFERENT),
        (values("proxy.quay.example"), values("203.0.113.1"), OURS, Match.DIFFERENT),
        (values("proxy.quay.example"), NO_NAME, OURS, Match.DIFFERENT),
        (NO_NAME, NO_NAME, OURS, Match.ABSENT),
        (NO_NAME, NO_NAME, NO_NAME, Match.ABSENT),
        (NO_DATA, TROUBLE, OURS, Match.UNKNOWN),
        (NO_DATA, values("192.0.2.80"), TROUBLE, Match.UNKNOWN),
        (TROUBLE, values("203.0.113.1"), OURS, Match.UNKNOWN),
        (values("track.pillar.example"), TROUBLE, TROUBLE, Match.MATCH),
    ],
)
def test_a_provider_may_flatten_the_tracking_cname(
    cname: DnsAnswer, theirs: DnsAnswer, ours: DnsAnswer, match: Match
) -> None:
    assert judge_tracking(TRACKING, (cname,), (theirs,), (ours,)).match is match
