"""Bounces (BNC-01, BNC-03, BNC-07, contract decision 23): 253 labelled reports, and forms beyond them."""

from __future__ import annotations

import csv
import random
import time
from pathlib import Path

import pytest

from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import arf, dsn
from pillarbox.mail.reports.dsn import DeliveryReport, DsnAction, RecipientReport
from pillarbox.mail.reports.replies import BounceType, DeliveryOutcome, SubType

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "bounces"
LABELS = FOLDER / "labels.tsv"

GONE = "says that the mailbox or its account does not exist"
BY_DECISION_23 = {
    **dict.fromkeys(
        (
            *(
                "lhost-activehunter-02",
                "lhost-amazonses-20",
                "lhost-amazonworkmail-02",
                "lhost-apachejames-01",
            ),
            *("lhost-mailfoundry-01", "lhost-messagingserver-06", "lhost-office365-04", "lhost-postfix-03"),
            *("lhost-postfix-07", "lhost-postfix-35", "lhost-postfix-52", "lhost-sendmail-50"),
            *("lhost-sendmail-51", "lhost-surfcontrol-01", "lhost-x1-02", "lhost-x2-01", "lhost-x2-02"),
            *("lhost-yahoo-06", "lhost-zoho-02", "rfc3464-01"),
        ),
        (True, GONE),
    ),
    "lhost-exim-37": (False, "it is the sender's domain that does not exist"),
    "lhost-outlook-08": (False, "mailbox unavailable alone leaves a doubt"),
    "lhost-postfix-30": (False, "5.4.1 access denied is a policy"),
    "lhost-sendmail-14": (False, "a person forwards a bounce: all of it is quoted"),
    "lhost-x5-01": (False, "only the subject says why, and subjects may be those of our mail"),
}
"""Where the decision classes a reason differently from the label: whether it is Permanent, and why."""

NO_REPORTS = {
    "lhost-fml-02": "a mailing list answers a person",
    "lhost-sendmail-14": "a person forwards a bounce to another",
    "lhost-postfix-75": "a server tells its postmaster of a broken session",
}
"""Labelled messages that say nothing about a recipient of ours."""


def labels() -> list[dict[str, str]]:
    if not LABELS.exists():
        return []
    with LABELS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


CASES = [pytest.param(row, id=row["file"]) for row in labels()]
needs_data = pytest.mark.skipif(not CASES, reason="the labelled bounces do not lie beside the checkout")


def wanted(row: dict[str, str]) -> bool:
    """Whether the first recipient of this report is to be suppressed."""
    name = row["file"].removesuffix(".eml")
    return BY_DECISION_23[name][0] if name in BY_DECISION_23 else row["hard"] == "1"


def suppresses(report: DeliveryReport | None) -> bool:
    return report is not None and bool(report.recipients) and report.recipients[0].verdict.suppresses


@pytest.mark.parametrize("row", CASES)
def test_a_labelled_report_is_read_right(row: dict[str, str]) -> None:
    """BNC-01, BNC-03: hard or soft by contract decision 23; BNC-05, BNC-07: complaints and vacations."""
    message = parse((FOLDER / row["file"]).read_bytes())
    report = dsn.read(message)
    if row["reason"] in ("feedback", "vacation") or row["file"].removesuffix(".eml") in NO_REPORTS:
        assert report is None
        assert (arf.read(message) is not None) == (row["reason"] == "feedback")
        assert dsn.is_automatic_reply(message) or row["reason"] != "vacation"
        return
    assert report is not None
    assert suppresses(report) == wanted(row), report.recipients[0]
    first = report.recipients[0]
    delivered = row["reason"] == "delivered"
    assert (first.verdict.outcome is DeliveryOutcome.DELIVERED) == delivered
    assert first.reply.code // 100 == int(row["status"][0]) or first.action is not DsnAction.DELIVERED


