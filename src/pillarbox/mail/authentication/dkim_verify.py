"""DKIM signatures of received mail: who vouches for it (RFC 6376, section 6; RFC 8301, RFC 8463; DKIM-03).

    for found in await dkim_verify.verify(raw, lookup, seconds=now): found.result, found.domain

Every signature gets a result in the words of RFC 8601 2.7.1. `pass` means: the signature is right, not
expired, covers From and the whole body, and its key is strong enough. SHA-1 and RSA keys under 1024 bits are
`policy`. So is a signature that leaves a part of the body unsigned (`l=`), since anybody could have appended
that part (RFC 6376, 8.2).

Nothing here raises for what a message or a record holds. The body is hashed once for each way of
canonicalising it: in pieces, so that a large message is not copied, and in a thread, so that nobody waits for
it. The work is linear in the message: of a header beyond the limits that readers of it keep too (INB-03), and
of a signature that names more fields than a header may have, nothing is verified.
"""

from __future__ import annotations

import asyncio
import binascii
import re
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, Protocol

from pillarbox.mail.authentication import dkim, dkim_keys, tag_list
from pillarbox.mail.authentication.dkim_keys import KeyRefused, KeyType
from pillarbox.mail.message.header_block import LONGEST_BLOCK, MOST_FIELDS, ONCE
from pillarbox.mail.smtp.mx import LookupResult

Result = Literal["pass", "fail", "policy", "neutral", "temperror", "permerror"]

MOST_SIGNATURES: Final = 10
PIECE: Final = 1024 * 1024
LONGEST_FIELD: Final = 64 * 1024
IN_PLACE: Final = 64 * 1024
"""Octets of a message that is read at once; a larger one is divided and hashed in a thread."""

ALGORITHMS: Final[dict[str, KeyType]] = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}

UNSIGNED_REPLY_TO: Final = "Reply-To is not signed"
"""The reason of a signature that passes and leaves it to anybody where answers go."""

_FIELD_END = re.compile(rb"\r\n(?![ \t])")
_OWN_SIGNATURE = re.compile(rb"((?:^|;)[ \t\r\n]*b[ \t\r\n]*=)[^;]*")
_SPACES = re.compile(r"[ \t\r\n]+")
_NUMBER = re.compile(r"[0-9]{1,15}")
_FORMS = ("simple", "relaxed")
_BARE_LF = re.compile(rb"(?<!\r)\n")


class KeyLookup(Protocol):
    """The question that DKIM asks of DNS."""

    async def txt(self, name: str) -> LookupResult[str]:
        """Return the TXT records, each with its strings joined; CNAMEs are followed by whoever answers."""
        ...


@dataclass(frozen=True, slots=True)
class Dkim:
    """The result of verifying one signature; `domain` (d=) and `selector` (s=) are "" where it has none."""

    result: Result
    domain: str
    selector: str
    identity: str
    algorithm: str
    signature: str
    reason: str | None = None
    testing: bool = False

    @property
    def passed(self) -> bool:
        return self.result == "pass"


@dataclass(frozen=True, slots=True)
class _Signature:
    """A signature whose form is right."""

    domain: str
    selector: str
    identity: str
    algorithm: str
    forms: tuple[str, str]
    names: tuple[str, ...]
    body_hash: bytes
    signature: bytes
    length: int | None
    expires: int | None


class _SignatureRefused(Exception):  # noqa: N818 - a result for the mail, not a mistake of ours
    def __init__(self, result: Result, reason: str) -> None:
        super().__init__(reason)
        self.result = result
        self.reason = reason


async def verify(raw: bytes, lookup: KeyLookup, *, seconds: int) -> tuple[Dkim, ...]:
    """Return the results of the first ten signatures, from the top; `seconds` is the time now."""
    message = _Message(raw) if len(raw) <= IN_PLACE else await asyncio.to_thread(_Message, raw)
    places = [at for at, (name, _) in enumerate(message.fields) if name == b"dkim-signature"]
    checks = [_checked(message, at, lookup, seconds) for at in places[:MOST_SIGNATURES]]
    return tuple(await asyncio.gather(*checks))


