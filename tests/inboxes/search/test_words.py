"""What is a word, and what a query means."""

from __future__ import annotations

from uuid import UUID

import pytest

from pillarbox.emails.search import terms as emails
from pillarbox.inboxes.search import described, terms
from pillarbox.inboxes.search.candidates import MOST_ROWS, Clause, affordable
from pillarbox.inboxes.search.folding import folded, spaced_words
from pillarbox.inboxes.search.searched_text import MOST_BODY, SearchedMessage, searched_text
from pillarbox.inboxes.search.words import MOST_WORDS, OperatorRefused, SearchWords, TooManyWords, words

_ID = UUID(int=0)

TEXTS = (
    "Refund for order 88, please.",
    "Größe HEISS heiß Maß\u00adnahme",
    "l'été déjà œuvre; cafe\u0301",
    "धन्यवाद आदेश",
    "返金をお願いします、請求書ABC１２３です",
    "คืนเงิน order88 ขอบคุณ",
    "Возврат ещё заказ",
    "ISTANBUL istanbul İSTANBUL ıstanbul",
    "snake_case a.b@c.example <x>",
    "\u200bhid\u200dden\ufeff",
    "vi\u200bsible",
    "😀 only 🎉 marks",
    "مرحبا بالعالم",
)


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_those_by_which_emails_are_found(text: str) -> None:
    assert spaced_words(text).split() == emails.words(text)


@pytest.mark.parametrize("unseen", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"])
def test_a_word_is_one_with_or_without_unseen_characters(unseen: str) -> None:
    text, html = (
        searched_text(SearchedMessage(None, "i@a.example", text=f"vi{unseen}sible")),
        searched_text(SearchedMessage(None, "i@a.example", html=f"<p>vi{unseen}sible</p>")),
    )
    assert text == html
    assert words(f"vi{unseen}sible") == words("visible") == SearchWords((" visible ",))


@pytest.mark.parametrize("text", TEXTS)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert spaced_words(spaced_words(text)) == spaced_words(text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", SearchWords()),
        ("Refund", SearchWords((" refund ",))),
        ("refund  REFUND", SearchWords((" refund ",))),
        ('refund "order 88"', SearchWords((" refund ", " order 88 "))),
        ("-spam refund", SearchWords((" refund ",), (" spam ",))),
        ('-"out of office" -x', SearchWords((), (" out of office ", " x "))),
        ("a-b", SearchWords((" a b ",))),
        ("iris@customer.example", SearchWords((" iris customer example ",))),
        ('"not closed', SearchWords((" not closed ",))),
        ('one"two three"', SearchWords((" one ", " two three "))),
        ("返金", SearchWords((" 返 金 ",))),
        ("refund & order", SearchWords((" refund ", " order "))),
        ("&", SearchWords(is_hopeless=True)),
        ('"!!"', SearchWords(is_hopeless=True)),
        ("-& ", SearchWords()),
        ('""', SearchWords()),
        ("-", SearchWords(is_hopeless=True)),
        ("refun*", SearchWords((" refun",))),
        ("-refun* a-b*", SearchWords((" a b",), (" refun",))),
        ('"refun*"', SearchWords((" refun ",))),
        ("*", SearchWords(is_hopeless=True)),
        (
            '"from:iris" re:order http://a "OR"',
            SearchWords((" from iris ", " re order ", " http a ", " or ")),
        ),
        ("or and not", SearchWords((" or ", " and ", " not "))),
        ("& -spam", SearchWords((), (" spam ",), is_hopeless=True)),
    ],
)
def test_a_query_means(query: str, expected: SearchWords) -> None:
    assert words(query) == expected


