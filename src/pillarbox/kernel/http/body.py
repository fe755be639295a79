"""Reading a request body while it streams, within a limit (conventions section 2)."""

from __future__ import annotations

import asyncio

from pillarbox.kernel.http.request_cycle import Receive
from pillarbox.kernel.wire.problems import Problem, TooLarge, UnsupportedBody

CLOSE = {"connection": "close"}
DRAIN_BYTES = 256 * 1024 * 1024
DRAIN_SECONDS = 10.0


class BodyTooLate(Problem):
    """The body was not complete in time; the connection is closed."""

    status, name = 408, "validation_error"

    def __init__(self) -> None:
        super().__init__("The request body was not complete in time.", CLOSE)


class ClientGone(Exception):  # noqa: N818
    """The client closed the connection before its body, or the answer to it, was complete."""


def too_large(limit: int) -> TooLarge:
    """Return the 413 that closes the connection."""
    return TooLarge(f"The request body is larger than {limit} bytes.", CLOSE)


def declared_size(length: bytes | None, transfer: bytes | None, limit: int) -> int | None:
    """Return the size that the head announces; None when only the body itself can tell.

    Raises 413 where it is larger than the limit, before a byte of the body is read.
    """
    if transfer is not None:
        if transfer.strip().lower() != b"chunked":
            raise UnsupportedBody("The transfer encoding is not supported.", CLOSE)
        return None
    size = int(length) if length else 0
    if size > limit:
        raise too_large(limit)
    return size


async def count_body(receive: Receive, limit: int) -> None:
    """Read a body and forget it; 413 when it is larger than the limit.

    The connection (`protocol`) limits how long it may take.
    """
    size, more = 0, True
    while more:
        part, more = await next_part(receive)
        size += len(part)
        if size > limit:
            raise too_large(limit)


async def count_unknown(receive: Receive, limit: int, seconds: float, failure: Problem) -> None:
    """Read and forget the body of a caller who is refused with `failure`; a slower one is cut off."""
    try:
        async with asyncio.timeout(seconds):
            await count_body(receive, limit)
    except TimeoutError:
        failure.headers = {**failure.headers, **CLOSE}


async def drain(receive: Receive) -> None:
    """Let the client finish its upload for a while, so that a reset does not swallow the answer."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < DRAIN_BYTES:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                size += len(message.get("body", b""))
    except TimeoutError:
        return


async def next_part(receive: Receive) -> tuple[bytes, bool]:
    """Return the next bytes of the body as they come, and whether more will follow; raises ClientGone."""
    message = await receive()
    if message["type"] != "http.request":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def within(data: bytes | bytearray, limit: int) -> bytes | bytearray:
    """Return a body that has come, unless it is larger than the limit."""
    if len(data) > limit:
        raise too_large(limit)
    return data
