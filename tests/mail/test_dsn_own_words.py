"""Only the report's own words and fields suppress; nothing that the original mail or a quotation contains does."""

# ruff: noqa: E501 - the tables hold whole texts

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.mail.message.parse import parse
from pillarbox.mail.reports import dsn, dsn_own_words
from pillarbox.mail.reports.replies import ReplyVerdict, SubType

GONE = "550 5.1.1 ann@quay.test: user unknown, the account is disabled and does not exist"
SUBJECT = "Undelivered Mail Returned to Sender"


def mail(text: str, *, subject: str = SUBJECT, kind: str = "text/plain", more: str = "") -> bytes:
    """A report in words; `more` are parts behind its text."""
    return (
        f"From: MAILER-DAEMON@quay.test\nSubject: {subject}\nReturn-Path: <>\nMIME-Version: 1.0\n"
        f"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: {kind}; charset=utf-8\n\n{text}\n"
        f"{more}--b--\n"
    ).encode()


def verdicts(raw: bytes) -> list[ReplyVerdict]:
    report = dsn.read(parse(raw))
    return [] if report is None else [found.verdict for found in report.recipients]


def suppresses(raw: bytes) -> bool:
    return any(verdict.suppresses for verdict in verdicts(raw))


QUOTATIONS = {
    "lines with >": "> {}",
    "deeper lines": "  >> {}",
    "a transcript of ours": ">>> {}",
    "Outlook": "-----Original Message-----\n{}",
    "a heading": "----- Original message -----\n{}",
    "forwarded": "Begin forwarded message:\n\n{}",
    "Postfix": "------ This is a copy of the message, including all the headers. ------\n\n{}",
    "qmail": "--- Below this line is a copy of the message.\n\n{}",
    "German": "-----Ursprüngliche Nachricht-----\n{}",
    "French": "----- Message d'origine -----\n{}",
    "Spanish": "-----Mensaje original-----\n{}",
    "Italian": "-----Messaggio originale-----\n{}",
    "Portuguese": "-----Mensagem original-----\n{}",
    "Dutch": "-----Oorspronkelijk bericht-----\n{}",
    "Polish": "-----Oryginalna wiadomość-----\n{}",
    "Russian": "-------- Исходное сообщение --------\n{}",
    "Japanese": "----- 元のメッセージ -----\n{}",
    "Chinese": "----- 原始邮件 -----\n{}",
    "an answer": "On Mon, 3 Feb 2025, Harbor wrote:\n{}",
    "an answer in German": "Am 3. Februar 2025 schrieb Harbor:\n{}",
    "its subject": "Subject: {}",
    "its subject, folded": "Subject: Berth\n {}",
    "its subject in German": "  Betreff: {}",
    "its author": "From: {} <a@harbor.test>",
    "a header and a body": "From: Harbor <a@harbor.test>\nTo: x\nDate: Mon\nSubject: Berth\n\n{}",
    "a header as Outlook shows it": "From: Harbor\nSent: Monday\nTo: x\nSubject: Berth\n\n{}",
    "contents": "Content of your message:\n\n{}",
    "what was sent": "==== Your message was: ====\n{}",
    "trace fields": "Received: from harbor.test\n{}",
    "mime fields": "MIME-Version: 1.0\nContent-Type: text/plain\n\n{}",
}
ONE_LINE = ("its subject", "its subject, folded", "its subject in German", "its author")
PARTS = {
    "an enclosed mail": "--b\nContent-Type: message/rfc822\n\nSubject: {0}\n\n{0}\n",
    "an enclosed header": "--b\nContent-Type: text/rfc822-headers\n\nSubject: {0}\n\n",
    "a second text": "--b\nContent-Type: text/plain\n\n{}\n",
    "a page behind it": "--b\nContent-Type: text/html\n\n<p>{}</p>\n",
    "a report inside the mail": (
        "--b\nContent-Type: message/rfc822\n\nSubject: x\nContent-Type: message/delivery-status\n\n"
        "Final-Recipient: rfc822; ann@quay.test\nAction: failed\nStatus: 5.1.1\n\n{}\n"
    ),
}
FIELDS = "Final-Recipient: rfc822; ann@quay.test\nAction: failed\nStatus: 5.1.1"


