"""What is left of a mail's HTML, its CSS and its links."""

from __future__ import annotations

import re
import time
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from pillarbox.dashboard import mail_html, mail_styles
from pillarbox.dashboard.links import links
from pillarbox.dashboard.pages import size

ALLOWED = {name for names in mail_html.ATTRIBUTES.values() for name in names} | {"rel", "target"}
PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 40


_ATTRIBUTES = re.compile(r'((?: [\w-]+="[^"]*")+)>')
_ATTRIBUTE = re.compile(r' [\w-]+="[^"]*"')


def in_order(html: str) -> str:
    """The same HTML with the attributes of each element sorted."""
    return _ATTRIBUTES.sub(lambda found: "".join(sorted(_ATTRIBUTE.findall(found[1]))) + ">", html)


def test_ordinary_mail_keeps_its_layout() -> None:
    """UI-02."""
    html = (
        "<html><head><title>x</title><style>.a{color:red;position:fixed}</style></head>"
        '<body bgcolor="#eef1f5" style="margin:0"><table width="100%" bgcolor="#fff"><tr><td align="center"'
        ' style="padding:8px;font-family:\'Open Sans\',Arial"><font color="red">Hi</font></td></tr></table>'
    )
    shown = mail_html.clean(html)
    assert shown.styles == ".a{color:red}"
    assert shown.body_style == "background-color:#eef1f5;margin:0"
    assert "style=\"padding:8px;font-family:'Open Sans',Arial\"" in shown.body
    assert '<table bgcolor="#fff" width="100%">' in in_order(shown.body)
    assert '<font color="red">Hi</font>' in shown.body
    assert "<title>" not in mail_html.document(shown)
    assert (shown.left_out, shown.is_cut) == (0, False)


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("<img src='http://x.example/a'>", "<img>"),
        ("<img src='HTTPS://x.example/a' alt='A'>", '<img alt="A">'),
        ("<img src='//x.example/a'>", "<img>"),
        ("<img src='a.png' srcset='b.png 2x'>", "<img>"),
        ("<img src='cid:known'>", '<img src="/picture">'),
        ("<img src='CID:kn%6Fwn'>", '<img src="/picture">'),
        ("<img src='cid:other'>", "<img>"),
        ("<img src='data:image/svg+xml;base64,AAAA'>", "<img>"),
        ("<img src='data:text/html;base64,AAAA'>", "<img>"),
        ("<img src='data:image/gif;base64,R0lGODlh'>", '<img src="data:image/gif;base64,R0lGODlh">'),
        (f"<img src='{PICTURE}'>", f'<img src="{PICTURE}">'),
        (
            "<img src='data:image/png;base64,held000099held='>",
            '<img src="data:image/png;base64,held000099held=">',
        ),
        ("<a href='javascript:x'>a</a>", '<a target="_blank" rel="noopener noreferrer">a</a>'),
        ("<a href='data:text/html,x'>a</a>", '<a target="_blank" rel="noopener noreferrer">a</a>'),
        ("<a href='/capture/clear'>a</a>", '<a target="_blank" rel="noopener noreferrer">a</a>'),
        (
            "<a href='https://q.example/?a=1&b' target=_top>a</a>",
            '<a href="https://q.example/?a=1&amp;b" target="_blank" rel="noopener noreferrer">a</a>',
        ),
        ("<p onclick=x>a<script>b</script><!-- c --></p>", "<p>a</p>"),
        ("a<svg><g>b</g></svg><math>c</math><form><input>d</form><link><meta><base>", "ad"),
    ],
)
def test_what_stays_of_an_element(html: str, kept: str) -> None:
    """UI-02, UI-03, UI-08."""
    shown = mail_html.clean(html, lambda cid: "/picture" if cid in ("known", "kn%6Fwn") else None)
    assert in_order(shown.body) == in_order(kept)


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        ("color:red", "color:red"),
        ("COLOR : Red !important ;; margin:0 auto", "color:Red !important;margin:0 auto"),
        ("background:#fff url(http://x)", ""),
        ("background:URL('x')", ""),
        ("background-image:image-set('x' 1x)", ""),
        ("background:u\\72l(x)", ""),
        ("background:/**/url/**/(x)", ""),
        (
            "background:linear-gradient(to right,rgba(0,0,0,.5),#fff)",
            "background:linear-gradient(to right,rgba(0,0,0,.5),#fff)",
        ),
        ("width:expression(alert(1))", ""),
        ("behavior:x;-moz-binding:x;position:fixed;content:'x'", ""),
        ("font-family:'a;b:c'", ""),
        ("color:red)", ""),
        ("color:'red", ""),
        ("color:red</style>", ""),
        ("width:calc(100% - 8px)", "width:calc(100% - 8px)"),
    ],
)
def test_what_stays_of_declarations(css: str, kept: str) -> None:
    assert mail_styles.declarations(css) == kept


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        ("p{color:red}", "p{color:red}"),
        ("@import url(x);p{color:red}", "p{color:red}"),
        (
            "@import 'x';@font-face{font-family:a;src:url(x)}td,.a > b:hover{margin:0}",
            "td,.a > b:hover{margin:0}",
        ),
        (
            "@media (max-width:600px){.a{width:100%!important}@media x{p{color:red}}}",
            "@media (max-width:600px){.a{width:100%!important}}",
        ),
        ("<!-- p{color:red} -->", "p{color:red}"),
        ("p{color:red", "p{color:red}"),
        ("}}p{color:red}", ""),
        ("a[href='x\\'{color:red}", ""),
        ("p{}b{position:fixed}", ""),
    ],
)
def test_what_stays_of_a_style_sheet(css: str, kept: str) -> None:
    assert mail_styles.sheet(css) == kept


