"""From values to the octets of a message (RFC 5322, MIME).

The result is complete but for its signature: CRLF line ends, no line over 998 octets, no NUL, ASCII
except where a mailbox needs SMTPUTF8. It is a function of its argument alone: the same message is the
same octets at every attempt, in every process. Bcc has no place in the argument and so none in the
result. Before it is handed out the header block is read again and must hold exactly the fields that
were meant (TRAP-01).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from pillarbox.mail.message import attachments, headers, transfer_encoding
from pillarbox.mail.message.address import Mailbox
from pillarbox.mail.message.attachments import OutgoingFile
from pillarbox.mail.message.files import EncodedFile
from pillarbox.mail.message.headers import HeaderError
from pillarbox.mail.message.transfer_encoding import EncodedBody, Encoding

__all__ = ["OutgoingFile", "OutgoingMessage", "compose", "compose_pieces", "needs_smtputf8", "new_message_id"]

MESSAGE_ID_BITS = 128
NO_RECIPIENTS = b"To: undisclosed-recipients:;\r\n"


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """The parts of a message to compose. Custom headers are already filtered; the composer refuses what
    should not be there."""

    sender: Mailbox
    to: Sequence[Mailbox]
    subject: str
    date: datetime
    message_id: str
    seed: bytes
    html: str | None = None
    text: str | None = None
    cc: Sequence[Mailbox] = ()
    reply_to: Sequence[Mailbox] = ()
    headers: Sequence[tuple[str, str]] = ()
    attachments: Sequence[OutgoingFile] = ()


class MimePart(NamedTuple):
    """A MIME part: the fields that describe it, and its body in pieces.

    `plain` are the 7bit bodies in it, the only places where a boundary of ours could occur. Files are not
    searched: nobody could know the seed when they were made.
    """

    fields: Sequence[bytes]
    body: Sequence[bytes | EncodedFile]
    plain: Sequence[bytes] = ()


def compose(message: OutgoingMessage) -> bytes:
    """Return the message as it is signed and sent; none of its attachments is a file.

    Raises HeaderError for values that cannot be written safely.
    """
    [whole] = compose_pieces(message)
    if isinstance(whole, EncodedFile):
        raise TypeError("a message with files has no bytes of its own")
    return whole


def compose_pieces(message: OutgoingMessage) -> Sequence[bytes | EncodedFile]:
    """Return any message in pieces: octets and files in turn. The first has the whole header block, the last
    ends a line."""
    root = _structure(message)
    fields = [*_message_fields(message), b"MIME-Version: 1.0\r\n", *root.fields]
    head = b"".join(fields)
    _check_head(head, fields, needs_smtputf8(message))
    pieces = list(_joined((head, b"\r\n", *root.body)))
    last = pieces[-1]
    if isinstance(last, bytes) and not last.endswith(b"\r\n"):
        # The dot that ends DATA stands on a line of its own, so what is signed must end a line already.
        pieces[-1] = last + b"\r\n"
    if not all(isinstance(piece, EncodedFile) or transfer_encoding.is_clean(piece) for piece in pieces):
        raise HeaderError("The message holds a bare CR, a bare LF or a NUL.")
    return pieces


def _joined(pieces: Sequence[bytes | EncodedFile]) -> Iterator[bytes | EncodedFile]:
    """Yield the pieces, with all octets between two files in one."""
    here: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            here.append(piece)
        else:
            yield b"".join(here)
            yield piece
            here = []
    yield b"".join(here)


def needs_smtputf8(message: OutgoingMessage) -> bool:
    """Return whether a header of the message names a mailbox outside ASCII, so that every hop
    needs SMTPUTF8."""
    mailboxes = chain((message.sender,), message.to, message.cc, message.reply_to)
    return any(mailbox.needs_smtputf8 for mailbox in mailboxes)


def new_message_id(domain: str, random_bits: Callable[[int], int]) -> str:
    """Return a Message-ID with 128 random bits on its left and nothing else (MSG-03)."""
    return f"<{random_bits(MESSAGE_ID_BITS):032x}@{domain}>"


def _message_fields(message: OutgoingMessage) -> Iterator[bytes]:
    yield _sender_field(message.sender)
    yield headers.addresses("To", message.to) if message.to else NO_RECIPIENTS
    if message.cc:
        yield headers.addresses("Cc", message.cc)
    if message.reply_to:
        yield headers.addresses("Reply-To", message.reply_to)
    if message.subject:
        yield headers.unstructured("Subject", message.subject)
    yield headers.date("Date", message.date)
    yield headers.message_ids("Message-ID", (message.message_id,))
    yield from _custom_fields(message.headers)


@lru_cache(maxsize=1024)
def _sender_field(sender: Mailbox) -> bytes:
    """Return the field of the senders, who are few and write much."""
    return headers.addresses("From", (sender,))


def _custom_fields(pairs: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    seen: set[str] = set()
    for name, value in pairs:
        lower = name.lower()
        if headers.is_reserved(name) or lower == "reply-to":
            raise HeaderError(f"The header {name} is not a custom header.")
        if lower in headers.ONCE and lower in seen:
            raise HeaderError(f"The header {name} may stand only once.")
        seen.add(lower)
        yield headers.custom(name, value)


def _structure(message: OutgoingMessage) -> MimePart:
    """Return the structure mixed(related(alternative(text, html), inline…), attachments…) without levels of
    one child (MSG-07)."""
    boundaries = _Boundaries(message.seed)
    inline = [a for a in message.attachments if a.cid is not None and message.html]
    others = [a for a in message.attachments if a.cid is None or not message.html]
    body = _bodies(message, boundaries)
    if inline:
        kind = body.fields[0].partition(b":")[2].partition(b";")[0].strip().decode("ascii")
        parts = [body, *(_attachment(a) for a in inline)]
        body = _multipart("related", parts, boundaries, f'; type="{kind}"')
    if others:
        body = _multipart("mixed", [body, *(_attachment(a) for a in others)], boundaries)
    return body


def _bodies(message: OutgoingMessage, boundaries: _Boundaries) -> MimePart:
    html = _leaf("text/html", transfer_encoding.encode_text(message.html)) if message.html else None
    if html is not None and not message.text:
        return html
    text = _leaf("text/plain", transfer_encoding.encode_text(message.text or ""))
    return text if html is None else _multipart("alternative", [text, html], boundaries)


def _leaf(kind: str, encoded: EncodedBody) -> MimePart:
    return _part(_leaf_fields(kind, encoded.encoding), encoded)


@cache
def _leaf_fields(kind: str, encoding: Encoding) -> Sequence[bytes]:
    return (
        f"Content-Type: {kind}; charset=utf-8\r\n".encode("ascii"),
        f"Content-Transfer-Encoding: {encoding}\r\n".encode("ascii"),
    )


def _attachment(attachment: OutgoingFile) -> MimePart:
    return _part(*attachments.part(attachment, inline=attachment.cid is not None))


def _part(fields: Sequence[bytes], encoded: EncodedBody | EncodedFile) -> MimePart:
    if isinstance(encoded, EncodedFile):
        return MimePart(fields, (encoded,))
    return MimePart(fields, (encoded.body,), (encoded.body,) if encoded.encoding == "7bit" else ())


def _multipart(subtype: str, parts: Sequence[MimePart], boundaries: _Boundaries, more: str = "") -> MimePart:
    plain = tuple(chain.from_iterable(part.plain for part in parts))
    boundary = boundaries.unused_in(plain)
    field = f'Content-Type: multipart/{subtype}{more};\r\n boundary="{boundary}"\r\n'.encode("ascii")
    line = f"--{boundary}".encode("ascii")
    body: list[bytes | EncodedFile] = []
    for part in parts:
        body += (line, b"\r\n", *part.fields, b"\r\n", *part.body, b"\r\n")
    body += (line, b"--\r\n")
    return MimePart((field,), body, plain)


class _Boundaries:
    """Boundaries that follow from the seed; no base64 or quoted-printable holds their `=_` (RFC 2045 6.7)."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._count = 0

    def unused_in(self, bodies: Sequence[bytes]) -> str:
        while True:
            self._count += 1
            digest = hashlib.blake2b(self._seed, digest_size=15, salt=self._count.to_bytes(4, "big"))
            boundary = f"=_{digest.hexdigest()}"
            wanted = boundary.encode("ascii")
            if not any(wanted in body for body in bodies):
                return boundary


def _check_head(head: bytes, fields: Sequence[bytes], is_utf8: bool) -> None:
    """Check that the finished header block, read as any receiver would, has the fields that were meant and
    no other."""
    wanted = [field.partition(b":")[0] for field in fields]
    read = [line.partition(b":")[0] for line in head.split(b"\r\n") if line[:1] != b" "]
    if read != [*wanted, b""]:
        raise HeaderError("The header block does not hold the headers that were asked for.")
    if not is_utf8 and not head.isascii():
        raise HeaderError("The header block holds characters outside ASCII.")
