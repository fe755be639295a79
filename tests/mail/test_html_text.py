"""Text from HTML: golden pieces, a golden mail, and hostile documents in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.mail.html import limits
from pillarbox.mail.html.plain_text import text_of

PIECES = {
    "": "",
    "Ready": "Ready",
    "<p>Ready</p>": "Ready",
    "<p>One</p><p>Two</p>": "One\n\nTwo",
    "<p>One</p>\n\n\n<p> </p><p>&nbsp;</p><br><br><br><p>Two</p>": "One\n\nTwo",
    "<div>One</div><div>Two</div>": "One\nTwo",
    "<div><div><div>One</div></div></div><div>Two</div>": "One\nTwo",
    "One<br>Two<br/><br>Three<br>": "One\nTwo\n\nThree",
    "  a \n\t b <b> c</b><i>d </i> e": "a b cd e",
    "a<b>b</b>c": "abc",
    "<h1>Title</h1>Text<h2>Next</h2>": "Title\n\nText\nNext",
    "a<hr>b": "a\n----------\nb",
    # Entities and what is not seen.
    "&lt;b&gt; &amp; &euro; &#8364; &#x20AC; &hellip;": "<b> & € € € …",
    "a&nbsp;b&nbsp;&nbsp;c&shy;d&#8203;e&#65279;": "a b cde",
    "Fish &amp;amp; chips": "Fish &amp; chips",
    "<!-- no -->a<!--[if mso]><p>no</p><![endif]-->b": "ab",
    "<head><title>no</title><style>no{}</style></head><body>yes</body>": "yes",
    "a<script>if (a<b) no()</script><style>no{}</style><template>no</template>b": "ab",
    "a<textarea>no</textarea><select><option>no</select><svg><text>no</text></svg><iframe>no</iframe>b": "ab",
    "<noscript>yes</noscript>": "yes",
    'a<img src="x" alt="no" width="1" height="1">b': "ab",
    "a&zwnj;b&zwj;c&#8203;d": "abcd",
    # Hidden text (MSG-14).
    '<div style="display:none">no</div>yes': "yes",
    '<div style="color:red; DISPLAY : None !important">no</div>yes': "yes",
    '<span style="visibility:hidden">no</span>yes': "yes",
    '<div style="max-height:0px;overflow:hidden">no<p>no</p></div>yes': "yes",
    '<div style="opacity:0.0">no</div><div style="opacity:0.5">yes</div>': "yes",
    "<p hidden>no</p>yes": "yes",
    "<div>&zwnj;&nbsp;&zwnj;&nbsp;&#847;</div>yes": "yes",
    '<div style="font-size:0"><span style="font-size:14px">yes</span></div>': "yes",
    '<div style="border-display:none">yes</div>': "yes",
    # Links.
    '<a href="https://x.example/a?b=1&amp;c=2">Open</a>.': "Open (https://x.example/a?b=1&c=2).",
    '<a href="https://x.example/">https://x.example</a>': "https://x.example",
    '<a href="https://x.example/a">x.example</a>': "x.example (https://x.example/a)",
    '<a href=" https://x.example/\na ">Open</a>': "Open (https://x.example/a)",
    '<a href="https://x.example/"><img src="x" alt="Logo"></a>': "Logo (https://x.example/)",
    'See <a href="https://x.example/"><img src="x"></a>!': "See https://x.example/ !",
    '<a href="https://x.example/"><div>Open</div></a><p>Next</p>': "Open (https://x.example/)\nNext",
    '<a href="mailto:ann@x.example?subject=Hi">Write us</a>': "Write us",
    '<a href="mailto:ann@x.example">ann@x.example</a>': "ann@x.example",
    '<a href="tel:+4930123">+49 30 123</a>, <a href="tel:+4930123">call</a>': "+49 30 123, call (+4930123)",
    '<a href="#top">Top</a> <a>none</a> <a href="">empty</a>': "Top none empty",
    '<a href="javascript:no()">Click</a> <a href="/rel">Rel</a> <a href="cid:x">C</a>': "Click Rel C",
    '<a href="{{{UNSUBSCRIBE_URL}}}">Leave</a>': "Leave ({{{UNSUBSCRIBE_URL}}})",
    "<ul><li><a href='https://x.example'>https://x.example</a></ul>": "* https://x.example",
    # Images.
    'a<img src="x" alt=" Two  words ">b<img src="y">': "a Two words b",
    # Lists.
    "<ul><li>One</li><li>Two</li></ul>": "* One\n* Two",
    "<p>List:</p><ul><li>One<li><p>Two</p><p>more</p></ul>End": "List:\n\n* One\n* Two\n  more\n\nEnd",
    "<ul><li>One<ul><li>In</li></ul></li><li></li><li>Two</li></ul>": "* One\n  * In\n* Two",
    "<ol><li>One</li><li>Two</li></ol>": "1. One\n2. Two",
    "<ol><li>One<ol><li>In</ol><li>Two</ol>End": "1. One\n  1. In\n2. Two\n\nEnd",
    "a<blockquote>b</blockquote>c<table><tr><td>d</table>e": "a\nb\nc\nd\n\ne",
    "<dl><dt>Term<dd>Meaning</dl>": "Term\nMeaning",
    # Tables.
    "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea<td>3</table>": "Item Price\nTea 3",
    "<table><tr><td></td><td>Only</td><td> </td></tr></table>": "Only",
    "<table><tr><td><table><tr><td>In</td></tr></table></td><td>Out</td></tr></table>": "In\n\nOut",
    # Preformatted text.
    "<pre><b>a</b>  <i>b</i>  \n  c</pre>": "a  b\n  c",
    "a<pre>\n x = 1\n   y\r\n\n\n\nz</pre>b": "a\n x = 1\n   y\n\nz\nb",
}


@pytest.mark.parametrize(("html", "text"), PIECES.items())
def test_golden_pieces(html: str, text: str) -> None:
    """templates.md 7, MSG-14."""
    assert text_of(html) == text


@pytest.mark.parametrize(("html", "text"), PIECES.items())
def test_a_tamed_document_says_the_same(html: str, text: str) -> None:
    """TRAP-06: what is done to big documents changes nothing in ordinary ones."""
    assert text_of(limits.simplified(html)) == text


MAIL = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Berth 12</title><style>p { color: navy }</style></head>
<body style="margin:0">
<div style="display:none;font-size:1px;max-height:0;opacity:0">Your berth is ready&zwnj;&nbsp;&zwnj;</div>
<table role="presentation" width="100%"><tr><td align="center">
  <table width="600">
    <tr><td><a href="https://harbor.example"><img src="cid:logo" alt="Harbor"></a></td></tr>
    <tr><td>
      <h1>Hello Ada,</h1>
      <p>Your berth is <strong>ready</strong>.<br>
         It is number&nbsp;12.</p>
      <ul>
        <li>Power: <b>16&nbsp;A</b></li>
        <li>Water: yes</li>
      </ul>
      <table>
        <thead><tr><th>Night</th><th>Price</th></tr></thead>
        <tbody><tr><td>Friday</td><td>30 &euro;</td></tr><tr><td>Saturday</td><td>35 &euro;</td></tr></tbody>
      </table>
      <p><a href="https://harbor.example/b/12?x=1&amp;y=2" style="display:inline-block">See your berth</a></p>
    </td></tr>
    <tr><td style="font-size:12px">Harbor Ltd &copy; 2026 &middot;
      <a href="mailto:hi@harbor.example">Write us</a>
      <img src="https://t.example/o.gif" width="1" height="1"></td></tr>
  </table>
</td></tr></table>
</body></html>
"""