@given(st.text(alphabet="ap{}();:@/*\\\"'<>!-, \nurl#mediacolor=&", max_size=200))
def test_no_css_can_name_an_address_or_end_its_element(css: str) -> None:
    """UI-03: whatever is left has no function but the harmless ones, no escape and no at-rule but media."""
    for left in (mail_styles.sheet(css), mail_styles.declarations(css)):
        assert "url(" not in left.lower()
        assert "\\" not in left
        assert "<" not in left
        assert "@import" not in left.lower()


@given(
    st.lists(
        st.sampled_from(
            (
                "<p",
                "<a ",
                "href=",
                "'",
                '"',
                "javascript:",
                ">",
                "</p>",
                "<style>",
                "x",
                "<!--",
                "<svg>",
                " onload=",
                "</style>",
                "<img src=",
                "&quot;",
                "<math>",
                "<table>",
                "\0",
                "<iframe srcdoc=",
            )
        ),
        max_size=40,
    ).map("".join)
)
def test_no_html_keeps_a_handler_or_a_script(html: str) -> None:
    """UI-02: judged by another parser, which reads the result as a browser would."""
    tree = LexborHTMLParser(f"<body>{mail_html.clean(html).body}")
    assert tree.body is not None
    for node in tree.body.traverse():
        assert node.tag in mail_html.TAGS | {"body", "tbody", "colgroup"}
        assert set(node.attributes) <= ALLOWED
        assert "javascript" not in (node.attributes.get("href") or "")