@needs_data
def test_the_score(capsys: pytest.CaptureFixture[str]) -> None:
    """BNC-01: all verdicts right; the recipient named in 98 % of reports with fields, 90 % of texts."""
    reports = [(row, dsn.read(parse((FOLDER / row["file"]).read_bytes()))) for row in labels()]
    right = sum(suppresses(report) == wanted(row) for row, report in reports)
    by_form: dict[bool, list[bool]] = {True: [], False: []}
    for _, report in reports:
        if report is not None:
            by_form[report.is_structured].append(report.recipients[0].recipient is not None)
    with capsys.disabled():
        print(
            f"\nbounces: {right} of {len(reports)} right; recipient named in "
            f"{sum(by_form[True])} of {len(by_form[True])} reports with fields, "
            f"{sum(by_form[False])} of {len(by_form[False])} free texts"
        )
    assert right == len(reports) == 253
    assert sum(by_form[True]) >= 0.98 * len(by_form[True])
    assert sum(by_form[False]) >= 0.9 * len(by_form[False])


@needs_data
@pytest.mark.parametrize(
    ("name", "kind", "sub_type"),
    [
        ("lhost-sendmail-06", BounceType.UNDETERMINED, SubType.CONTENT_REJECTED),
        ("lhost-dragonfly-14", BounceType.UNDETERMINED, SubType.MESSAGE_TOO_LARGE),
        ("lhost-mailfoundry-02", BounceType.TRANSIENT, SubType.MAILBOX_FULL),
        ("lhost-exim-56", BounceType.UNDETERMINED, SubType.GENERAL),
        ("lhost-exchange2007-05", BounceType.TRANSIENT, SubType.GENERAL),
        ("lhost-postfix-55", BounceType.TRANSIENT, SubType.GENERAL),
        ("lhost-qmail-13", BounceType.PERMANENT, SubType.NO_EMAIL),
    ],
)
def test_the_kind_of_a_bounce(name: str, kind: BounceType, sub_type: SubType) -> None:
    """BNC-03."""
    report = dsn.read(parse((FOLDER / f"{name}.eml").read_bytes()))
    assert report is not None
    verdict = report.recipients[0].verdict
    assert (verdict.bounce_type, verdict.sub_type) == (kind, sub_type)


@needs_data
@pytest.mark.parametrize(
    ("name", "recipients"),
    [
        ("lhost-qmail-17", {"userunknown@libsisimai.net": True, "mailboxfull@libsisimai.net": False}),
        ("lhost-zoho-02", {"mikeneko@example.co.jp": True, "sabineko@example.co.jp": False}),
        ("lhost-opensmtpd-02", {"mailboxfull@example.jp": False, "userunknown@example.jp": True}),
        ("lhost-postfix-13", {"kijitora@example.jp": True, "noraneko@example.jp": False}),
    ],
)
def test_each_recipient_has_a_verdict_of_its_own(name: str, recipients: dict[str, bool]) -> None:
    report = dsn.read(parse((FOLDER / f"{name}.eml").read_bytes()))
    assert report is not None
    assert {found.recipient: found.verdict.suppresses for found in report.recipients} == recipients


def notification(*groups: str, head: str = "", original: str = "Message-ID: <c81@harbor.test>\n") -> bytes:
    """A report of RFC 3464 with these groups of fields."""
    fields = "\n\n".join(["Reporting-MTA: dns; mx.quay.test\nOriginal-Envelope-Id: Q7", *groups])
    return (
        f"From: MAILER-DAEMON@quay.test\nSubject: Delivery Status Notification\n{head}"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        "--b\n\nWe could not deliver.\n--b\nContent-Type: message/delivery-status\n\n"
        f"{fields}\n\n--b\nContent-Type: text/rfc822-headers\n\n{original}\n--b--\n"
    ).replace("\n", "\r\n").encode()  # fmt: skip


def read(*groups: str) -> tuple[RecipientReport, ...]:
    report = dsn.read(parse(notification(*groups)))
    assert report is not None
    return report.recipients


FAILED = "Final-Recipient: rfc822; ann@quay.test\nAction: failed\nStatus: 5.1.1"