async def _checked(message: _Message, index: int, lookup: KeyLookup, seconds: int) -> Dkim:
    tags: dict[str, str] = {}
    testing = False
    result: Result = "pass"
    reason = None
    try:
        tags = _tags(message.fields[index][1])
        found = _signature(tags)
        if not message.is_readable:
            raise _SignatureRefused("neutral", "the header is too long")
        if found.expires is not None and found.expires < seconds:
            raise _SignatureRefused("fail", "the signature has expired")
        answer = await lookup.txt(f"{found.selector}._domainkey.{found.domain}")
        if answer.status == "failed":
            raise _SignatureRefused("temperror", "the key cannot be looked up at the moment")
        key = dkim_keys.key_of(list(answer.records), ALGORITHMS[found.algorithm])
        testing = key.testing
        if key.strict_identity and found.identity.rpartition("@")[2] != found.domain:
            raise _SignatureRefused("permerror", "the key may not sign for subdomains")
        await _check_body(message, found)
        if not key.verifies(found.signature, message.header_hash(found, index)):
            raise _SignatureRefused("fail", "the signature does not fit the header")
        if message.repeated is not None:
            raise _SignatureRefused("policy", f"{message.repeated} stands more than once")
        if message.has_reply_to and "reply-to" not in found.names:
            reason = UNSIGNED_REPLY_TO
    except (_SignatureRefused, KeyRefused) as wrong:
        result, reason = wrong.result, wrong.reason
    return Dkim(
        result=result,
        domain=_shown(tags.get("d", "")).lower(),
        selector=_shown(tags.get("s", "")),
        identity=_shown(tags.get("i", "")),
        algorithm=_shown(tags.get("a", "")).lower(),
        signature=_SPACES.sub("", tags.get("b", ""))[:16],
        reason=reason,
        testing=testing,
    )


async def _check_body(message: _Message, signature: _Signature) -> None:
    digest, length = await message.body_hash(signature.forms[1])
    if signature.length is not None and signature.length > length:
        raise _SignatureRefused("permerror", "l= is longer than the body")
    # Such a signature proves nothing here, so it is not worth another pass over the body.
    if signature.length is not None and signature.length < length:
        raise _SignatureRefused("policy", "a part of the body is not signed")
    if digest != signature.body_hash:
        raise _SignatureRefused("fail", "the body has been changed")


def _tags(field: bytes) -> dict[str, str]:
    if len(field) > LONGEST_FIELD:
        raise _SignatureRefused("neutral", "the signature is too long to be one")
    try:
        return tag_list.parse(field.partition(b":")[2].decode("ascii"))
    except (tag_list.TagError, UnicodeDecodeError):
        raise _SignatureRefused("neutral", "the signature is no tag list") from None


def _signature(tags: dict[str, str]) -> _Signature:
    """Return the signature of these tags when its form is right (RFC 6376, 3.5 and 6.1.1)."""
    missing = {"v", "a", "b", "bh", "d", "h", "s"} - tags.keys()
    if missing:
        raise _SignatureRefused("permerror", f"{min(missing)}= is missing")
    if tags["v"] != "1":
        raise _SignatureRefused("neutral", "the version is not known")
    algorithm = tags["a"].lower()
    if algorithm == "rsa-sha1":
        raise _SignatureRefused("policy", "SHA-1 proves nothing any more")
    if algorithm not in ALGORITHMS:
        raise _SignatureRefused("neutral", "the algorithm is not known")
    domain, selector = tags["d"].lower(), tags["s"]
    if not (dkim.HOST.fullmatch(domain) and dkim.HOST.fullmatch(selector)):
        raise _SignatureRefused("permerror", "d= or s= is no domain name")
    names = tuple([name.lower() for name in tag_list.names(tags["h"])])
    if "from" not in names:
        raise _SignatureRefused("permerror", "From is not signed")
    if len(names) > MOST_FIELDS:
        raise _SignatureRefused("neutral", "h= names too many fields")
    if "dns/txt" not in tag_list.names(tags.get("q", "dns/txt").lower()):
        raise _SignatureRefused("neutral", "the key is not in DNS")
    created, expires = _number(tags, "t"), _number(tags, "x")
    if created is not None and expires is not None and expires < created:
        raise _SignatureRefused("permerror", "it expires before it was made")
    return _Signature(
        domain=domain,
        selector=selector,
        identity=_identity(tags, domain),
        algorithm=algorithm,
        forms=_forms(tags.get("c", "simple/simple").lower()),
        names=names,
        body_hash=_octets(tags["bh"]),
        signature=_octets(tags["b"]),
        length=_number(tags, "l"),
        expires=expires,
    )


def _identity(tags: dict[str, str], domain: str) -> str:
    """Return the value of `i=` in lower-case domain form; it must lie in the signing domain."""
    identity = tags.get("i", f"@{domain}")
    local, _, host = identity.rpartition("@")
    host = host.lower()
    if host != domain and not host.endswith(f".{domain}"):
        raise _SignatureRefused("permerror", "i= is not in the signing domain")
    return f"{local}@{host}"


def _forms(text: str) -> tuple[str, str]:
    header, _, body = text.partition("/")
    body = body or "simple"
    if header not in _FORMS or body not in _FORMS:
        raise _SignatureRefused("neutral", "the canonical form is not known")
    return header, body


