"""A strict DKIM verifier (RFC 6376) that shares no code with the signer.

It reads a message line by line as the RFC describes it, so that a mistake in the signer's faster ways
shows as a broken signature.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

TagList = dict[str, str]
Records = Callable[[str], str | None]


class DkimError(Exception):
    """Why the signature does not hold."""


def verify(message: bytes, records: Records) -> TagList:
    """Return the tags of the topmost DKIM-Signature if it holds; `records(name)` is the TXT record of
    a name."""
    fields, body = _parse(message)
    positions = [i for i, (name, _) in enumerate(fields) if _lower(name) == "dkim-signature"]
    if not positions:
        raise DkimError("no signature")
    own_name, own_value = fields[positions[0]]
    tags = _tags(own_value.decode("ascii"))
    _check_form(tags)
    _check_body(tags, body)
    others = [field for i, field in enumerate(fields) if i != positions[0]]
    own = own_name + b":" + _without_signature(own_value)
    _check_signature(tags, _header_input(tags, others, own), _public_key(tags, records))
    return tags


def _parse(message: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    fields: list[tuple[bytes, bytes]] = []
    rest = message
    while rest:
        line, end, rest = rest.partition(b"\r\n")
        if not end:
            raise DkimError("header without CRLF")
        if line == b"":
            return fields, rest
        if line[:1] in (b" ", b"\t"):
            if not fields:
                raise DkimError("the message starts with a continuation line")
            name, value = fields[-1]
            fields[-1] = (name, value + b"\r\n" + line)
            continue
        name, colon, value = line.partition(b":")
        if not colon:
            raise DkimError("a header line without a colon")
        fields.append((name, value))
    return fields, b""


def _tags(text: str) -> TagList:
    """Return a tag list (RFC 6376, 3.2): a tag that occurs twice spoils the list."""
    tags: TagList = {}
    for item in re.sub(r"\r\n(?=[ \t])", "", text).split(";"):
        if not item.strip(" \t\r\n"):
            continue
        name, equals, value = item.partition("=")
        name = name.strip(" \t")
        if not equals or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in tags:
            raise DkimError(f"bad tag list at {item!r}")
        tags[name] = value.strip(" \t")
    return tags


def _check_form(tags: TagList) -> None:
    missing = {"v", "a", "b", "bh", "d", "h", "s"} - tags.keys()
    if missing:
        raise DkimError(f"missing tags {sorted(missing)}")
    if tags["v"] != "1" or tags["a"] not in ("rsa-sha256", "ed25519-sha256"):
        raise DkimError("unknown version or algorithm")
    if tags.get("c") != "relaxed/relaxed":
        raise DkimError("only relaxed/relaxed is read here")
    if "l" in tags:
        raise DkimError("l= lets text be appended")
    if "from" not in _names(tags):
        raise DkimError("From is not signed")


def _names(tags: TagList) -> list[str]:
    return [name.strip(" \t").lower() for name in tags["h"].split(":")]


def _check_body(tags: TagList, body: bytes) -> None:
    if hashlib.sha256(_canonical_body(body)).digest() != _base64(tags["bh"]):
        raise DkimError("body hash differs")


def _canonical_body(body: bytes) -> bytes:
    lines = body.split(b"\r\n")
    if lines[-1] == b"":
        lines.pop()
    reduced = [re.sub(rb"[ \t]+", b" ", line).removesuffix(b" ") for line in lines]
    while reduced and reduced[-1] == b"":
        reduced.pop()
    return b"".join(line + b"\r\n" for line in reduced)


def _header_input(tags: TagList, fields: list[tuple[bytes, bytes]], own: bytes) -> bytes:
    waiting: dict[str, list[bytes]] = {}
    for name, value in fields:
        waiting.setdefault(_lower(name), []).append(_canonical_header(name + b":" + value))
    chosen = []
    for wanted in _names(tags):
        if waiting.get(wanted):
            chosen.append(waiting[wanted].pop() + b"\r\n")
    return b"".join(chosen) + _canonical_header(own)


def _canonical_header(field: bytes) -> bytes:
    name, _, value = field.partition(b":")
    unfolded = value.replace(b"\r\n", b"")
    return name.strip(b" \t").lower() + b":" + re.sub(rb"[ \t]+", b" ", unfolded).strip(b" ")


def _without_signature(value: bytes) -> bytes:
    """Return the header's own value with the content of `b=` and the white space around it taken out."""
    return re.sub(rb"((?:^|;)[ \t\r\n]*b[ \t\r\n]*=)[^;]*", rb"\1", value, count=1)


def _public_key(tags: TagList, records: Records) -> rsa.RSAPublicKey | ed25519.Ed25519PublicKey:
    record = records(f"{tags['s']}._domainkey.{tags['d']}")
    if record is None:
        raise DkimError("no key record")
    raw = _base64(_tags(record).get("p", ""))
    if tags["a"] == "ed25519-sha256":
        return ed25519.Ed25519PublicKey.from_public_bytes(raw)
    key = load_der_public_key(raw)
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size < 1024:
        raise DkimError("the key is not RSA or too short")
    return key


def _check_signature(tags: TagList, signed: bytes, key: rsa.RSAPublicKey | ed25519.Ed25519PublicKey) -> None:
    signature = _base64(tags["b"])
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, signed, padding.PKCS1v15(), SHA256())
        else:
            key.verify(signature, hashlib.sha256(signed).digest())
    except InvalidSignature:
        raise DkimError("the signature does not hold") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(re.sub(r"[ \t\r\n]", "", text), validate=True)
    except ValueError:
        raise DkimError("bad base64") from None


def _lower(name: bytes) -> str:
    return name.strip(b" \t").decode("latin-1").lower()
