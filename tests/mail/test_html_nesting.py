"""HTML rewritten so that a tree builder has nothing to repair in it (TRAP-06)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from pillarbox.dashboard.mail_html import ALLOWED
from pillarbox.mail.html import nesting, plain_text
from pillarbox.mail.html.nesting import nested

LENGTH = nesting.LONGEST_READ

FAMILIES = (
    ("table", "tr", "td", "th", "b", "a", "p", "div", "caption", "col", "colgroup", "tbody", "table"),
    ("ul", "li", "ol", "dl", "dt", "dd", "p", "b", "div", "address", "span"),
    ("h1", "h2", "p", "a", "b", "i", "font", "center", "hr", "br", "pre"),
    ("ruby", "rt", "rp", "p", "a", "blockquote", "details", "summary", "u"),
    ("svg", "style", "form", "body", "x", "img", "b", "div", "td", "html", "select"),
)


def soup(family: tuple[str, ...]) -> st.SearchStrategy[str]:
    tags = [mark.format(name) for name in family for mark in ("<{}>", "<{}>", "</{}>")]
    return st.lists(st.sampled_from([*tags, "x", "x", " "]), max_size=30).map("".join)


def as_a_browser_reads(body: str) -> str:
    tree = LexborHTMLParser(f"<!doctype html><html><head></head><body>{body}</body></html>")
    assert tree.body is not None
    read = tree.body.html
    assert read is not None
    return read.removeprefix("<body>").removesuffix("</body>")


@settings(max_examples=400)
@given(st.sampled_from(FAMILIES).flatmap(soup))
def test_a_tree_builder_repairs_nothing(html: str) -> None:
    """So its work is linear: no element is moved, copied, added or closed by anything but its own tag."""
    body = nested(html, ALLOWED).body
    assert as_a_browser_reads(body).replace("\n", "") == body


@pytest.mark.slow
@settings(max_examples=30_000, deadline=None)
@given(st.sampled_from(FAMILIES).flatmap(soup))
def test_a_tree_builder_repairs_nothing_in_many_documents(html: str) -> None:
    body = nested(html, ALLOWED).body
    assert as_a_browser_reads(body).replace("\n", "") == body


@pytest.mark.parametrize(
    ("html", "written"),
    [
        ("<div><p>a<p>b</div>c", "<div><p>a</p><p>b</p></div>c"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
        (
            "<table><tr><td>a<td>b<tr><th>c</table>d",
            "<table><tbody><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></tbody></table>d",
        ),
        (
            "<table><tr><td><div>a</td></div><td>b</table>",
            "<table><tbody><tr><td><div>a</div></td><td>b</td></tr></tbody></table>",
        ),
        ("<table>a<tr><td>b</table>", "<table><tbody><tr><td>a</td></tr><tr><td>b</td></tr></tbody></table>"),
        ("<td>a</td><tr>b", "ab"),
        ("<b>a<i>b</b>c</i>d", "<b>a<i>b</i></b><i>c</i>d"),
        ("<p><b>a<p>c</b>d", "<p><b>a</b></p><p><b>c</b>d</p>"),
        ("<b><div>a</b></div>b", "<b><div>a</div></b>b"),
        ("<font color=red><p>a</font><p>b", '<font color="red"><p>a</p></font><p>b</p>'),
        ("<a href=x>a<a href=y>b</a>", '<a href="x">a</a><a href="y">b</a>'),
        ("<a href=x><table><tr><td>a</a>b</table>", None),
        ("</div></p></b>a", "<p></p>a"),
        ("a < b <3 <", "a &lt; b &lt;3 &lt;"),
        ("<p title='\"' TITLE=b onclick=x>a", '<p title="&quot;">a</p>'),
        ("<!-- <p> -->a<!x>b<?y>c<![CDATA[d]]>e", "abce"),
        ("<script><p>a</script>b<svg><p>c</svg>d<svg>e", "bde"),
        ("<o:p>a</o:p><form><input>b</form>", "ab"),
        ("<h1>a<h2>b</h1>c", "<h1>a</h1><h2>b</h2>c"),
    ],
)
def test_what_authors_leave_out_is_put_in(html: str, written: str | None) -> None:
    body = nested(html, ALLOWED).body
    assert written is None or body == written
    assert as_a_browser_reads(body) == body


def test_style_sheets_and_the_tag_of_the_body_are_handed_out() -> None:
    found = nested(
        "<style>a{}</style><body bgcolor=red onload=x>b<style>c{}</style><body bgcolor=blue>", ALLOWED
    )
    assert found.styles == ("a{}", "c{}")
    assert found.body_attributes == {"bgcolor": "red"}
    assert (found.body, found.complete) == ("b", True)


def test_what_lies_beyond_the_bounds_is_left_out_and_said() -> None:
    assert nested("<p>a" * nesting.MOST_TAGS, ALLOWED).complete
    assert not nested("<p>a" * (nesting.MOST_TAGS + 1), ALLOWED).complete
    assert not nested("a" * (LENGTH + 1), ALLOWED).complete
    deep = nested("<div>" * 5000 + "a", ALLOWED).body
    assert deep.count("<div>") == nesting.DEEPEST
    assert "a" in deep


HOSTILE = {
    "formatting": "".join(f"<b id={n}>" for n in range(LENGTH // 10)),
    "formatting and blocks": "<div>" + "".join(f"<b id={n}>" for n in range(9000)) + "</div>" + "<p>x" * 9000,
    "attributes": "<p " + " ".join(f"a{n}=1" for n in range(LENGTH // 9)),
    "a long attribute": "<p title='" + '"' * LENGTH,
    **{
        text: text * (LENGTH // len(text))
        for text in (
            *("<dl><dt>", "<ul><li>", "<table><tr><td>", "<table>x", "<a href=x>", "<p><b><i>x</b></p>"),
            *("<div>", "<h1><b>", "<svg>", "<!--", "<a b='", '<a b="', "<", "</p>", "<style>a{", "<b>"),
            *("<ruby><rt>", "<table><caption><b>", "<a href=x><table><td>", "<b></div><p>x", "&"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_html_costs_about_a_second(name: str) -> None:
    """Of the largest size that is read: what takes some 0.1 to 0.7 s takes minutes when it is quadratic."""
    start = time.process_time()
    nested(HOSTILE[name], ALLOWED)
    assert time.process_time() - start < 8


@pytest.mark.parametrize("name", HOSTILE)
def test_the_text_of_hostile_html_costs_about_a_second(name: str) -> None:
    """Up to the length from which on it was cut down before."""
    start = time.process_time()
    plain_text.text_of(HOSTILE[name][:16_000])
    assert time.process_time() - start < 1
