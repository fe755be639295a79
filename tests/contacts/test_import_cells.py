"""What cells of a file mean, and how rows of one address become one (contact-imports.md 5 and 6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.contacts.imports import cells
from pillarbox.contacts.imports.batches import ImportBatch, ImportPlan, batches, ids_of, shown
from pillarbox.contacts.imports.cells import RowFault, address_of
from pillarbox.kernel.wire.email_address import NotAnAddress, email_address

HEADER = ("email", "first_name", "last_name", "unsubscribed")
PROPERTIES = [(1, 4, "string"), (2, 5, "number"), (3, 6, "boolean")]
NOW = 1_790_000_000_000


def reason(read: Callable[[str], object], cell: str) -> str:
    with pytest.raises(RowFault) as raised:
        read(cell)
    return raised.value.reason


# Cells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "ann@quay.example",
        "Ann.Lee+news@Sub.Quay.Example",
        "a@b.co",
        "o'neil@quay.example",
        "ann@ünï.example",
        "jörg@quay.example",
        '"a b"@quay.example',
        "a@xn--bcher-kva.example",
        "a_b-c@a-b.example",
        "x" * 64 + "@quay.example",
    ],
)
def test_addresses_are_those_of_everywhere(cell: str) -> None:
    assert address_of(cell) == tuple(email_address(cell))


ADDRESSES = st.text(alphabet="ab.@-+_X9xn\u00e9 ", min_size=1, max_size=14)


@settings(max_examples=400, deadline=None)
@given(ADDRESSES, ADDRESSES)
def test_the_short_way_to_an_address_is_the_one_parser_there_is(local: str, domain: str) -> None:
    cell = f"{local}@{domain}.com".strip()
    try:
        expected: object = tuple(email_address(cell))
    except NotAnAddress:
        expected = "invalid_email"
    try:
        found: object = address_of(cell)
    except RowFault as fault:
        found = fault.reason
    assert found == expected


@pytest.mark.parametrize(
    "cell",
    ["ann", "@quay.example", "Ann <ann@quay.example>", "a@b", "a b@c.de", "a@[127.0.0.1]", "a@b.c,d@e.f"],
)
def test_other_forms_are_no_addresses(cell: str) -> None:
    assert reason(address_of, cell) == "invalid_email"


def test_a_blank_address_is_missing() -> None:
    assert reason(address_of, "") == "missing_email"


def test_words_about_the_subscription() -> None:
    for word in ("true", "1", "yes", "y", "t", "unsubscribed"):
        assert cells.is_unsubscribed(word) is True
        assert cells.is_unsubscribed(word.upper()) is True
    for word in ("false", "0", "no", "n", "f", "subscribed"):
        assert cells.is_unsubscribed(word) is False
        assert cells.is_unsubscribed(word.title()) is False
    for word in ("maybe", "2", "truee", "x" * 1000, "on"):
        assert reason(cells.is_unsubscribed, word) == "invalid_unsubscribed"


def test_truth_values() -> None:
    assert [cells.boolean_of(word) for word in ("TRUE", "1", "Y", "t", "yes")] == ["true"] * 5
    assert [cells.boolean_of(word) for word in ("false", "0", "N", "F", "No")] == ["false"] * 5
    for word in ("unsubscribed", "subscribed", "ja", ""):
        assert reason(cells.boolean_of, word) == "invalid_boolean"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0", 0),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("012", 12),
        ("-0", 0),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("1.5E-2", 0.015),
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", -(2**53) + 1),
    ],
)
def test_numbers(cell: str, expected: float) -> None:
    assert json.loads(cells.number_of(cell)) == expected


@pytest.mark.parametrize(
    "cell",
    [
        *("1,000", "1 000", "1.000.000", "0x10", "NaN", "inf", "1e400", "9007199254740992"),
        *("1e", "-", ".", "\u0661\u0662", "1_0", "9" * 500, "1\n"),
    ],
)  # fmt: skip
def test_what_is_no_number(cell: str) -> None:
    assert reason(cells.number_of, cell) == "invalid_number"


def test_texts() -> None:
    for text in ("pro", 'say "hi"', "back\\slash", "tab\tline\nend\r", "naïve €", "\x01", "=1+1", "@x"):
        assert json.loads(cells.string_of(text)) == text
    assert len(cells.string_of("x" * 2000)) == 2002
    assert reason(cells.string_of, "x" * 2001) == "value_too_long"
    assert reason(cells.string_of, "\ud800") == "invalid_character"


def test_names() -> None:
    assert cells.name_of("Ada\r\nKing\n\nNoel") == "Ada King Noel"
    assert cells.name_of("=Ada") == "=Ada"
    assert cells.name_of("é" * 255) == "é" * 255
    assert reason(cells.name_of, "x" * 256) == "value_too_long"
    assert reason(cells.name_of, "A\udc00") == "invalid_character"


# Rows ---------------------------------------------------------------------------------------------


def batch(*rows: str, skip: bool = False, errors_left: int = 1000) -> ImportBatch:
    """The one batch of a file without a header row."""
    content = iter(["\n".join(rows).encode()])
    plan = ImportPlan(
        encoding="utf-8",
        delimiter=",",
        fields={name: at for at, name in enumerate(HEADER)},
        properties=PROPERTIES,
        skip=skip,
        offset=0,
        row=0,
        errors_left=errors_left,
    )
    [found] = batches(lambda: next(content, b""), plan, lambda: NOW)
    return found


def staged(found: ImportBatch) -> dict[str, tuple[Any, ...]]:
    """Given address, names, subscription and properties of each address."""
    shown: dict[str, tuple[Any, ...]] = {}
    for line in found.lines:
        _, address, *texts, properties = line.rstrip("\n").split("\t")
        values = [None if text == "\\N" else text for text in texts]
        shown[address] = (*values, json.loads(properties.replace("\\\\", "\\")))
    return shown


def test_a_row_becomes_a_line() -> None:
    found = batch("Ann@Quay.example, Ann ,\u00a0Lee\u00a0,no,pro,12,yes")
    assert staged(found) == {"ann@quay.example": (None, "Ann", "Lee", "f", {"1": "pro", "2": 12, "3": True})}
    assert (found.rows, found.failed, found.given, found.is_last) == (1, 0, 1, True)
    assert batch("a@b.co,,,", "c@d.co,,,no", "c@d.co,,,").given == 1


def test_blank_short_and_long_rows() -> None:
    found = batch("", "  ", ",,,,,,", "a@b.co", " , , ", "c@d.co,,,,,,,,extra,cells", '""')
    assert staged(found) == {"a@b.co": (None, None, None, None, {}), "c@d.co": (None, None, None, None, {})}
    assert (found.rows, found.row) == (2, 2)


def test_later_cells_of_one_address_win_and_blank_ones_keep() -> None:
    found = batch("A@b.co,Ann,Lee,yes,pro,1,", "a@B.co,,Kay,,,2,no", "a@b.co,,,no,,,")
    assert staged(found) == {"a@b.co": (None, "Ann", "Kay", "f", {"1": "pro", "2": 2, "3": False})}
    assert found.rows == 3


def test_under_skip_the_first_row_of_an_address_counts() -> None:
    found = batch("a@b.co,Ann,,yes", "A@B.CO,Bea,Kay,no", skip=True)
    assert staged(found) == {"a@b.co": (None, "Ann", None, "t", {})}


def test_a_failed_row_says_nothing_and_is_told() -> None:
    found = batch(
        "a@b.co,Ann",
        "a@b.co,Bea,,perhaps",
        ",Cee",
        "no address,Dee",
        "c@d.co,,,,," + "x",
        f"e@f.co,{'x' * 256}",
    )
    assert staged(found) == {"a@b.co": (None, "Ann", None, None, {})}
    assert [(one.row, one.email, one.reason) for one in found.errors] == [
        (2, "a@b.co", "invalid_unsubscribed"),
        (3, None, "missing_email"),
        (4, "no address", "invalid_email"),
        (5, "c@d.co", "invalid_number"),
        (6, "e@f.co", "value_too_long"),
    ]
    assert (found.rows, found.failed) == (6, 5)


def test_only_so_many_errors_are_told() -> None:
    found = batch(*["x"] * 10, errors_left=3)
    assert (found.failed, len(found.errors)) == (10, 3)


def test_the_list_of_errors_shows_the_beginning_of_a_cell() -> None:
    assert shown("x" * 1000) == "x" * 320
    assert shown("") is None
    assert shown("a\ud800") == "a?"


def test_lines_are_in_the_order_of_addresses_and_ids_in_that_of_the_file() -> None:
    found = batch("c@x.co", "a@x.co", "b@x.co")
    rows = [line.split("\t")[:2] for line in found.lines]
    assert [address for _, address in rows] == ["a@x.co", "b@x.co", "c@x.co"]
    assert [address for _, address in sorted(rows)] == ["c@x.co", "a@x.co", "b@x.co"]


def test_ids_are_of_their_moment() -> None:
    make = ids_of(NOW)
    ids = [make(number) for number in range(5000)]
    assert ids == sorted(set(ids))
    assert {one[:8] + one[9:13] for one in ids} == {f"{NOW:012x}"}
    assert {one[14] for one in ids} == {"7"}
    assert {one[19] in "89ab" for one in ids} == {True}


def test_what_would_end_a_line_for_copy_is_escaped() -> None:
    found = batch('a@b.co,"x\\y\tz",\\N,,"one\ntwo\\"')
    assert found.lines[0].count("\n") == 1
    assert "x\\\\y\\tz\t\\\\N\t" in found.lines[0]
    assert '{"1":"one\\\\ntwo\\\\\\\\"}' in found.lines[0]
