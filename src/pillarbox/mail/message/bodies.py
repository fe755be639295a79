"""Which parts of a message are its text and its html, and which are attachments (receiving.md 1.2, 3).

The text is the first text/plain part of the body, the html the first text/html part; html parts that
stand beside it in the same multipart/mixed are put behind it. Every other leaf is an attachment, also
a second text. A part that has a file name is a body only where no part without one is. Of a
multipart/related only the root can be a body. uuencoded files inside a plain text are attachments too,
and the text is what is left without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.mail.message import (
    attachments,
    charsets,
    header_block,
    header_text,
    mime_parts,
    transfer_decoding,
)
from pillarbox.mail.message.mime_parts import ParsedPart

LONGEST_BODY = 16 * 1024 * 1024
"""A text or html part that is encoded longer than this is an attachment."""
MOST_FILES_IN_TEXT = 100
SUBJECT_WITHIN = 65_536

_UU_BLOCK = re.compile(
    rb"^begin [0-7]{3,4} ([^\r\n]{1,255})\r?\n"
    rb"((?>(?:M[!-`][ -`]{0,63}\r?\n)*)(?:[!-L][ -`]{1,63}\r?\n)?(?:[` ]?\r?\n)?)"
    rb"end[ \t]*(?:\r?$|\Z)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class AttachedPart:
    """A leaf that is no body. `content_disposition` is as in the part; `size` counts decoded octets."""

    filename: str | None
    content_type: str
    content_disposition: str | None
    content_id: str | None
    size: int
    part: ParsedPart


class MessageBodies:
    """The bodies and attachments of a message, in its order. Text and html are decoded when they are asked
    for, and kept."""

    __slots__ = ("_html", "_htmls", "_octets", "_plain", "_raw", "_text", "attachments")

    def __init__(
        self,
        raw: bytes,
        plain: ParsedPart | None,
        octets: bytes | None,
        htmls: Sequence[ParsedPart],
        attachments: tuple[AttachedPart, ...],
    ) -> None:
        self._raw = raw
        self._plain = plain
        self._octets = octets
        self._htmls = htmls
        self._text: str | None = None
        self._html: str | None = None
        self.attachments = attachments

    @property
    def text(self) -> str | None:
        """The text with LF line ends."""
        if self._text is None and self._plain is not None:
            octets = mime_parts.content(self._raw, self._plain) if self._octets is None else self._octets
            text = charsets.decode_plain(octets, self._plain.charset)
            self._text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        return self._text

    @property
    def html(self) -> str | None:
        if self._html is None and self._htmls:
            self._html = "".join([_html(self._raw, part) for part in self._htmls])
        return self._html


class _Candidate(NamedTuple):
    """A leaf; whether it may be a body; and its place: a multipart/mixed and the child of it."""

    part: ParsedPart
    may_be_body: bool
    mixed: int
    child: int


def bodies(raw: bytes, root: ParsedPart) -> MessageBodies:
    """Return the bodies and attachments of the message whose root part is `root`."""
    if not root.children and _is_text(root):
        octets, inside = _without_files(raw, root)
        return MessageBodies(raw, root, octets, (), tuple(inside))
    leaves = list(_candidates(root, True, 0, 0))
    plain = _first(leaves, "text/plain")
    texts = [] if plain is None else [plain]
    if not texts and not root.children and root.content_type.startswith("multipart/"):
        # It says multipart and cannot be divided: then people see it as it stands.
        texts = [leaves[0]]
    htmls = _html_parts(leaves)
    chosen = {id(candidate.part) for candidate in (*texts, *htmls)}
    files = [_attachment(raw, c.part) for c in leaves if id(c.part) not in chosen]
    octets = None
    if texts:
        octets, inside = _without_files(raw, texts[0].part)
        files = _in_order(files, inside)
    text = texts[0].part if texts else None
    return MessageBodies(raw, text, octets, [c.part for c in htmls], tuple(files))


def _is_text(part: ParsedPart) -> bool:
    return (
        part.content_type == "text/plain"
        and part.disposition != "attachment"
        and part.end - part.content_start <= LONGEST_BODY
    )


def _candidates(part: ParsedPart, may_be_body: bool, mixed: int, child: int) -> Iterator[_Candidate]:
    if not part.children:
        yield _Candidate(part, may_be_body and part.disposition != "attachment", mixed, child)
    elif part.content_type == "multipart/related":
        root = _root_of(part)
        for inner in part.children:
            yield from _candidates(inner, may_be_body and inner is root, mixed, child)
    elif part.content_type == "multipart/alternative":
        for inner in part.children:
            yield from _candidates(inner, may_be_body, mixed, child)
    else:
        for number, inner in enumerate(part.children):
            yield from _candidates(inner, may_be_body, part.content_start, number)


def _root_of(part: ParsedPart) -> ParsedPart:
    """Return the part that a multipart/related is about: named by `start`, else the first (RFC 2387, 3.2)."""
    named = part.parameters.get("start", "").strip().removeprefix("<").removesuffix(">")
    if named:
        for inner in part.children:
            if inner.content_id == named:
                return inner
    return part.children[0]


def _first(leaves: list[_Candidate], content_type: str) -> _Candidate | None:
    fitting = [
        c
        for c in leaves
        if c.may_be_body
        and c.part.content_type == content_type
        and c.part.end - c.part.content_start <= LONGEST_BODY
    ]
    unnamed = [c for c in fitting if c.part.filename is None]
    return next(iter(unnamed or fitting), None)


def _html_parts(leaves: list[_Candidate]) -> list[_Candidate]:
    first = _first(leaves, "text/html")
    if first is None:
        return []
    found = {first.child: first}
    remaining = LONGEST_BODY - (first.part.end - first.part.content_start)
    for c in leaves:
        size = c.part.end - c.part.content_start
        fits = c.may_be_body and c.part.content_type == "text/html" and c.part.filename is None
        if fits and c.mixed == first.mixed and c.child not in found and size <= remaining:
            found[c.child] = c
            remaining -= size
    return list(found.values())


def _html(raw: bytes, part: ParsedPart) -> str:
    return charsets.decode_html(mime_parts.content(raw, part), part.charset)


def _without_files(raw: bytes, part: ParsedPart) -> tuple[bytes | None, list[AttachedPart]]:
    """Return the files that stand uuencoded in a text; where there may be some, also what is left
    without them."""
    start, end = part.content_start, part.end
    if part.encoding not in transfer_decoding.IDENTITY or raw.find(b"begin ", start, end) < 0:
        return None, []
    kept: list[bytes] = []
    files: list[AttachedPart] = []
    at = start
    for block in _UU_BLOCK.finditer(raw, start, end):
        if len(files) == MOST_FILES_IN_TEXT or not block[2]:
            break
        kept.append(raw[at : block.start()])
        at = block.end()
        files.append(_attachment(raw, _uuencoded_part(block)))
    return b"".join([*kept, raw[at:end]]), files


def _uuencoded_part(block: re.Match[bytes]) -> ParsedPart:
    name = attachments.clean_filename(header_text.clean(charsets.decode(block[1].strip())))
    return ParsedPart(
        content_type=attachments.DEFAULT_TYPE,
        parameters={},
        encoding="x-uuencode",
        disposition="attachment",
        filename=name,
        content_id=None,
        start=block.start(),
        content_start=block.start(),
        end=block.end(),
    )  # fmt: skip


def _attachment(raw: bytes, part: ParsedPart) -> AttachedPart:
    size = part.end - part.content_start
    if part.encoding not in transfer_decoding.IDENTITY:
        size = len(mime_parts.content(raw, part))
    filename = part.filename
    if filename is None and part.content_type == "message/rfc822":
        filename = _named_by_subject(raw, part)
    return AttachedPart(
        filename=filename,
        content_type=part.content_type,
        content_disposition=part.disposition,
        content_id=part.content_id,
        size=size,
        part=part,
    )


def _named_by_subject(raw: bytes, part: ParsedPart) -> str:
    """Return `<subject>.eml` of the message inside (receiving.md 1.2)."""
    if part.encoding in transfer_decoding.IDENTITY:
        inner = raw[part.content_start : min(part.end, part.content_start + SUBJECT_WITHIN)]
    else:
        inner = mime_parts.content(raw, part)[:SUBJECT_WITHIN]
    head = header_block.first_of_each(header_block.split_message(inner).fields)
    subject = header_text.decoded(head.get("subject", b"")).replace("/", "_").replace("\\", "_")
    return attachments.clean_filename(f"{subject or 'message'}.eml")


def _in_order(files: list[AttachedPart], inside: list[AttachedPart]) -> list[AttachedPart]:
    return sorted([*files, *inside], key=lambda file: file.part.start) if inside else files
