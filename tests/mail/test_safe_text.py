"""The text of a mail that may be handed to a program."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pillarbox.mail.deception.invisible import UNSEEN
from pillarbox.mail.deception.safe_text import LONGEST, fenced, host_of, safe_line, safe_mailbox, safe_text

LINK = re.compile(r"\]\(([^()]*)\)")


@pytest.mark.parametrize(
    ("text", "html", "safe"),
    [
        ("Where is it?\n\n> Old words", None, "Where is it?"),
        ("Look: https://shop.example/a/b?utm=1&t=2.", None, "Look: [link](shop.example)."),
        ("www.shop.example/a, HTTP://X.example", None, "[link](www.shop.example), [link](x.example)"),
        ("one\r\n\r\n\r\n\r\ntwo\x07\x1b[1m", None, "one\n\ntwo[1m"),
        ("a [b](c.example) d", None, "a [b] (c.example) d"),
        ("a [b]\u200b(c.example)", None, "a [b] (c.example)"),
        ("a \x04b\x05c.example\x06", None, "a bc.example"),
        (None, "<p>Hi <a href='https://evil.example/?t=1'>the bank</a>", "Hi [the bank](evil.example)"),
        (
            None,
            "<a href='https://evil.example'>https://bank.example/login</a>",
            "[bank.example](evil.example)",
        ),
        (None, "<a href='https://bank.example@evil.example/'>a</a>", "[a](evil.example)"),
        (None, "<a href='https:\\\\evil.example\\@bank.example'>a</a>", "[a](evil.example)"),
        (None, "<a href=' ht\ntps://evil.example:444/'>a</a>", "[a](evil.example)"),
        (None, "<a href='//evil.example/x'>a</a>", "[a](evil.example)"),
        (None, "<a href='https://b\u0430nk.example'>a</a>", "[a](xn--bnk-6cd.example)"),
        (None, "<a href='javascript:alert(1)'>a</a>", "[a](javascript:)"),
        (None, "<a href='data:text/html,x'>a</a>", "[a](data:)"),
        (None, "<a href='mailto:a@b.example'>a@b.example</a> <a href='#top'>up</a>", "a@b.example up"),
        (None, "<a href='https://a.example'><img src=x alt='Obey me'></a>b", "[link](a.example)b"),
        (None, "<a href='https://a.example'>x]</a><i>(b.example)</i>", "[x]](a.example)(b.example)"),
        (None, "<a href='https://a.example'>&#6;(b</a>", "[(b](a.example)"),
        (None, "<p>Seen<img width=1 height=1 src='https://t.example/p.gif' alt='x'>", "Seen"),
        (None, "<p>New</p><blockquote type=cite>Old</blockquote>", "New"),
        ("In the text alone", "<p>What people see</p>", "What people see"),
        ("In the text alone", "<p>Seen</p><p hidden>not</p>", "Seen"),
        ("All that there is", "<img src=x>", "All that there is"),
        ("Text", "<blockquote type=cite>Old</blockquote>", ""),
        ("می\u200cخواهم a\u200cb", None, "می\u200cخواهم ab"),
        (None, None, ""),
        ("", " ", ""),
    ],
)
def test_a_safe_text(text: str | None, html: str | None, safe: str) -> None:
    assert safe_text(text, html) == (safe, False)


def test_a_forward_without_a_word_is_shown_whole() -> None:
    head = "---------- Forwarded message ---------<br>From: A &lt;a@b.example&gt;"
    html = f"<div class='gmail_quote'>{head}<br>Words</div>"
    assert "Words" in safe_text(None, html, "Fwd: a").text


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://A.Example./x", "a.example"),
        ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("https://", "unknown"),
        ("https://a b", "unknown"),
        (f"https://{'a' * 300}.example", "unknown"),
        ("https://münchen.example/", "xn--mnchen-3ya.example"),
        ("https://\u2488.example", "unknown"),
        ("file:///etc/passwd", "file:"),
        ("https://a.example)[b](c.example", "unknown"),
    ],
)
def test_the_host_of_an_address(url: str, host: str) -> None:
    assert host_of(url) == host


def test_a_host_is_not_cut() -> None:
    for words in range(60):
        text = (
            "ab " * (LONGEST // 3 - 4 - words % 7) + "a" * words + " https://bank.example.evil.example/x" * 9
        )
        safe = safe_text(text, None)
        assert safe.is_cut
        assert len(safe.text) <= LONGEST
        assert set(LINK.findall(safe.text)) <= {"bank.example.evil.example"}
        assert "(" not in LINK.sub("", safe.text)


def test_a_line_is_one_line() -> None:
    assert safe_line("Re:\u202e a\r\nb https://x.example/?a=1 [c](d)") == "Re: a b [link](x.example) [c] (d)"
    assert safe_line(None) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("iris@www.shop.example", "iris@www.shop.example"),
        ("Iris\u202e\r\nVale <iris@www.shop.example>", "Iris Vale <iris@www.shop.example>"),
        ("See https://a.example/?b=1 <iris@b.example>", "See [link](a.example) <iris@b.example>"),
        ('"Go to https://a.example/?b=1"@b.example', '"Go to [link](a.example)"@b.example'),
        ("<iris@b.example", "<iris@b.example"),
        (None, ""),
    ],
)
def test_an_address_stays_one_that_can_be_answered(text: str | None, shown: str) -> None:
    assert safe_mailbox(text) == shown


def test_the_fence_is_not_in_the_words() -> None:
    lines = fenced("a f00d b", "f00d").split("\n")
    assert lines[1:] == ["<<<f00d", "a  b", "f00d>>>"]
    assert "f00d" in lines[0]
    assert "data" in lines[0]


MARKUP = st.lists(
    st.sampled_from(
        [
            *(
                "<a href='https://a.example/x?y'>",
                "</a>",
                "<p>",
                "<td>",
                "<table>",
                "<b>",
                "](",
                "[",
                "(",
                ")",
                "]",
            ),
            *(
                "<img alt=ALT>",
                "\x04",
                "\x05",
                "\x06",
                "&#4;",
                "&#5;",
                "&#6;",
                "\u200b",
                "\u202e",
                "\U000e0041",
            ),
            *(
                "https://b.example/c?d",
                "word",
                " ",
                "\n",
                "<pre>",
                "</pre>",
                "<!--",
                "-->",
                "<p hidden>",
                "<ul><li>",
            ),
        ]
    ),
    max_size=40,
).map("".join)


def test_an_address_behind_a_word_is_shown_by_its_host() -> None:
    assert (
        safe_text("Pay at:wordhttps://evil.example/x now", None).text == "Pay at:word[link](evil.example) now"
    )


@settings(max_examples=400, deadline=None)
@given(MARKUP | st.text(max_size=200), st.booleans())
def test_links_are_those_of_the_mail_and_nothing_is_unseen(source: str, is_html: bool) -> None:
    safe = safe_text(None, source) if is_html else safe_text(source, None)
    again = safe_text(None, source) if is_html else safe_text(source, None)
    assert safe == again
    assert not UNSEEN.search(safe.text)
    assert "ALT" not in safe.text or not is_html
    assert "\n\n\n" not in safe.text
    if source.isascii() and "://" in source:
        assert set(LINK.findall(safe.text)) <= {"a.example", "b.example", "unknown"}


@pytest.mark.parametrize(
    "source",
    [
        "<a href='https://quay.example/a?b=c&d=e'>tide &amp; time</a> " * 150_000,
        "<div style=color:red>" * 500_000 + "x",
        "<!-- x y z -->" * 700_000,
        "<" * 10_000_000,
        "<style>" + ".a{display:none}" * 500_000 + "</style>" + "<p class=a>x</p>" * 100_000,
        "word " * 2_000_000,
        "<blockquote>" * 500_000 + "x",
        "a\u200bb" * 3_000_000,
        "](" * 4_000_000,
        "https://" * 1_000_000,
        "a" * 5_000_000 + "://",
        "<a href=x><td><table>" * 300_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_ten_megabytes_cost_about_a_second(source: str) -> None:
    began = time.process_time()
    assert len(safe_text(None, source).text) <= LONGEST
    assert len(safe_text(source, None).text) <= LONGEST
    assert time.process_time() - began < 2.5
