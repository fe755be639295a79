"""From a parcel to the bytes on the wire: composed once, signed once, in a thread, for all its items.

A thread is handed several parcels at once. What comes while it works gathers for the next flight; there is
no timer, so a single mail is on its way at once, and under load one hand-over serves many. The mails of a
flight come back together, and so the commits behind them are few and large too.

A mail with large attachments is not made in memory: its signature is, and its text; the attachments are read
where they lie, once to be hashed and once more with each attempt that sends them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from pillarbox.delivery.engine import Unsendable
from pillarbox.delivery.items import AttachmentRef, LoadedEmail, ReadBlob, Signing, Wire
from pillarbox.mail.authentication import dkim
from pillarbox.mail.message.attachments import written
from pillarbox.mail.message.compose import Attachment, Message, compose, compose_pieces
from pillarbox.mail.message.files import File, Written, of_bytes
from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.smtp.content import Content

KEYS_KEPT = 1024
LARGE = 512 * 1024
"""Attachments of more bytes than this together, or in the blob store, are read as the message is sent."""

FLIGHT = 16
"""Parcels that a thread is handed at once."""

FLIGHT_BYTES = 512 * 1024
"""Beyond it a flight takes no further parcel; whoever is larger goes alone."""

FLIGHTS = 2
"""Flights at once; the second starts only when it is full."""


class OpensSealed(Protocol):
    """What is needed of the key ring."""

    def open(self, sealed: bytes, context: bytes) -> bytes: ...


class _Order(NamedTuple):
    """All that a thread needs to make one message."""

    parcel: LoadedEmail
    attachments: Sequence[Attachment]
    key: RSAPrivateKey | None
    done: asyncio.Future[Wire]


class Composer:
    """Composes and signs."""

    def __init__(self, ring: OpensSealed, read: ReadBlob, threads: Executor) -> None:
        self._ring = ring
        self._read = read
        self._threads = threads
        self._keys: dict[bytes, RSAPrivateKey] = {}
        self._waiting: deque[_Order] = deque()
        self._flights = 0
        self._preparing: set[asyncio.Task[None]] = set()

    async def wire(self, parcel: LoadedEmail) -> Wire:
        """The complete message; the same bytes at every attempt. Raises `Unsendable`."""
        done = parcel.wire
        if done is None:
            done = parcel.wire = asyncio.get_running_loop().create_future()
            if _is_large(parcel.enclosures):
                task = asyncio.create_task(self._prepare(parcel, done))
                self._preparing.add(task)
                task.add_done_callback(self._preparing.discard)
            else:
                self._order(parcel, done)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            raise
        except BaseException:
            parcel.wire = None
            raise

    async def _prepare(self, parcel: LoadedEmail, done: asyncio.Future[Wire]) -> None:
        """Make a message with large attachments, mail by mail."""
        try:
            made = await self._long(parcel)
        except BaseException as trouble:
            _fail(done, trouble)
            if not isinstance(trouble, Exception):
                raise
        else:
            if not done.done():
                done.set_result(made)

    async def _long(self, parcel: LoadedEmail) -> LongContent:
        key = self._key(parcel.signing) if parcel.signing else None
        loop = asyncio.get_running_loop()
        attachments = [
            _attachment(enclosure, await written(self._file(enclosure), enclosure.content_type))
            for enclosure in parcel.enclosures
        ]
        pieces = await loop.run_in_executor(self._threads, _pieces, parcel, attachments)
        first = pieces[0]
        if key is None or parcel.signing is None or isinstance(first, Written):
            return LongContent(pieces)
        head, _, body = first.partition(b"\r\n\r\n")
        found = dkim.BodyHash()
        async for block in LongContent([body, *pieces[1:]]).blocks():
            found.add(block)
        signing, digest = parcel.signing, found.digest()
        sign = partial(dkim.sign_head, domain=signing.domain, selector=signing.selector, at=parcel.date)
        signature = await loop.run_in_executor(self._threads, partial(sign, head, digest, key=key))
        return LongContent([signature + first, *pieces[1:]])

    def _file(self, enclosure: AttachmentRef) -> File:
        if enclosure.data is not None:
            return of_bytes(enclosure.data)
        if enclosure.blob is None:
            raise ValueError("an attachment without bytes cannot be sent")
        return File(enclosure.size, partial(self._read, enclosure.blob))

    def _order(self, parcel: LoadedEmail, done: asyncio.Future[Wire]) -> None:
        try:
            key = self._key(parcel.signing) if parcel.signing else None
            attachments = [_attachment(e, _data(e)) for e in parcel.enclosures] if parcel.enclosures else ()
        except Exception as trouble:
            _fail(done, trouble)
            return
        self._waiting.append(_Order(parcel, attachments, key, done))
        if self._flights == 0:
            self._flights = 1
            # One turn of the loop lets what is about to be ordered join this flight.
            asyncio.get_running_loop().call_soon(self._fly)
        elif self._flights < FLIGHTS and len(self._waiting) >= FLIGHT:
            self._flights += 1
            self._fly()

    def _fly(self) -> None:
        """Hand what waits to a thread; ends the flight where nothing does."""
        orders = self._gather()
        if not orders:
            self._flights -= 1
            return
        try:
            flight = asyncio.get_running_loop().run_in_executor(self._threads, _seal_all, orders)
        except RuntimeError as closed:
            self._flights -= 1
            for order in orders:
                _fail(order.done, closed)
            return
        flight.add_done_callback(lambda landed: self._land(orders, landed))

    def _gather(self) -> list[_Order]:
        orders: list[_Order] = []
        size = 0
        while self._waiting and len(orders) < FLIGHT:
            size += self._waiting[0].parcel.weight
            if orders and size > FLIGHT_BYTES:
                break
            orders.append(self._waiting.popleft())
        return orders

    def _land(self, orders: Sequence[_Order], landed: asyncio.Future[list[Content | Exception]]) -> None:
        # The next flight leaves first, so that its thread works while these mails are sent.
        self._fly()
        trouble = asyncio.CancelledError() if landed.cancelled() else landed.exception()
        sealed = [trouble] * len(orders) if trouble is not None else landed.result()
        for order, made in zip(orders, sealed, strict=True):
            if isinstance(made, BaseException):
                _fail(order.done, made)
            elif not order.done.done():
                order.done.set_result(made)

    def _key(self, signing: Signing) -> RSAPrivateKey:
        key = self._keys.get(signing.sealed)
        if key is None:
            if len(self._keys) >= KEYS_KEPT:
                self._keys.pop(next(iter(self._keys)))
            key = dkim.load_key(self._ring.open(signing.sealed, signing.context))
            self._keys[signing.sealed] = key
        return key


def _is_large(enclosures: Sequence[AttachmentRef]) -> bool:
    return any(enclosure.blob for enclosure in enclosures) or sum([e.size for e in enclosures]) > LARGE


def _data(enclosure: AttachmentRef) -> bytes:
    if enclosure.data is None:
        raise ValueError("an attachment without bytes cannot be sent")
    return enclosure.data


def _attachment(enclosure: AttachmentRef, content: bytes | Written) -> Attachment:
    return Attachment(enclosure.filename, enclosure.content_type, content, enclosure.cid)


def _fail(done: asyncio.Future[Wire], trouble: BaseException) -> None:
    if done.done():
        return
    if isinstance(trouble, asyncio.CancelledError):
        done.cancel()
    else:
        done.set_exception(trouble)


def _seal_all(orders: Sequence[_Order]) -> list[Content | Exception]:
    """Each order's message, or what befell it."""
    return [_sealed(order) for order in orders]


def _sealed(order: _Order) -> Content | Exception:
    try:
        return _seal(order.parcel, order.attachments, order.key)
    except Exception as trouble:
        return trouble


def _message(parcel: LoadedEmail, attachments: Sequence[Attachment]) -> Message:
    return Message(
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


def _pieces(parcel: LoadedEmail, attachments: Sequence[Attachment]) -> Sequence[bytes | Written]:
    try:
        return compose_pieces(_message(parcel, attachments))
    except ValueError as wrong:
        raise Unsendable("rendering_failed", str(wrong)) from wrong


def _seal(parcel: LoadedEmail, attachments: Sequence[Attachment], key: RSAPrivateKey | None) -> Content:
    try:
        raw = compose(_message(parcel, attachments))
    except ValueError as wrong:
        raise Unsendable("rendering_failed", str(wrong)) from wrong
    if key is None or parcel.signing is None:
        return Content(raw, is_checked=True)
    signature = dkim.sign(
        raw, domain=parcel.signing.domain, selector=parcel.signing.selector, key=key, at=parcel.date
    )
    return Content(signature + raw, is_checked=True)