def test_a_report_and_its_fields() -> None:
    """RFC 3464 2.2, 2.3."""
    report = dsn.read(
        parse(
            notification(
                "Original-Recipient: rfc822; Ann+2Btag@quay.test\nFinal-Recipient: RFC822; ann@quay.test\n"
                "Action: failed (mailbox)\nStatus: 5.1.1 (no such user)\nRemote-MTA: dns; mx1.quay.test\n"
                "Diagnostic-Code: smtp; 550 5.1.1\n <ann@quay.test>... User unknown"
            )
        )
    )
    assert report is not None
    assert (report.reporting_host, report.envelope_id) == ("mx.quay.test", "Q7")
    assert (report.original_message_id, report.is_structured) == ("<c81@harbor.test>", True)
    (found,) = report.recipients
    assert (found.action, found.recipient, found.final_recipient) == (
        DsnAction.FAILED,
        "Ann+tag@quay.test",
        "ann@quay.test",
    )
    assert (found.status, found.remote_host) == ("5.1.1", "mx1.quay.test")
    assert found.diagnostic == "550 5.1.1 <ann@quay.test>... User unknown"
    assert found.verdict.suppresses


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        ("failed", DeliveryOutcome.BOUNCED),
        ("delayed", DeliveryOutcome.DELAYED),
        ("delivered", DeliveryOutcome.DELIVERED),
        ("relayed", DeliveryOutcome.DELIVERED),
        ("expanded", DeliveryOutcome.DELIVERED),
    ],
)
def test_only_failed_bounces(action: str, outcome: DeliveryOutcome) -> None:
    """BNC-01: whatever status stands beside it."""
    for status in ("5.1.1", "4.4.7", "2.0.0"):
        (found,) = read(f"Final-Recipient: rfc822; ann@quay.test\nAction: {action}\nStatus: {status}")
        assert found.verdict.outcome is outcome


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ("Status: 5.1.1", BounceType.PERMANENT),
        ("Status: 5.1.10", BounceType.PERMANENT),
        ("Status: 5.2.1", BounceType.PERMANENT),
        ("Status: 5.2.2", BounceType.TRANSIENT),
        ("Status: 4.4.7", BounceType.TRANSIENT),
        ("Status: 5.7.1", BounceType.UNDETERMINED),
        ("Status: 5.3.4", BounceType.UNDETERMINED),
        ("Status: 5.0.0", BounceType.UNDETERMINED),
        ("Status: 5.1.1\nDiagnostic-Code: smtp; 550 5.7.1 blocked using Spamhaus", BounceType.UNDETERMINED),
        ("Status: 5.0.0\nDiagnostic-Code: smtp; 550 No such user", BounceType.PERMANENT),
        ("Status: 4.0.0\nDiagnostic-Code: smtp; 421 4.7.0 try again later", BounceType.TRANSIENT),
        ("Status: 5.4.4\nDiagnostic-Code: X-Postfix; Host or domain name not found", BounceType.PERMANENT),
        ("Status: 5.4.4\nDiagnostic-Code: X-Postfix; Host not found, try again", BounceType.TRANSIENT),
    ],
)
def test_status_and_words_make_the_verdict(fields: str, kind: BounceType) -> None:
    """BNC-03: "5.7.1 blocked" and "IP listed" must not suppress."""
    (found,) = read(f"Final-Recipient: rfc822; ann@quay.test\nAction: failed\n{fields}")
    assert found.verdict.bounce_type is kind
    assert found.verdict.suppresses == (kind is BounceType.PERMANENT)


@pytest.mark.parametrize(
    ("field", "address"),
    [
        ("rfc822; ann@quay.test", "ann@quay.test"),
        ("RFC822;<ann@quay.test>", "ann@quay.test"),
        ("ann@quay.test", "ann@quay.test"),
        ("utf-8; m\\x{FC}ller@quay.test", "müller@quay.test"),
        ("utf-8; müller@quay.test", "müller@quay.test"),
        ("rfc822; nobody", None),
        ("", None),
    ],
)
def test_recipients_in_every_form(field: str, address: str | None) -> None:
    """BNC-01: xtext and utf-8 forms (RFC 6533 3)."""
    (found,) = read(f"Final-Recipient: {field}\nAction: failed\nStatus: 5.1.1")
    assert found.recipient == address


