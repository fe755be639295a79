"""Attachments of a send request (emails.md 1.4): forms, names, types and limits."""

from __future__ import annotations

import binascii
import mimetypes
import re
from collections.abc import Mapping
from typing import Any

from pillarbox.emails.outgoing import NewAttachment
from pillarbox.kernel.wire.problems import InvalidAttachment, InvalidField
from pillarbox.mail.message.attachments import clean_filename, parse_content_type
from pillarbox.mail.message.headers import HeaderError, content_id

MOST = 100
MOST_BASE64 = 40 * 1024 * 1024
BASE64_PIECE = 1024 * 1024
"""A multiple of four."""
MOST_NAME = 255
MOST_CID = 128
MOST_URL = 2048

BLOCKED = frozenset(
    """adp app asp bas bat cer chm cmd com cpl crt csh der exe fxp gadget hlp hta inf ins isp its js jse ksh
    lib lnk mad maf mag mam maq mar mas mat mau mav maw mda mdb mde mdt mdw mdz msc msh msh1 msh2 mshxml
    msh1xml msh2xml msi msp mst ops pcd pif plg prf prg reg scf scr sct shb shs sys ps1 ps1xml ps2 ps2xml
    psc1 psc2 tmp url vb vbe vbs vps vsmacros vss vst vsw vxd ws wsc wsf wsh xnk""".split()  # noqa: SIM905 - read as one
)

UNNAMED_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "ics": "text/calendar",
    "eml": "message/rfc822",
    "gz": "application/gzip",
    "7z": "application/x-7z-compressed",
    "webp": "image/webp",
    "md": "text/markdown",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
"""Types by extension that the standard library's own table does not know in every release."""


class BlockedFile(InvalidAttachment):
    """A file of a type that is not sent."""

    def __init__(self, field: str, extension: str) -> None:
        super().__init__(f"Invalid `{field}.filename` field. Files of type .{extension} are not allowed.")


class AttachmentsTooLarge(InvalidAttachment):
    """More than the attachments of an email may have together."""


_types = mimetypes.MimeTypes()
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TOO_MUCH_PADDING = "==="
_BLANKS = b" \t\n\v\f\r"
_BAD_CID = re.compile(r"[\s<>\x00-\x1f\x7f-\x9f]")


def read(value: object) -> list[NewAttachment]:
    """Return the attachments of a request, decoded; raise the contract's problems."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidField("attachments", "Use an array of attachments.")
    if len(value) > MOST:
        raise InvalidField("attachments", f"Use at most {MOST} attachments.")
    found = []
    total = 0
    for index, item in enumerate(value):
        attachment = _one(item, index)
        total += encoded_length(len(attachment.data or b""))
        if total > MOST_BASE64:
            raise AttachmentsTooLarge(
                "Invalid `attachments` field. All of it may have 40 MB after base64 encoding."
            )
        found.append(attachment)
    return found


def _one(item: object, index: int) -> NewAttachment:
    field = f"attachments[{index}]"
    if not isinstance(item, dict):
        raise InvalidField(field, "Use an object.")
    filename = _filename(item.get("filename"), field, index)
    content = item.get("content")
    url = None
    data = None
    if content is not None:
        data = _content(content, field)
        item["content"] = ""  # forty megabytes of text need not stay beside the bytes they stand for
    else:
        url = _path(item.get("path"), field)
    return NewAttachment(
        filename=filename,
        content_type=_content_type(item.get("content_type"), filename, field),
        cid=_cid(item, field),
        data=data,
        url=url,
    )


def _filename(value: object, field: str, index: int) -> str:
    if value is None or value is False or value == "":
        return f"attachment-{index}"
    if not isinstance(value, str):
        raise InvalidField(f"{field}.filename", "Use a string.")
    if len(value) > MOST_NAME:
        raise InvalidField(f"{field}.filename", f"Use at most {MOST_NAME} characters.")
    extension = _extension(clean_filename(value))
    if extension in BLOCKED:
        raise BlockedFile(field, extension)
    return _UNSAFE.sub("_", value)


def _extension(filename: str) -> str:
    """Return the last extension as a reader's system sees it, which drops dots and blanks at the end."""
    return filename.rstrip(". ").rpartition(".")[2].lower() if "." in filename else ""