@pytest.mark.parametrize("form", QUOTATIONS)
@pytest.mark.parametrize("words", [GONE, FIELDS, "<ann@quay.test>: user unknown"])
def test_a_quotation_suppresses_nobody(form: str, words: str) -> None:
    if form in ONE_LINE:
        words = words.replace("\n", "; ")
    elif form in ("lines with >", "deeper lines", "a transcript of ours"):
        words = words.replace("\n", "\n> ")
    text = f"The message could not be delivered.\n\n{QUOTATIONS[form].format(words)}"
    assert not suppresses(mail(text))
    assert not suppresses(mail(text.split("\n\n", 1)[1]))


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize("text", ["The message could not be delivered.", "<ann@quay.test>: 550 rejected", ""])
def test_another_part_suppresses_nobody(form: str, text: str) -> None:
    assert not suppresses(mail(text, more=PARTS[form].format(GONE)))


def test_a_blockquote_suppresses_nobody() -> None:
    page = "<p>The message could not be delivered.</p><blockquote>{}</blockquote>"
    assert not suppresses(mail(page.format(f"<p>{GONE}</p>"), kind="text/html"))
    assert suppresses(mail(f"<p>{GONE}</p>", kind="text/html"))


MARKED_QUOTATIONS = {
    "Gmail": '<div class="gmail_quote">{}</div>',
    "Gmail of today": '<div class="gmail_quote gmail_quote_container"><div class="gmail_attr">x</div>{}</div>',
    "Yahoo": '<div id="y1" class="yahoo_quoted">{}</div>',
    "Thunderbird": '<div class="moz-cite-prefix">Harbor said</div><div>{}</div>',
    "Outlook of old": '<div class="OutlookMessageHeader">From: Harbor</div>{}',
    "Outlook on the web": '<hr><div id="divRplyFwdMsg"><b>From:</b> Harbor</div><div>{}</div>',
    "inside": "<div><span id=divRplyFwdMsg>x</span></div><div>{}</div>",
    "a header": "<hr><p><b>From:</b> Harbor<br><b>Sent:</b> Monday<br><b>To:</b> x<br><b>Subject:</b> Berth</p>{}",
    "a header in a table": (
        "<hr><table><tr><td>From:<td>Harbor<tr><td>Sent:<td>Monday<tr><td>Subject:<td>Berth</table>{}"
    ),
    "a header in paragraphs": "<hr><p>From: Harbor</p><p>Sent: Monday</p><p>Subject: Berth</p>{}",
    "a header in German": "<hr><div><b>Von:</b> Harbor<br><b>Gesendet:</b> Montag<br><b>Betreff:</b> Berth</div>{}",
    "a header in French": "<hr><div><b>De&nbsp;:</b> Harbor<br><b>Envoyé&nbsp;:</b> lundi<br><b>Objet&nbsp;:</b> x</div>{}",
}


@pytest.mark.parametrize("form", MARKED_QUOTATIONS)
@pytest.mark.parametrize("filling", ["", "<!-- " + "x" * 20_000 + " -->"], ids=["short", "long"])
def test_what_mail_programs_mark_as_quoted_suppresses_nobody(form: str, filling: str) -> None:
    quoted = MARKED_QUOTATIONS[form].format(f"<p>{GONE}</p>")
    assert not suppresses(mail(f"{filling}<p>It could not be delivered.</p>{quoted}", kind="text/html"))
    assert suppresses(mail(f"{filling}<p>{GONE}</p>{quoted}", kind="text/html"))


@pytest.mark.parametrize(
    "subject",
    ["Undeliverable: user account disabled", "Undelivered: user unknown", "Returned mail: user unknown"],
)
@pytest.mark.parametrize(
    "text", ["It could not be delivered.", "<ann@quay.test>: 550 rejected", "ann@quay.test"]
)
def test_the_subject_suppresses_nobody(subject: str, text: str) -> None:
    assert not suppresses(mail(text, subject=subject))


