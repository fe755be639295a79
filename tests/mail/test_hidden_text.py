"""Text that the readers of an HTML mail do not see is none that its author wrote to them."""

from __future__ import annotations

import time

import pytest

from pillarbox.mail.deception.hidden_text import hidden_text
from pillarbox.mail.deception.safe_text import safe_text
from pillarbox.mail.html.hidden_text import KINDS
from pillarbox.mail.message.extracted_text import extracted_text

HIDDEN = {
    "display": '<div style="display:none">SECRET</div>',
    "display escaped": '<div style="dis\\70lay : n\\6fne">SECRET</div>',
    "display commented": '<div style="display:/* */none">SECRET</div>',
    "visibility": '<span style="visibility: hidden">SECRET</span>',
    "opacity": '<p style="opacity:0.01">SECRET</p>',
    "filter": '<p style="filter:opacity(0%)">SECRET</p>',
    "font size": '<span style="font-size:0">SECRET</span>',
    "font size 1px": '<span style="font-size:1px;line-height:1px">SECRET</span>',
    "font shorthand": '<span style="font:0/0 a">SECRET</span>',
    "font in em": '<div style="font-size:1%"><b style="font-size:5em">SECRET</b></div>',
    "box": '<div style="height:0;overflow:hidden">SECRET</div>',
    "max height": '<div style="max-height:0px">SECRET</div>',
    "white": '<span style="color:#fff">SECRET</span>',
    "nearly white": '<span style="color:rgb(250, 252, 255)">SECRET</span>',
    "font color": '<font color="white">SECRET</font>',
    "on black": '<table bgcolor="#000000"><tr><td style="color:black">SECRET</td></tr></table>',
    "on blue": '<div style="background:hsl(240, 100%, 50%) no-repeat"><p style="color:blue">SECRET</p></div>',
    "transparent": '<span style="color:transparent">SECRET</span>',
    "transparent rgba": '<span style="color:rgba(0,0,0,0)">SECRET</span>',
    "body": '<body text="#ffffff">SECRET</body>',
    "off screen": '<div style="position:absolute;left:-9999px">SECRET</div>',
    "indent": '<div style="text-indent:-999em">SECRET</div>',
    "margin": '<div style="margin-left:-5000px">SECRET</div>',
    "translate": '<div style="transform:translateX(-100vw)">SECRET</div>',
    "scale": '<div style="transform:scale(0)">SECRET</div>',
    "clip": '<div style="position:absolute;clip:rect(0,0,0,0)">SECRET</div>',
    "clip path": '<div style="clip-path:inset(50%)">SECRET</div>',
    "class": "<style>.x{display:none}</style><p class='x'>SECRET</p>",
    "class color": "<style>p.x { color: white }</style><p class='x'>SECRET</p>",
    "class size": "<style>.a .x, .y{font-size:0}</style><div class=a><p class='x'>SECRET</p></div>",
    "id": "<style type='text/css'><!-- #x {visibility:hidden} --></style><p id='x'>SECRET</p>",
    "element": "<style>i{opacity:0}</style><i>SECRET</i>",
    "attribute selector": "<style>[class~=x]{display:none}</style><p class='a x'>SECRET</p>",
    "media": "<style>@media screen and (min-width:100px){.x{display:none}}</style><p class='x'>SECRET</p>",
    "important": "<style>.x{display:none !important}</style><p class='x' style='display:block'>SECRET</p>",
    "hidden": "<p hidden>SECRET</p>",
    "mso": '<p style="mso-hide:all">SECRET</p>',
}

