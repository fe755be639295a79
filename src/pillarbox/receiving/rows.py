"""A received message as rows of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.kernel.ids import Stamp
from pillarbox.mail.html import cids
from pillarbox.mail.message import address_fields, header_text
from pillarbox.mail.message.automatic import is_automatic
from pillarbox.mail.message.parse import ParsedMessage
from pillarbox.receiving.arrival import Arrival
from pillarbox.receiving.arrivals.inbox_addresses import candidates
from pillarbox.receiving.judging import MailJudgement
from pillarbox.receiving.store_queries import FileRow, ReceivedRow

INLINE: Final = 256 * 1024
"""Messages up to this size go into the commit; larger ones are blobs, synced before it."""

FOLDER: Final = "received"
"""The folder of their blobs."""

_json = msgspec.json.Encoder().encode


class ParsedColumns(msgspec.Struct, frozen=True):
    """The parts of a parsed message that are needed to show it."""

    text: str | None
    html: str | None
    headers: dict[str, str]

    @classmethod
    def of(cls, message: ParsedMessage) -> ParsedColumns:
        return cls(message.text, message.html, message.joined_headers())


@dataclass(frozen=True, slots=True)
class PreparedReceipt:
    """The receipt of a message for one team: the row and the octets that will be stored."""

    row: ReceivedRow
    octets: bytes
    """The trace fields, and behind them the message or what was read of it."""
    recipients: Sequence[str]
    """The addresses of the envelope that are the team's."""

    @property
    def key(self) -> tuple[UUID, bytes]:
        """The key that repetitions of a message share."""
        return self.row.team_id, self.row.fingerprint

    @property
    def weight(self) -> int:
        """Octets of the commit, about."""
        return 1024 + len(self.octets) + 256 * self.row.attachments


class ReceiptBuilder:
    """Makes the rows of one message for several teams: what they share is made once."""

    def __init__(
        self,
        message: ParsedMessage,
        arrival: Arrival,
        judgement: MailJudgement,
        fingerprint: bytes,
        hostname: str,
    ) -> None:
        self._message = message
        self._arrival = arrival
        self._judgement = judgement
        self._fingerprint = fingerprint
        self._hostname = hostname
        self._is_large = len(message.raw) > INLINE
        self._held = _json(ParsedColumns.of(message)) if self._is_large else message.raw
        automatic = is_automatic(message, arrival.mail_from)
        self._verdicts = _json(judgement.verdicts(automatic=automatic)).decode()
        self._lists = [
            _list(address_fields.addresses(found))
            for found in (message.to, message.cc, message.bcc, message.reply_to)
        ]

    def draft(
        self, team_id: UUID, recipients: Sequence[str], stamp: Stamp, trace: bytes, new_id: Callable[[], UUID]
    ) -> PreparedReceipt:
        """Return the rows of the team that has these addresses of the envelope."""
        message, judgement, arrival = self._message, self._judgement, self._arrival
        to, cc, bcc, reply_to = self._lists
        row = ReceivedRow(
            team_id=team_id,
            fingerprint=self._fingerprint,
            id=stamp.id,
            created_at=stamp.at,
            sender=_plain(message.author),
            to_list=to or "[]",
            cc_list=cc,
            bcc_list=bcc,
            reply_to_list=reply_to,
            subject=message.subject,
            message_id=_plain(message.message_id or f"<{stamp.id}@{self._hostname}>"),
            received_for=_text(list(dict.fromkeys((*recipients, *message.received_for)))),
            attachments=len(message.attachments),
            recipients=_text(recipients),
            mail_from=_plain(arrival.mail_from),
            client=arrival.client,
            spf=judgement.spf,
            dkim=judgement.dkim,
            dmarc=judgement.dmarc,
            spam_reason=judgement.spam_reason,
            verdicts=self._verdicts,
            size=len(message.raw),
            complete=message.complete,
            blob=f"{FOLDER}/{stamp.id}" if self._is_large else None,
            event_id=new_id(),
            judged_event_id=new_id(),
            trace=len(trace),
            held=len(self._held),
            candidates=candidates(recipients),
            files=tuple(self._files(new_id)) if message.attachments else None,
        )
        return PreparedReceipt(row, trace + self._held, recipients)

    def _files(self, new_id: Callable[[], UUID]) -> Iterable[FileRow]:
        message = self._message
        shown = cids.referenced(message.html, message.attachments) if message.html else frozenset()
        for position, found in enumerate(message.attachments):
            part = found.part
            yield FileRow(
                id=new_id(),
                position=position,
                filename=None if found.filename is None else _plain(found.filename),
                content_type=_plain(found.content_type),
                disposition=found.content_disposition,
                content_id=None if found.content_id is None else _plain(found.content_id),
                inline=found.content_disposition == "inline" or found.content_id in shown,
                size=found.size,
                encoding=_plain(part.encoding),
                starts=part.content_start,
                ends=part.end,
            )


def _list(addresses: Sequence[str]) -> str | None:
    return _text(addresses) if addresses else None


def _text(addresses: Sequence[str]) -> str:
    return _json(addresses).decode()


def _plain(text: str) -> str:
    """Return the text without NUL and half characters, which the database does not take."""
    return text if text.isprintable() else header_text.clean(text)