@pytest.mark.parametrize("known", ["by the enclosed mail", "by the report's subject"])
def test_the_subject_of_our_mail_in_a_sentence_suppresses_nobody(known: str) -> None:
    text = 'Your message "User account disabled" to ann@quay.test could not be delivered.'
    enclosed = "--b\nContent-Type: message/rfc822\n\nSubject: User account disabled\n\nx\n"
    if known == "by the enclosed mail":
        assert not suppresses(mail(text, more=enclosed))
        assert suppresses(mail(f"{text}\n\n{GONE}", more=enclosed))
    else:
        assert not suppresses(mail(text, subject="Undeliverable: User account disabled"))


@pytest.mark.parametrize(
    ("answer", "gone"),
    [
        ("550 Message 'user account disabled' refused by a filter", False),
        ("550 5.1.1 User unknown", True),
        ("550 No such user, mail 'User account disabled'", True),
    ],
)
def test_the_subject_of_our_mail_in_an_answer_suppresses_nobody(answer: str, gone: bool) -> None:
    """Servers name the subject that a filter of theirs dislikes."""
    status = (
        "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; quay.test\n\n"
        f"Final-Recipient: rfc822; ann@quay.test\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; {answer}\n"
    )
    enclosed = "--b\nContent-Type: message/rfc822\n\nSubject: User account disabled\n\nx\n"
    assert suppresses(mail("Not delivered.", more=status + enclosed)) == gone


def test_words_about_one_recipient_say_nothing_of_another() -> None:
    status = "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; quay.test\n\n{}\n"
    groups = "\n\n".join(
        f"Final-Recipient: rfc822; {name}@quay.test\nAction: failed\nStatus: 5.0.0" for name in ("ann", "ben")
    )
    raw = mail("<ann@quay.test>: user unknown", more=status.format(groups))
    assert [verdict.suppresses for verdict in verdicts(raw)] == [True, False]


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("------- Failure Reasons  --------\n\nUser not listed in public Name & Address Book\nann@quay.test\n", True),
        ("------- Failure Reasons  --------\n\nMailbox is full\nann@quay.test\n", False),
        ("Failure Reasons:\n\nUser ann not listed in Domino Directory\nann@quay.test\n", True),
        ("Your message could not be delivered.\n\nUser ann not listed in Domino Directory\nann@quay.test\n", True),
        ("User not listed in public Name & Address Book\n\nann@quay.test\n\nLotus Notes", True),
        ("Database disk quota exceeded\nann@quay.test\n", False),
        ("User ben not listed in Domino Directory\nann@quay.test: Mailbox is full\n", False),
        ("User ben not listed in Domino Directory\nann@quay.test\nMailbox is full\n", False),
        ("Your message\n\n  Subject: x\n\nwas not delivered to:\n\n  ann@quay.test\n\nbecause:\n\n"
         "  User ann (ann@quay.test) ディレクトリのリストにありません\n", True),
        ("was not delivered to:\n\n  ann@quay.test\n\nbecause:\n\n  ann は Domino ディレクトリには見つかりません\n", True),
        ("was not delivered to:\n\n  ann@quay.test\n\nbecause:\n\n  ann non répertorié dans l'annuaire Domino\n", True),
        ("ann@quay.test\n\nDNS lookup failure: host quay.test not found\n", True),
        ("ann@quay.test\n\nDNS lookup failure: host quay.test not found, try again\n", False),
        ("ann@quay.test\nInvalid final delivery userid\n", True),
        ("<ann@quay.test>: 550 5.4.4 Invalid domain\n", True),
        ("<ann@quay.test>: It's attached below.\n", False),
    ],
)  # fmt: skip
def test_texts_of_known_servers(text: str, gone: bool) -> None:
    assert suppresses(mail(text, subject="DELIVERY FAILURE")) is gone


@pytest.mark.parametrize(
    "text",
    [
        "------- Failure Reasons  --------\n\nMailbox is full\nann@quay.test\n\n"
        "User not listed in public Name & Address Book\nben@quay.test\n",
        "Database disk quota exceeded\nann@quay.test\n\n"
        "User not listed in public Name & Address Book\nben@quay.test\n",
    ],
)
def test_reasons_before_addresses_belong_to_the_address_behind_them(text: str) -> None:
    report = dsn.read(parse(mail(text)))
    assert report is not None
    assert {found.recipient: found.verdict.suppresses for found in report.recipients} == {
        "ann@quay.test": False,
        "ben@quay.test": True,
    }


