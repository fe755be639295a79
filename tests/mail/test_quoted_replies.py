"""Refusals behind gateways: what the quoted reply says decides (BNC-03, contract decision 23)."""

# ruff: noqa: E501 - the tables hold whole answers

from __future__ import annotations

import pytest

from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import dsn, quoted_replies
from pillarbox.mail.reports.replies import BounceType, ReplyVerdict, classify
from pillarbox.mail.smtp.reply import SmtpReply, SmtpStage

REFUSALS = {
    "policy": ("5.7.1", "Message rejected due to local policy"),
    "content": ("5.7.1", "Message rejected due to content restrictions"),
    "content without a code": ("", "Message rejected due to content restrictions"),
    "authentication": (
        "5.7.26",
        "Unauthenticated email from harbor.test is not accepted due to domain's DMARC policy",
    ),
    "access": ("5.4.1", "Recipient address rejected: Access denied. AS(201806281)"),
    "administrative": ("", "Administrative prohibition"),
    "block list": ("5.7.1", "Service unavailable, Client host [192.0.2.1] blocked using Spamhaus"),
    "reverse name": ("", "Client host rejected: cannot find your hostname"),
    "relaying": ("5.7.1", "Relay access denied"),
    "sender": ("5.1.8", "Sender address rejected: Domain not found"),
    "sender without a code": ("", "sender domain does not exist"),
    "full": ("5.2.2", "Mailbox full"),
    "full without a code": ("", "Quota exceeded (mailbox for user is full)"),
    "large": ("5.3.4", "Message too big"),
    "nothing": ("", "Transaction failed"),
}
GONE = {
    "code and words": ("5.1.1", "User unknown"),
    "words": ("", "No such user here"),
    "disabled": ("5.2.1", "The email account that you tried to reach is disabled"),
    "yahoo": ("", "delivery error: dd This user doesn't have a yahoo.test account"),
}
WRAPPERS = {
    "Cisco ESA": "5.1.0 - Unknown address error {code}-'{said}'",
    "Cisco ESA, with attempts": "5.1.0 - Unknown address error {code}-'{said}' (delivery attempts: 0)",
    "Cisco ESA, behind Exchange Online": "554 5.1.0 < #5.1.0 smtp; 5.1.0 - Unknown address error {code}-'{said}'>",
    "Exchange": "#< #5.1.1 smtp;{code} {said}> #SMTP#",
    "Exchange, with a host": "#<mx.quay.test #5.1.1 smtp;{code} {said}> #SMTP#",
    "Exchange Online": "550 5.1.1 Remote Server returned '{code} {said}'",
    "Exchange Online, newer": "550 5.0.350 Remote server returned an error -> {code} {said}",
    "Postfix": "host mx.quay.test[192.0.2.7] said: {code} {said} (in reply to RCPT TO command)",
    "Postfix, verifying": "550 5.1.1 <ann@quay.test>: Recipient address rejected: undeliverable address: host mx.quay.test[192.0.2.7] said: {code} {said} (in reply to RCPT TO command)",
    "Exim": "SMTP error from remote mail server after RCPT TO:<ann@quay.test>: host mx.quay.test [192.0.2.7]: {code} {said}",
    "qmail": "192.0.2.7 does not like recipient. Remote host said: {code} {said} Giving up on 192.0.2.7.",
    "sendmail": "while talking to mx.quay.test.: RCPT To:<ann@quay.test> <<< {code} {said}",
    "Google": "The response from the remote server was: {code} {said}",
    "Google, older": "The error that the other server returned was: {code} {said}",
    "Barracuda": "550 5.1.1 Recipient address rejected: mx.quay.test said \"{code} {said}\"",
    "Proofpoint": "550 5.1.1 mx.quay.test: {code} {said}",
    "Mimecast": "550 Invalid Recipient - remote server responded with: {code} {said}",
    "mail.ru": "SMTP error from remote mail server after RCPT: mx.quay.test: {code} {said}",
    "Yahoo": "Remote host said: {code} {said} [RCPT_TO]",
    "QQ": "Reason: remote host mx.quay.test returned: {code} {said}",
    "Domino": "550 5.1.1 Router: Failed to deliver, remote server returned: {code} {said}",
}  # fmt: skip


