"""The parts of mail of a template, whatever is in it (templates.md 5 to 7): pure functions and any text."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.kernel.wire.problems import Problem
from pillarbox.mail.html.plain_text import text_of
from pillarbox.mail.placeholders.contact_values import NOBODY, ContactValues
from pillarbox.mail.placeholders.parsing import LinkPlaces, filled_at
from pillarbox.templates.content import TemplateContent
from pillarbox.templates.mail import render
from pillarbox.templates.variables import Variable

URL = "https://mail.harbor.example/unsubscribe/x"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VALUE = st.one_of(
    st.text(st.characters(codec=None), max_size=30),
    st.sampled_from(
        [
            "{",
            "{{{",
            "}",
            "}}}",
            "{{{UNSUBSCRIBE_URL}}}",
            "{{{A|",
            "<a href='",
            "|x}}}",
            "&amp;",
            "\ud800",
            "\u202e",
        ]
    ),
)
PIECES = [
    "{{{A}}}",
    "{{{B|in}}}",
    "{{{UNSUBSCRIBE_URL}}}",
    "{{{RESEND_UNSUBSCRIBE_URL|x}}}",
    "{{{FIRST_NAME}}}",
]
MARKUP = [
    "<p>",
    "</p>",
    '<a href="{{{UNSUBSCRIBE_URL}}}">',
    "</a>",
    "<li>",
    "<pre>",
    "<td>",
    "word",
    " ",
    "\n",
    "&",
]


def variable(key: str, kind: str = "string", fallback: str | float | None = None) -> Variable:
    return Variable(id=uuid4(), key=key, type=kind, fallback_value=fallback, created_at=NOW, updated_at=NOW)  # type: ignore[arg-type]


def template(html: str, text: str | None = None, subject: str | None = None) -> TemplateContent:
    return TemplateContent(
        sender=None,
        subject=subject,
        reply_to=None,
        html=html,
        text=text,
        variables=(variable("A", fallback=""), variable("B")),
    )


def expected(pieces: list[str], given: dict[str, str], first_name: str) -> str:
    """What stands in the html before links are filled in, and after."""
    values = {
        "{{{A}}}": given.get("A", ""),
        "{{{B|in}}}": given.get("B", "in"),
        "{{{FIRST_NAME}}}": first_name,
        "{{{UNSUBSCRIBE_URL}}}": URL,
        "{{{RESEND_UNSUBSCRIBE_URL|x}}}": URL,
        '<a href="{{{UNSUBSCRIBE_URL}}}">': f'<a href="{URL}">',
    }
    return "".join(values.get(piece, piece) for piece in pieces)


@given(
    st.lists(st.sampled_from([*PIECES, *MARKUP]), max_size=20),
    st.dictionaries(st.sampled_from(["A", "B"]), VALUE),
)
def test_links_stand_where_the_template_has_them_and_nowhere_else(
    pieces: list[str], given: dict[str, str]
) -> None:
    made = render(template("".join(pieces)), None, given, NOBODY, "variables")
    places = made.links or LinkPlaces()
    html = filled_at(made.html, places.html, URL)
    assert html == expected(pieces, given, "")
    assert filled_at(made.text or "", places.text, URL) == text_of(html)


@given(st.one_of(st.text(st.characters(codec=None), max_size=60), st.text("{}|AB.c \n", max_size=60)), VALUE)
def test_rendering_raises_for_no_text(source: str, value: str) -> None:
    contact = ContactValues(first_name=value, properties={"c": value})
    made = render(template(source, source, source), None, {"A": value, "B": value}, contact, "variables")
    assert made.html.count("") >= 1


def test_a_subject_has_no_line_of_its_own() -> None:
    contact = ContactValues(first_name="Ada\r\nBcc: eve@quay.example\0")
    made = render(template("x", None, "Hi {{{FIRST_NAME}}}"), None, {}, contact, "variables")
    assert made.subject == "Hi Ada Bcc: eve@quay.example "


def test_each_variable_that_is_missing_is_named() -> None:
    content = TemplateContent(
        sender=None,
        subject="{{{S}}}",
        reply_to=None,
        html="{{{H}}}",
        text="{{{T}}}",
        variables=tuple(map(variable, "SHT")),
    )
    for missing in "SHT":
        given = {key: "v" for key in "SHT" if key != missing}
        with pytest.raises(Problem, match=f"`{missing}`"):
            render(content, None, given, NOBODY, "variables")
    assert render(content, "own", {"H": "v", "T": "v"}, NOBODY, "variables").subject == "own"


def test_a_value_before_a_link_does_not_hide_it() -> None:
    made = render(template("{{{A}}}{{{UNSUBSCRIBE_URL}}}"), None, {"A": "{"}, NOBODY, "variables")
    assert made.html == "{{{{UNSUBSCRIBE_URL}}}"
    assert made.links is not None
    assert filled_at(made.html, made.links.html, URL) == "{" + URL


def test_a_large_template_is_rendered_once() -> None:
    """Quadratic work on it would take hours."""
    html = ("<p>" + "x" * 9000 + "{{{A}}}{{{UNSUBSCRIBE_URL}}}</p>") * 900
    made = render(template(html), None, {"A": "{{{" * 600}, NOBODY, "variables")
    assert made.links is not None
    assert len(made.links.html) == 900
