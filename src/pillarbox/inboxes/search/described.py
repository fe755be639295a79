"""A message as blocks describe it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.inboxes.search.folding import folded
from pillarbox.inboxes.search.terms import COLUMNS, OCTETS_OF_COLUMN, WORDS_OF_COLUMN, SearchField

_texts = msgspec.json.Decoder(list[str]).decode


class IndexedMessage(NamedTuple):
    """The texts by which a message is found: its words, and the parts that are searched octet by octet. The
    parts are folded, with a NUL behind each text."""

    id: UUID
    thread_id: UUID
    searched: bytes
    parts: Sequence[tuple[SearchField, bytes]]
    has_attachment: bool

    @property
    def columns(self) -> int:
        """How many columns the message takes in a block. One with more words than a block has room for takes
        all."""
        octets = sum([len(text) for _, text in self.parts])
        words = self.searched.count(b" ")
        return min(COLUMNS, 1 + max(words // WORDS_OF_COLUMN, octets // OCTETS_OF_COLUMN))


def described(
    id: UUID,
    thread_id: UUID,
    sender: str,
    to_list: str,
    cc_list: str | None,
    bcc_list: str | None,
    subject: str | None,
    attachments: int,
    searched: str,
) -> IndexedMessage:
    """Return the message of a row."""
    parts = [
        (SearchField.SUBJECT, _octets(subject or "")),
        (SearchField.SENDER, _octets(sender)),
        (SearchField.TO, _all(to_list)),
        (SearchField.CC, _all(cc_list)),
        (SearchField.BCC, _all(bcc_list)),
    ]
    return IndexedMessage(
        id=id,
        thread_id=thread_id,
        searched=searched.encode(),
        parts=[part for part in parts if part[1]],
        has_attachment=attachments > 0,
    )


def fitting(messages: Sequence[IndexedMessage]) -> int:
    """Return how many of the messages, from the first on, have room in a block."""
    return sum(end <= COLUMNS for end in accumulate([message.columns for message in messages]))


def _octets(text: str) -> bytes:
    return folded(text).encode("utf-8", "replace") + b"\0"


def _all(texts: str | None) -> bytes:
    return b"" if texts is None else b"".join(map(_octets, _texts(texts)))