ABOUT_SENDER = {
    "Exim, verifying": "550-Verification failed for <a@harbor.test> 550-Called: 192.0.2.1 550-Sent: RCPT TO:<a@harbor.test> 550-Response: {code} {said} 550 Sender verify failed",
}


def answer(name: str, code: str, words: str, wrapper: str) -> str:
    return (WRAPPERS | ABOUT_SENDER)[wrapper].format(code=name, said=f"{code} {words}".strip())


def report(diagnostic: str, status: str) -> ReplyVerdict:
    raw = (
        "From: MAILER-DAEMON@quay.test\nSubject: Delivery Status Notification\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        "--b\n\nNot delivered.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.quay.test\n\n"
        f"Final-Recipient: rfc822; ann@quay.test\nAction: failed\nStatus: {status}\n"
        f"Diagnostic-Code: smtp; {diagnostic}\n--b--\n"
    )
    found = dsn.read(parse(raw.encode()))
    assert found is not None
    return found.recipients[0].verdict


def written(diagnostic: str) -> ReplyVerdict:
    raw = f"From: MAILER-DAEMON@quay.test\nSubject: failure notice\n\nSorry.\n\n<ann@quay.test>:\n{diagnostic}\n"
    found = dsn.read(parse(raw.encode()))
    assert found is not None
    return found.recipients[0].verdict


@pytest.mark.parametrize("wrapper", WRAPPERS | ABOUT_SENDER)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_quoted_refusal_suppresses_nobody(wrapper: str, refusal: str) -> None:
    """Whatever the gateway makes of it: in a live answer, in fields, and in a text."""
    for code in ("550", "554", "451"):
        text = answer(code, *REFUSALS[refusal], wrapper)
        assert not classify(SmtpReply(550, None, text), SmtpStage.RCPT).suppresses
        assert not report(text, "5.0.0").suppresses
        assert not written(text).suppresses


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("gone", GONE)
def test_a_quoted_bad_address_suppresses(wrapper: str, gone: str) -> None:
    text = answer("550", *GONE[gone], wrapper)
    assert report(text, "5.0.0").suppresses
    assert written(text).suppresses


@pytest.mark.parametrize("gone", GONE)
def test_a_sender_that_could_not_be_verified_is_not_the_recipient(gone: str) -> None:
    for wrapper in ABOUT_SENDER:
        assert not report(answer("550", *GONE[gone], wrapper), "5.0.0").suppresses


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_quoted_delay_makes_no_address_bad(wrapper: str) -> None:
    text = answer("450", "4.1.1", "User unknown", wrapper)
    assert not report(text, "5.0.0").suppresses
    assert not written(text).suppresses


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("5.1.0 - Unknown address error 550-'5.7.1 no'", SmtpReply(550, "5.7.1", "no")),
        ("a said: 550 5.1.1 unknown, b said: 451 4.7.1 later", SmtpReply(451, "4.7.1", "later")),
        ("sorry, no mailbox here by that name (#5.1.1)", None),
        ("host [192.0.2.7]: 550", None),
        ("user unknown", None),
        ("call +49 (550) 123", None),
    ],
)  # fmt: skip
def test_the_innermost_reply_is_found(text: str, quoted: SmtpReply | None) -> None:
    found = quoted_replies.last(SmtpReply(550, None, text))
    if quoted is not None and len(quoted.text) < 4:
        assert found is not None
        assert (found.code, found.enhanced) == (quoted.code, quoted.enhanced)
    else:
        assert found == quoted


def test_a_refusal_that_a_gateway_reports_keeps_its_kind() -> None:
    verdict = report("5.1.0 - Unknown address error 550-'5.2.2 mailbox full'", "5.1.0")
    assert verdict.bounce_type is BounceType.TRANSIENT


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("5.1.2 - Bad destination host 'DNS Soft Error looking up quay.test (MX): SERVFAIL'", False),
        ("5.1.2 - Bad destination host (temporary DNS failure)", False),
        ("5.1.2 - Bad destination host 'DNS Hard Error looking up quay.test (MX): NXDomain'", True),
    ],
)
def test_a_name_server_that_fails_for_now_makes_no_address_bad(words: str, gone: bool) -> None:
    assert report(words, "5.1.2").suppresses == gone
    assert written(words).suppresses == gone
