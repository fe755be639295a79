"""What of a request is parsed in the loop, and what in a thread."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.emails.requests.parse import MOST_TAKEN, octets_to_read

MAIL = {"to": ["reader@harbor.example"], "subject": "Tide report"}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([{**MAIL, "html": "h" * 3000, "text": "t" * 1000}], 1000),
        ([{**MAIL, "text": "t" * 1000}], 4000),
        ([{**MAIL, "html": "h" * 3000, "text": ""}], 2000),
        ([{**MAIL, "html": "h" * 1000, "text": "t" * 500}] * 3, 500),
        ([{**MAIL, "html": "h" * 3000}], 5000),
        ([{**MAIL, "html": "h" * 3000, "text": None}], 5000),
        ([{**MAIL, "html": ["h"] * 500, "text": ["t"] * 500}, "text", 7, None], 5000),
    ],
)
def test_bodies_that_are_stored_as_they_came_do_not_count(items: list[Any], expected: int) -> None:
    assert octets_to_read(5000, items) == expected


def test_all_of_a_large_request_counts() -> None:
    assert octets_to_read(MOST_TAKEN + 1, [{**MAIL, "text": "t" * MOST_TAKEN}]) == MOST_TAKEN + 1
