"""A received message, read: headers, correspondents, text, html, attachments (receiving.md 1 to 3, INB-02).

    message = parse(raw)
    message.subject, message.text, [a.filename for a in message.attachments]
    message.content(message.attachments[0])

`parse` takes any octets and never raises; its time is linear in their number and nothing of them is
copied but what is decoded. Bodies and attachments are decoded when they are asked for. Lines may end in
CRLF, LF, or CR alone. What could not be read shows as None or an empty value; the raw message stays the
truth (INB-01). Messages inside the message are attachments; `parse` reads them in turn when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pillarbox.mail.message import address_fields, bodies, header_block, header_text, mime_parts
from pillarbox.mail.message.address_fields import AddressFields, NamedAddress
from pillarbox.mail.message.bodies import AttachedPart, MessageBodies
from pillarbox.mail.message.header_block import HeaderField
from pillarbox.mail.message.mime_parts import ParsedPart

__all__ = ["AttachedPart", "HeaderField", "NamedAddress", "ParsedMessage", "ParsedPart", "parse"]

LONGEST_SUBJECT = 2000


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message as it can be shown; offsets in `root` and in the attachments' parts point into `raw`.

    `authors` are the mailboxes of From. `complete` is false when a limit left something undivided.
    """

    raw: bytes
    headers: tuple[HeaderField, ...]
    authors: AddressFields
    to: tuple[NamedAddress, ...]
    cc: tuple[NamedAddress, ...]
    bcc: tuple[NamedAddress, ...]
    reply_to: tuple[NamedAddress, ...]
    subject: str
    message_id: str | None
    received_for: tuple[str, ...]
    bodies: MessageBodies
    root: ParsedPart
    complete: bool
    named: Mapping[str, Sequence[HeaderField]]
    """The headers under their names in lower case."""

    @property
    def text(self) -> str | None:
        return self.bodies.text

    @property
    def html(self) -> str | None:
        return self.bodies.html

    @property
    def attachments(self) -> tuple[AttachedPart, ...]:
        return self.bodies.attachments

    @property
    def date(self) -> datetime | None:
        """The instant of Date, in UTC."""
        return header_block.date(_shown(self.named, "date"))

    @property
    def author(self) -> str:
        """The first From mailbox as `Name <address>` or bare, the text of From when it has none, or ""."""
        mailboxes = self.authors.mailboxes
        with_address = [mailbox for mailbox in mailboxes if "@" in mailbox.address]
        return str(next(iter(with_address or mailboxes), ""))

    @property
    def in_reply_to(self) -> tuple[str, ...]:
        """The message ids of In-Reply-To."""
        return header_block.message_ids(self.first("in-reply-to") or "")

    @property
    def references(self) -> tuple[str, ...]:
        """The message ids of References, oldest first; at most 1,000. Of a field that is too long its end is
        read, where the nearest ones are."""
        field = header_block.instance("references", self.named.get("references", ()))
        if field is None:
            return ()
        is_whole = len(field.raw) <= header_block.LONGEST_VALUE
        text = field.value if is_whole else header_text.decoded(field.raw[-header_block.LONGEST_VALUE :])
        return header_block.message_ids(text)

    def first(self, name: str) -> str | None:
        """Return the decoded value of the header of that name, in any case of letters.

        Of several it is the topmost, or the lowest of those that may stand only once (`header_block.ONCE`).
        """
        header = header_block.instance(name.lower(), self.named.get(name.lower(), ()))
        return None if header is None else header.value

    def all(self, name: str) -> list[str]:
        """Return the decoded values of every header of that name, from the top."""
        return [header.value for header in self.named.get(name.lower(), ())]

    def joined_headers(self) -> dict[str, str]:
        """Return the headers as the API shows them (receiving.md 2.2)."""
        return header_block.joined(self.headers)

    def content(self, attachment: AttachedPart | ParsedPart) -> bytes:
        """Return the decoded octets of an attachment, or of any leaf of `root`."""
        return mime_parts.content(
            self.raw, attachment.part if isinstance(attachment, AttachedPart) else attachment
        )


def parse(raw: bytes) -> ParsedMessage:
    """Return the message that these octets are."""
    if b"\r" in raw and b"\n" not in raw:
        # The line ends of old systems; every offset stays what it was.
        raw = raw.replace(b"\r", b"\n")
    block = header_block.split_message(raw)
    headers = header_block.readable(block.fields)
    named = header_block.by_name(headers)
    root, is_divided = mime_parts.tree(
        raw, {name: _instance(name, headers).raw for name, headers in named.items()}, block.body_start
    )
    return ParsedMessage(
        raw=raw,
        headers=headers,
        authors=_authors(named.get("from", ())),
        to=_mailboxes(named.get("to", ())),
        cc=_mailboxes(named.get("cc", ())),
        bcc=_mailboxes(named.get("bcc", ())),
        reply_to=_mailboxes(named.get("reply-to", ())[-1:]),
        subject=_shown(named, "subject")[:LONGEST_SUBJECT],
        message_id=header_block.message_id(_shown(named, "message-id")),
        received_for=header_block.received_for([header.raw for header in named.get("received", ())]),
        bodies=bodies.bodies(raw, root),
        root=root,
        complete=block.complete and is_divided,
        named=named,
    )


def _shown(named: Mapping[str, Sequence[HeaderField]], name: str) -> str:
    headers = named.get(name)
    return _instance(name, headers).value if headers else ""


def _instance(name: str, headers: Sequence[HeaderField]) -> HeaderField:
    return headers[-1] if name in header_block.ONCE else headers[0]


def _authors(headers: Sequence[HeaderField]) -> AddressFields:
    """Return the From mailboxes; a list is exact only when there is one header (DMARC-02)."""
    if len(headers) == 1:
        return address_fields.read(headers[0].raw)
    read = [address_fields.read(header.raw) for header in headers]
    return AddressFields(tuple([mailbox for found in read for mailbox in found.mailboxes]), False)


def _mailboxes(headers: Sequence[HeaderField]) -> tuple[NamedAddress, ...]:
    if len(headers) == 1:
        return address_fields.read(headers[0].raw).mailboxes
    return tuple([mailbox for header in headers for mailbox in address_fields.read(header.raw).mailboxes])