def test_several_recipients_with_and_without_blank_lines() -> None:
    second = FAILED.replace("ann", "ben").replace("failed", "delayed").replace("5.1.1", "4.4.1")
    for groups in ((FAILED, second), (f"{FAILED}\n{second}",)):
        found = read(*groups)
        assert [(f.recipient, f.action) for f in found] == [
            ("ann@quay.test", DsnAction.FAILED),
            ("ben@quay.test", DsnAction.DELAYED),
        ]


def text_bounce(text: str, *, subject: str = "Undelivered Mail Returned to Sender", head: str = "") -> bytes:
    return f"From: MAILER-DAEMON@quay.test\r\nSubject: {subject}\r\n{head}\r\n{text}".encode()


def test_a_delay_in_a_free_text_is_no_failure() -> None:
    """BNC-01: delays told apart from failures."""
    text = "THIS IS A WARNING MESSAGE ONLY.\n\n<ann@quay.test>: connect to mx: Connection refused\n"
    report = dsn.read(parse(text_bounce(text, subject="Delayed mail")))
    assert report is not None
    assert [f.verdict.outcome for f in report.recipients] == [DeliveryOutcome.DELAYED]


def test_the_original_message_has_no_say() -> None:
    """Words of our own mail must not decide."""
    text = (
        "<ann@quay.test>: 452 4.2.2 mailbox full\n\n"
        "--- Below this line is a copy of the message.\n\nuser unknown 550 5.1.1 no such user\n"
    )
    report = dsn.read(parse(text_bounce(text)))
    assert report is not None
    assert [f.verdict.sub_type for f in report.recipients] == [SubType.MAILBOX_FULL]


@pytest.mark.parametrize(
    "raw",
    [
        b"From: ann@quay.test\r\nSubject: Re: Berth 12\r\n\r\nThe user unknown 550 5.1.1 is funny.\r\n",
        b"From: ann@quay.test\r\nSubject: Automatic reply\r\nAuto-Submitted: auto-replied\r\n\r\nAway.\r\n",
        b"From: postmaster@quay.test\r\nSubject: Out of office\r\n\r\nIt could not be delivered today.\r\n",
        b"From: ann@quay.test\r\nSubject: Read: Berth\r\nContent-Type: multipart/report;"
        b" report-type=disposition-notification; boundary=b\r\n\r\n--b\r\n\r\nread\r\n--b--\r\n",
        b"",
        b"\xff" * 1000,
    ],
)
def test_what_is_no_bounce(raw: bytes) -> None:
    """BNC-07: automatic replies, receipts, people."""
    assert dsn.read(parse(raw)) is None


def test_reports_that_are_damaged_give_a_value() -> None:
    chance = random.Random(3464)
    seed = bytearray(notification(FAILED, FAILED.replace("ann", "ben")))
    for _ in range(300):
        raw = seed.copy()
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randrange(30)] = chance.randbytes(chance.randrange(6))
        report = dsn.read(parse(bytes(raw)))
        assert report is None or not any("\0" in found.diagnostic for found in report.recipients)


@pytest.mark.parametrize(
    "text",
    [
        "a@" * 30_000,
        "deliver" * 9_000,
        "deliver to " * 6_000,
        "<" * 60_000,
        "a@b.c\n" * 10_000,
        "550 " * 15_000,
        "5.1.1." * 10_000,
        "> " * 30_000,
        '{"bouncedRecipients":' * 3_000,
        "Final-Recipient: x\n" * 3_000,
    ],
)
def test_hostile_texts_cost_little(text: str) -> None:
    began = time.process_time()
    dsn.read(parse(text_bounce(text)))
    assert time.process_time() - began < 4
