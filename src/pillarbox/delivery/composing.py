"""Composing and signing: an email becomes the bytes on the wire, once for all its items, in a thread.
Where each recipient has a copy of its own, that is once for each of them.

A thread gets several emails at once. Emails that arrive while it works are queued for the next batch. There
is no timer: a single email is composed at once, and under load one call of a thread composes many. The emails
of a batch are finished together, so the commits that follow them are few and large too.

A mail with large attachments is not made in memory: its signature is, and its text; the attachments are read
from their store, once to be hashed and once more with each attempt that sends them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from pillarbox.delivery.items import AttachmentRef, LoadedEmail, PersonalCopy, ReadBlob, SigningDomain, Wire
from pillarbox.delivery.other_mail import TransactionalActivity
from pillarbox.mail.authentication import dkim
from pillarbox.mail.html.links import tracked
from pillarbox.mail.message.attachments import written
from pillarbox.mail.message.compose import OutgoingFile, OutgoingMessage, compose, compose_pieces
from pillarbox.mail.message.files import EncodedFile, ExternalFile, of_bytes
from pillarbox.mail.message.long_content import LongContent
from pillarbox.mail.placeholders.parsing import UNSUBSCRIBE_URL, Span, filled, filled_at
from pillarbox.mail.smtp.content import SmtpContent

KEYS_KEPT = 1024
LARGE = 512 * 1024
"""Attachments of more bytes than this together, or in the blob store, are read as the message is sent."""

BATCH = 16
"""Emails that a thread gets at once."""

FEW_COPIES = 4
"""Copies of broadcasts that a thread gets at once while there is other mail, which waits so long for it."""

BATCH_BYTES = 512 * 1024
"""Beyond it a batch takes no further email; a larger email is a batch of its own."""

MOST_BATCHES = 2
"""Batches at once; the second starts only when it is full."""


class EmailUnsendable(Exception):  # noqa: N818 - the email is at fault, not the program
    """The email itself cannot be made into a message; `reason` is one of `failed.reason`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class OpensSealed(Protocol):
    """The part of a key ring that composing needs."""

    def open(self, sealed: bytes, context: bytes) -> bytes: ...


class _ComposeRequest(NamedTuple):
    """All that a thread needs to make one message."""

    email: LoadedEmail
    copy: PersonalCopy | None
    attachments: Sequence[OutgoingFile]
    key: RSAPrivateKey | None
    done: asyncio.Future[Wire]


