"""DKIM signatures (RFC 6376): RSA-2048 with SHA-256, relaxed/relaxed, oversigned.

`sign` takes the finished message, exactly the bytes that will be sent, and returns the header to put in front
of it. Every header of `SIGNED` is named once more than it occurs (RFC 6376, 8.15). So nobody can add a second
From, Subject or List-Unsubscribe on the way without breaking the signature. There is no `l=` (text could be
appended) and no `x=` (a slow queue must not invalidate its own mail).

Canonicalisation works on whole buffers: its cost is a few passes of C code over the message, not a
Python step per line. OpenSSL releases the interpreter lock while it signs, so `sign` scales in threads.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

SIGNED = (
    b"from",
    b"to",
    b"cc",
    b"subject",
    b"date",
    b"message-id",
    b"reply-to",
    b"mime-version",
    b"content-type",
    b"content-transfer-encoding",
    b"in-reply-to",
    b"references",
    b"feedback-id",
    b"list-id",
    b"list-unsubscribe",
    b"list-unsubscribe-post",
)
"""Always in `h=`, whether the message has them or not; other List-* headers join when they occur."""

KEY_BITS = 2048
COLUMNS = 76
HOST = re.compile(
    r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
)

_PADDING = PKCS1v15()
_DIGEST = hashes.SHA256()


class KeyPair(NamedTuple):
    """A new signing key: PKCS #8 DER for the vault, base64 of the public half for DNS."""

    private: bytes
    public: str


def generate_rsa_key() -> KeyPair:
    """Make an RSA-2048 key."""
    key = generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return KeyPair(private, b64encode(public).decode())


