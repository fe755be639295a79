"""What an email can be found by, as terms, and the Bloom filter that many of them share.

The filter is stored: neither the terms nor their places may change without new blocks for all emails.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from zlib import crc32

HASHES = 5
BITS_PER_TERM = 12
"""Together: of blocks without a term, five in a thousand look as if they had it."""

SIZES = 61
"""Octets that a filter may have more than it needs."""

LONGEST_WORD = 64

_ASCII_WORD = re.compile(r"[a-z0-9]{1,64}")
# Chinese and Japanese put no blanks between words: there each character is one.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|(?:(?![{_IDEOGRAPH}])[^\W_]){{1,{LONGEST_WORD}}}")


def words(text: str) -> list[str]:
    """The words of a subject, without regard to case: runs of letters and digits."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def sender_key(sender: str, domain: str) -> str:
    """The address of a From field as it is compared: the domain as A-label, all of it in lower case."""
    local = sender.rpartition("<")[2].rpartition("@")[0]
    return f"{local.lower()}@{domain}"


def recipient_term(address: str) -> str:
    """Of an address, or of a domain that begins with `@`."""
    return f"t{address}"


def sender_term(address: str) -> str:
    return f"f{address}"


def domain_term(domain: str) -> str:
    return f"d{domain}"


def word_term(word: str) -> str:
    return f"w{word}"


class Terms:
    """The different terms of some emails. Built for a thousand emails at a time: what most of them share is
    looked at once."""

    def __init__(self) -> None:
        self._senders: set[tuple[str, str]] = set()
        self._addresses: set[str] = set()
        self._words: set[str] = set()

    def add(self, sender: str, domain: str, subject: str, addresses: Iterable[str]) -> None:
        """The terms of one email more."""
        self._senders.add((sender, domain))
        for address in addresses:
            self._addresses.add(address)
            self._addresses.add(address[address.rfind("@") :])
        self._words.update(words(subject))

    def __len__(self) -> int:
        """How many there are, about."""
        return len(self._senders) + len(self._addresses) + len(self._words)

    def bloom_filter(self, salt: int) -> bytes:
        """Their Bloom filter, in which PostgreSQL's `get_bit` finds the bits.

        By `salt` filters of many blocks have different sizes, and a term has other places in each: one that
        meets the bits of frequent terms in one block does not meet them in all.
        """
        found = [word_term(word) for word in self._words]
        found += [recipient_term(address) for address in self._addresses]
        found += {domain_term(domain) for _, domain in self._senders}
        found += {sender_term(sender_key(*sender)) for sender in self._senders}
        size = max(1, -(-len(found) * BITS_PER_TERM // 8))
        size += salt % SIZES if size > SIZES else 0
        places = size * 8
        bits = bytearray(size)
        for term in found:
            for number in hashes(term):
                place = number % places
                bits[place >> 3] |= 1 << (place & 7)
        return bytes(bits)


def hashes(term: str) -> tuple[int, ...]:
    """Numbers whose remainders by the size of a filter are the places of the term's bits."""
    first = crc32(term.encode())
    # Double hashing: the second hash is the first one, mixed as Knuth does, and odd.
    step = (first * 0x9E3779B1 >> 7) & 0xFFFFFFFF | 1
    return first, first + step, first + 2 * step, first + 3 * step, first + 4 * step