class Composer:
    """Composes and signs. Beside other mail, copies of broadcasts are composed in smaller batches."""

    def __init__(
        self,
        ring: OpensSealed,
        read: ReadBlob,
        threads: Executor,
        other_mail: TransactionalActivity | None = None,
    ) -> None:
        self._ring = ring
        self._read = read
        self._threads = threads
        self._keys: dict[bytes, RSAPrivateKey] = {}
        self._queued: deque[_ComposeRequest] = deque()
        self._copies: deque[_ComposeRequest] = deque()
        """Copies of broadcasts, which other mail goes before."""

        self._other_mail = other_mail
        self._batches = 0
        self._preparing: set[asyncio.Task[None]] = set()

    async def wire(self, email: LoadedEmail, copy: PersonalCopy | None = None) -> Wire:
        """Return the complete message, of this copy where there is one; the same bytes at every attempt.
        Raise `EmailUnsendable`."""
        kept = email if copy is None else copy
        done = kept.wire
        if done is None:
            done = kept.wire = asyncio.get_running_loop().create_future()
            if _is_large(email.attachments):
                task = asyncio.create_task(self._prepare(email, copy, done))
                self._preparing.add(task)
                task.add_done_callback(self._preparing.discard)
            else:
                self._enqueue(email, copy, done)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            raise
        except BaseException:
            kept.wire = None
            raise

    async def _prepare(
        self, email: LoadedEmail, copy: PersonalCopy | None, done: asyncio.Future[Wire]
    ) -> None:
        """Make a message with large attachments, mail by mail."""
        try:
            made = await self._long(email, copy)
        except BaseException as trouble:
            _fail(done, trouble)
            if not isinstance(trouble, Exception):
                raise
        else:
            if not done.done():
                done.set_result(made)

    async def _long(self, email: LoadedEmail, copy: PersonalCopy | None) -> LongContent:
        key = self._key(email.signing) if email.signing else None
        loop = asyncio.get_running_loop()
        attachments = [
            _attachment(ref, await written(self._file(ref), ref.content_type)) for ref in email.attachments
        ]
        pieces = await loop.run_in_executor(self._threads, _pieces, email, copy, attachments)
        first = pieces[0]
        if key is None or email.signing is None or isinstance(first, EncodedFile):
            return LongContent(pieces)
        head, _, body = first.partition(b"\r\n\r\n")
        found = dkim.BodyHash()
        async for block in LongContent([body, *pieces[1:]]).blocks():
            found.add(block)
        signing, digest = email.signing, found.digest()
        sign = partial(dkim.sign_head, domain=signing.domain, selector=signing.selector, instant=email.date)
        signature = await loop.run_in_executor(self._threads, partial(sign, head, digest, key=key))
        return LongContent([signature + first, *pieces[1:]])

    def _file(self, ref: AttachmentRef) -> ExternalFile:
        if ref.data is not None:
            return of_bytes(ref.data)
        if ref.blob is None:
            raise ValueError("an attachment without bytes cannot be sent")
        return ExternalFile(ref.size, partial(self._read, ref.blob))

    def _enqueue(self, email: LoadedEmail, copy: PersonalCopy | None, done: asyncio.Future[Wire]) -> None:
        try:
            if email.sealed is not None:
                email.text = self._ring.open(*email.sealed).decode()
            key = self._key(email.signing) if email.signing else None
            attachments = [_attachment(e, _data(e)) for e in email.attachments] if email.attachments else ()
        except Exception as trouble:
            _fail(done, trouble)
            return
        is_copy = email.make is not None
        queue, most = (self._copies, self._most_copies) if is_copy else (self._queued, BATCH)
        queue.append(_ComposeRequest(email=email, copy=copy, attachments=attachments, key=key, done=done))
        if self._batches == 0:
            self._batches = 1
            # One iteration of the event loop lets further emails join this batch.
            asyncio.get_running_loop().call_soon(self._start_batch)
        elif self._batches < MOST_BATCHES and len(queue) >= most:
            self._batches += 1
            self._start_batch()

    @property
    def _most_copies(self) -> int:
        return FEW_COPIES if self._other_mail is not None and self._other_mail.is_here else BATCH

    def _start_batch(self) -> None:
        """Give the next batch to a thread; where nothing is queued, one batch less runs."""
        requests = self._next_batch()
        if not requests:
            self._batches -= 1
            return
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, _compose_all, requests)
        except RuntimeError as closed:
            self._batches -= 1
            for request in requests:
                _fail(request.done, closed)
            return
        future.add_done_callback(lambda finished: self._finish_batch(requests, finished))

    def _next_batch(self) -> list[_ComposeRequest]:
        queue, most = (self._queued, BATCH) if self._queued else (self._copies, self._most_copies)
        requests: list[_ComposeRequest] = []
        size = 0
        while queue and len(requests) < most:
            size += queue[0].email.weight + queue[0].email.shared
            if requests and size > BATCH_BYTES:
                break
            requests.append(queue.popleft())
        return requests

    def _finish_batch(
        self, requests: Sequence[_ComposeRequest], finished: asyncio.Future[list[SmtpContent | Exception]]
    ) -> None:
        # The next batch starts first, so that its thread works while these mails are sent.
        self._start_batch()
        trouble = asyncio.CancelledError() if finished.cancelled() else finished.exception()
        composed = [trouble] * len(requests) if trouble is not None else finished.result()
        for request, made in zip(requests, composed, strict=True):
            if isinstance(made, BaseException):
                _fail(request.done, made)
            elif not request.done.done():
                request.done.set_result(made)

    def _key(self, signing: SigningDomain) -> RSAPrivateKey:
        key = self._keys.get(signing.sealed)
        if key is None:
            if len(self._keys) >= KEYS_KEPT:
                self._keys.pop(next(iter(self._keys)))
            key = dkim.load_key(self._ring.open(signing.sealed, signing.context))
            self._keys[signing.sealed] = key
        return key


