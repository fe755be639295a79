"""The signatures that are made of many messages at once are those that questions are made of."""

from __future__ import annotations

import random
from uuid import UUID, uuid4

from pillarbox.inboxes.search import signatures, terms
from pillarbox.inboxes.search.described import IndexedMessage, described, fitting
from pillarbox.inboxes.search.searched_text import SearchedMessage, searched_text
from pillarbox.inboxes.search.terms import COLUMNS, ROWS, SearchField

WORDS = ["refund", "order", "größe", "返金", "請求書", "คืนเงิน", "заказ", "88", "iris", "धन्यवाद", "x", "é"]


def a_message(dice: random.Random, words: int) -> IndexedMessage:
    text = " ".join(dice.choices(WORDS, k=words)) + f" number{dice.randrange(10**6)}"
    subject = f"Größe {dice.randrange(1000)}"
    sender = dice.choice(("Iris Vale <iris@customer.example>", "山田 太郎 <t@quay.example>", "x@y.example"))
    searched = searched_text(
        SearchedMessage(
            subject=subject, sender=sender, recipients=("help@harbor.example",), filenames=(), text=text
        )
    )
    to_list = '["help@harbor.example"' + ', "Ops <ops@harbor.example>"' * dice.randrange(40) + "]"
    return described(
        uuid4(), uuid4(), sender, to_list, '["cc@é.example"]', None, subject, dice.randrange(2), searched
    )


class Matrix:
    """A matrix that is read bit by bit."""

    def __init__(self, messages: list[IndexedMessage]) -> None:
        self.octets = signatures.matrix(messages)
        assert len(self.octets) == ROWS * COLUMNS // 8

    def has(self, rows: tuple[int, ...], first: int, width: int) -> bool:
        """Whether one of the columns has all of the rows."""
        return any(all(self._bit(row, column) for row in rows) for column in range(first, first + width))

    def _bit(self, row: int, column: int) -> int:
        return self.octets[(row * COLUMNS + column) // 8] >> (7 - column % 8) & 1


def missing(messages: list[IndexedMessage]) -> list[object]:
    """What messages have and their columns have not."""
    matrix, found, first = Matrix(messages), [], 0
    for message in messages:
        width = message.columns
        for line in message.searched.decode().split("\n"):
            words = line.split()
            for at in range(len(words)):
                some = words[at : at + 2]
                found += [(some, rows) for rows in terms.of_words(some) if not matrix.has(rows, first, width)]
        for part, text in message.parts:
            for one in filter(None, text.split(b"\0")):
                for length in (1, 2, 3, 7):
                    piece = one[: length * 2].decode("utf-8", "ignore")
                    rows_of = terms.of_octets(part, piece)
                    found += [(piece, rows) for rows in rows_of if not matrix.has(rows, first, width)]
        if (
            message.has_attachment is not matrix.has(terms.of_attachment(), first, 1)
            and message.has_attachment
        ):
            found.append("attachment")
        first += width
    return found


def test_a_message_has_all_that_it_is_found_by() -> None:
    dice = random.Random(3)
    messages = [a_message(dice, words) for words in (0, 1, 5, 80, 299, 301, 900, 2, 4000, 10)]
    assert missing(messages) == []


def test_a_block_of_short_messages_is_full() -> None:
    dice = random.Random(4)
    messages = [
        a_message(dice, 20)._replace(parts=[(SearchField.SUBJECT, b"x\0")]) for _ in range(COLUMNS + 10)
    ]
    assert fitting(messages) == COLUMNS
    assert missing(messages[:COLUMNS]) == []


def test_a_message_without_anything_has_a_column() -> None:
    nothing = IndexedMessage(
        id=UUID(int=1), thread_id=UUID(int=1), searched=b"\n\n\n\n", parts=[], has_attachment=False
    )
    something = a_message(random.Random(5), 3)
    assert missing([nothing, something, nothing]) == []
    assert sum(signatures.matrix([nothing])) == 0


def test_the_longest_message_stays_in_its_columns() -> None:
    words = terms.WORDS_OF_COLUMN * (COLUMNS + 5)
    long = IndexedMessage(
        id=UUID(int=1),
        thread_id=UUID(int=1),
        searched=b" w" * words,
        parts=[(SearchField.TO, b"abc\0" * 10)],
        has_attachment=True,
    )
    assert long.columns == COLUMNS
    assert missing([long]) == []


def test_hardly_any_message_seems_to_have_what_it_has_not() -> None:
    dice = random.Random(6)
    messages = [a_message(dice, 250) for _ in range(200)]
    matrix = Matrix(messages)
    widths = [message.columns for message in messages]
    wrong = 0
    for number in range(20):
        (rows,) = terms.of_words([f"absent{number}"])
        first = 0
        for width in widths:
            wrong += matrix.has(rows, first, width)
            first += width
    assert wrong < 0.02 * 20 * len(messages)
