"""Rendering parts of mail (templates.md 5 and 6): one pass, linear, escaped by where a value comes from."""

from __future__ import annotations

import html
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.placeholders.contact_values import NOBODY, ContactValues, contact_value, is_of_contact
from pillarbox.mail.placeholders.parsing import Placeholder, parse, placeholders
from pillarbox.mail.placeholders.rendering import (
    LONGEST_SUBJECT,
    RenderTarget,
    Value,
    ValueOrigin,
    printed,
    rendered,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=80)
"""Lone surrogates too."""
SOUP = st.text("{}|A_.c \n\ud800", max_size=80)
PIECES = st.lists(
    st.sampled_from(["{{{A}}}", "{{{A|x}}}", "{{{B}}}", "{{{", "}}}", "{", "|", "\n", "contact.", "A", "é"]),
    max_size=30,
).map("".join)


def name_and_fallback(source: str) -> list[tuple[str, str | None]]:
    return [(found.name, found.fallback) for found in placeholders(source)]


@pytest.mark.parametrize(
    ("source", "name", "fallback"),
    [
        ("{{{A}}}", "A", None),
        ("{{{ A }}}", "A", None),
        ("{{{A|}}}", "A", ""),
        ("{{{A| }}}", "A", ""),
        ("{{{A| a b }}}", "A", "a b"),
        ("{{{A|a|b}}}", "A", "a|b"),
        ("{{{A|'a'}}}", "A", "'a'"),
        ("{{{A|{{{B}}}", "A", "{{{B"),
        ("{{{A|a}}b}}}", "A", "a}}b"),
        ("{{{contact.first_name}}}", "contact.first_name", None),
        ("{{{ contact.properties.a_b | x }}}", "contact.properties.a_b", "x"),
        ("{{{contact}}}", "contact", None),
        ("{{{contactual}}}", "contactual", None),
        ("{{{" + "k" * 50 + "}}}", "k" * 50, None),
        ("{{{contact." + "k" * 50 + "}}}", "contact." + "k" * 50, None),
        ("{{{9}}}", "9", None),
    ],
)
def test_what_a_placeholder_is(source: str, name: str, fallback: str | None) -> None:
    assert name_and_fallback(f"<{source}>") == [(name, fallback)]


@pytest.mark.parametrize(
    "source",
    [
        "{{A}}",
        "{{{{A}}}}",
        "{{{A}}}}",
        "{{{#each}}}",
        "{{{/each}}}",
        "{{{A.b}}}",
        "{{{contact.}}}",
        "{{{contact.a.}}}",
        "{{{contact..a}}}",
        "{{{Contact.a}}}",
        "{{{contact.a b}}}",
        "{{{" + "k" * 51 + "}}}",
        "{{{contact." + "k" * 51 + "}}}",
        "{{{É}}}",
        "{{{A-B}}}",
        "{{{}}}",
        "{{{|x}}}",
        "{{{A|x\r}}}",
        "{{{NAME&#124;x}}",
        "&#123;&#123;&#123;A&#125;&#125;&#125;",
    ],
)
def test_what_is_text(source: str) -> None:
    assert name_and_fallback(source) == []
    assert parse(source).texts == (source,)


@given(st.one_of(ANY_TEXT, SOUP, PIECES), st.one_of(ANY_TEXT, PIECES), st.sampled_from(ValueOrigin))
def test_rendering_is_one_pass_and_never_raises(source: str, text: str, origin: ValueOrigin) -> None:
    parsed = parse(source)
    assert parsed.source == source
    assert rendered(parsed, lambda _: None, RenderTarget.TEXT) == source
    value = Value(text, origin)
    assert rendered(parsed, lambda _: value, RenderTarget.TEXT) == text.join(parsed.texts)
    in_html = {
        ValueOrigin.SENDER: text,
        ValueOrigin.OTHERS: html.escape(text),
        ValueOrigin.OWN_URL: text.replace("&", "&amp;"),
    }[origin]
    assert rendered(parsed, lambda _: value, RenderTarget.HTML) == in_html.join(parsed.texts)
    subject = rendered(parsed, lambda _: value, RenderTarget.SUBJECT)
    assert len(subject) <= LONGEST_SUBJECT
    if not any(sign in source for sign in "\r\n\0"):
        assert not any(sign in subject for sign in "\r\n\0")


@given(SOUP)
def test_placeholders_lie_apart_and_in_order(source: str) -> None:
    at = 0
    for found in placeholders(source):
        assert at <= found.start < found.end
        assert found.source == source[found.start : found.end]
        at = found.end


@pytest.mark.parametrize(
    "source",
    [
        "{{{contact" + ".a" * 200_000,
        "{{{contact.a" * 40_000,
        "{{{contact." + "a" * 200_000,
        "{{{A|" * 100_000,
        "{{{A}}}" * 60_000,
        "{{{A|x\n" * 80_000 + "}}}",
        "{" * 400_000,
    ],
)
def test_hostile_parts_are_read_once(source: str) -> None:
    """MSG-15: quadratic work on any of these would take hours."""
    assert parse(source).source == source
    rendered(parse(source), lambda _: Value("{{{A}}}", ValueOrigin.OTHERS), RenderTarget.HTML)


