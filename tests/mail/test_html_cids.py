"""Images put into the html that refers to them (receiving.md 3 and 10)."""

from __future__ import annotations

import time

import pytest

from pillarbox.mail.html import cids
from pillarbox.mail.message.parse import ParsedMessage, parse

URI = "data:image/png;base64,UE5H"


def message(html: str, *, kind: str = "image/png", cid: str = "plan@1") -> ParsedMessage:
    return parse(
        (
            "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n"
            f"{html}\r\n--b\r\nContent-Type: {kind}\r\nContent-ID: <{cid}>\r\n\r\nPNG\r\n--b--\r\n"
        ).encode()
    )


def replaced(html: str, **part: str) -> str | None:
    read = message(html, **part)
    return cids.with_data_uris(read.html or "", read.attachments, read.content)


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ('<img src="cid:plan@1">', f'<img src="{URI}">'),
        ("<IMG SRC='CID:plan@1'>", f"<IMG SRC='{URI}'>"),
        ("<img alt=x src=cid:plan@1>", f"<img alt=x src={URI}>"),
        ('<img src = "cid:plan%401">', f'<img src = "{URI}">'),
        ('<td background="cid:plan@1">', f'<td background="{URI}">'),
        ('<img srcset="cid:plan@1 1x, cid:plan@1 2x">', f'<img srcset="{URI} 1x, {URI} 2x">'),
        (
            "<style>p{background:url( 'cid:plan@1' )}</style>",
            f"<style>p{{background:url( '{URI}' )}}</style>",
        ),
        ('<p style="background:url(cid:plan@1)">', f'<p style="background:url({URI})">'),
        (
            '<p style="background:url(&quot;cid:plan@1&quot;)">',
            f'<p style="background:url(&quot;{URI}&quot;)">',
        ),
        ('<img src="cid:plan@1"><img src="cid:plan@1">', f'<img src="{URI}"><img src="{URI}">'),
    ],
)
def test_a_reference_in_every_form_is_replaced(html: str, wanted: str) -> None:
    assert replaced(html) == wanted


@pytest.mark.parametrize(
    "html",
    [
        '<img src="cid:other">',
        '<img src="cid:PLAN@1">',
        '<img src="cid:plan@1x">',
        '<a href="cid:plan@1">plan</a>',
        "<p>see cid:plan@1</p>",
        '<img data-src="cid:plan@1">',
        '<img src="https://x.example/cid:plan">',
    ],
)
def test_everything_else_stays_as_it_is(html: str) -> None:
    """Unmatched references, other cases of letters, other attributes, text."""
    assert replaced(html) == html


def test_only_images_are_put_in() -> None:
    html = '<img src="cid:plan@1">'
    assert replaced(html, kind="text/html") == html
    assert replaced(html, kind="application/pdf") == html


def test_an_id_with_other_characters_is_matched_after_its_escapes_are_read() -> None:
    assert replaced('<img src="cid:a&amp;b%20c">', cid="a&b c") == f'<img src="{URI}">'


def test_a_result_that_would_be_too_long_is_not_made() -> None:
    """receiving.md 3: the size guard."""
    read = message('<img src="cid:plan@1">')
    length = len('<img src="">') + len(URI)
    make = [
        cids.with_data_uris(read.html or "", read.attachments, read.content, longest)
        for longest in (length, length - 1)
    ]
    assert make == [f'<img src="{URI}">', None]


def test_the_ids_that_are_referred_to_are_known() -> None:
    """receiving.md 4.1: inline when the html refers to the part."""
    read = message('<img src="cid:plan@1">')
    assert cids.referenced(read.html or "", read.attachments) == {"plan@1"}
    assert cids.referenced("<p>", read.attachments) == frozenset()


@pytest.mark.parametrize("piece", ['src="', "url(cid:", " src=cid:plan@1", "cid:", " srcset='cid:plan@1,"])
def test_hostile_html_costs_little(piece: str) -> None:
    """TRAP-06."""
    read = message('<img src="cid:plan@1">')
    html = piece * (2_000_000 // len(piece))
    began = time.process_time()
    cids.with_data_uris(html, read.attachments, read.content)
    assert time.process_time() - began < 2