def _content(value: object, field: str) -> bytes:
    if isinstance(value, bytes):
        return value  # of a message that came by SMTP, or of a long array of octets
    if isinstance(value, str):
        return _from_base64(value, field)
    if isinstance(value, Mapping) and value.get("type") == "Buffer":
        value = value.get("data")
        if isinstance(value, bytes):
            return value
    if isinstance(value, list):
        return _from_numbers(value, field)
    raise InvalidAttachment(f"Invalid `{field}.content` field. Use base64 text or an array of bytes.")


def _from_base64(text: str, field: str) -> bytes:
    """Return the bytes of a base64 text; white space is ignored and padding is optional.

    Forty megabytes are not copied to be read: a text in the usual form is read as it is.
    """
    if len(text) <= MOST_BASE64 + 4 and not text.endswith(_TOO_MUCH_PADDING):
        try:
            return _octets(text)
        except ValueError:
            pass  # not in the usual form, or wrong
    if not text.isascii():
        raise _bad_base64(field)
    digits = text.encode("ascii").translate(None, _BLANKS)
    if len(digits) > MOST_BASE64 + 4:
        raise AttachmentsTooLarge(
            f"Invalid `{field}.content` field. Attachments may have 40 MB after base64 encoding."
        )
    if digits.endswith(_TOO_MUCH_PADDING.encode()):
        raise _bad_base64(field)
    if len(digits) % 4:
        digits = digits.rstrip(b"=")
        digits += b"=" * (-len(digits) % 4)
    try:
        return _octets(digits.decode("ascii"))
    except ValueError:
        raise _bad_base64(field) from None


def _octets(digits: str) -> bytes:
    """Return the octets of base64 in the usual form; ValueError for any other form. They are decoded in
    pieces, so that other threads run in between."""
    if 0 <= digits.find("=") < len(digits) - 2:
        raise ValueError("padding stands at the end only")
    pieces = [digits[at : at + BASE64_PIECE] for at in range(0, len(digits), BASE64_PIECE)]
    return b"".join([binascii.a2b_base64(piece, strict_mode=True) for piece in pieces])


def _bad_base64(field: str) -> InvalidAttachment:
    return InvalidAttachment(f"Invalid `{field}.content` field. The content is not valid base64.")


def _from_numbers(numbers: list[Any], field: str) -> bytes:
    wrong = InvalidAttachment(f"Invalid `{field}.content` field. Use whole numbers from 0 to 255.")
    if any(kind is not int for kind in set(map(type, numbers))):
        raise wrong
    try:
        return bytes(numbers)
    except ValueError:
        raise wrong from None


def _path(value: object, field: str) -> str:
    if value is None or value == "":
        raise InvalidAttachment(f"Invalid `{field}` field. Give either `content` or `path`.")
    if not isinstance(value, str):
        raise InvalidField(f"{field}.path", "Use an http or https URL.")
    if (
        len(value) > MOST_URL
        or not value.lower().startswith(("http://", "https://"))
        or _UNSAFE_URL.search(value)
    ):
        raise InvalidAttachment(f"Invalid `{field}.path` field. Use an http or https URL.")
    return value


_UNSAFE_URL = re.compile(r"[\x00-\x20\x7f]")


def _content_type(value: object, filename: str, field: str) -> str:
    if value is None or value == "":
        return _guessed(filename)
    if not isinstance(value, str):
        raise InvalidField(f"{field}.content_type", "Use a string.")
    try:
        return parse_content_type(value)
    except ValueError:
        raise InvalidField(f"{field}.content_type", "Use the form `type/subtype`.") from None


def _guessed(filename: str) -> str:
    extension = _extension(filename)
    kind = UNNAMED_TYPES.get(extension) or _types.types_map[True].get(f".{extension}")
    return kind or "application/octet-stream"


def _cid(item: Mapping[str, Any], field: str) -> str | None:
    name = "content_id" if item.get("content_id") is not None else "inline_content_id"
    value = item.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > MOST_CID or _BAD_CID.search(value):
        raise InvalidField(f"{field}.{name}", f"Use 1 to {MOST_CID} characters without spaces, `<` and `>`.")
    try:
        content_id(value)
    except HeaderError:
        # What the composer cannot write is refused here; an encoded word may hide a line end.
        raise InvalidField(f"{field}.{name}", "Use printable ASCII characters, no encoded words.") from None
    return value


def encoded_length(size: int) -> int:
    """Return how long so many bytes are in base64."""
    return 4 * ((size + 2) // 3)