def test_a_value_is_escaped_by_where_it_comes_from() -> None:
    tags = "<b>\"Tom\" & 'Ann'</b>"
    page = parse("{{{S}}} {{{O}}} {{{U}}}")
    lookup = {
        "S": Value(tags, ValueOrigin.SENDER),
        "O": Value(tags, ValueOrigin.OTHERS),
        "U": Value("https://x.example/?a&b", ValueOrigin.OWN_URL),
    }.get

    def look(found: Placeholder) -> Value | None:
        return lookup(found.name)

    assert rendered(page, look, RenderTarget.HTML) == (
        f"{tags} &lt;b&gt;&quot;Tom&quot; &amp; &#x27;Ann&#x27;&lt;/b&gt; https://x.example/?a&amp;b"
    )
    assert rendered(page, look, RenderTarget.TEXT) == f"{tags} {tags} https://x.example/?a&b"
    assert rendered(page, look, RenderTarget.SUBJECT) == f"{tags} {tags} https://x.example/?a&b"


@pytest.mark.parametrize(
    ("value", "subject"),
    [
        ("a\r\nBcc: x@y.example", "a Bcc: x@y.example"),
        ("a\0b\nc\rd", "a b c d"),
        ("a\x1b\u2028b\ud800", "a b "),
        ("\u202eabc", "\u202eabc"),
        ("a\tb", "a\tb"),
    ],
)
def test_a_value_cannot_add_a_header(value: str, subject: str) -> None:
    """MSG-15."""
    assert (
        rendered(parse("{{{A}}}"), lambda _: Value(value, ValueOrigin.SENDER), RenderTarget.SUBJECT)
        == subject
    )


def test_a_subject_is_cut() -> None:
    assert rendered(
        parse("a{{{A}}}"), lambda _: Value("é" * 2000, ValueOrigin.SENDER), RenderTarget.SUBJECT
    ) == ("a" + "é" * 997)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (25.0, "25"),
        (25, "25"),
        (0.10, "0.1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (-2.5e-7, "-2.5e-7"),
        (1e-6, "0.000001"),
        (1e20, "100000000000000000000"),
        (123456.789, "123456.789"),
        (1e16, "10000000000000000"),
        (2**53 - 1, "9007199254740991"),
        (-(2**53 - 1), "-9007199254740991"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (100, "100"),
        (True, "true"),
        (False, "false"),
        ("as it is ", "as it is "),
    ],
)
def test_numbers_are_printed_in_short(number: str | float | bool, text: str) -> None:
    assert printed(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back(number: float) -> None:
    text = printed(number)
    assert float(text) == number
    assert ("e" in text) == (number != 0 and not 1e-6 <= math.fabs(number) < 1e21)


ADA = ContactValues(
    email="ada@quay.example",
    first_name="<Ada>",
    last_name="",
    properties={"company": "Tide & Co", "berth": 12.0, "member": True, "gone": None, "blank": ""},
    fallbacks={"gone": "<i>none</i>", "blank": 7, "city": "Quay"},
)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{{FIRST_NAME}}} {{{contact.first_name|x}}}", "&lt;Ada&gt; &lt;Ada&gt;"),
        ("{{{LAST_NAME}}}/{{{contact.last_name|<b>}}}", "/<b>"),
        ("{{{EMAIL}}} {{{contact.email}}}", "ada@quay.example ada@quay.example"),
        ("{{{contact.company}}} {{{contact.properties.company}}}", "Tide &amp; Co Tide &amp; Co"),
        ("{{{contact.berth}}} {{{contact.member}}}", "12 true"),
        ("{{{contact.gone}}} {{{contact.gone|a}}} {{{contact.gone|}}}.", "<i>none</i> a ."),
        ("{{{contact.blank}}} {{{contact.city}}}", "7 Quay"),
        ("{{{contact.unknown}}}{{{contact.unknown|?}}}", "?"),
        ("{{{contact}}}{{{this}}}{{{this|t}}}{{{contact|c}}}", "tc"),
        ("{{{contact.properties.first_name|p}}} {{{contact.a.b|d}}}", "p d"),
    ],
)
def test_what_mail_says_of_a_contact(source: str, shown: str) -> None:
    parsed = parse(source)
    assert all(is_of_contact(found.name) for found in parsed.placeholders)
    assert rendered(parsed, lambda found: contact_value(ADA, found), RenderTarget.HTML) == shown


def test_nobody_has_no_names() -> None:
    parsed = parse("Hello {{{FIRST_NAME|friend}}}{{{contact.company}}}")
    assert rendered(parsed, lambda found: contact_value(NOBODY, found), RenderTarget.TEXT) == "Hello friend"
