"""Attachments: their type, their name in every form that readers understand, their part of a message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from pillarbox.mail.message import headers, transfer_encoding
from pillarbox.mail.message.files import EncodedFile, ExternalFile, as_message, in_base64
from pillarbox.mail.message.transfer_encoding import EncodedBody

LONGEST_FILENAME = 255
LONGEST_EXTENSION = 20
LONGEST_TYPE = 500
LONGEST_SEGMENT = 54
MOST_PARAMETERS = 16
DEFAULT_TYPE = "application/octet-stream"
DEFAULT_FILENAME = "attachment"

_WORD = r"[A-Za-z0-9!#$%&'*+.^_`{|}~-]+"
_TYPE = re.compile(rf"({_WORD})/({_WORD})[ \t]*")
_PARAMETER = re.compile(rf';[ \t]*({_WORD})[ \t]*=[ \t]*(?:({_WORD})|"([ !#-\[\]-~]*)")[ \t]*')
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters, and marks that make a name look like another (`exe.fdp` read from right to left)."""
_ATTRIBUTE_SAFE = "!#$&+^`{}|"


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file that goes with a message; with a `cid` (no angle brackets) the HTML may show it."""

    filename: str
    content_type: str
    content: bytes | EncodedFile
    cid: str | None = None


def parse_content_type(text: str) -> str:
    """Return `type/subtype[; params]` in normal form, or raise ValueError with a sentence (RFC 2045 5.1).

    A `name` parameter is dropped, since the file name decides; `multipart/*` is refused, since its
    content would be read as parts of our own message.
    """
    found = _TYPE.match(text.strip(" \t")) if len(text) <= LONGEST_TYPE else None
    if found is None:
        raise ValueError("A content type has the form `type/subtype` and up to 500 characters.")
    kind = f"{found[1]}/{found[2]}".lower()
    if kind.startswith("multipart/"):
        raise ValueError("A multipart content type is not accepted for an attachment.")
    kind += "".join(_parameters(text.strip(" \t"), found.end()))
    if "=?" in kind:
        raise ValueError("An encoded word is not accepted in a content type.")
    return kind


def _parameters(text: str, index: int) -> Iterator[str]:
    seen: set[str] = set()
    while index < len(text) and text[index:] != ";":
        found = _PARAMETER.match(text, index)
        if found is None or len(seen) == MOST_PARAMETERS:
            raise ValueError("The parameters of the content type are not valid.")
        name = found[1].lower()
        if name not in seen and name.partition("*")[0] != "name":
            yield f"; {name}={found[2]}" if found[2] is not None else f'; {name}="{found[3]}"'
        seen.add(name)
        index = found.end()


def clean_filename(name: str) -> str:
    """Return the last path part of `name`, visible characters only, at most 255 octets with its
    extension kept."""
    visible = _INVISIBLE.sub("", name).replace("\\", "/").rpartition("/")[2].strip()
    if not visible.strip("."):
        return DEFAULT_FILENAME
    if len(visible.encode()) <= LONGEST_FILENAME:
        return visible
    stem, dot, extension = visible.rpartition(".")
    tail = f"{dot}{extension}" if stem and len(extension.encode()) <= LONGEST_EXTENSION else ""
    kept = visible.encode()[: LONGEST_FILENAME - len(tail.encode())].decode("utf-8", "ignore")
    return kept + tail


async def written(file: ExternalFile, content_type: str) -> EncodedFile:
    """Return a file as the part of this type carries it."""
    return (await as_message(file) if _is_message(content_type.lower()) else None) or in_base64(file)


def part(attachment: OutgoingFile, inline: bool) -> tuple[list[bytes], EncodedBody | EncodedFile]:
    """Return the header fields and encoded body of the attachment's part.

    A message/* part that is not clean 7bit travels as an octet stream under its own name: RFC 2046 5.2.1
    forbids to encode it, and readers open an `.eml` file either way (MSG-08).
    """
    kind = parse_content_type(attachment.content_type)
    encoded = _encoded(attachment.content, kind)
    if _is_message(kind) and encoded.encoding != "7bit":
        kind = DEFAULT_TYPE
    filename = clean_filename(attachment.filename)
    ascii_name = _quoted(_ascii_fallback(filename))
    disposition = "inline" if inline else "attachment"
    fields = [
        headers.structured("Content-Type", f"{kind}; name={ascii_name}"),
        headers.structured("Content-Transfer-Encoding", encoded.encoding),
        headers.structured(
            "Content-Disposition", f"{disposition}; " + "; ".join(_names(filename, ascii_name))
        ),
    ]
    if attachment.cid is not None:
        fields.append(headers.content_id(attachment.cid))
    return fields, encoded


def _encoded(content: bytes | EncodedFile, kind: str) -> EncodedBody | EncodedFile:
    if isinstance(content, EncodedFile):
        return content
    message = transfer_encoding.encode_message(content) if _is_message(kind) else None
    return message or transfer_encoding.encode_octets(content)


def _is_message(kind: str) -> bool:
    """Return whether a part of this type may hold nothing but a message in 7bit."""
    return kind.startswith("message/") and not kind.startswith("message/global")


def _names(filename: str, ascii_name: str) -> Iterator[str]:
    """Yield the `filename` parameters: RFC 2231 when ASCII loses something, and ASCII for all readers.

    Readers that know both should prefer the first form; those that take what comes first get it too.
    """
    if ascii_name != f'"{filename}"':
        segments = list(_segments(filename))
        if len(segments) == 1:
            yield f"filename*=UTF-8''{segments[0]}"
        else:
            yield f"filename*0*=UTF-8''{segments[0]}"
            yield from (f"filename*{n}*={segment}" for n, segment in enumerate(segments[1:], 1))
    yield f"filename={ascii_name}"


def _segments(filename: str) -> Iterator[str]:
    segment = ""
    for character in filename:
        form = quote(character, safe=_ATTRIBUTE_SAFE)
        if len(segment) + len(form) > LONGEST_SEGMENT:
            yield segment
            segment = ""
        segment += form
    yield segment


def _ascii_fallback(filename: str) -> str:
    """Return the name without accents, and with `_` for what has no ASCII form."""
    if filename.isascii():
        return filename
    plain = unicodedata.normalize("NFKD", filename)
    plain = "".join(c if c.isascii() else "_" for c in plain if not unicodedata.combining(c))
    return clean_filename(_INVISIBLE.sub("", plain).replace("/", "_"))


def _quoted(text: str) -> str:
    """Return a quoted string that no reader takes for an encoded word or ends early."""
    return '"' + text.replace("\\", "_").replace('"', "'").replace("=?", "=_") + '"'
