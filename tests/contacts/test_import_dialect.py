"""The CSV of imports (contact-imports.md 5): every row of its table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.contacts.imports import dialect
from pillarbox.contacts.imports.dialect import CsvLines, FileFault, HeaderFault, Utf8Check, header_of, records


def pieces(content: bytes, size: int) -> Callable[[], bytes]:
    """Reads the content so many octets at a time."""
    parts = iter([content[at : at + size] for at in range(0, len(content), size)])
    return lambda: next(parts, b"")


def read(content: bytes, encoding: str = "utf-8", delimiter: str = ",", size: int = 7) -> list[list[str]]:
    return list(records(CsvLines(pieces(content, size), encoding), delimiter))


def header(content: bytes, encoding: str = "utf-8", mark: int = 0) -> dialect.CsvHeader:
    return header_of(content, encoding, mark, is_whole=True)


def fault(content: bytes, encoding: str = "utf-8", size: int = 5) -> tuple[list[list[str]], str]:
    """The records before a fault, and the fault."""
    found: list[list[str]] = []
    try:
        for record in records(CsvLines(pieces(content, size), encoding), ","):
            found.append(record)
    except FileFault as trouble:
        return found, trouble.reason
    raise AssertionError("no fault")


# Encoding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "is_utf8", "expected"),
    [
        (b"\xef\xbb\xbfemail", True, ("utf-8", 3)),
        (b"\xef\xbb\xbfemail", False, ("utf-8", 3)),
        (b"\xff\xfee\0", False, ("utf-16-le", 2)),
        (b"\xfe\xff\0e", False, ("utf-16-be", 2)),
        (b"email", True, ("utf-8", 0)),
        (b"email", False, ("cp1252", 0)),
    ],
)
def test_a_byte_order_mark_decides_else_the_whole_file(
    head: bytes, is_utf8: bool, expected: tuple[str, int]
) -> None:
    assert dialect.encoding_of(head, is_utf8=is_utf8) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_utf_8_is_recognised_in_pieces(size: int) -> None:
    for content, is_valid in [("Zoë €".encode(), True), (b"Zo\xeb", False), ("Zoë".encode()[:-1], False)]:
        check = Utf8Check()
        for at in range(0, len(content), size):
            check.take(content[at : at + size])
        assert check.is_valid() is is_valid


def test_bytes_that_windows_1252_does_not_have_end_the_file_behind_whole_lines() -> None:
    assert fault(b"a,b\nc\xe9,d\ne\x81,f\n", "cp1252") == ([["a", "b"], ["cé", "d"]], "invalid_encoding")


def test_half_a_character_at_the_end_ends_the_file() -> None:
    assert fault("a\nb\nc".encode("utf-16-le")[:-1], "utf-16-le") == ([["a"], ["b"]], "invalid_encoding")
    assert fault(b"a\nb\n\xc3", "utf-8") == ([["a"], ["b"]], "invalid_encoding")


def test_half_a_pair_of_utf_16_is_read() -> None:
    assert read(b"a\0\x00\xd8\n\0", "utf-16-le") == [["a\ud800"]]


def test_a_nul_ends_the_file() -> None:
    """TRAP-10."""
    assert fault(b"a\nb\nc\0d\ne\n") == ([["a"], ["b"]], "invalid_character")
    assert fault(b"a\r\0") == ([["a"]], "invalid_character")


# Lines and cells ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_with_lf_crlf_or_cr(end: str, size: int) -> None:
    """TRAP-10."""
    content = end.join(["a,b", "c,d", "", "e,f"]).encode()
    assert read(content, size=size) == [["a", "b"], ["c", "d"], [], ["e", "f"]]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_line_ends_may_be_mixed_and_only_these_divide_lines(size: int) -> None:
    text = "a\rb\r\nc\n\x0bd\u2028e\x85\n\rf"
    expected = [["a"], ["b"], ["c"], ["\x0bd\u2028e\x85"], [], ["f"]]
    assert read(text.encode(), size=size) == expected


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_quotes(size: int) -> None:
    cases = {
        '"a,b",c': ["a,b", "c"],
        '"a\r\nb\nc\rd",e': ["a\r\nb\nc\rd", "e"],
        '"say ""hi""",x': ['say "hi"', "x"],
        'a"b"c,d': ['a"b"c', "d"],
        '"ab"cd"e,f': ['abcd"e', "f"],
        '"",""': ["", ""],
        ' "a,b"': [' "a', 'b"'],
    }
    for text, expected in cases.items():
        assert read(text.encode(), size=size) == [expected]
        assert read(text.encode() + b"\n", size=size) == [expected]


@pytest.mark.parametrize("end", [b"", b"\n", b"\nmore,cells\n", b'""'])
def test_a_quote_that_never_closes_ends_the_file(end: bytes) -> None:
    assert fault(b'a,b\n"c,d' + end) == ([["a", "b"]], "unclosed_quote")


