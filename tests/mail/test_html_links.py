"""Links of a mail are found as browsers find them, and nothing but them is changed (emails.md 8, TRK-01)."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from kit.newsletters import NEWSLETTERS
from pillarbox.mail.html.attribute_values import decoded, encoded
from pillarbox.mail.html.links import LONGEST_HREF, MOST_LINKS, MOST_TAGS, cut, tracked, web_url

PIXEL = (
    '<img src="https://l.example/p.gif" width="1" height="1" alt="" style="border:0;width:1px;height:1px">'
)


class Marking:
    """Shows where links led, and in which order."""

    def __init__(self, *, pixel: bool = False) -> None:
        self.seen: list[str] = []
        self._pixel = pixel

    def link(self, url: str, index: int) -> str | None:
        self.seen.append(url)
        return f"https://l.example/{index}/{quote(url, safe='', errors='replace')}"

    def pixel(self) -> str | None:
        return "https://l.example/p.gif" if self._pixel else None


def rewritten(html: str) -> str:
    return tracked(html, Marking())


def at(index: int, url: str) -> str:
    return f"https://l.example/{index}/{quote(url, safe='')}"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="https://x.example/a">x</a>', f'<a href="{at(0, "https://x.example/a")}">x</a>'),
        ("<A class=b HREF='http://x.example'>", f"<A class=b HREF='{at(0, 'http://x.example')}'>"),
        ("<a href=https://x.example/>x", f"<a href={at(0, 'https://x.example/')}>x"),
        (
            '<area href="https://x.example/a" shape=rect>',
            f'<area href="{at(0, "https://x.example/a")}" shape=rect>',
        ),
        ('<a href=" https://x.example/a\n">', f'<a href="{at(0, "https://x.example/a")}">'),
        (
            '<a href="https://x.example/?a=1&amp;b=2#f">',
            f'<a href="{at(0, "https://x.example/?a=1&b=2#f")}">',
        ),
        ('<a href="https://x.example/?a=1&copy=2">', f'<a href="{at(0, "https://x.example/?a=1&copy=2")}">'),
        ('<a href="HTTPS://x.example">', f'<a href="{at(0, "HTTPS://x.example")}">'),
        # The first attribute of a name counts.
        (
            '<a href="https://x.example" href="https://y.example">',
            f'<a href="{at(0, "https://x.example")}" href="https://y.example">',
        ),
        ('<a\n\thref = "https://x.example"\n>', f'<a\n\thref = "{at(0, "https://x.example")}"\n>'),
    ],
)
def test_links_to_the_web_are_rewritten(html: str, expected: str) -> None:
    assert rewritten(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        '<a href="mailto:a@b.example?subject=https://x.example">',
        '<a href="tel:+123">',
        '<a href="#top">',
        '<a href="/relative">',
        '<a href="//x.example">',
        '<a href="cid:1@x">',
        '<a href="javascript:location=1">',
        '<a href="ftp://x.example">',
        '<a href="https:x.example">',
        '<a href="https://">',
        '<a href="">',
        "<a href>",
        "<a>",
        '<a name="href=https://x.example">',
        "<a title='<a href=\"https://x.example\">'>",
        "<img alt='<a href=\"https://x.example\">'>",
        '<a data-href="https://x.example">',
        '<abbr href="https://x.example">',
        '<link href="https://x.example">',
        '<base href="https://x.example">',
        '<a data-no-track href="https://x.example">',
        '<a href="https://x.example" DATA-NO-TRACK="false">',
        '<a href="https://x.example" data-track="off">',
        "<a data-track= OFF href=https://x.example>",
        '<area data-no-track="" href="https://x.example">',
        '<!-- <a href="https://x.example"> -->',
        '<!--[if mso]><a href="https://x.example">x</a><![endif]-->',
        "<script>\"<a href='https://x.example'>\"</script>",
        '<style><a href="https://x.example"></style>',
        '<title><a href="https://x.example"></title>',
        '<textarea><a href="https://x.example"></textarea>',
        '<svg><a href="https://x.example"></a></svg>',
        '<? <a href="https://x.example">',
        '<!x <a href="https://x.example">',
        '</a href="https://x.example">',
        '<a href="https://x.example',
        "< a href=https://x.example>",
        '<plaintext><a href="https://x.example">',
        '<a href="{{{UNSUBSCRIBE_URL}}}">',
        "https://x.example",
        "\ud800<",
        "<",
        "</",
        "<!",
        "<!--",
        "<a",
        "<a ",
        '<a href="',
    ],
)
def test_everything_else_stays_as_it_is(html: str) -> None:
    """TRK-01."""
    assert rewritten(html) == html


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<body>a</body></html>", f"<body>a{PIXEL}</body></html>"),
        ("<body>a</BODY >\n", f"<body>a{PIXEL}</BODY >\n"),
        ("a</body>b</body>c", f"a</body>b{PIXEL}</body>c"),
        ("a", f"a{PIXEL}"),
        ("a<!-- </body> -->", f"a<!-- </body> -->{PIXEL}"),
        ("<p title='</body>'>a", f"<p title='</body>'>a{PIXEL}"),
    ],
)
def test_the_picture_stands_at_the_end_of_the_body(html: str, expected: str) -> None:
    assert tracked(html, Marking(pixel=True)) == expected


def test_links_behind_the_body_are_links_too() -> None:
    html = '</body><a href="https://x.example">'
    assert tracked(html, Marking(pixel=True)) == f'{PIXEL}</body><a href="{at(0, "https://x.example")}">'


PIECES = st.sampled_from(
    (
        *(
            "<a ",
            "<area ",
            "<p ",
            "</p",
            "<b>",
            "</b>",
            "<div ",
            "</div>",
            "<!--",
            "-->",
            "<!x",
            "<?",
            ">",
            "<",
        ),
        *("href=", "href", "HREF = ", "title=", "data-no-track ", 'data-track="off" ', "=", "/", " ", "\n"),
        *('"', "'", "https://x.example/a", "http://y.example?b&amp;c&copy=d", "mailto:a", "#f", "text", "&"),
        *(
            "<style>",
            "</style>",
            "<script>",
            "</script>",
            "<title>",
            "</title>",
            "</body>",
            "</html>",
            "<br>",
        ),
        *("\x00", "\r\n", "\ud800", "é", "&lt;", "</", "<a href=https://z.example>"),
    )
)


def links_of(html: str) -> list[str]:
    """The links as a browser's parser finds them."""
    tree = LexborHTMLParser(html.encode("utf-8", "replace").decode())
    found = []
    for node in tree.css("a, area"):
        attributes = node.attributes
        if "data-no-track" in attributes or (attributes.get("data-track") or "").strip().lower() == "off":
            continue
        url = web_url(encoded(attributes.get("href") or ""))
        if url is not None:
            found.append(url)
    return found


