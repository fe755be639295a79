"""HTML that came by mail, made fit to be shown (UI-02, UI-03).

Allow-lists of elements, attributes, CSS and address schemes. No picture is loaded from elsewhere: only
those of the mail itself, by content id, and those that stand in the HTML as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import nh3
from selectolax.lexbor import LexborHTMLParser

from pillarbox.dashboard import mail_styles
from pillarbox.mail import html_limits

TAGS = set(nh3.ALLOWED_TAGS) - {"area", "map", "data", "rtc"} | {
    "font",
    "big",
    "address",
    "main",
    "section",
    "tfoot",
    "strike",
}
EMPTIED = {
    *("script", "style", "title", "template", "noscript", "iframe", "object", "embed", "svg", "math"),
    *("textarea", "select", "button", "audio", "video", "canvas", "xmp", "noembed", "noframes"),
}
ATTRIBUTES = {
    "*": {"style", "class", "id", "dir", "lang", "title", "align", "valign", "width", "height", "bgcolor"},
    "a": {"href", "name"},
    "img": {"src", "alt", "border", "hspace", "vspace"},
    "table": {"border", "cellpadding", "cellspacing", "summary"},
    "td": {"colspan", "rowspan", "nowrap", "headers"},
    "th": {"colspan", "rowspan", "nowrap", "scope"},
    "col": {"span"},
    "colgroup": {"span"},
    "font": {"color", "face", "size"},
    "ol": {"start", "type", "reversed"},
    "ul": {"type"},
    "li": {"value", "type"},
    "hr": {"size", "noshade"},
    "bdo": {"dir"},
    "br": {"clear"},
}
SCHEMES = {"http", "https", "mailto", "cid", "data"}
POLICY = (
    "default-src 'none'; img-src {images}; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)

MOST_AT_FULL_COST = 128 * 1024
"""Longer HTML, pictures in it not counted, is shown without its layout. (Others clip at 102 KB.)"""

_LINK = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_REMOTE = re.compile(r"\s*(?:https?:|ftp:|//)", re.IGNORECASE)
_DATA = re.compile(r"data:image/(?:png|jpe?g|gif|webp|bmp|avif);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
_COLOR = re.compile(r"#[0-9A-Fa-f]{3,8}|[A-Za-z]{3,30}")
_LONG_DATA = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp|avif);base64,[A-Za-z0-9+/=\s]{100,}", re.IGNORECASE
)
_HELD = re.compile(r"data:image/png;base64,held([0-9]{6,9})held=")
_BLANKS = re.compile(r"\s+")

Pictures = Callable[[str], str | None]
"""The address under which a picture of the mail can be shown, by its content id."""


@dataclass(frozen=True, slots=True)
class Shown:
    """HTML that may be shown: the content of a body, with its style sheet and the body's own style.

    `left_out` counts pictures that would be loaded from elsewhere; `simplified` says that the mail was
    too large to be shown with its layout.
    """

    body: str
    styles: str
    body_style: str
    left_out: int
    simplified: bool


def no_pictures(cid: str) -> str | None:
    """For HTML whose pictures are not at hand."""
    return None


def clean(html: str, pictures: Pictures = no_pictures) -> Shown:
    """What may be shown of a mail's HTML."""
    data: list[str] = []
    bare = _LONG_DATA.sub(lambda found: f"data:image/png;base64,{_held(data, found[0])}=", html)
    whole = tame(bare)
    tree = LexborHTMLParser(whole)
    styles = "\n".join(filter(None, (mail_styles.sheet(node.text()) for node in tree.css("style"))))
    judge = _Judge(pictures)
    body = nh3.clean(
        whole,
        tags=TAGS,
        clean_content_tags=EMPTIED,
        attributes=ATTRIBUTES,
        attribute_filter=judge.attribute,
        url_schemes=SCHEMES,
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer",
    )
    restored = _HELD.sub(lambda found: data[int(found[1])] if int(found[1]) < len(data) else "", body)
    return Shown(restored, styles, _body_style(tree), judge.left_out, not is_cheap(bare))


def _held(data: list[str], picture: str) -> str:
    """The place of a picture in `data`: it is out of the way while the HTML is read."""
    data.append(_BLANKS.sub("", picture))
    return f"held{len(data) - 1:06d}held"


def document(shown: Shown, images: str = "data:") -> str:
    """A whole document for a sandboxed frame, with the policy inside; `images` are CSP sources."""
    policy = escape(POLICY.format(images=images))
    return (
        '<!doctype html><html><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light">'
        "<style>html{background:#fff;color:#1c1c1c}"
        "body{margin:12px;font:15px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
        f"img{{max-width:100%}}</style><style>{shown.styles}</style></head>"
        f'<body style="{escape(shown.body_style)}">{shown.body}</body></html>'
    )


def is_cheap(html: str) -> bool:
    """Whether a tree builder needs at most a second or so for it, whatever it holds (TRAP-06)."""
    return len(html) <= MOST_AT_FULL_COST


def tame(html: str) -> str:
    """`html`, or what can be shown of it without great cost."""
    return html if is_cheap(html) else html_limits.tame(html)


class _Judge:
    """Decides about attributes, and counts what was left out."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self.left_out = 0

    def attribute(self, tag: str, name: str, value: str) -> str | None:
        """The value that the attribute may have, or None."""
        if name == "style":
            self.left_out += len(re.findall(r"url\s*\(", value, re.IGNORECASE))
            return mail_styles.declarations(value) or None
        if name == "href":
            return value if _LINK.match(value) else None
        if name == "src":
            return self._picture(value)
        return value

    def _picture(self, source: str) -> str | None:
        if source[:4].lower() == "cid:":
            return self._pictures(source[4:])
        if _DATA.fullmatch(source):
            return source
        if _REMOTE.match(source):
            self.left_out += 1
        return None


def _body_style(tree: LexborHTMLParser) -> str:
    """What the body's own element says about colours and spacing."""
    attributes = tree.body.attributes if tree.body is not None else {}
    style = mail_styles.declarations(attributes.get("style") or "")
    color = attributes.get("bgcolor") or ""
    return f"background-color:{color};{style}" if _COLOR.fullmatch(color) else style
