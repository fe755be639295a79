"""From a parcel to the bytes on the wire: composed once, signed once, in a thread, for all its items."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from pillarbox.delivery.engine import Unsendable
from pillarbox.delivery.items import Enclosure, Parcel, ReadEnclosure, Signing
from pillarbox.kernel.budget import ByteBudget
from pillarbox.mail import dkim
from pillarbox.mail.compose import Attachment, Message, compose

KEYS_KEPT = 1024
MOST_BYTES = 48 * 1024 * 1024
"""Bytes of attachments that may be in composition at once; the next large mail waits its turn."""


class OpensSealed(Protocol):
    """What is needed of the key ring."""

    def open(self, sealed: bytes, context: bytes) -> bytes: ...


class Sealer:
    """Composes and signs."""

    def __init__(self, ring: OpensSealed, read: ReadEnclosure, threads: Executor) -> None:
        self._ring = ring
        self._read = read
        self._threads = threads
        self._keys: dict[bytes, RSAPrivateKey] = {}
        self._budget = ByteBudget(MOST_BYTES)

    async def wire(self, parcel: Parcel) -> bytes:
        """The complete message; the same bytes at every attempt. Raises `Unsendable`."""
        if parcel.wire is None:
            parcel.wire = asyncio.create_task(self._make(parcel))
        try:
            return await asyncio.shield(parcel.wire)
        except asyncio.CancelledError:
            raise
        except BaseException:
            parcel.wire = None
            raise

    async def _make(self, parcel: Parcel) -> bytes:
        size = sum(enclosure.size for enclosure in parcel.enclosures)
        async with self._budget.of(size):
            attachments = [await self._attachment(enclosure) for enclosure in parcel.enclosures]
            key = self._key(parcel.signing) if parcel.signing else None
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, _seal, parcel, attachments, key)

    async def _attachment(self, enclosure: Enclosure) -> Attachment:
        data = enclosure.data if enclosure.data is not None else await self._read(enclosure)
        return Attachment(enclosure.filename, enclosure.content_type, data, enclosure.cid)

    def _key(self, signing: Signing) -> RSAPrivateKey:
        key = self._keys.get(signing.sealed)
        if key is None:
            if len(self._keys) >= KEYS_KEPT:
                self._keys.pop(next(iter(self._keys)))
            key = dkim.load_key(self._ring.open(signing.sealed, signing.context))
            self._keys[signing.sealed] = key
        return key


def _seal(parcel: Parcel, attachments: Sequence[Attachment], key: RSAPrivateKey | None) -> bytes:
    message = Message(
        sender=parcel.sender,
        to=parcel.to,
        cc=parcel.cc,
        reply_to=parcel.reply_to,
        subject=parcel.subject,
        date=parcel.date,
        message_id=parcel.message_id,
        html=parcel.html,
        text=parcel.text,
        headers=parcel.headers,
        attachments=attachments,
        seed=parcel.email_id.bytes,
    )
    try:
        raw = compose(message)
    except ValueError as wrong:
        raise Unsendable("rendering_failed", str(wrong)) from wrong
    if key is None or parcel.signing is None:
        return raw
    signature = dkim.sign(
        raw, domain=parcel.signing.domain, selector=parcel.signing.selector, key=key, at=parcel.date
    )
    return signature + raw