def shape(html: str) -> list[tuple[str, dict[str, str | None], str]]:
    """A document as a browser's parser builds it: with its links as they were, and without the picture."""
    tree = LexborHTMLParser(html)
    assert tree.root is not None
    found: list[tuple[str, dict[str, str | None], str]] = []
    for node in tree.root.traverse(include_text=True):
        tag, attributes = node.tag or "", dict(node.attributes) if node.is_element_node else {}
        if attributes.get("src") == "https://l.example/p.gif":
            continue
        href = attributes.get("href")
        if tag in ("a", "area") and href is not None:
            url = web_url(encoded(href)) or href
            is_ours = url.startswith("https://l.example/")
            attributes["href"] = unquote(url.split("/", 4)[4]) if is_ours else url
        if tag == "-text" and found and found[-1][0] == "-text":
            found[-1] = (tag, {}, found[-1][2] + (node.text_content or ""))
        else:
            found.append((tag, attributes, node.text_content or "" if node.is_text_node else ""))
    return found


@pytest.mark.parametrize("html", NEWSLETTERS.values(), ids=NEWSLETTERS.keys())
def test_a_newsletter_differs_in_its_links_and_the_picture_alone(html: str) -> None:
    """TRK-01: by its characters, and to a browser."""
    marking = Marking(pixel=True)
    changed = tracked(html, marking)
    assert changed.count(PIXEL) == 1
    parts = [*cut(html).before, *cut(html).after]
    back = changed.replace(PIXEL, "")
    for index, part in enumerate(part for part in parts if part.is_href):
        url = web_url(part.text)
        if url is not None:
            back = back.replace(encoded(f"https://l.example/{index}/{quote(url, safe='')}"), part.text, 1)
    assert back == html
    assert shape(changed) == shape(html)
    # A browser also follows links in pictures made of tags; no mail program shows these.
    assert set(marking.seen) == set(links_of(html)) - {"https://no.example"}


