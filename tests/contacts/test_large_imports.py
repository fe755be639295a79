"""Files that turn out to be something else far behind their beginning."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.imports import contact, ended, errors, form, importing_team, post_form

ROWS = 20_000
WRONG_AT = 150_000_000
WIDTH = WRONG_AT // ROWS
"""Octets of a row, most of them in a column that nobody reads."""

UTF8_MARK = b"\xef\xbb\xbf"


async def large(mark: bytes, wrong: bytes) -> AsyncIterator[bytes]:
    """A form with a file of UTF-8 that is none any more at byte 150 million, three rows before its end."""
    head, tail = form(("file", b"CONTENT", "large.csv")).split(b"CONTENT")
    header = mark + b"email,first_name,more\n"
    yield head + header
    for number in range(ROWS):
        row = f"reader.{number}@quay.example,José,".encode()
        left = WIDTH - len(row) - 1 - (len(header) if number == 0 else 0)
        yield row + b"x" * left + b"\n"
    yield wrong + b"@quay.example,Ann,\nann@quay.example,,\nbea@quay.example,,\n" + tail


@pytest.mark.slow
async def test_without_a_mark_the_whole_file_has_the_other_encoding(
    database_url: str, tmp_path: Path
) -> None:
    """Windows-1252, from its first row on."""
    async with importing_team(database_url, tmp_path) as team:
        answer = await post_form(team, large(b"", b"\xe9"))
        assert answer.status_code == 201, answer.text
        found = await ended(team, answer.json()["id"])
        assert found["status"] == "completed"
        assert list(found["counts"].values()) == [ROWS + 3, ROWS + 3, 0, 0, 0]
        for number in (0, ROWS - 1):
            name = (await contact(team, f"reader.{number}@quay.example"))["first_name"]
            assert name == "José".encode().decode("cp1252")
        assert (await contact(team, "é@quay.example"))["first_name"] == "Ann"


@pytest.mark.slow
@pytest.mark.parametrize(("mark", "wrong"), [(UTF8_MARK, b"\xe9"), (b"", b"\x81")])
async def test_what_no_encoding_of_the_file_allows_ends_it(
    database_url: str, tmp_path: Path, mark: bytes, wrong: bytes
) -> None:
    """Its mark says UTF-8; or the byte is in Windows-1252 neither. The rows before are kept."""
    async with importing_team(database_url, tmp_path) as team:
        answer = await post_form(team, large(mark, wrong))
        assert answer.status_code == 201, answer.text
        found = await ended(team, answer.json()["id"])
        assert found["status"] == "failed"
        assert list(found["counts"].values()) == [ROWS, ROWS, 0, 0, 0]
        assert await errors(team, found["id"]) == [(ROWS + 1, None, "invalid_encoding")]