@pytest.mark.parametrize(
    "query",
    ["from:iris", "a Subject:b", "-to:x", "a OR b", "a AND b", "NOT c", "a | b", "has:attachment", "in:spam"],
)
def test_operators_of_other_searches_are_refused(query: str) -> None:
    with pytest.raises(OperatorRefused):
        words(query)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("café größe", "cafe grosse"), ("łódź søster", "lodz soster"), ("ещё йод", "еще йод"), ("ώρα", "ωρα")],
)
def test_words_with_accents_are_found_without_them(text: str, plain: str) -> None:
    found = searched_text(SearchedMessage(text, "i@a.example"))
    for query in (text, plain, f'"{plain}"'):
        assert all(item in found for item in words(query).wanted)
    assert all(item in found for item in words(plain[:3] + "*").wanted)


def test_no_phrase_reaches_from_words_with_accents_to_those_without() -> None:
    found = searched_text(SearchedMessage("café au lait", "i@a.example"))
    assert " lait cafe " not in found
    assert " cafe au lait " in found


def test_a_query_has_at_most_32_words() -> None:
    assert len(words(" ".join(f"w{number}" for number in range(MOST_WORDS))).wanted) == MOST_WORDS
    for query in (" w" * 33, f'"{" w" * 33}"', " -w" * 33, " &" * 33):
        with pytest.raises(TooManyWords):
            words(query)


def test_a_searched_text_has_its_parts_on_lines() -> None:
    text = searched_text(
        SearchedMessage(
            subject="Re: Refund",
            sender="Iris <i@a.example>",
            recipients=("help@b.example",),
            filenames=("a_b.pdf",),
            text="One\nTwo",
        )
    )
    assert text.split("\n") == [
        " re refund ",
        " iris i a example ",
        " help b example ",
        " a b pdf ",
        " one two ",
    ]


def test_html_counts_where_there_is_no_text() -> None:
    html = "<p>In <b>HTML</b></p>"
    assert searched_text(SearchedMessage(None, "i@a.example", text=" \n", html=html)).endswith("\n in html ")
    assert searched_text(SearchedMessage(None, "i@a.example", text="text", html=html)).endswith("\n text ")


@pytest.mark.parametrize("subject", ["a\0b", "half \ud800 character"])
def test_a_searched_text_is_one_that_the_database_takes(subject: str) -> None:
    text = searched_text(SearchedMessage(subject, "i@a.example"))
    assert "\0" not in text
    text.encode()


def test_a_searched_text_has_an_end() -> None:
    assert (
        len(searched_text(SearchedMessage("s" * 10**6, "f" * 10**6, text="b " * 10**6))) < MOST_BODY + 30_000
    )
    # A character that is eighteen.
    assert len(searched_text(SearchedMessage(None, "i@a.example", text="\ufdfa" * 10**6))) < 3 * MOST_BODY


def test_a_question_with_too_many_rows_is_asked_with_less() -> None:
    long = Clause((tuple(terms.of_words([f"w{number}" for number in range(100)])),))
    cut = affordable([long] * 4)
    assert sum(len(term) for clause in cut for found in clause.alternatives for term in found) <= MOST_ROWS
    assert all(found for clause in cut for found in clause.alternatives)
    words_of_it = [Clause((tuple(terms.of_words([f"word{number}"])),)) for number in range(32)]
    assert 1 < len(affordable(words_of_it)) < 32
    assert affordable([Clause(((),))]) == [Clause(((),))]


def test_a_text_without_octets_is_everywhere() -> None:
    assert terms.of_octets(terms.SearchField.TO, "") == []


def test_a_message_of_any_size_has_room_in_a_block() -> None:
    columns = [
        described.IndexedMessage(
            id=_ID,
            thread_id=_ID,
            searched=b" w" * count,
            parts=[(terms.SearchField.SUBJECT, b"s" * octets)],
            has_attachment=False,
        ).columns
        for count, octets in ((10, 10), (terms.WORDS_OF_COLUMN * 3, 0), (10, 5000), (10**7, 0))
    ]
    assert columns == [1, 4, 6, terms.COLUMNS]