MAIL_TEXT = """Harbor (https://harbor.example)
Hello Ada,

Your berth is ready.
It is number 12.

* Power: 16 A
* Water: yes

Night Price
Friday 30 €
Saturday 35 €

See your berth (https://harbor.example/b/12?x=1&y=2)

Harbor Ltd © 2026 · Write us"""


def test_a_golden_mail() -> None:
    """MSG-14, emails.md 1.2."""
    assert text_of(MAIL) == MAIL_TEXT
    assert text_of(limits.simplified(MAIL)) == MAIL_TEXT


def test_lines_are_never_wrapped() -> None:
    """emails.md 1.2."""
    line = "word " * 2000 + "end"
    assert text_of(f"<p>{line}</p>") == line


def test_a_big_document_is_read_to_its_end() -> None:
    paragraphs = [f"Paragraph {n} of many & more" for n in range(5000)]
    html = "<html><body>" + "".join(f"<div><p>{p.replace('&', '&amp;')}</p></div>" for p in paragraphs)
    assert not limits.is_harmless(html)
    assert text_of(html) == "\n\n".join(paragraphs)


def test_nesting_beyond_the_limit_loses_no_text() -> None:
    """TRAP-06: depth cap 256."""
    html = "<div>a" * 2000 + "</div>" * 2000 + "<p>end</p>" + "<!-- " + "x" * 20_000 + " -->"
    text = text_of(html)
    assert text.count("a") == 2000
    assert text.endswith("\nend")
    simple = limits.simplified(html)
    assert _deepest(simple) == limits.DEEPEST


def test_an_unclosed_head_does_not_swallow_the_mail() -> None:
    html = "<html><head><meta charset=utf-8><title>no</title><body><p>yes</p></body></html>"
    assert text_of(html) == text_of(limits.simplified(html)) == "yes"


