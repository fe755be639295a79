"""Complaints (BNC-05, RFC 5965): what is one, and what it tells about our mail."""

from __future__ import annotations

from uuid import UUID

import pytest

from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import arf, dsn
from pillarbox.mail.reports.arf import FeedbackReport
from pillarbox.mail.reports.verp import VerpSigner

SIGNER = VerpSigner([bytes(32)])
TOKEN = SIGNER.token(7, UUID("0199a3c2-6a41-7c02-8f11-5e0d9b7a3c44"), 3)


def report(fields: str, original: str = "", kind: str = "message/rfc822") -> FeedbackReport | None:
    raw = (
        "From: fbl@quay.test\nSubject: FW: Berth\nTo: feedback@harbor.test\n"
        "Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n"
        "--b\n\nThis is an abuse report.\n--b\nContent-Type: message/feedback-report\n\n"
        f"{fields}\nUser-Agent: Quay/1.0\nVersion: 1\n\n--b\nContent-Type: {kind}\n\n{original}\n--b--\n"
    )
    return arf.read(parse(raw.replace("\n", "\r\n").encode()))


@pytest.mark.parametrize(
    ("kind", "is_complaint"),
    [
        ("abuse", True),
        ("Fraud", True),
        ("virus", True),
        ("opt-out", True),
        ("other", True),
        ("not-spam", False),
        ("auth-failure", False),
        ("something-new", False),
    ],
)
def test_which_reports_are_complaints(kind: str, is_complaint: bool) -> None:
    """BNC-05: `not-spam` is no complaint."""
    found = report(f"Feedback-Type: {kind}")
    assert found is not None
    assert (found.feedback_type, found.is_complaint) == (kind.lower(), is_complaint)


def test_our_mail_is_found_in_the_fields_and_in_the_enclosed_mail() -> None:
    """BNC-05: by our token, our Message-ID, our headers."""
    original = (
        f"Return-Path: <{TOKEN}@send.harbor.test>\nMessage-ID: <c81@harbor.test>\nX-Entity-Ref-ID: 7\n"
        "To: ann@quay.test\n\nhello"
    )
    found = report(
        "Feedback-Type: abuse\nOriginal-Mail-From: <other@harbor.test>\nOriginal-Rcpt-To: <ann@quay.test>\n"
        "Source-IP: 192.0.2.7\nReporting-MTA: dns; mx.quay.test",
        original,
    )
    assert found is not None
    assert found.recipients == ("ann@quay.test",)
    assert found.bounce_tokens == (TOKEN,)
    assert (found.original_message_id, found.source_ip, found.reporter) == (
        "<c81@harbor.test>",
        "192.0.2.7",
        "mx.quay.test",
    )
    assert found.original_headers["x-entity-ref-id"] == "7"


def test_a_report_with_addresses_blacked_out_is_still_ours() -> None:
    """BNC-05: redacted; the envelope sender in a field is enough, in any case of letters."""
    found = report(f"Feedback-Type: abuse\nOriginal-Mail-From: <{TOKEN.upper()}@send.harbor.test>")
    assert found is not None
    assert (found.recipients, found.bounce_tokens) == ((), (TOKEN,))
    bounced = SIGNER.read(found.bounce_tokens[0])
    assert bounced is not None
    assert bounced.team_number == 7


def test_the_signer_rejects_what_only_looks_like_a_token() -> None:
    """BNC-06."""
    forged = "b-" + "a" * 56
    found = report(
        "Feedback-Type: abuse", f"Return-Path: <{forged}@send.harbor.test>\n\nx", "text/rfc822-headers"
    )
    assert found is not None
    assert found.bounce_tokens == (forged,)
    assert SIGNER.read(forged) is None


def test_reports_without_fields() -> None:
    """Microsoft's form: the enclosed mail alone."""
    raw = (
        "From: staff@hotmail.com\r\nSubject: complaint about message from 192.0.2.7\r\n"
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
        "X-HmXmrOriginalRecipient: ann@quay.test\r\nMessage-ID: <c81@harbor.test>\r\n\r\nhello\r\n--b--\r\n"
    )
    found = arf.read(parse(raw.encode()))
    assert found is not None
    assert (found.is_complaint, found.recipients) == (True, ("ann@quay.test",))
    assert found.original_message_id == "<c81@harbor.test>"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"From: a@b.c\r\nSubject: complaint about message from 192.0.2.7\r\n\r\nhello",
        b"From: a@b.c\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n",
    ],
)
def test_what_is_no_report(raw: bytes) -> None:
    assert arf.read(parse(raw)) is None


def test_a_complaint_is_no_bounce() -> None:
    raw = (
        b"Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n"
        b"From: mailer-daemon@x.y\r\nSubject: Undelivered\r\n\r\n--b\r\n"
        b"Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n"
    )
    assert dsn.read(parse(raw)) is None
    assert arf.read(parse(raw)) is not None