@pytest.mark.parametrize(
    "text",
    ["<div>", "<b>", "<p a", "<a href=x>", "<table><td>", "<style>a{", "<p " + "a b " * 9000, "{", "<!--"],
)
def test_hostile_html_costs_seconds_at_most(text: str) -> None:
    """TRAP-06: megabytes of it."""
    html = text * (2_000_000 // len(text))
    start = time.process_time()
    assert mail_html.clean(html).is_cut
    links(html)
    assert time.process_time() - start < 8


@pytest.mark.parametrize(
    "html",
    [
        "".join(f"<b a{n}>" for n in range(14_000)),
        "<dl><dt>" * 16_000,
        "<ul><li>" * 16_000,
        "<div>" + "".join(f"<b a{n}>" for n in range(9000)) + "</div>" + "<div>x</div>" * 4000,
        "<table>" + "x<i>" * 30_000,
        "<p " + " ".join(f"a{n}" for n in range(20_000)) + ">",
    ],
    ids=("formatting", "dl", "ul", "formatting and blocks", "text in tables", "attributes"),
)
def test_hostile_html_of_the_size_of_a_newsletter_costs_a_moment(html: str) -> None:
    """TRAP-06: of 128 KiB a tree builder alone takes from six seconds to all of the memory."""
    assert len(html) <= 128 * 1024
    start = time.process_time()
    mail_html.clean(html)
    links(html)
    assert time.process_time() - start < 3


def test_large_mail_is_shown_with_its_layout() -> None:
    shown = mail_html.clean(
        "<p style='color:red'>" + "Long text. " * 20_000 + "<a href='https://q.example'>x</a>"
    )
    assert not shown.is_cut
    assert '<p style="color:red">Long text.' in shown.body
    assert "https://q.example" in shown.body


def test_of_very_large_mail_the_beginning_is_shown() -> None:
    shown = mail_html.clean("<p style='color:red'>" + "Long text. " * 100_000)
    assert shown.is_cut
    assert shown.body.startswith('<p style="color:red">Long text. ')
    assert len(shown.body) < 1_100_000


def test_pictures_that_are_shown_often_do_not_make_a_page_endless() -> None:
    """A kilobyte of mail may ask for a large picture a thousand times."""
    picture = "data:image/png;base64," + "A" * 1_000_000
    shown = mail_html.clean("<img src=cid:a>" * 1000, lambda cid: picture)
    assert shown.is_cut
    assert 0 < len(shown.body) - 1000 * len("<img>") <= mail_html.MOST_PICTURES + 1000
    spread = mail_html.clean(
        f"<img src='{picture}'>" + "<img src='data:image/png;base64,held000000held='>" * 1000
    )
    assert len(spread.body) < 1_100_000


def test_text_cannot_take_the_place_of_a_picture() -> None:
    html = "<img src=cid:a>"
    first = mail_html.cleaned(html)
    assert [type(piece) for piece in first.pieces] == [str, mail_html.MailPicture, str]
    marks = "".join(f' src="data:image/png;base64,{n}"' for n in range(100))
    shown = mail_html.clean(f"<p>{marks}</p><img src=cid:a>", lambda cid: "/x")
    assert shown.body.count("/x") == 1
    longer = f"<img src='{PICTURE}{'A' * 100}&#57;&#57;'><img src=cid:a>"
    assert mail_html.clean(longer, lambda cid: "/x").body.count('src="/x"') == 1


def test_large_pictures_in_the_html_do_not_make_it_large() -> None:
    picture = "data:image/png;base64," + "A" * 400_000
    shown = mail_html.clean(f'<table><tr><td><img src="{picture}"></td></tr></table>')
    assert not shown.is_cut
    assert picture in shown.body


def test_the_document_has_a_policy_inside_it() -> None:
    """UI-02: the frame's page forbids loading even where its header is lost."""
    document = mail_html.document(mail_html.clean("<p>x</p>"))
    policy = escape(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
    )
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in document
    assert document.index("Content-Security-Policy") < document.index("<style>")


@pytest.mark.parametrize(
    ("html", "opens", "warning"),
    [
        ("<a href='https://harbor.example/a'>Confirm</a>", True, None),
        ("<a href='https://harbor.example/a'>www.harbor.example</a>", True, None),
        ("<a href='https://www.harbor.example/a'>https://harbor.example/b c</a>", True, None),
        ("<a href='mailto:a@b.example'>b.example</a>", True, None),
        ("<a href='https://evil.example/'>harbor.example</a>", True, "names harbor.example"),
        ("<a href='https://harbor.example@evil.example/'>https://harbor.example</a>", True, "evil.example"),
        ("<a href='https://xn--hrbor-gra.example/'>x</a>", True, "look like others"),
        ("<a href='https://hаrbor.example/'>x</a>", True, "look like others"),
        ("<a href='javascript:alert(1)'>x</a>", False, "not opened"),
        ("<a href='/relative'>x</a>", False, "not opened"),
        ("<a href='http://['>x</a>", False, "not opened"),
    ],
)
def test_links_show_where_they_lead(html: str, opens: bool, warning: str | None) -> None:
    """UI-08."""
    (link,) = links(html + html)
    assert link.opens is opens
    assert (warning is None) == (link.warning is None)
    assert warning is None or warning in (link.warning or "")


def test_sizes_are_readable() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_250_000, 5 * 10**9, 10**16)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "1.2 MB",
        "5.0 GB",
        "10,000.0 TB",
    ]
