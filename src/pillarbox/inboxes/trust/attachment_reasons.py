"""Reasons about attachments: what they are by their names, their types and their first octets. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from pillarbox.inboxes.trust.reasons import TrustReason
from pillarbox.mail.message import transfer_decoding
from pillarbox.mail.message.parse import AttachedPart, ParsedMessage

MOST_FILES: Final = 20
"""Those that are looked at, first those whose names say that they do something."""
HEAD: Final = 4096
"""Encoded octets that are read from the beginning of each."""
LONGEST_SEARCHED: Final = 128 * 1024
"""A PDF says anywhere whether it is encrypted; a longer one is not searched."""

EXECUTABLE: Final = frozenset(
    """
    exe scr com pif bat cmd ps1 psm1 vbs vbe js jse wsf wsh hta lnk msi msp cpl jar dmg pkg iso img vhd
    vhdx reg scf url appx msix dll desktop chm library-ms search-ms settingcontent-ms
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
ACTIVE: Final = frozenset(
    """
    docm dotm xlsm xltm xlam pptm potm ppam sldm svg html htm xhtml shtml mht mhtml xll
    """.split()  # noqa: SIM905 (prose reads better as prose)
)
DOCUMENTS: Final = frozenset(
    """
    pdf doc docx xls xlsx ppt pptx rtf txt csv png jpg jpeg gif webp mp3 mp4 wav odt ods
    """.split()  # noqa: SIM905 (prose reads better as prose)
)

_MAGIC: Final = (
    (b"MZ", "program"),
    (b"\x7fELF", "program"),
    (b"#!", "program"),
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"\x89PNG\r\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
    (b"Rar!", "rar"),
    (b"7z\xbc\xaf", "7z"),
    (b"{\\rtf", "rtf"),
)
_OPEN_DOCUMENT: Final = frozenset({"zip", "ole"})
_OLD_DOCUMENT: Final = frozenset({"ole", "rtf", "zip", "html"})
_PICTURE: Final = frozenset({"png", "jpeg", "gif"})
_CONTENT_OF: Final = {
    "pdf": frozenset({"pdf"}),
    "zip": frozenset({"zip"}),
    **dict.fromkeys(("docx", "xlsx", "pptx", "odt", "ods", "docm", "xlsm", "pptm"), _OPEN_DOCUMENT),
    **dict.fromkeys(("doc", "xls", "ppt"), _OLD_DOCUMENT),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif"), _PICTURE),
}
"""The contents that names stand for; another content that is recognised is a disguise."""
_HARMLESS: Final = frozenset({"application/pdf", "image/png", "image/jpeg", "image/gif"})
"""Types that no program has."""


def attachment_reasons(message: ParsedMessage) -> Iterator[TrustReason]:
    """Yield what is to be said of the attachments."""
    files = sorted(message.attachments, key=lambda file: _name_and_ending(file)[2] not in EXECUTABLE | ACTIVE)
    for file in files[:MOST_FILES]:
        yield from _reasons(message, file)


def _name_and_ending(file: AttachedPart) -> tuple[str, str, str]:
    """Return the name as people see it, with the last two of the endings by which programs are chosen. Dots
    and blanks at its end count for nothing."""
    shown = file.filename or ""
    if not shown.isascii():
        shown = "".join([c for c in shown if unicodedata.category(c) != "Cf"])
    shown = shown[-120:]
    _, *endings = shown.lower().rstrip(". ").rsplit(".", 2)
    first, last = ["", "", *[ending.strip() for ending in endings]][-2:]
    return shown, first, last


def _reasons(message: ParsedMessage, file: AttachedPart) -> Iterator[TrustReason]:
    name = file.filename or ""
    shown, first, ending = _name_and_ending(file)
    detail = {"filename": shown, "content_type": file.content_type}
    if any(c in name for c in "\u202d\u202e\u2066\u2067\u2068"):
        yield TrustReason("attachment_name_reversed", detail)
    content, head = _content(message, file)
    is_disguised = first in DOCUMENTS and ending in EXECUTABLE | ACTIVE
    if is_disguised or _is_other(ending, content) or _has_other_type(ending, file.content_type):
        yield TrustReason("attachment_disguised", {**detail, "content": content})
    if ending in EXECUTABLE or content == "program":
        yield TrustReason("attachment_executable", detail)
    elif (
        ending in ACTIVE
        or file.content_type in ("text/html", "image/svg+xml")
        or _has_script(message, file, content)
    ):
        yield TrustReason("attachment_active", detail)
    if _is_encrypted(message, file, ending, content, head):
        yield TrustReason("attachment_encrypted", detail)


def _is_other(ending: str, content: str | None) -> bool:
    expected = _CONTENT_OF.get(ending)
    return content is not None and expected is not None and content not in expected


def _has_other_type(ending: str, content_type: str) -> bool:
    """Return whether a file has the name of a program and the type of a document."""
    return content_type in _HARMLESS and ending in EXECUTABLE


def _content(message: ParsedMessage, file: AttachedPart) -> tuple[str | None, bytes]:
    """Return what the first octets are those of, None where that is not known, and these octets."""
    head = _octets(message, file, HEAD)
    for magic, content in _MAGIC:
        if head.startswith(magic):
            return content, head
    if head[:256].lstrip().lower().startswith((b"<!doctype html", b"<html", b"<script")):
        return "html", head
    return None, head


def _octets(message: ParsedMessage, file: AttachedPart, limit: int) -> bytes:
    part = file.part
    end = min(part.end, part.content_start + limit)
    return transfer_decoding.decoded(message.raw, part.content_start, end, part.encoding)


def _has_script(message: ParsedMessage, file: AttachedPart, content: str | None) -> bool:
    if content != "pdf" or file.size > LONGEST_SEARCHED:
        return False
    octets = _octets(message, file, 2 * LONGEST_SEARCHED)
    return b"/JavaScript" in octets or b"/Launch" in octets


def _is_encrypted(
    message: ParsedMessage, file: AttachedPart, ending: str, content: str | None, head: bytes
) -> bool:
    if content == "zip":
        # The lowest bit of the flags of the first file (APPNOTE 4.4.4).
        return len(head) > 6 and bool(head[6] & 1)
    if content == "pdf":
        return file.size <= LONGEST_SEARCHED and b"/Encrypt" in _octets(message, file, 2 * LONGEST_SEARCHED)
    # An encrypted document of Office is a container of the older kind.
    return content == "ole" and ending in ("docx", "xlsx", "pptx")