def test_the_work_is_linear() -> None:
    """Hostile HTML of a megabyte is read once; the test would not end otherwise."""
    for piece in (
        "<",
        "<a",
        "<a href=",
        '<a href="',
        "<!--",
        "<svg>",
        "<a b",
        "</",
        "<p a='",
        "&",
        "<style>",
    ):
        html = piece * (1_000_000 // len(piece))
        before, after = cut(html)
        assert sum(len(part.text) for part in (*before, *after)) == len(html)
    assert len(decoded("&" * 1_000_000)) == 1_000_000
    assert len(decoded("&notin" * 100_000)) <= 600_000


def test_a_mail_of_nothing_but_links_does_not_become_many_times_as_long() -> None:
    """Ten megabytes of the shortest link would be a hundred in the mail to each recipient."""
    html = "<a href=http://a>" * (MOST_LINKS + 5) + "</body>"
    marking = Marking(pixel=True)
    changed = tracked(html, marking)
    assert len(marking.seen) == MOST_LINKS
    assert changed.endswith(f"{'<a href=http://a>' * 5}{PIXEL}</body>")
    # Links that stay as they are count as well, and what is not read has none.
    assert rewritten('<a href="#">' * MOST_LINKS + '<a href="http://a">').endswith('"http://a">')
    assert rewritten("<!---->" * MOST_TAGS + '<a href="http://a">').endswith('"http://a">')
    long = "https://x.example/" + "&amp;" * (LONGEST_HREF // 5)
    assert rewritten(f'<a href="{long}">') == f'<a href="{long}">'


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_text_can_be_cut_and_joined_again(html: str) -> None:
    before, after = cut(html)
    assert "".join(part.text for part in (*before, *after)) == html
    tracked(html, Marking(pixel=True))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_what_is_rewritten_is_a_link_to_a_browser(html: str) -> None:
    marking = Marking()
    tracked(html, marking)
    theirs = [unquote(quote(url, safe="", errors="replace")) for url in links_of(html)]
    mine = [unquote(quote(url, safe="", errors="replace")) for url in marking.seen]
    assert sorted(set(mine)) == sorted(set(theirs))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="&#;xX=aA1209lt copynotin\u00e9", max_size=20))
def test_values_mean_what_a_browser_says(value: str) -> None:
    tree = LexborHTMLParser(f'<a href="{value}">')
    node = tree.css_first("a")
    assert node is not None
    assert decoded(value) == (node.attributes.get("href") or "")


@pytest.mark.parametrize(
    "value", ["&#0;", "&#xD800;", "&#x80;", "&#99999999999999999999;", "&#x110000;", "&#9;"]
)
def test_numbers_mean_what_a_browser_says(value: str) -> None:
    node = LexborHTMLParser(f'<a href="{value}">').css_first("a")
    assert node is not None
    assert decoded(value) == (node.attributes.get("href") or "")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_an_encoded_value_is_decoded_to_itself(value: str) -> None:
    value = value.replace("\r", "").replace("\x00", "")
    assert decoded(encoded(value)) == value
