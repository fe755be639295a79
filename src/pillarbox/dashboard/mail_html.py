"""HTML that came by mail, made fit to be shown (UI-02, UI-03).

Allow-lists of elements, attributes, CSS and address schemes. No picture is loaded from elsewhere: only
those of the mail itself, by content id, and those that stand in the HTML as data. The time is linear in the
length of the HTML, whatever it holds: `nested` leaves nothing to repair before a tree is built (TRAP-06).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape, unescape

import nh3

from pillarbox.dashboard import mail_styles
from pillarbox.mail.html.nesting import AllowedElements, nested

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

ALLOWED = AllowedElements(TAGS, ATTRIBUTES, EMPTIED)

LONGEST = 2 * 1024 * 1024
"""Of HTML with its pictures only so many characters are looked at."""
MOST_PICTURES = 8 * 1024 * 1024
"""So many characters of pictures are put into a page; the same picture may be shown often."""
MOST_STYLES = 256 * 1024
LONGEST_STYLE = 32 * 1024
LONGEST_ATTRIBUTE = 2000

_LINK = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_REMOTE = re.compile(r"\s*(?:https?:|ftp:|//)", re.IGNORECASE)
_BY_HTTP = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
_DATA = re.compile(r"data:image/(?:png|jpe?g|gif|webp|bmp|avif);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
_COLOR = re.compile(r"#[0-9A-Fa-f]{3,8}|[A-Za-z]{3,30}")
_LONG_DATA = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp|avif);base64,[A-Za-z0-9+/=\s]{100,}", re.IGNORECASE
)
_BLANKS = re.compile(r"\s+")

Pictures = Callable[[str], str | None]
"""The address under which a picture of the mail can be shown, by its content id."""


@dataclass(frozen=True, slots=True)
class MailPicture:
    """The place of a picture: data of the HTML, or a part of the mail by its content id."""

    data: str | None
    cid: str


@dataclass(frozen=True, slots=True)
class SanitizedHtml:
    """HTML that may be shown, and the places in it where pictures belong.

    `left_out` counts pictures that would be loaded from elsewhere; `is_cut` says that the mail is too large
    and that only its beginning is here.
    """

    pieces: tuple[str | MailPicture, ...]
    styles: str
    body_style: str
    left_out: int
    is_cut: bool


@dataclass(frozen=True, slots=True)
class ShownMail:
    """The same with its pictures: the content of a body, its style sheet and the body's own style."""

    body: str
    styles: str
    body_style: str
    left_out: int
    is_cut: bool


def no_pictures(cid: str) -> str | None:
    """Return None: the pictures of the HTML are not at hand."""
    return None


def clean(html: str, pictures: Pictures = no_pictures) -> ShownMail:
    """Return a mail's HTML as it may be shown."""
    return with_pictures(cleaned(html), pictures)


def cleaned(html: str, *, with_remote: bool = False) -> SanitizedHtml:
    """Return a mail's HTML as it may be shown, whatever its pictures are. Those of other servers stay in it
    `with_remote` alone, for a reader who has asked for them."""
    is_long, html = len(html) > LONGEST, html[:LONGEST]
    judge = _Judge(sha256(html.encode("utf-8", "replace")).hexdigest()[:32], with_remote=with_remote)
    bare = _LONG_DATA.sub(lambda found: judge.held(found[0]), html)
    whole = nested(bare, ALLOWED)
    body = nh3.clean(
        whole.body,
        tags=TAGS,
        clean_content_tags=EMPTIED,
        attributes=ATTRIBUTES,
        attribute_filter=judge.attribute,
        url_schemes=SCHEMES,
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer",
    )
    styles = "\n".join(filter(None, map(mail_styles.sheet, whole.styles)))[:MOST_STYLES]
    return SanitizedHtml(
        pieces=tuple(judge.pieces(body)),
        styles=styles,
        body_style=_body_style(whole.body_attributes),
        left_out=judge.left_out,
        is_cut=is_long or not whole.complete,
    )


def without_data(html: str) -> str:
    """Return the HTML without the pictures that stand in it as data, as much of it as is looked at."""
    return _LONG_DATA.sub("", html[:LONGEST])


def with_pictures(sanitized_html: SanitizedHtml, pictures: Pictures) -> ShownMail:
    """Return the HTML with its pictures, as many as there is room for."""
    room = MOST_PICTURES
    is_cut = sanitized_html.is_cut
    body: list[str] = []
    for piece in sanitized_html.pieces:
        if isinstance(piece, str):
            body.append(piece)
            continue
        address = piece.data or pictures(piece.cid)
        if address is not None and len(address) > room:
            address, is_cut = None, True
        if address is not None:
            room -= len(address)
            body.append(f' src="{escape(address)}"')
    return ShownMail(
        body="".join(body),
        styles=sanitized_html.styles,
        body_style=sanitized_html.body_style,
        left_out=sanitized_html.left_out,
        is_cut=is_cut,
    )


def document(shown: ShownMail, images: str = "data:") -> str:
    """Return a whole document for a sandboxed frame, with the policy inside; `images` are CSP sources."""
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


class _Judge:
    """Decides about attributes, counts what was left out, and marks the places of pictures.

    `mark` is of no use to who writes a mail: it follows from all of its HTML.
    """

    def __init__(self, mark: str, *, with_remote: bool = False) -> None:
        self._with_remote = with_remote
        self._pictures: list[MailPicture] = []
        self._mark = f"data:image/png;base64,{mark}"
        self._place = re.compile(rf' src="{re.escape(self._mark)}([0-9]+)="')
        self.left_out = 0

    def held(self, data: str) -> str:
        """Return the placeholder of a picture while the HTML is read."""
        return self._placed(MailPicture(_BLANKS.sub("", data), ""))

    def pieces(self, body: str) -> Iterator[str | MailPicture]:
        """Yield the cleaned body, divided at the places of its pictures."""
        at = 0
        for found in self._place.finditer(body):
            yield body[at : found.start()]
            yield self._pictures[int(found[1])]
            at = found.end()
        yield body[at:]

    def attribute(self, tag: str, name: str, value: str) -> str | None:
        """Return the value that the attribute may have, or None."""
        if name == "style":
            if len(value) > LONGEST_STYLE:
                return None
            self.left_out += len(re.findall(r"url\s*\(", value, re.IGNORECASE))
            return mail_styles.declarations(value) or None
        if name == "href":
            return value if _LINK.match(value) else None
        if name == "src":
            return self._source(value)
        return value

    def _source(self, source: str) -> str | None:
        if source[:4].lower() == "cid:":
            return self._placed(MailPicture(None, source[4:]))
        if _DATA.fullmatch(source):
            return source
        if _REMOTE.match(source):
            if self._with_remote and (found := _BY_HTTP.match(source)):
                return source.strip() if found[1] else f"https:{source.strip()}"
            self.left_out += 1
        return None

    def _placed(self, picture: MailPicture) -> str:
        self._pictures.append(picture)
        # Ends in what is no digit: entities behind the picture may stand for more of them.
        return f"{self._mark}{len(self._pictures) - 1}="


def _body_style(attributes: Mapping[str, str]) -> str:
    """Return the colours and spacing of the body's own element."""
    style = mail_styles.declarations(unescape(attributes.get("style", "")[:LONGEST_ATTRIBUTE]))
    color = attributes.get("bgcolor", "")
    return f"background-color:{color};{style}" if _COLOR.fullmatch(color) else style
