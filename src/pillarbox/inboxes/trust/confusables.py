"""Names and domains that look like others, by confusable characters or but for one letter. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from hashlib import md5
from typing import Final
from uuid import UUID

import idna

from pillarbox.mail.deception.folding import LIKE_LATIN

LONGEST_NAME: Final = 120
SHORTEST_LABEL: Final = 5
"""Shorter labels differ from many others in one letter."""

MOST_LABELS: Final = 20
"""Labels of a host in which a known domain is looked for."""

_CONFUSABLE: Final = LIKE_LATIN | str.maketrans("01!|5", "ollls")
"""Digits and signs too, for names and domains are short."""
_PAIRS: Final = (("i", "l"), ("rn", "m"), ("vv", "w"), ("cl", "d"))
"""One after the other: `ci` with a dot that is not seen is `cl` before that is `d`."""
_NUMBERS: Final = re.compile("[0-9]+")
_WORDS: Final = re.compile(r"[^\W_]+")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def address_key(address: str) -> UUID:
    """Return the hash by which an address is found."""
    return UUID(bytes=md5(address.lower().encode("utf-8", "replace"), usedforsecurity=False).digest())


@lru_cache(maxsize=4096)
def skeleton(text: str) -> str:
    """Return the text as it looks: equal for texts whose characters are drawn alike (after UTS 39)."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join([c for c in folded if not unicodedata.combining(c) and unicodedata.category(c) != "Cf"])
    plain = plain.translate(_CONFUSABLE)
    for pair, single in _PAIRS:
        plain = plain.replace(pair, single)
    return plain


@lru_cache(maxsize=4096)
def name_skeleton(name: str) -> str:
    """Return the words of a name as they look, in one order; "" for less than two words, since many people
    share a first name."""
    words = _WORDS.findall(skeleton(name[:LONGEST_NAME]))
    return " ".join(sorted(words)) if len(words) > 1 else ""


def name_key(name: str) -> UUID | None:
    """Return the hash by which names that look alike are found."""
    found = name_skeleton(name)
    return address_key(found) if found else None


@lru_cache(maxsize=4096)
def shown_domain(domain: str) -> str:
    """Return the domain as people see it, with its A-labels decoded."""
    if "xn--" not in domain:
        return domain
    labels = []
    for label in domain.split("."):
        try:
            labels.append(idna.decode(label) if label.startswith("xn--") else label)
        except (idna.IDNAError, UnicodeError):
            labels.append(label)
    return ".".join(labels)


def has_mixed_scripts(domain: str) -> bool:
    """Return whether one label mixes letters of alphabets that look alike."""
    return any(len(_scripts(label)) > 1 for label in shown_domain(domain).split("."))


def _scripts(label: str) -> set[str]:
    if label.isascii():
        return {"LATIN"}
    names = [unicodedata.name(c, "").partition(" ")[0] for c in label if c.isalpha()]
    return {name for name in names if name in _SCRIPTS}


class SenderDomains:
    """Registrable domains that somebody knows, found by what looks like one of them."""

    def __init__(self, domains: Iterable[str]) -> None:
        self._domains = frozenset(domains)
        self._labels = {domain.replace("-", "."): domain for domain in self._domains}
        self._longest = max((name.count(".") for name in self._labels), default=0) + 1
        self._alike: dict[str, str] = {}
        for domain in sorted(self._domains):
            for key in _neighbours(domain):
                self._alike.setdefault(key, domain)

    def __contains__(self, domain: object) -> bool:
        return domain in self._domains

    def __len__(self) -> int:
        return len(self._domains)

    def like(self, domain: str) -> str | None:
        """Return a known domain that this other one looks like; None where there is none."""
        if domain in self._domains:
            return None
        for key in _neighbours(domain):
            found = self._alike.get(key)
            if found is not None and _are_alike(found, domain):
                return found
        return None

    def used_as_label(self, host: str, registrable: str) -> str | None:
        """Return the known domain that stands in front of the domain that a host really belongs to, as in
        `bank.example.login.test` or `bank-example.test`."""
        if registrable in self._domains:
            return None
        labels = host.replace("-", ".").split(".")
        for start in range(min(len(labels), MOST_LABELS) - 2):
            for end in range(start + 2, min(start + self._longest + 1, len(labels))):
                found = self._labels.get(".".join(labels[start:end]))
                if found is not None:
                    return found
        return None


@lru_cache(maxsize=8192)
def _neighbours(domain: str) -> tuple[str, ...]:
    """Return the domain as it looks, and with each letter of its first label left out: two domains that
    differ in one letter share one of these."""
    looks = skeleton(shown_domain(domain))
    label, dot, rest = looks.partition(".")
    if len(label) < SHORTEST_LABEL:
        return (looks,)
    return (looks, *dict.fromkeys([f"{label[:i]}{label[i + 1 :]}{dot}{rest}" for i in range(len(label))]))


def _are_alike(known: str, domain: str) -> bool:
    """Return whether they differ in one letter at most, or in two that are swapped. Labels with a common
    neighbour may differ in more, and numbered domains are different ones."""
    first, second = (shown_domain(name).partition(".")[0] for name in (known, domain))
    a, b = skeleton(first), skeleton(second)
    if a == b:
        return True
    if _NUMBERS.sub("0", first) == _NUMBERS.sub("0", second):
        return False
    if len(a) > len(b):
        a, b = b, a
    start = next((i for i, c in enumerate(a) if c != b[i]), len(a))
    if len(a) < len(b):
        return a[start:] == b[start + 1 :]
    swapped = a[start : start + 2] == b[start : start + 2][::-1] and a[start + 2 :] == b[start + 2 :]
    return swapped or a[start + 1 :] == b[start + 1 :]
