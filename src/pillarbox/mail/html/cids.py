"""References to parts of the message in its html, replaced by the parts themselves (receiving.md 3).

`cid:<id>` is found in `src`, `background` and `srcset` attributes and in CSS `url()`. Content-IDs are
compared with their case, after the percent escapes of the reference are read. Only `image/*` parts are
put in; a reference that matches nothing stays. The html is not parsed into a tree and not changed
elsewhere; the work is linear in its length and in that of the result.
"""

from __future__ import annotations

import html as entities
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from pillarbox.mail.message.bodies import AttachedPart

LONGEST_RESULT = 100_000_000

_ATTRIBUTE = re.compile(
    r"""(?<=[\s"'/])(?:src|background|srcset)\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""",
    re.IGNORECASE,
)
_CSS_URL = re.compile(r"""\burl\(\s{0,9}(?:&quot;|&#3[49];|["'])?(cid:[^\s"'()<>&]{1,998})""", re.IGNORECASE)
_CID = re.compile(r"cid:([^\s\"'()<>,]{1,998})", re.IGNORECASE)


def with_data_uris(
    html: str,
    attachments: Iterable[AttachedPart],
    content: Callable[[AttachedPart], bytes],
    longest: int = LONGEST_RESULT,
) -> str | None:
    """Return the html with its images inside, or None when that would be longer than `longest` characters.

    `content` gives the decoded octets of an attachment; it is asked only for those that are referred to,
    and for each at most once.
    """
    images = _images(attachments)
    edits = _edits(html, images) if images else []
    sizes = {cid: _uri_length(image) for cid, image in images.items()}
    if len(html) + sum(sizes[cid] - (end - start) for start, end, cid in edits) > longest:
        return None
    uris = {cid: _uri(images[cid], content) for cid in {cid for _, _, cid in edits}}
    out: list[str] = []
    at = 0
    for start, end, cid in edits:
        out += (html[at:start], uris[cid])
        at = end
    return "".join([*out, html[at:]])


def referenced(html: str, attachments: Iterable[AttachedPart]) -> frozenset[str]:
    """Return the Content-IDs of these attachments that the html refers to, whatever their type."""
    known = {a.content_id: a for a in attachments if a.content_id is not None}
    return frozenset(cid for _, _, cid in _edits(html, known))


def _images(attachments: Iterable[AttachedPart]) -> dict[str, AttachedPart]:
    """Return the image parts by Content-ID; of several with one id, the first."""
    found: dict[str, AttachedPart] = {}
    for attachment in attachments:
        if attachment.content_id is not None and attachment.content_type.startswith("image/"):
            found.setdefault(attachment.content_id, attachment)
    return found


def _edits(html: str, known: dict[str, AttachedPart]) -> list[tuple[int, int, str]]:
    """Return where references stand, from the left and without overlap, and the Content-ID that
    each means."""
    found: dict[int, tuple[int, int, str]] = {}
    for attribute in _ATTRIBUTE.finditer(html):
        group = attribute.lastindex or 0
        start, end = attribute.span(group)
        for reference in _CID.finditer(html, start, end):
            _note(found, html, reference.start(), reference.end(), known)
    for url in _CSS_URL.finditer(html):
        _note(found, html, url.start(1), url.end(1), known)
    return [found[start] for start in sorted(found)]


def _note(
    images: dict[int, tuple[int, int, str]], html: str, start: int, end: int, known: dict[str, AttachedPart]
) -> None:
    cid = unquote(entities.unescape(html[start + len("cid:") : end]))
    if cid in known:
        images[start] = (start, end, cid)


def _uri_length(image: AttachedPart) -> int:
    return len(f"data:{image.content_type};base64,") + (image.size + 2) // 3 * 4


def _uri(image: AttachedPart, content: Callable[[AttachedPart], bytes]) -> str:
    return f"data:{image.content_type};base64,{b64encode(content(image)).decode('ascii')}"