def _is_large(attachments: Sequence[AttachmentRef]) -> bool:
    return any(ref.blob for ref in attachments) or sum([e.size for e in attachments]) > LARGE


def _data(ref: AttachmentRef) -> bytes:
    if ref.data is None:
        raise ValueError("an attachment without bytes cannot be sent")
    return ref.data


def _attachment(ref: AttachmentRef, content: bytes | EncodedFile) -> OutgoingFile:
    return OutgoingFile(ref.filename, ref.content_type, content, ref.cid)


def _fail(done: asyncio.Future[Wire], trouble: BaseException) -> None:
    if done.done():
        return
    if isinstance(trouble, asyncio.CancelledError):
        done.cancel()
    else:
        done.set_exception(trouble)


def _compose_all(requests: Sequence[_ComposeRequest]) -> list[SmtpContent | Exception]:
    """Return each request's message, or the exception that composing it raised."""
    return [_composed(request) for request in requests]


def _composed(request: _ComposeRequest) -> SmtpContent | Exception:
    try:
        return _compose_signed(request)
    except Exception as trouble:
        return trouble


def _message(
    email: LoadedEmail, copy: PersonalCopy | None, attachments: Sequence[OutgoingFile]
) -> OutgoingMessage:
    html, text, headers = email.html, email.text, email.headers
    if email.make is not None:
        html, text, more = email.make()
        headers = [*headers, *more]
    if copy is not None:
        in_html, in_text = email.link_places or (None, None)
        html = _filled(html, copy.html, in_html) if html else html
        text = _filled(text, copy.text, in_text) if text else text
        if html and copy.tracker is not None:
            # Links that a placeholder stood for are tracked as well.
            html = tracked(html, copy.tracker)
        headers = [*headers, *copy.headers]
    return OutgoingMessage(
        sender=email.sender,
        to=email.to,
        cc=email.cc,
        reply_to=email.reply_to,
        subject=email.subject,
        date=email.date,
        message_id=email.message_id,
        html=html,
        text=text,
        headers=headers,
        attachments=attachments,
        seed=email.email_id.bytes,
    )


def _filled(body: str, values: Mapping[str, str], places: Sequence[Span] | None) -> str:
    """Return the body with the recipient's own values."""
    if places is None or not values:
        return filled(body, values)
    return filled_at(body, places, values[UNSUBSCRIBE_URL[0]])


def _pieces(
    email: LoadedEmail, copy: PersonalCopy | None, attachments: Sequence[OutgoingFile]
) -> Sequence[bytes | EncodedFile]:
    try:
        return compose_pieces(_message(email, copy, attachments))
    except ValueError as wrong:
        raise EmailUnsendable("rendering_failed", str(wrong)) from wrong


def _compose_signed(request: _ComposeRequest) -> SmtpContent:
    email, key = request.email, request.key
    try:
        raw = compose(_message(email, request.copy, request.attachments))
    except ValueError as wrong:
        raise EmailUnsendable("rendering_failed", str(wrong)) from wrong
    if key is None or email.signing is None:
        return SmtpContent(raw, is_checked=True)
    signature = dkim.sign(
        raw, domain=email.signing.domain, selector=email.signing.selector, key=key, instant=email.date
    )
    return SmtpContent(signature + raw, is_checked=True)
