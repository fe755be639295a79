"""Placeholders in bodies (templates.md 5): what is one, what stays, and that hostile texts take no time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.placeholders.parsing import MOST, UNSUBSCRIBE_URL, filled, has_too_many, links

URL = "https://mail.harbor.example/unsubscribe/x?a&b"
VALUES = links(URL, is_html=False)


@pytest.mark.parametrize(
    "text",
    [
        "{{{UNSUBSCRIBE_URL}}}",
        "{{{ UNSUBSCRIBE_URL }}}",
        "{{{\tUNSUBSCRIBE_URL}}}",
        "{{{UNSUBSCRIBE_URL|}}}",
        "{{{UNSUBSCRIBE_URL|a|b {{{ }} c}}}",
        "{{{UNSUBSCRIBE_URL | https://x.example/?a=b}}}",
        *[f"{{{{{{{word}}}}}}}" for word in UNSUBSCRIBE_URL],
    ],
)
def test_placeholders_are_replaced(text: str) -> None:
    assert filled(f"a {text} b {text}", VALUES) == f"a {URL} b {URL}"


@pytest.mark.parametrize(
    "text",
    [
        "{{UNSUBSCRIBE_URL}}",
        "{UNSUBSCRIBE_URL}",
        "{{{{UNSUBSCRIBE_URL}}}}",
        "{{{{UNSUBSCRIBE_URL}}}",
        "{{{UNSUBSCRIBE_URL}}}}",
        "{{{UNSUBSCRIBE_URL|x}}}}",
        "{{{UNSUBSCRIBE_URL",
        "{{{UNSUBSCRIBE_URL}}",
        "{{{UNSUBSCRIBE_URL|a\nb}}}",
        "{{{UNSUBSCRIBE_URL|never closed",
        "{{{unsubscribe_url}}}",
        "{{{UNSUBSCRIBE URL}}}",
        "{{{\nUNSUBSCRIBE_URL}}}",
        "{{{#each}}}",
        "{{{OTHER}}}",
        "&#123;{{UNSUBSCRIBE_URL}}}",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert filled(text, VALUES) == text


def test_a_value_is_not_searched_again_and_is_escaped_in_html() -> None:
    assert filled("{{{A}}}{{{B}}}", {"A": "{{{B}}}", "B": "b"}) == "{{{B}}}b"
    assert filled('<a href="{{{UNSUBSCRIBE_URL}}}">', links(URL, is_html=True)) == (
        '<a href="https://mail.harbor.example/unsubscribe/x?a&amp;b">'
    )


@given(st.text("{}|A \n", max_size=60))
def test_what_is_no_value_is_kept(text: str) -> None:
    assert filled(text, {"B": "x"}) == text
    assert len(filled(text, {"A": "{{{A}}}"})) >= 0


@pytest.mark.parametrize(
    "text",
    [
        "{{{A|" * 100_000,
        "{{{A|" * 100_000 + "\n}}}",
        "{{{" + " " * 200_000,
        "{{{ " * 200_000,
        "{" * 200_000,
        ("{{{" + "A" * 51) * 40_000,
        "{{{A|x\n" * 80_000 + "}}}",
        "{{{A" + " " * 1000 + "|" * 200_000,
    ],
)
def test_hostile_texts_are_read_once(text: str) -> None:
    """Quadratic work on any of these would take hours."""
    assert filled(text, {"A": "x", "B": "y"})
    has_too_many(text)


def test_how_many_are_too_many() -> None:
    assert not has_too_many("{{{A}}}" * MOST)
    assert has_too_many("{{{A}}}" * (MOST + 1))
    assert not has_too_many("{{{ not one" * (MOST + 1))
    assert not has_too_many(None)