@pytest.mark.parametrize(
    ("words", "sub_type"),
    [
        ("550 It's attached below", SubType.UNDETERMINED),
        ("552 User mailbox exceeds allowed size", SubType.MAILBOX_FULL),
        ("Envelope expired", SubType.GENERAL),
    ],
)
def test_kinds_of_texts(words: str, sub_type: SubType) -> None:
    (verdict,) = verdicts(mail(f"<ann@quay.test>: {words}"))
    assert verdict.sub_type is sub_type
    assert not verdict.suppresses


LINES = st.sampled_from(
    ["user unknown", "550 5.1.1 no such user", "ann@quay.test", "<ann@quay.test>: mailbox does not exist", "blocked",
     "552 5.2.2 mailbox full", "could not be delivered", "Action: failed", "Status: 5.1.1", "", "  because:",
     "Final-Recipient: rfc822; ann@quay.test", "Subject: x", "smtp; 550 5.1.2 host unknown", "<<< 550 no", "--", "}"]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=6).map("\n".join)


@settings(max_examples=120, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(sorted(PARTS)), st.sampled_from(["> ", ">> ", "\t> "]))
def test_what_is_appended_never_makes_a_report_suppress(own: str, other: str, part: str, mark: str) -> None:
    """Property: quotations and copies of the original turn no report into one that suppresses."""
    before = suppresses(mail(own))
    quoted = "\n".join(f"{mark}{line}" for line in other.split("\n"))
    appended = [f"{own}\n{quoted}", f"{own}\n----- Original message -----\n{other}", f"{own}\n\n{quoted}\n"]
    assert before or not any(suppresses(mail(text)) for text in appended)
    assert before or not suppresses(mail(own, more=PARTS[part].format(other)))


@settings(max_examples=120, deadline=None)
@given(TEXTS, TEXTS)
def test_what_decides_stands_outside_the_original(own: str, other: str) -> None:
    """Property: without everything that is quoted or enclosed, the verdicts are the same."""
    marked = "\n".join(f"> {line}" for line in other.split("\n"))
    text = f"{own}\n{marked}\n-----Original Message-----\n{other}"
    assert dsn_own_words.own(text) == dsn_own_words.own(f"{own}\n")
    assert [v.suppresses for v in verdicts(mail(text))] == [v.suppresses for v in verdicts(mail(own))]


HOSTILE = ["> x\n", "Subject: x\n", "From: a\n", "on a wrote ", "-" * 59 + "o\n", "<blockquote>", "ab@c\n", "said: 550 ",
           "----- failure reasons -----\n", " ", "\n ", "-", "- ", "Von: a\n", "<div class=gmail_quote>", "<hr>",
           "not listed in domino\n", "\t>", "postfach "]  # fmt: skip


@pytest.mark.parametrize(("piece", "kind"), list(product(HOSTILE, ["text/plain", "text/html"])))
def test_hostile_texts_of_a_megabyte_cost_little(piece: str, kind: str) -> None:
    began = time.process_time()
    dsn.read(parse(mail(piece * (1_000_000 // len(piece)), kind=kind)))
    assert time.process_time() - began < 4


def test_many_recipients_with_a_long_text_and_its_subject_cost_little() -> None:
    group = "Final-Recipient: rfc822; r{}@quay.test\nAction: failed\nStatus: 5.0.0\n"
    status = "--b\nContent-Type: message/delivery-status\n\n" + "\n".join(map(group.format, range(200)))
    enclosed = f"\n--b\nContent-Type: message/rfc822\n\nSubject: {'a' * 900}b\n\nx\n"
    began = time.process_time()
    assert suppresses(mail("user unknown " + "a" * 60_000, more=status + enclosed))
    assert time.process_time() - began < 4


def test_a_thousand_parts_and_as_long_subjects_cost_little() -> None:
    more = "--b\nContent-Type: message/rfc822\n\nSubject: " + "x" * 900 + "\n\nx\n"
    text = "<ann@quay.test>: user unknown " + "x" * 60_000
    began = time.process_time()
    assert suppresses(mail(text, more=more * 1000))
    assert time.process_time() - began < 4
