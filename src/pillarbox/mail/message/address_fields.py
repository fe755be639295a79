"""Parses the address fields of a received mail as they are really written.

`address.parse_mailbox` is for what users give us and refuses what is not exact. This parser reads what
others have sent (RFC 5322 3.4 and 4.4, and mistakes): lists, groups, comments, routes, names without
quotes, commas and colons in odd places. It never raises, walks once from left to right, and reads at
most 1,000 mailboxes of a header (TRAP-05).

Encoded words are decoded in names only, after the structure is known, and never in an address: what a
reader is shown as the address is what stood there (TRAP-04, RFC 2047 5 rule 3). A list is `exact` when
nothing had to be guessed; identity checks trust no other (DMARC-02).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from pillarbox.mail.message import header_text

MOST_MAILBOXES = 1000
LONGEST_READ = 65_536

_SIMPLE = re.compile(
    r"(?:\"([^\"\\=]*)\"|([^\"\\@<>,;:()=\[\]]*))[ \t]*<([^\s<>@\"(),;:\\=\[\]]+@[A-Za-z0-9.-]+)>"
    r"|([^\s<>@\"(),;:\\=\[\]]+@[A-Za-z0-9.-]+)"
)
_TOKEN = re.compile(
    r"\"((?>(?:[^\"\\]|\\.)*))(\"?)|\(|<|>|,|;|:|\[[^\[\]<>,\s]{0,64}\]|[^\"(<>,;:\[]++|\[", re.DOTALL
)
_COMMENT_MARK = re.compile(r"\\.|[()]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ROUTE = re.compile(r"@[^:<>]*:")
_COMMENT = re.compile(r"\([^()]*\)")
_AROUND = re.compile(r"[ \t]*([@.])[ \t]*")
_NEEDS_QUOTES = re.compile(r"[\"<>@,;:()\\]")
_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_EXACT_ADDRESS = re.compile(r"[^\s<>@(),;:\\\"\[\]]+@[^\s<>@(),;:\\\"\[\]]+")


@dataclass(frozen=True, slots=True)
class NamedAddress:
    """A mailbox of a received header: the address as it stood there, the name decoded."""

    address: str
    display: str | None = None

    @property
    def domain(self) -> str:
        """Return the part behind the last `@`, in lower case; "" when there is none."""
        return self.address.rpartition("@")[2].lower() if "@" in self.address else ""

    @property
    def key(self) -> str:
        """The form in which two addresses are compared: the domain folded, the local part as it is."""
        local, at, domain = self.address.rpartition("@")
        return f"{local}{at}{domain.lower()}"

    def __str__(self) -> str:
        """Return `Name <address>`, or the address alone; the name is quoted where it must be."""
        if not self.display:
            return self.address
        if not self.address:
            return self.display
        name = self.display
        if _NEEDS_QUOTES.search(name):
            name = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{name} <{self.address}>"


@dataclass(frozen=True, slots=True)
class AddressFields:
    """The mailboxes of one header in order; `exact`: a well-formed list without groups and routes."""

    mailboxes: tuple[NamedAddress, ...]
    exact: bool


def read(raw: bytes) -> AddressFields:
    """Return the mailboxes of one raw header value; those without an address are kept with their
    name alone."""
    text = header_text.unfolded(raw[:LONGEST_READ])
    if len(text) <= 512 and (found := _simple(text)) is not None:
        return found
    return _AddressReader(text).read() if text else AddressFields((), False)


def addresses(mailboxes: Iterable[NamedAddress]) -> tuple[str, ...]:
    """Return the bare addresses in order, each once (receiving.md 1). One without a domain is an
    address as well (`root`), unless a comma without quotes cut it off the name behind it (`Doe,
    John <john@x.example>`)."""
    named = tuple(mailboxes)
    if not named:
        return ()
    if len(named) == 1 and "@" in named[0].address:
        return (named[0].address,)
    found: dict[str, str] = {}
    last = None
    for mailbox in reversed(named):
        is_cut_off = last is not None and "@" in last.address and last.display is not None
        if "@" in mailbox.address or (_LOCAL_PART.fullmatch(mailbox.address) and not is_cut_off):
            # The topmost of several counts, so it is the last to be put in.
            found.pop(mailbox.key, None)
            found[mailbox.key] = mailbox.address
        last = mailbox
    return tuple(reversed(found.values()))


@lru_cache(maxsize=1024)
def _simple(text: str) -> AddressFields | None:
    """Parse the common case: mailboxes between commas, without anything unusual."""
    mailboxes = []
    for entry in text.split(","):
        found = _SIMPLE.fullmatch(entry.strip(" \t"))
        if found is None:
            return None
        quoted, plain, address, bare = found.groups()
        display = header_text.shown((quoted or plain or "").strip(" \t")) or None
        mailboxes.append(NamedAddress(address or bare, display))
    return AddressFields(tuple(mailboxes), True)


@dataclass(slots=True)
class _Entry:
    """One mailbox while it is read: words and quoted strings, comments, the content of `<>`."""

    words: list[tuple[str, bool]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    angle: str | None = None


class _AddressReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._entry = _Entry()
        self._in_group = False
        self._comments_end = True
        self._exact = True
        self._found: list[NamedAddress] = []

    def read(self) -> AddressFields:
        while self._at < len(self._text) and len(self._found) < MOST_MAILBOXES:
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                break
            self._at = found.end()
            self._take(found)
        self._exact = self._exact and self._at >= len(self._text)
        self._flush()
        return AddressFields(tuple(self._found[:MOST_MAILBOXES]), self._exact and bool(self._found))

    def _take(self, match: re.Match[str]) -> None:
        token = match[0]
        match token[0]:
            case '"':
                self._exact = self._exact and bool(match[2])
                self._entry.words.append((_ESCAPED.sub(r"\1", match[1]), True))
            case "(":
                self._comment()
            case "<":
                self._angle()
            case ">":
                self._exact = False
            case ",":
                self._flush()
            case ";":
                self._exact = self._in_group = False
                self._flush()
            case ":":
                self._colon()
            case _:
                self._entry.words.append((token, False))

    def _comment(self) -> None:
        """Skip the comment that opens here; one that does not end is text."""
        depth, at = 1, self._at
        while depth and self._comments_end:
            mark = _COMMENT_MARK.search(self._text, at)
            if mark is None:
                self._comments_end = self._exact = False
                return
            at = mark.end()
            depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if self._comments_end:
            self._entry.comments.append(self._text[self._at : at - 1])
            self._at = at

    def _angle(self) -> None:
        end = self._text.find(">", self._at)
        comma = self._text.find(",", self._at, end if end >= 0 else len(self._text))
        if end < 0:
            self._exact = False
            end = comma if comma >= 0 else len(self._text)
        inner = self._text[self._at : end]
        self._at = min(end + (self._text[end : end + 1] == ">"), len(self._text))
        if self._entry.angle is not None or "<" in inner:
            # Two addresses in one entry: the reader is shown the last, and nobody trusts it.
            self._exact = False
            inner = inner.rpartition("<")[2]
        # A route is dropped, as RFC 5322 4.4 says, but it may not decide whose mail this is.
        self._exact = self._exact and not inner.lstrip(" \t").startswith("@")
        self._entry.angle = inner

    def _colon(self) -> None:
        if not self._in_group and self._entry.angle is None and not _has_at(self._entry.words):
            self._in_group = True
            self._exact = False
            self._entry = _Entry()
        else:
            self._exact = False
            self._entry.words.append((":", False))

    def _flush(self) -> None:
        entry, self._entry = self._entry, _Entry()
        if entry.angle is not None:
            self._add(_bare(entry.angle), _name(entry.words) or _first(entry.comments))
        elif entry.words:
            self._add_words(entry)

    def _add_words(self, entry: _Entry) -> None:
        """Add an entry without `<>`: an address, or a name and an address, or no address at all."""
        written = "".join(f'"{word}"' if is_quoted else word for word, is_quoted in entry.words).strip(" \t")
        if not written:
            return
        address = _AROUND.sub(r"\1", written) if "@" in written else written
        words = address.split()
        if "@" not in address:
            self._exact = False
            is_local_part = _LOCAL_PART.fullmatch(address) is not None and "=?" not in address
            self._add(*((address, _first(entry.comments)) if is_local_part else ("", _name(entry.words))))
        elif len(words) == 1 or address.startswith('"'):
            self._add(address, _first(entry.comments))
        else:
            self._exact = False
            chosen = next(word for word in reversed(words) if "@" in word)
            rest = " ".join(word for word in words if word != chosen)
            self._add(chosen, header_text.shown(rest) or None)

    def _add(self, address: str, display: str | None) -> None:
        address = header_text.clean(address)
        if not _EXACT_ADDRESS.fullmatch(address) or "=?" in address:
            self._exact = False
        if address or display:
            self._found.append(NamedAddress(address, display))


def _bare(inner: str) -> str:
    """Return the address between `<` and `>` without route, comments and blanks outside quotes."""
    if inner.lstrip(" \t").startswith("@"):
        inner = _ROUTE.sub("", inner, count=1)
    if "(" in inner and '"' not in inner:
        inner = _COMMENT.sub("", inner)
    inner = inner.strip(" \t")
    return inner if inner.startswith('"') else "".join(inner.split())


def _has_at(words: list[tuple[str, bool]]) -> bool:
    return any("@" in word for word, is_quoted in words if not is_quoted)


def _first(comments: list[str]) -> str | None:
    for comment in comments:
        if name := header_text.shown(_ESCAPED.sub(r"\1", comment).strip(" \t")):
            return name
    return None


def _name(words: list[tuple[str, bool]]) -> str | None:
    """Return the display name: runs of plain words collapsed, encoded words decoded, quoted strings as
    they are."""
    pieces = [word if is_quoted else " ".join(word.split()) for word, is_quoted in words]
    return header_text.shown(" ".join(piece for piece in pieces if piece)).strip(" \t") or None