SEEN = {
    "size of a table": '<td style="font-size:0"><div style="font-size:14px">SHOWN</div></td>',
    "white on a colour": "<table bgcolor=#036><tr><td><font color=#fff>SHOWN</font></td></tr></table>",
    "white on a picture": '<td background="cid:a" style="color:#fff">SHOWN</td>',
    "white on a gradient": '<p style="background:linear-gradient(#000,#111);color:#fff">SHOWN</p>',
    "white by class": "<style>.b{background:#036;color:#fff}</style><p class=b>SHOWN</p>",
    "link in white text": '<div style="color:#fff"><a href="https://a.example/">SHOWN</a></div>',
    "on telephones": "<style>@media (max-width:600px){.x{display:none}}</style><p class='x'>SHOWN</p>",
    "in print": "<style media='print'>.x{display:none}</style><p class='x'>SHOWN</p>",
    "dark": "<style>@media (prefers-color-scheme:dark){p{color:#fff}}</style><p>SHOWN</p>",
    "shown again": "<style>.x{display:none}.x{display:block}</style><p class='x'>SHOWN</p>",
    "shown by its style": "<style>.x{display:none}</style><p class='x' style='display:block'>SHOWN</p>",
    "another program": "<style>.moz-text-html .x{display:none}</style><p class='x'>SHOWN</p>",
    "outlook alone": "<!--[if mso]><style>.x{display:none}</style><![endif]--><p class='x'>SHOWN</p>",
    "hover": "<style>p:hover{display:none}</style><p>SHOWN</p>",
    "small print": '<p style="font-size:8px;color:#999">SHOWN</p>',
    "no overflow": '<div style="height:0">SHOWN</div>',
    "left": '<div style="position:absolute;left:-20px">SHOWN</div>',
    "margin": '<div style="margin:0 -30px">SHOWN</div>',
    "pixel": '<div style="opacity:.9">SHOWN</div>',
    "clip": '<div style="clip:rect(auto,auto,auto,auto)">SHOWN</div>',
}


def _padded(html: str) -> str:
    """So long that the document is simplified before it is read."""
    return html + "<p>word</p>" * 3000


@pytest.mark.parametrize("html", HIDDEN.values(), ids=HIDDEN.keys())
def test_hidden_text_is_left_out(html: str) -> None:
    for source in (f"<p>Hello</p>{html}<p>End</p>", _padded(html)):
        text = extracted_text(None, source)
        assert text or "<body" in html
        assert "SECRET" not in (text or "")


@pytest.mark.parametrize("html", HIDDEN.values(), ids=HIDDEN.keys())
def test_hidden_text_is_kept_apart_by_its_kind(html: str) -> None:
    for source in (f"<p>Hello</p>{html}<p>End</p>", _padded(html)):
        assert "SECRET" not in safe_text(None, source).text
        found = hidden_text(source).kinds
        [kind] = [kind for kind, words in found.items() if "SECRET" in words.text]
        assert kind in KINDS


@pytest.mark.parametrize("html", SEEN.values(), ids=SEEN.keys())
def test_text_that_is_seen_is_not_called_hidden(html: str) -> None:
    for source in (f"<p>Hello</p>{html}<p>End</p>", _padded(html)):
        assert "SHOWN" in safe_text(None, source).text
        assert "SHOWN" not in hidden_text(source).all_text


@pytest.mark.parametrize("html", SEEN.values(), ids=SEEN.keys())
def test_text_that_is_seen_stays(html: str) -> None:
    for source in (f"<p>Hello</p>{html}<p>End</p>", _padded(html)):
        assert "SHOWN" in (extracted_text(None, source) or "")


@pytest.mark.parametrize(
    "html",
    [
        "<style>"
        + "".join(f".a{n} .b{n} i{{color:red}}" for n in range(5000))
        + "</style>"
        + "<i>a</i>" * 20_000,
        "<style>" + "{" * 100_000 + "</style>" + "<style>" * 20_000,
        "<!--" * 100_000 + "<style>.a{color:red}",
        "<style>a" + " b" * 50_000 + "{color:red}</style><b>a</b>",
        "<style>" + "/*" * 100_000 + "</style>a",
        '<p style="' + "color:red;" * 90_000 + '">a',
        "<style>i i i i i i{color:red}</style>" + "<i>" * 250 + "a<u></u>" * 20_000,
    ],
    ids=["rules", "braces", "comments", "parts", "remarks", "style", "deep"],
)
def test_rules_cost_no_more_than_their_bound(html: str) -> None:
    began = time.process_time()
    extracted_text(None, html)
    assert time.process_time() - began < 2.5
