"""Ids and subjects by which messages belong together (inboxes.md 9.4 to 9.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.message.subject_prefixes import PREFIXES, begins_with_forward
from pillarbox.mail.message.threading import (
    MOST_IDS,
    compared_subject,
    earlier_ids,
    id_key,
    subject_key,
)


@pytest.mark.parametrize(
    ("subject", "text", "is_answer"),
    [
        ("Refund", "refund", False),
        ("Re: Refund", "refund", True),
        ("RE: re: Refund", "refund", True),
        ("AW: WG: Rückzahlung", "rückzahlung", True),
        ("SV: VS: Aterbetalning", "aterbetalning", True),
        ("TR: Remboursement", "remboursement", True),
        ("RV: RES: ENC: Reembolso", "reembolso", True),
        ("Antw: Terugbetaling", "terugbetaling", True),
        ("Re[2]: Refund", "refund", True),
        ("Re(12): Refund", "refund", True),
        ("Re [3] : Refund", "refund", True),
        ("[harbor] Re: [harbor] Refund", "refund", True),
        ("[harbor] Refund", "refund", False),
        ("Fwd:  Refund \t for   order", "refund for order", True),
        ("Reference: 12", "reference: 12", False),
        ("Re:", "", True),
        ("re:re:re:", "", True),
        ("", "", False),
        (None, "", False),
        ("Re: [urgent", "[urgent", True),
        ("cafe\u0301", "caf\u00e9", False),
    ],
)
def test_subjects_are_compared_without_marks(subject: str | None, text: str, *, is_answer: bool) -> None:
    assert compared_subject(subject) == (text, is_answer)


MARKS = [
    (language, mark) for language, (replies, forwards) in PREFIXES.items() for mark in (*replies, *forwards)
]


def test_marks_of_forty_languages_and_more_are_known() -> None:
    assert len(PREFIXES) >= 40
    assert all(replies and forwards for replies, forwards in PREFIXES.values())


@pytest.mark.parametrize(("language", "mark"), MARKS)
def test_marks_of_every_language_are_taken_off(language: str, mark: str) -> None:
    for written in (f"{mark}: Order", f"{mark.upper()} : Re: Order", f"Re: {mark}[2]：Order"):
        assert compared_subject(written) == ("order", True), language


@pytest.mark.parametrize("subject", ["Order: 2", "Invoice: 7", "Enquiry: two", "A: b", "Urgent: call"])
def test_other_words_before_a_colon_are_no_marks(subject: str) -> None:
    assert compared_subject(subject) == (subject.casefold(), False)


def test_forwards_are_told_from_replies() -> None:
    assert begins_with_forward("Wg: x")
    assert begins_with_forward("İLT: x")
    assert not begins_with_forward("Aw: x")
    assert not begins_with_forward(None)


def test_in_reply_to_decides_before_references_from_the_last_one_back() -> None:
    """INB-06."""
    assert earlier_ids(["<c@x>"], ["<a@x>", "<b@x>", "<c@x>"]) == ("c@x", "b@x", "a@x")
    assert earlier_ids([], [" <a@x> ", "<>", "b@x"]) == ("b@x", "a@x")


def test_a_message_that_names_very_many_ids_is_compared_by_the_nearest() -> None:
    found = earlier_ids([], [f"<{n}@x>" for n in range(5000)])
    assert len(found) == MOST_IDS
    assert found[0] == "4999@x"


def test_ids_are_looked_up_without_brackets_and_exactly() -> None:
    assert id_key("<a@x>") == id_key(" a@x ")
    assert id_key("<a@x>") != id_key("<A@x>")
    assert subject_key("") is None


@given(st.text(max_size=400))
def test_any_subject_is_compared_and_comparing_twice_changes_nothing(subject: str) -> None:
    text = compared_subject(subject).text
    assert compared_subject(text).text == text
    key = subject_key(text)
    assert key is None or -(2**63) <= key < 2**63