def load_key(der: bytes) -> RSAPrivateKey:
    """Return the key of `generate_rsa_key`, ready to sign; raise ValueError for anything else.

    The primes are not tested again (that takes 50 ms): the bytes are our own, and whoever stores them
    stores them authenticated.
    """
    key = serialization.load_der_private_key(der, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("not an RSA key")
    return key


def sign(message: bytes, *, domain: str, selector: str, key: RSAPrivateKey, instant: datetime | int) -> bytes:
    """Return the `DKIM-Signature: …` header for `message`, CR LF included (RFC 6376, 3.5 and 3.7).

    `message` has clean CR LF line ends and a From header, or ValueError is raised.
    """
    head, body = _split(message)
    digest = sha256(relaxed_body(body)).digest()
    return sign_head(head, digest, domain=domain, selector=selector, key=key, instant=instant)


def sign_head(
    head: bytes, body_hash: bytes, *, domain: str, selector: str, key: RSAPrivateKey, instant: datetime | int
) -> bytes:
    """Return the header for a message whose body is elsewhere: its header block without its last CR LF, and
    what `BodyHash` made of its body."""
    names, fields = _relaxed_fields(head)
    if b"from" not in names:
        raise ValueError("a message without From cannot be signed")
    seconds = instant if isinstance(instant, int) else int(instant.timestamp())
    tag, chosen = _selection(names)
    signed = [fields[instant] for instant in chosen]
    unsigned = b"%bt=%d;\r\n\t%b;\r\n\tbh=%b;\r\n\tb=" % (
        _identity(domain, selector),
        seconds,
        tag,
        b64encode(body_hash),
    )
    signed.append(relaxed_header(unsigned)[:-2])
    signature = key.sign(b"\r\n".join(signed), _PADDING, _DIGEST)
    return unsigned + _folded(b64encode(signature)) + b"\r\n"


def relaxed_header(field: bytes) -> bytes:
    """Return one header field as DKIM hashes it in relaxed form, CR LF included (RFC 6376, 3.4.2)."""
    name, _, value = _single_spaced(field.removesuffix(b"\r\n")).partition(b":")
    return name.rstrip(b" ").lower() + b":" + value.strip(b" ") + b"\r\n"


def relaxed_body(body: bytes) -> bytes:
    """Return the body as DKIM hashes it in relaxed form (RFC 6376, 3.4.4)."""
    body = collapsed(body).replace(b" \r\n", b"\r\n").removesuffix(b" ")
    if not body:
        return b""
    if not body.endswith(b"\r\n"):
        return body + b"\r\n"
    if body[-3:-2] not in (b"", b"\r", b"\n"):
        return body
    text = body.rstrip(b"\r\n")
    # Lone CR and LF are content, so only whole pairs fall away; NUL stands for a pair and cannot occur here.
    rest = body[len(text) :].replace(b"\r\n", b"\0").rstrip(b"\0").replace(b"\0", b"\r\n")
    kept = text + rest
    return kept + b"\r\n" if kept else b""


class BodyHash:
    """SHA-256 of a body in relaxed form that comes block by block, with no line end but CR LF in it.

    Whole lines are hashed as they come; empty ones wait until another follows, since those at the end do not
    count (RFC 6376, 3.4.4).
    """

    def __init__(self) -> None:
        self._hash = sha256()
        self._rest = b""
        self._empty = 0
        self._is_begun = False

    def add(self, block: bytes) -> None:
        """Add the next octets; they may end anywhere but between a CR and its LF."""
        lines, end, rest = block.rpartition(b"\r\n")
        if end:
            self._take(self._rest + lines)
            self._rest = rest
        else:
            self._rest += rest

    def digest(self) -> bytes:
        """Return the hash, once everything was added."""
        if self._rest:
            self._take(self._rest)
            self._rest = b""
        if self._is_begun:
            self._hash.update(b"\r\n")
        return self._hash.digest()

    def _take(self, lines: bytes) -> None:
        """Take lines, the last one without its line end."""
        lines = collapsed(lines).replace(b" \r\n", b"\r\n").removesuffix(b" ")
        text = lines.rstrip(b"\r\n")
        if text:
            # The line end before these lines is written with them: at the very end there is one anyway.
            self._hash.update(b"\r\n" * (self._empty + self._is_begun))
            self._hash.update(text)
            self._is_begun, self._empty = True, (len(lines) - len(text)) // 2
        else:
            self._empty += len(lines) // 2 + 1


def _split(message: bytes) -> tuple[bytes, bytes]:
    """Return the header block without its last CR LF, and the body."""
    if message.startswith(b"\r\n"):
        return b"", message[2:]
    head, _, body = message.partition(b"\r\n\r\n")
    return head.removesuffix(b"\r\n"), body


def collapsed(text: bytes) -> bytes:
    """Return `text` with every run of spaces and tabs as one space; the passes halve the longest run."""
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text


def _single_spaced(text: bytes) -> bytes:
    """Return the header text unfolded, with single spaces."""
    return collapsed(text.replace(b"\r\n ", b" ").replace(b"\r\n\t", b" "))


def _relaxed_fields(head: bytes) -> tuple[tuple[bytes, ...], list[bytes]]:
    """Return the names of the fields in lower case, and the relaxed fields without CR LF; both in
    their order."""
    names: list[bytes] = []
    fields: list[bytes] = []
    for line in _single_spaced(head).split(b"\r\n"):
        name, _, value = line.partition(b":")
        name = name.rstrip(b" ").lower()
        names.append(name)
        fields.append(name + b":" + value.strip(b" "))
    return tuple(names), fields


@lru_cache(maxsize=1024)
def _selection(names: tuple[bytes, ...]) -> tuple[bytes, tuple[int, ...]]:
    """Return the `h=` tag for a message with these fields, and which of them it stands for: of each name from
    the bottom upwards (RFC 6376, 5.4.2). The mails of one sender have the same fields."""
    wanted: list[bytes] = []
    chosen: list[int] = []
    for name in (*SIGNED, *_further_list_headers(names)):
        present = [at for at, found in enumerate(names) if found == name]
        wanted += [name] * (len(present) + 1)
        chosen += reversed(present)
    return _names_tag(wanted), tuple(chosen)


def _further_list_headers(names: Sequence[bytes]) -> list[bytes]:
    return [name for name in dict.fromkeys(names) if name.startswith(b"list-") and name not in SIGNED]


@lru_cache(maxsize=1024)
def _identity(domain: str, selector: str) -> bytes:
    """Return the part of the header that names the key."""
    if not (HOST.fullmatch(domain) and HOST.fullmatch(selector)):
        raise ValueError("domain and selector must be ASCII host names")
    text = f"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n\td={domain}; s={selector};"
    glue = "\r\n\t" if len(domain) + len(selector) > COLUMNS - 24 else " "
    return (text + glue).encode("ascii")


def _names_tag(names: Sequence[bytes]) -> bytes:
    """Return the `h=` tag, folded between names (RFC 6376, 3.5)."""
    lines = [b"h=" + names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(name) + 2 > COLUMNS:
            lines[-1] += b":"
            lines.append(name)
        else:
            lines[-1] += b":" + name
    return b"\r\n\t".join(lines)


def _folded(text: bytes) -> bytes:
    """Return Base64 text in lines of at most 72 characters; the white space counts for nothing."""
    return b"\r\n\t".join([text[i : i + 72] for i in range(0, len(text), 72)])