def test_a_cell_has_at_most_a_megabyte() -> None:
    """TRAP-10."""
    most = b"x" * dialect.LONGEST_FIELD
    assert read(b"a," + most + b"\n", size=100_000)[0][1] == most.decode()
    found, reason = fault_of_large(b"a,b\nc," + most + b"x\n")
    assert (found, reason) == ([["a", "b"]], "field_too_large")
    assert fault_of_large(b'a,b\nc,"' + b"x\n" * dialect.LONGEST_FIELD)[1] == "field_too_large"


def fault_of_large(content: bytes) -> tuple[list[list[str]], str]:
    return fault(content, size=dialect.PIECE)


@pytest.mark.parametrize(
    "row",
    [b'"' + b"x" * 1_000_000 + b'",', b"x" * 1_000_000 + b",", b'"' + b"x\n" * 500_000 + b'",'],
    ids=["quoted", "one line", "many lines"],
)
def test_a_row_that_never_ends_is_not_held(row: bytes) -> None:
    """CSV-01: 200 MB of it would be in memory otherwise."""
    assert fault_of_large(b"a\n" + row * 6)[1] == "row_too_large"


def test_a_hundred_thousand_columns_are_one_record() -> None:
    assert len(read(b"a," * 100_000 + b"\n", size=dialect.PIECE)[0]) == 100_001


TEXTS = st.lists(st.sampled_from(["a", "é", "€", ",", '"', "\n", "\r", "\r\n", " ", "x,y\n"]), max_size=40)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(1, 9), st.sampled_from(["utf-8", "utf-16-le"]))
def test_who_goes_on_behind_a_record_reads_the_same(parts: list[str], size: int, encoding: str) -> None:
    """The place behind each record is known in octets, so another process can go on there."""
    content = "".join(parts).encode(encoding)
    lines = CsvLines(pieces(content, size), encoding)
    whole: list[tuple[list[str], int]] = []
    try:
        for record in records(lines, ","):
            whole.append((record, lines.offset))
    except FileFault as trouble:
        assert trouble.reason == "unclosed_quote"  # noqa: PT017
        return
    for number, (_, offset) in enumerate(whole):
        rest = records(CsvLines(pieces(content[offset:], size), encoding, offset), ",")
        assert list(rest) == [record for record, _ in whole[number + 1 :]]


# The header row -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "delimiter"),
    [
        ("a,b;c,d", ","),
        ("a;b;c,d", ";"),
        ("a\tb\tc", "\t"),
        ("a|b|c|d,e", "|"),
        ("a,b;c", ","),
        ("a;b\tc", ";"),
        ("a\tb|c", "\t"),
        ('"a,b,c,d";e', ";"),
        ('"a ""x"",,,";e', ";"),
        ('5" pipe;"a,b,c"', ";"),
        ("email", "\0"),
        ('"email,with,commas"', "\0"),
    ],
)
def test_the_header_row_says_what_divides_cells(row: str, delimiter: str) -> None:
    assert header(row.encode()).delimiter == delimiter


def test_the_header_row_is_the_first_line_that_is_not_blank_and_its_cells_are_trimmed() -> None:
    found = header("\r\n  \n,,\n \u00a0Email ; Name\u00a0\ndata\n".encode())
    assert found.cells == ("Email", "Name")
    assert found.end == len("\r\n  \n,,\n \u00a0Email ; Name\u00a0\n".encode())


def test_a_byte_order_mark_is_no_part_of_the_header() -> None:
    for encoding, mark in [
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
    ]:
        content = mark + "email,né\na,b\n".encode(encoding)
        found = header(content, encoding, len(mark))
        assert (found.cells, found.end) == (("email", "né"), len(mark + "email,né\n".encode(encoding)))


def test_a_header_cell_may_have_line_ends() -> None:
    found = header(b'"E-\nmail";"a\r\nb"\r\nx;y\n')
    assert (found.cells, found.delimiter, found.end) == (("E-\nmail", "a\r\nb"), ";", 18)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no header row"),
        (b" \n,,,\n\r\n", "no header row"),
        (b'"email\n', "quote"),
        (b'a,"b', "quote"),
        (b"em\0ail,a\n", "NUL"),
        (b"em\x81ail,a\n", "decoded"),
        (b"a," * 40_000 + b"\n", "65536 bytes"),
        (b'"' + b"\n" * 70_000 + b'"', "65536 bytes"),
        (b"a," * 1000 + b"\n", "1000 columns"),
        ("email,a\n".encode("utf-16-le"), "NUL"),
    ],
)
def test_what_is_no_header_row(content: bytes, words: str) -> None:
    with pytest.raises(HeaderFault, match=words):
        header(content, "cp1252")


def test_the_header_row_is_complete_in_the_beginning_of_the_file() -> None:
    with pytest.raises(HeaderFault, match="first 262144 bytes"):
        header_of(b"\n" * dialect.HEAD, "utf-8", 0, is_whole=False)
    assert header_of(b"email\n" + b"x" * 1000, "utf-8", 0, is_whole=False).cells == ("email",)


def test_a_hostile_header_row_takes_no_time() -> None:
    for row in (b'""\n"', b'"\n', b',"', b'x"\n', b'""\n', b",\n", b'"",\n', b';"\n,"'):
        with contextlib.suppress(HeaderFault):
            header(b'"' + row * (dialect.HEAD // len(row)))