HOSTILE = {
    "deep blocks": "<div>" * 200_000,
    "deep lists": "<ul><li>x" * 30_000,
    "deep tables": "<table><tr><td>x" * 30_000,
    "many tags begun": "<a " * 100_000,
    "the same in 48 kB": "<a " * 16_000,
    "many attributes": "<a " + " ".join(f"a{n}=1" for n in range(100_000)) + ">x",
    "many attributes in one small document": "<a " + " ".join(f"{n:x}" for n in range(3000)) + ">x",
    "attributes that hide tags": "<a " + " ".join(f'a{n}="<"' for n in range(50_000)) + ">x",
    "unclosed quotes": '<a x="' * 100_000,
    "unclosed comments": "<!--" * 200_000,
    "false comments": "<div><!--</div>-->" * 40_000,
    "ends that end nothing": "<span><div></span>" * 40_000,
    "formatting that is opened again": "".join(f"<b a={n}>" for n in range(20_000)) + "<p>x" * 20_000,
    "formatting in a small document": "".join(f"<b a={n}>" for n in range(400)) + "<p>x" * 590,
    "unclosed scripts": "<script>" * 100_000,
    "unclosed heads": "<head>" * 100_000,
    "unclosed vectors": "<svg>" * 100_000,
    "angle brackets": "<" * 1_000_000,
    "ampersands": "&" * 1_000_000,
    "a huge number": "&#" + "9" * 100_000 + ";",
    "line ends": "<pre>" + "\n" * 500_000,
    "blanks in a style": "<p style='" + "; " * 200_000 + "'>x",
    "zeros in a style": "<p style='opacity:" + "0" * 200_000 + "x'>x",
    "cells": "<td>x" * 50_000,
    "surrogates": "\ud800<p>\udfff",
    "NUL": "\0<p>\0x",
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_documents_take_bounded_time(html: str) -> None:
    """TRAP-06."""
    begin = time.thread_time()
    text = text_of(html)
    assert time.thread_time() - begin < 2.0
    assert len(text) <= 2 * len(html) + 10


LARGEST = 10 * 1024 * 1024
"""Octets of html that a request may have."""

SPREAD = {
    "lines": ("<pre>", "a\n"),
    "empty lines": ("<pre>", "\n"),
    "carriage returns": ("<pre>", "\r"),
    "indented lines": ("<ul>" * 9 + "<pre>", "a\n"),
    "angle brackets": ("", "<"),
    "half tags": ("", "</"),
    "attributes": ("<a ", "a=1 "),
    "a style": ("<p style='", "; "),
    "quotes": ("", '<a x="'),
    "words": ("", "a "),
    "words beyond ASCII": ("", "\xe9 "),
    "nothing to see": ("", "\u200b"),
    "entities": ("", "&amp;"),
    "paragraphs": ("", "<p>x"),
    "comments": ("", "<!--"),
}


@pytest.mark.parametrize(("begin", "repeated"), SPREAD.values(), ids=SPREAD.keys())
def test_time_is_linear_and_other_threads_run_meanwhile(begin: str, repeated: str) -> None:
    """API-09: a tenth of the largest document; the largest are in the slow sweep of every route."""
    html = begin + repeated * (LARGEST // 10 // len(repeated.encode()))
    started = time.thread_time()
    text = text_of(html)
    assert time.thread_time() - started < 0.5
    assert len(text) <= LARGEST


def test_a_long_preformatted_text_keeps_its_lines_across_the_pieces_that_it_is_read_in() -> None:
    lines = [f"{'  ' * (n % 3)}line {n}" + "\n" * (n % 4) for n in range(20_000)]
    text = text_of("<pre>" + "\n".join(lines) + "</pre>")
    seen = [line for line in text.split("\n") if line]
    assert seen == [line.rstrip("\n") for line in lines]
    assert "\n\n\n" not in text


def test_line_ends_and_words_may_lie_anywhere_in_a_long_text() -> None:
    for start in range(4):
        words = "x" * start + " word" * 50_000
        assert text_of(f"<p>{words}</p>") == words.strip()
        ends = "<pre>" + "x" * start + "ab\r\n" * 50_000
        assert text_of(ends) == "x" * start + "\n".join(["ab"] * 50_000)


TAGS = ["<a href='https://x'>", "</a>", "<p>", "<div>", "</div>", "<ul>", "<li>", "</ul>", "<table>", "<td>"]
OTHERS = ["<pre>", "</pre>", "<br>", "<b", '"', ">", "&amp", "<!--", "-->", "x", "\n"]


@given(st.lists(st.sampled_from([*TAGS, *OTHERS]), max_size=40))
def test_any_soup_gives_tidy_text(pieces: list[str]) -> None:
    """emails.md 1.2: no blank line at the ends and never two in a row."""
    html = "".join(pieces)
    for text in (text_of(html), text_of(limits.simplified(html))):
        assert text.strip("\n") == text
        assert "\n\n\n" not in text


def _deepest(html: str) -> int:
    depth = deepest = 0
    for piece in html.split("<")[1:]:
        depth += -1 if piece.startswith("/div") else 1 if piece.startswith("div") else 0
        deepest = max(deepest, depth)
    return deepest
