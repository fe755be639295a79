"""Subjects, References and custom headers of what is sent from an inbox (inboxes.md 6.2 and 6.3)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.inboxes.drafts.wire import snippet
from pillarbox.inboxes.sending import forwarded
from pillarbox.inboxes.sending.forwarded import QuotedMessage, bodies
from pillarbox.inboxes.sending.header_rules import custom_headers
from pillarbox.inboxes.sending.references import answering, chain, ids, referring
from pillarbox.inboxes.sending.subjects import FORWARD, REPLY, prefixed
from pillarbox.kernel.wire.problems import InvalidField
from pillarbox.mail.message.headers import LONGEST_VALUE, check_custom_header

SUBJECTS = [
    (REPLY, "Refund", "Re: Refund"),
    (REPLY, "RE: Refund", "RE: Refund"),
    (REPLY, "re:Refund", "re:Refund"),
    (REPLY, "Aw: Refund", "Re: Aw: Refund"),
    (REPLY, "Fwd: Refund", "Re: Fwd: Refund"),
    (REPLY, "Regarding x", "Re: Regarding x"),
    (REPLY, None, "Re:"),
    (REPLY, "  ", "Re:"),
    (REPLY, "a\r\nBcc: x@x.example", "Re: a  Bcc: x@x.example"),
    (FORWARD, "Refund", "Fwd: Refund"),
    (FORWARD, "FWD: Refund", "FWD: Refund"),
    (FORWARD, "Fw: Refund", "Fwd: Fw: Refund"),
    (FORWARD, "Re: Refund", "Fwd: Re: Refund"),
]


@pytest.mark.parametrize(("prefix", "subject", "expected"), SUBJECTS)
def test_a_subject_gets_its_prefix_once(prefix: str, subject: str | None, expected: str) -> None:
    assert prefixed(prefix, subject) == expected


def test_the_message_that_is_answered_stands_last() -> None:
    assert answering(ids("<a@x> <b@x>"), "<c@x>") == [
        ("In-Reply-To", "<c@x>"),
        ("References", "<a@x> <b@x> <c@x>"),
    ]
    assert answering([], "<c@x>") == [("In-Reply-To", "<c@x>"), ("References", "<c@x>")]
    assert answering(["<c@x>", "<a@x>", "<a@x>"], "<c@x>")[1] == ("References", "<a@x> <c@x>")
    assert answering([], None) == []


def test_a_forward_answers_nothing() -> None:
    assert referring(["<a@x>"], "<b@x>") == [("References", "<a@x> <b@x>")]
    assert referring([], None) == []


def test_of_many_references_the_first_and_the_last_19_stay() -> None:
    many = [f"<{n}@x>" for n in range(40)]
    assert chain(many, "<own@x>") == ["<0@x>", *many[-18:], "<own@x>"]
    assert len(chain(many, "<own@x>")) == 20
    assert chain(many[:19], "<own@x>") == [*many[:19], "<own@x>"]


def test_long_references_fit_in_a_field() -> None:
    many = [f"<{n}{'a' * 300}@x>" for n in range(20)]
    kept = chain(many, "<own@x>")
    assert len(" ".join(kept)) <= LONGEST_VALUE
    assert kept[0] == many[0]
    assert kept[-1] == "<own@x>"


@pytest.mark.parametrize(
    "wrong", ["<ü@x>", "a@x", "<a b@x>", f"<{'a' * 950}@x>", "<=?utf-8?b?DQo=?=@x>", "\0"]
)
def test_ids_that_cannot_be_written_are_left_out(wrong: str) -> None:
    assert chain([*ids(wrong), "<a@x>"], wrong) == ["<a@x>"]


@settings(max_examples=200)
@given(st.lists(st.text(max_size=400), max_size=60), st.text(max_size=1000))
def test_whatever_others_wrote_the_fields_can_be_composed(found: list[str], own: str) -> None:
    for name, value in answering([one for text in found for one in ids(text)], own):
        check_custom_header(name, value)


REFUSED = [
    {name: "x"}
    for name in (
        *(
            "In-Reply-To",
            "references",
            "REPLY-TO",
            "From",
            "to",
            "Cc",
            "BCC",
            "Subject",
            "Date",
            "Message-ID",
        ),
        *("Return-Path", "Received", "MIME-Version", "Content-Type", "content-x", "DKIM-Signature"),
        *("X-Pillarbox-Inbox", "", "A:b", "A b", "Ä"),
    )
] + [{"X-A": "a\r\nBcc: b"}, {"X-A": "a\0b"}, {"X-A\n": "b"}, {"X-A": 1}, {"X-A": None}, ["X-A"], "X-A"]


@pytest.mark.parametrize("headers", REFUSED, ids=repr)
def test_headers_that_we_write_ourselves_are_refused(headers: object) -> None:
    with pytest.raises(InvalidField):
        custom_headers(headers, "headers")


def test_other_headers_are_kept() -> None:
    assert custom_headers({"X-Ticket": "88", "x-ticket": "89"}, "headers") == [("x-ticket", "89")]
    assert custom_headers({}, "headers") == []


AT = datetime(2026, 10, 2, 9, 15, tzinfo=UTC)
WRITTEN = """---------- Forwarded message ----------
From: Iris <iris@customer.example>
Date: Fri, 2 Oct 2026 09:15 UTC
Subject: Refund
To: help@harbor.example"""


def original(html: str | None = None, text: str | None = None, cc: tuple[str, ...] = ()) -> QuotedMessage:
    return QuotedMessage(
        sender="Iris <iris@customer.example>",
        at=AT,
        subject="Refund",
        to=["help@harbor.example"],
        cc=cc,
        html=html,
        text=text,
    )


def test_a_forward_of_text_is_text() -> None:
    html, text = bodies(original(text="Where is it?"), None, "See below.")
    assert html is None
    assert text == f"See below.\n\n{WRITTEN}\n\nWhere is it?"
    assert bodies(original(text="Where is it?"), None, None)[1] == f"{WRITTEN}\n\nWhere is it?"


def test_a_forward_of_html_keeps_its_page() -> None:
    page = "<html><head><style>p{}</style></head><body class='x'><p>Where <b>is</b> it?</p></body></html>"
    html, text = bodies(original(html=page, cc=("kai@x.example",)), None, "See <below>.")
    assert html is not None
    assert html.startswith("<html><head><style>p{}</style></head><body class='x'><div>See &lt;below&gt;.")
    assert "From: Iris &lt;iris@customer.example&gt;" in html
    assert html.endswith("<p>Where <b>is</b> it?</p></body></html>")
    assert text == f"See <below>.\n\n{WRITTEN}\nCc: kai@x.example\n\nWhere is it?"


def test_a_blank_body_of_the_original_hides_no_other() -> None:
    html, text = bodies(original(text=" \n", html="<p>Where is it?</p>"), None, None)
    assert text == f"{WRITTEN}\n\nWhere is it?"
    assert html is not None
    assert html.endswith("<p>Where is it?</p>")
    assert bodies(original(text="Where is it?", html=" "), None, None) == (
        None,
        f"{WRITTEN}\n\nWhere is it?",
    )
    html, text = bodies(original(text="Where is it?"), "<p>Note</p>", " ")
    assert text.startswith("Note\n\n")
    assert html is not None
    assert html.startswith("<p>Note</p>")


def test_the_beginning_of_a_draft_is_that_of_the_body_that_says_something() -> None:
    assert snippet(" ", "<p>Only  here</p>") == "Only here"
    assert snippet("text", "<p>Not here</p>") == "text"
    assert snippet(" ", None) is None


def test_a_note_in_html_stands_above_text() -> None:
    html, text = bodies(original(text="a < b\nc"), "<p>Note</p>", None)
    assert html is not None
    assert html.startswith("<p>Note</p><br>")
    assert "<div>a &lt; b<br>\nc</div>" in html
    assert text.startswith("Note\n\n" + forwarded.TITLE)
