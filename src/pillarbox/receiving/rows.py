"""A received message as rows of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.kernel.ids import Stamp
from pillarbox.mail import correspondents, header_text, html_cids
from pillarbox.mail.message import Message
from pillarbox.receiving.arrival import Arrival
from pillarbox.receiving.judging import Judgement

INLINE: Final = 256 * 1024
"""Messages up to this size go into the commit; larger ones are blobs, synced before it."""

FOLDER: Final = "received"
"""The folder of their blobs."""

_json = msgspec.json.Encoder().encode


class Parsed(msgspec.Struct, frozen=True):
    """What is read of a message to show it."""

    text: str | None
    html: str | None
    headers: dict[str, str]

    @classmethod
    def of(cls, message: Message) -> Parsed:
        return cls(message.text, message.html, message.joined_headers())


@dataclass(slots=True)
class Draft:
    """What one team gets of a message."""

    team_id: UUID
    id: UUID
    at: Any
    fingerprint: bytes
    email: tuple[Any, ...]
    source: tuple[Any, ...]
    attachments: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def blob(self) -> str | None:
        found: str | None = self.source[5]
        return found

    @property
    def weight(self) -> int:
        """Octets of the commit, about."""
        data: bytes | None = self.source[4]
        return 1024 + len(data or self.source[6] or b"") + 256 * len(self.attachments)


class Drafter:
    """Makes the rows of one message for several teams: what they share is made once."""

    def __init__(
        self, message: Message, arrival: Arrival, judgement: Judgement, fingerprint: bytes, hostname: str
    ) -> None:
        self._message = message
        self._arrival = arrival
        self._judgement = judgement
        self._fingerprint = fingerprint
        self._hostname = hostname
        self._is_large = len(message.raw) > INLINE
        self._parsed = _json(Parsed.of(message)).decode() if self._is_large else None
        self._lists = [
            _list(correspondents.addresses(found))
            for found in (message.to, message.cc, message.bcc, message.reply_to)
        ]

    def draft(
        self, team_id: UUID, recipients: Sequence[str], stamp: Stamp, trace: bytes, new_id: Callable[[], UUID]
    ) -> Draft:
        """The rows of the team that has these addresses of the envelope."""
        email_id, raw = stamp.id, self._message.raw
        data, blob = (None, f"{FOLDER}/{email_id}") if self._is_large else (raw, None)
        return Draft(
            team_id,
            email_id,
            stamp.at,
            self._fingerprint,
            self._email(team_id, recipients, stamp),
            (team_id, email_id, trace, len(raw), data, blob, self._parsed),
            list(self._attachments(team_id, email_id, new_id)) if self._message.attachments else [],
        )

    def _email(self, team_id: UUID, recipients: Sequence[str], stamp: Stamp) -> tuple[Any, ...]:
        message, judgement = self._message, self._judgement
        to, cc, bcc, reply_to = self._lists
        received_for = dict.fromkeys((*recipients, *message.received_for))
        return (
            team_id,
            stamp.id,
            stamp.at,
            _plain(message.author),
            to or "[]",
            cc,
            bcc,
            reply_to,
            message.subject,
            _plain(message.message_id or f"<{stamp.id}@{self._hostname}>"),
            _json(list(received_for)).decode(),
            len(message.attachments),
            _json(recipients).decode(),
            _plain(self._arrival.mail_from),
            self._arrival.client,
            judgement.spf,
            judgement.dkim,
            judgement.dmarc,
            judgement.spam_reason,
            len(message.raw),
            message.complete,
        )

    def _attachments(
        self, team_id: UUID, email_id: UUID, new_id: Callable[[], UUID]
    ) -> Iterable[tuple[Any, ...]]:
        message = self._message
        shown = html_cids.referenced(message.html, message.attachments) if message.html else frozenset()
        for position, found in enumerate(message.attachments):
            part = found.part
            yield (
                team_id,
                new_id(),
                email_id,
                position,
                None if found.filename is None else _plain(found.filename),
                _plain(found.content_type),
                found.content_disposition,
                None if found.content_id is None else _plain(found.content_id),
                found.content_disposition == "inline" or found.content_id in shown,
                found.size,
                _plain(part.encoding),
                part.content_start,
                part.end,
            )


def _list(addresses: Sequence[str]) -> str | None:
    return _json(addresses).decode() if addresses else None


def _plain(text: str) -> str:
    """Text that the database takes: without NUL and half characters."""
    return text if text.isprintable() else header_text.clean(text)