def _number(tags: dict[str, str], name: str) -> int | None:
    text = tags.get(name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise _SignatureRefused("permerror", f"{name}= is no number")
    return int(text)


def _octets(text: str) -> bytes:
    try:
        return binascii.a2b_base64(_SPACES.sub("", text), strict_mode=True)
    except binascii.Error:
        raise _SignatureRefused("permerror", "b= or bh= is no base64") from None


def _shown(text: str) -> str:
    return _SPACES.sub("", text)[:255]


class _Message:
    """The fields and the body of one message, with the hashes that were made of it."""

    def __init__(self, raw: bytes) -> None:
        if raw.count(b"\n") != raw.count(b"\r\n"):
            raw = _BARE_LF.sub(b"\r\n", raw)
        end = 0 if raw.startswith(b"\r\n") else raw.find(b"\r\n\r\n")
        length = end if end >= 0 else len(raw)
        head = raw[: min(length, LONGEST_BLOCK)]
        self._raw = raw
        self._body_start = len(raw) if end < 0 else end + (4 if end else 2)
        self._bodies: dict[str, asyncio.Future[tuple[bytes, int]]] = {}
        self.fields = [
            (field.partition(b":")[0].rstrip(b" \t").lower(), field)
            for field in _FIELD_END.split(head.removesuffix(b"\r\n"), MOST_FIELDS)
        ]
        self.is_readable = length <= LONGEST_BLOCK and len(self.fields) <= MOST_FIELDS
        """Whether all of the header is in `fields`, one by one."""
        self._places: dict[bytes, list[int]] = {}
        for at, (name, _) in enumerate(self.fields):
            self._places.setdefault(name, []).append(at)
        self.repeated = next(
            (
                name.decode("ascii").title()
                for name, places in self._places.items()
                if len(places) > 1 and name.isascii() and name.decode("ascii") in ONCE
            ),
            None,
        )
        """A field that may stand once and stands more often."""
        self.has_reply_to = b"reply-to" in self._places

    def body_hash(self, form: str) -> Awaitable[tuple[bytes, int]]:
        """Return the digest of the canonical body, and its length; made once for each form."""
        made = self._bodies.get(form)
        if made is None:
            made = self._bodies[form] = asyncio.ensure_future(self._hashed(form))
        return made

    async def _hashed(self, form: str) -> tuple[bytes, int]:
        if len(self._raw) <= IN_PLACE:
            return _body_hash(self._raw, self._body_start, form)
        return await asyncio.to_thread(_body_hash, self._raw, self._body_start, form)

    def header_hash(self, signature: _Signature, own: int) -> bytes:
        """Return the digest of the signed fields, from the bottom of each name upwards (5.4.2), and of
        its own."""
        digest = sha256()
        above: dict[bytes, int] = {}
        for name in signature.names:
            key = name.encode()
            places = self._places.get(key, [])
            place = above.get(key, len(places)) - 1
            if place >= 0 and places[place] == own:
                place -= 1
            above[key] = place
            if place >= 0:
                digest.update(_canonical_field(self.fields[places[place]][1], signature.forms[0]))
        own_field = self.fields[own][1]
        name_part, colon, value = own_field.partition(b":")
        unsigned = name_part + colon + _OWN_SIGNATURE.sub(rb"\1", value, count=1)
        digest.update(_canonical_field(unsigned, signature.forms[0]).removesuffix(b"\r\n"))
        return digest.digest()


def _body_hash(raw: bytes, start: int, form: str) -> tuple[bytes, int]:
    digest, length = sha256(), 0
    for piece in canonical_body(raw, start, form):
        digest.update(piece)
        length += len(piece)
    return digest.digest(), length


def _canonical_field(field: bytes, form: str) -> bytes:
    return dkim.relaxed_header(field) if form == "relaxed" else field + b"\r\n"


def canonical_body(raw: bytes, start: int, form: str) -> Iterator[bytes]:
    """Yield the body as it is hashed, in pieces of whole lines (RFC 6376, 3.4.3 and 3.4.4)."""
    held, has_text, at = 0, False, start
    while at < len(raw):
        cut = raw.find(b"\r\n", min(at + PIECE, len(raw)))
        end = len(raw) if cut < 0 else cut + 2
        piece = raw[at:end]
        at = end
        if form == "relaxed":
            piece = dkim.collapsed(piece).replace(b" \r\n", b"\r\n").removesuffix(b" ")
        text, ends = _without_line_ends(piece)
        if text:
            yield b"\r\n" * held
            yield text
            held, has_text = 0, True
        held += ends
    # Empty lines at the end count for nothing; what has a last line has its line end.
    if has_text or form == "simple":
        yield b"\r\n"


def _without_line_ends(piece: bytes) -> tuple[bytes, int]:
    """Return the piece without the CRLF pairs at its end, and how many they were."""
    text = piece.rstrip(b"\r\n")
    # NUL stands for a pair: what follows the last lone CR or LF are the pairs at the end.
    tail = piece[len(text) :].replace(b"\r\n", b"\0")
    kept = tail.rstrip(b"\0")
    return (text + kept.replace(b"\0", b"\r\n"), len(tail) - len(kept)) if kept else (text, len(tail))
