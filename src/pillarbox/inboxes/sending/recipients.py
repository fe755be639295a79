"""Whom a reply goes to (inboxes.md 6.2).

Addresses of messages that were received are as others wrote them: what cannot be sent to is left out. Two
addresses are the same where their keys are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pillarbox.mail.message import address_fields
from pillarbox.mail.message.address import AddressError, Mailbox, parse_mailbox

MOST: Final = 50
"""Recipients of one message, in all classes together."""


class NamedRecipient(NamedTuple):
    """A recipient as it is shown, and as it goes on the wire."""

    text: str
    mailbox: Mailbox


@dataclass(frozen=True, slots=True)
class MessageAddressees:
    """Whom a message names, each as text; `to` of one that was received is its To header."""

    is_inbound: bool
    sender: str
    to: Sequence[str] = ()
    cc: Sequence[str] = ()
    reply_to: Sequence[str] = ()


class Recipients(NamedTuple):
    """Whom a reply goes to."""

    to: Sequence[NamedRecipient]
    cc: Sequence[NamedRecipient]
    bcc: Sequence[NamedRecipient]

    def __len__(self) -> int:
        return len(self.to) + len(self.cc) + len(self.bcc)


class InboxAddresses:
    """The addresses of an inbox: its own, and the one that it gets forwarded mail at, each with all of its
    plus variants."""

    def __init__(self, addresses: Iterable[str | None]) -> None:
        self._keys = frozenset([parse_mailbox(one).key for one in addresses if one is not None])

    def __contains__(self, mailbox: object) -> bool:
        return isinstance(mailbox, Mailbox) and (mailbox.key in self._keys or _base(mailbox) in self._keys)


def reply(
    original: MessageAddressees,
    own: InboxAddresses,
    *,
    to_all: bool,
    cc: Sequence[NamedRecipient] = (),
    bcc: Sequence[NamedRecipient] = (),
) -> Recipients:
    """Return the recipients of a reply to this message; `cc` and `bcc` are asked for besides."""
    to = readable(_answered(original, own, to_all=to_all))
    copied = readable((*original.to, *original.cc) if original.is_inbound else original.cc) if to_all else []
    return _unique(own, to, [*copied, *cc], bcc)


def _answered(original: MessageAddressees, own: InboxAddresses, *, to_all: bool) -> Sequence[str]:
    """Return the sender of an inbound message, or the recipients of ours."""
    if original.is_inbound:
        asked = readable(original.reply_to)
        senders = readable([original.sender])
        if asked or not any(named.mailbox in own for named in senders):
            return [named.text for named in asked] or [named.mailbox.addr_spec for named in senders]
        # The inbox has sent it, to itself too: it is answered as what it sent.
        return original.to
    elsewhere = [named.text for named in readable(original.reply_to) if named.mailbox not in own]
    return elsewhere if to_all and elsewhere else original.to


def readable(texts: Iterable[str]) -> list[NamedRecipient]:
    """Return those of the addresses that mail can be sent to. A name that cannot be written is left out."""
    found = []
    for text in texts:
        try:
            found.append(NamedRecipient(text.strip(), parse_mailbox(text)))
        except AddressError:
            read = address_fields.read(text.encode("utf-8", "replace"))
            for mailbox in read.mailboxes:
                try:
                    found.append(NamedRecipient(mailbox.address, parse_mailbox(mailbox.address)))
                except AddressError:
                    continue
    return found


def _unique(own: InboxAddresses, *classes: Iterable[NamedRecipient]) -> Recipients:
    """Return each address once, in the first class that names it, without those of the inbox itself."""
    seen: set[str] = set()
    kept: list[list[NamedRecipient]] = []
    for named in classes:
        one: list[NamedRecipient] = []
        for recipient in named:
            key = recipient.mailbox.key
            if key not in seen and recipient.mailbox not in own:
                seen.add(key)
                one.append(recipient)
        kept.append(one)
    return Recipients(*kept)


def _base(mailbox: Mailbox) -> str:
    """Return the key of the address without what stands behind a plus."""
    local, plus, _ = mailbox.local.partition("+")
    return Mailbox(local, mailbox.domain).key if plus and local else mailbox.key
