"""What was found out about a mail counts for the next one of its sender, for a second (INB-10, AR-01)."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.zone import Zone
from pillarbox.mail.message.parse import parse
from pillarbox.receiving.arrival import AcceptedRecipient, Arrival
from pillarbox.receiving.judging import LONGEST_CACHED, MOST_CACHED, Judge, MailJudgement

RECORDS = """
    quay.example        TXT "v=spf1 ip4:192.0.2.7 -all"
    _dmarc.quay.example TXT "v=DMARC1; p=reject"
"""
ARRIVAL = Arrival(
    client="192.0.2.7",
    helo="mta.quay.example",
    protocol="ESMTP",
    tls=None,
    mail_from="ada@quay.example",
    recipients=(AcceptedRecipient(UUID(int=1), "a@b.example"),),
)


class Bench:
    """A judge with a clock and a zone."""

    def __init__(self) -> None:
        self.zone = Zone(RECORDS)
        self.clock = ManualClock(datetime(2026, 10, 5, tzinfo=UTC))
        self.judge = Judge(self.zone, self.clock, "mta.harbor.example")

    async def judges(
        self, arrival: Arrival = ARRIVAL, sender: str = "ada@quay.example", *fields: str
    ) -> MailJudgement:
        raw = "\r\n".join([*fields, f"From: {sender}", "", "Where is berth 12?", ""]).encode()
        return await self.judge.judge(arrival, parse(raw), "q")


async def test_the_next_mail_of_a_sender_asks_nobody_and_hears_the_same() -> None:
    bench = Bench()
    first = await bench.judges()
    assert (first.spf, first.dkim, first.dmarc) == ("pass", "none", "pass")
    assert b"spf=pass smtp.mailfrom=quay.example" in first.field
    asked = len(bench.zone.questions)
    assert await bench.judges() == first
    assert len(bench.zone.questions) == asked > 0


async def test_what_dns_says_anew_counts_a_second_later() -> None:
    bench = Bench()
    await bench.judges()
    bench.zone.remove("quay.example", "TXT")
    bench.zone.add("quay.example", "TXT", "v=spf1 -all")
    bench.clock.advance(0.9)
    assert (await bench.judges()).spf == "pass"
    bench.clock.advance(0.2)
    found = await bench.judges()
    assert (found.spf, found.is_forged) == ("fail", True)
    assert b"spf=fail" in found.field


@pytest.mark.parametrize(
    ("arrival", "sender"),
    [
        (ARRIVAL._replace(client="192.0.2.9"), "ada@quay.example"),
        (ARRIVAL._replace(mail_from="ada@pier.example"), "ada@quay.example"),
        (ARRIVAL._replace(mail_from=""), "ada@quay.example"),
    ],
)
async def test_whoever_else_brings_it_is_judged_for_himself(arrival: Arrival, sender: str) -> None:
    """SPF-01: another client, another sender, the null sender with its HELO."""
    bench = Bench()
    assert (await bench.judges()).spf == "pass"
    assert (await bench.judges(arrival, sender)).spf != "pass"


async def test_another_author_is_judged_for_himself() -> None:
    """DMARC-01, DMARC-02: also a second From, which proves nothing."""
    bench = Bench()
    assert (await bench.judges()).dmarc == "pass"
    assert (await bench.judges(ARRIVAL, "ada@pier.example")).dmarc == "none"
    twice = await bench.judges(ARRIVAL, "ada@quay.example", "From: eve@quay.example")
    assert (twice.dmarc, twice.is_forged) == ("fail", True)


async def test_a_signed_mail_is_judged_by_its_signature() -> None:
    """DKIM-02: two mails of one sender need not have signatures that are both good."""
    bench = Bench()
    assert (await bench.judges()).dkim == "none"
    signed = await bench.judges(ARRIVAL, "ada@quay.example", "DKIM-Signature: v=1")
    assert signed.dkim != "none"
    assert (await bench.judges()).dkim == "none"


async def test_mail_that_was_handed_in_is_judged_by_itself() -> None:
    """DKIM-02: a signature behind a line that is no field is verified, and only where it stands."""
    bench = Bench()
    arrival = ARRIVAL._replace(client="")
    hidden = ["From: ada@quay.example", "no field", "DKIM-Signature: v=1"]
    assert (await bench.judges(arrival)).dkim == "none"
    assert (await bench.judges(arrival, "ada@quay.example", *hidden)).dkim != "none"
    assert (await bench.judges(arrival)).dkim == "none"


async def test_what_could_not_be_found_out_is_asked_again() -> None:
    bench = Bench()
    bench.zone.fail("quay.example")
    assert (await bench.judges()).spf == "temperror"
    bench.zone.fail("quay.example", "")
    assert (await bench.judges()).spf == "pass"


async def test_what_is_kept_is_bounded() -> None:
    bench = Bench()
    long = f"{'x' * LONGEST_CACHED} <ada@quay.example>"
    await bench.judges(ARRIVAL, long)
    assert not bench.judge._cached
    for number in range(MOST_CACHED + 1):
        await bench.judges(ARRIVAL._replace(helo=f"mta{number}.quay.example"))
    assert len(bench.judge._cached) == 1
