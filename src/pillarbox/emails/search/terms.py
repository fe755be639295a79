"""The terms by which an email can be found, and the Bloom filter that many emails share.

The filter is stored. Where the terms or their places change, `VERSION` does: blocks of another version are
read as if they had every term, until a job has described their emails anew.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from uuid import UUID
from zlib import crc32

import msgspec

from pillarbox.mail.message.address import AddressError, parse_mailbox

VERSION = 3
"""Of what is stored; 1 was without marks in words, and had fewer bits; 2 knew addresses and words alone."""

BITS_PER_TERM = 16
"""With five hashes: of blocks without a term, fifteen in ten thousand look as if they had it."""

SIZES = 61
"""Octets that a filter may have more than it needs."""

LONGEST_WORD = 64
"""Characters of a word that count."""

_ASCII_WORD = re.compile(rf"([a-z0-9]{{1,{LONGEST_WORD}}})[a-z0-9]*")

# Scripts without blanks between words: Thai and Lao, Burmese, Khmer, Chinese and Japanese. There each
# character is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)

# What is not seen: soft hyphens, blanks without width, joiners, marks of direction, selectors of a glyph.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]+"
)

# The four letters i of Turkish are one: which of them an I means depends on the language.
_DOTTED_I, _DOTLESS_I = "i\u0307", "\u0131"

_LAST_MARK = 0x1F000


def words(text: str) -> list[str]:
    """Return the words of a subject, without regard to case: runs of letters and digits with their marks."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [word[:LONGEST_WORD] for word in _word().findall(_folded(text))]


def _folded(text: str) -> str:
    """Return the text folded: the same for texts that differ in case, in width or in what is not seen alone
    (Unicode, 3.13 D146)."""
    text = unicodedata.normalize("NFD", _UNSEEN.sub("", text)).casefold()
    text = unicodedata.normalize("NFKC", text).casefold().replace(_DOTTED_I, "i").replace(_DOTLESS_I, "i")
    return unicodedata.normalize("NFKC", text)


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word that is not of ASCII alone. Python knows no class of marks, and to list
    them takes a moment."""
    marks = "".join(
        character
        for character in map(chr, range(0x300, _LAST_MARK))
        if unicodedata.category(character) in {"Mn", "Mc"}
    )
    letters = rf"[^\W_{_UNSPACED}]"
    return re.compile(rf"[{_UNSPACED}][{marks}]*|{letters}+(?:[{marks}]+{letters}*)*")


@lru_cache(maxsize=4096)
def sender_key(sender: str, domain: str) -> str:
    """Return the address of a From field as it is compared: the domain as A-label, all of it in
    lower case."""
    local = sender.rpartition("<")[2].rpartition("@")[0].strip(" \t")
    if local.isascii() and '"' not in local:
        return f"{local.lower()}@{domain}"
    try:
        return f"{parse_mailbox(sender).key.rpartition('@')[0]}@{domain}"
    except AddressError:
        return f"{local.lower()}@{domain}"


def recipient_term(address: str) -> str:
    """Return the term of an address, or of a domain that begins with `@`."""
    return f"t{address}"


def sender_term(address: str) -> str:
    return f"f{address}"


def domain_term(domain: str) -> str:
    return f"d{domain}"


def word_term(word: str) -> str:
    return f"w{word}"


def tag_term(name: str, value: str | None) -> str:
    """Return the term of a tag with this value, or with any where it is None."""
    return f"g{name}" if value is None else f"g{name}:{value}"


def key_term(key_id: UUID) -> str:
    return f"k{key_id.hex}"


def broadcast_term(broadcast_id: UUID) -> str:
    return f"b{broadcast_id.hex}"


def source_term(source: str) -> str:
    return f"o{source}"


def message_term(message_id: str) -> str:
    return f"m{message_id}"


class StoredTag(msgspec.Struct):
    """One tag of an email as it is stored."""

    name: str
    value: str


_tags = msgspec.json.Decoder(list[StoredTag]).decode


class Terms:
    """The different terms of some emails. Built for a thousand emails at a time: what most of them share is
    looked at once."""

    def __init__(self) -> None:
        self._tagged: set[str] = set()
        self._tags: set[str] = set()
        self._broadcasts: set[UUID] = set()
        self._keys: set[UUID] = set()
        self._sources: set[str] = set()
        self._message_ids: set[str] = set()
        self._senders: set[tuple[str, str]] = set()
        self._addresses: set[str] = set()
        self._words: set[str] = set()

    def add(self, sender: str, domain: str, subject: str, addresses: Iterable[str]) -> None:
        """Add the terms of one email more."""
        self._senders.add((sender, domain))
        for address in addresses:
            self._addresses.add(address)
            self._addresses.add(address[address.rfind("@") :])
        self._words.update(words(subject))

    def add_origin(
        self,
        source: str,
        message_id: str | None,
        tags: str | None,
        key_id: UUID | None,
        broadcast_id: UUID | None,
    ) -> None:
        """Add the terms of where one email more comes from. `tags` is JSON text; a copy of a broadcast is
        found by the id in its Message-ID, and needs no term for that."""
        self._sources.add(source)
        if message_id is not None:
            self._message_ids.add(message_id)
        if tags is not None and tags not in self._tagged:
            self._tagged.add(tags)
            for tag in _tags(tags):
                self._tags.update((tag_term(tag.name, None), tag_term(tag.name, tag.value)))
        if key_id is not None:
            self._keys.add(key_id)
        if broadcast_id is not None:
            self._broadcasts.add(broadcast_id)

    def __len__(self) -> int:
        """Return how many there are, about."""
        origins = len(self._message_ids) + len(self._tags) + len(self._keys) + len(self._broadcasts)
        return len(self._senders) + len(self._addresses) + len(self._words) + origins

    def bloom_filter(self, salt: int) -> bytes:
        """Return their Bloom filter, in which PostgreSQL's `get_bit` finds the bits.

        By `salt` filters of many blocks have different sizes, and a term has other places in each: one that
        meets the bits of frequent terms in one block does not meet them in all.
        """
        found = [word_term(word) for word in self._words]
        found += [recipient_term(address) for address in self._addresses]
        found += {domain_term(domain) for _, domain in self._senders}
        found += {sender_term(sender_key(*sender)) for sender in self._senders}
        found += self._origins()
        size = max(1, -(-len(found) * BITS_PER_TERM // 8))
        size += salt % SIZES if size > SIZES else 0
        places = size * 8
        bits = bytearray(size)
        for term in found:
            for number in hashes(term):
                place = number % places
                bits[place >> 3] |= 1 << (place & 7)
        return bytes(bits)

    def _origins(self) -> set[str]:
        """Return the terms of where the emails come from."""
        found = {message_term(message_id) for message_id in self._message_ids}
        found |= {key_term(key_id) for key_id in self._keys}
        found |= {broadcast_term(broadcast_id) for broadcast_id in self._broadcasts}
        found |= {source_term(source) for source in self._sources}
        return found | self._tags


def hashes(term: str) -> tuple[int, ...]:
    """Return the numbers whose remainders by the size of a filter are the places of the term's bits."""
    first = crc32(term.encode())
    # Double hashing: the second hash is the first one, mixed as Knuth does, and odd.
    step = (first * 0x9E3779B1 >> 7) & 0xFFFFFFFF | 1
    return first, first + step, first + 2 * step, first + 3 * step, first + 4 * step
