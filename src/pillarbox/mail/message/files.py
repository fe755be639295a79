"""Files that a message carries without having them in memory: they are read, in blocks, whenever their
octets are needed, and become what stands in the message on the way.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final, Literal

from pillarbox.mail.message.transfer_encoding import BASE64_COLUMNS, LONGEST_LINE

BASE64_OCTETS: Final = BASE64_COLUMNS // 4 * 3
BLOCK: Final = 256 * 1024

Blocks = Callable[[], AsyncIterator[bytes]]
"""All octets from the first to the last, as often as it is called."""


class FileChanged(ValueError):  # noqa: N818
    """A file is not what it was when it was measured."""


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Octets that lie somewhere else."""

    size: int
    read: Blocks


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file as it stands in a message: `size` octets of ASCII, with no line end but CRLF and no NUL.

    No CRLF is cut in two by the end of a block. Reading raises `FileChanged` where the file is another by
    now.
    """

    encoding: Literal["7bit", "base64"]
    size: int
    blocks: Blocks


def of_bytes(data: bytes) -> ExternalFile:
    """Return a file that is in memory after all; others have their turn between its blocks."""

    async def read() -> AsyncIterator[bytes]:
        for start in range(0, len(data), BLOCK):
            yield data[start : start + BLOCK]
            await asyncio.sleep(0)

    return ExternalFile(len(data), read)


def in_base64(file: ExternalFile) -> EncodedFile:
    """Return the file in Base64, in lines of 76 characters (RFC 2045 6.8), without a line end after
    the last."""
    encoded = 4 * ((file.size + 2) // 3)
    breaks = max(0, (encoded - 1) // BASE64_COLUMNS)
    return EncodedFile("base64", encoded + 2 * breaks, lambda: _base64(file))


async def as_message(file: ExternalFile) -> EncodedFile | None:
    """Return an attached message as it may stand inside a message/* part, or None if it may not.

    The same rule as `transfer.encode_message` (RFC 2046 5.2.1).
    """
    size = 0
    line = 0
    async for block in _crlf(file):
        if not block.isascii() or b"\0" in block or b"\r" in block.replace(b"\r\n", b""):
            return None
        size += len(block)
        lengths = [len(text) for text in block.split(b"\r\n")]
        lengths[0] += line
        if max(lengths) > LONGEST_LINE:
            return None
        line = lengths[-1]
    return EncodedFile("7bit", size, lambda: _measured(_crlf(file), size))


async def _base64(file: ExternalFile) -> AsyncIterator[bytes]:
    """Yield whole lines per block, each but the first with the line end that parts it from the one before."""
    rest = b""
    separator = b""
    size = 0
    async for chunk in file.read():
        size += len(chunk)
        data = rest + chunk
        whole = len(data) - len(data) % BASE64_OCTETS
        rest = data[whole:]
        if whole:
            yield separator + _lines(data[:whole])
            separator = b"\r\n"
    if rest:
        yield separator + _lines(rest)
    if size != file.size:
        raise FileChanged("a file has another size than before")


def _lines(octets: bytes) -> bytes:
    encoded = binascii.b2a_base64(octets, newline=False)
    return b"\r\n".join([encoded[at : at + BASE64_COLUMNS] for at in range(0, len(encoded), BASE64_COLUMNS)])


async def _crlf(file: ExternalFile) -> AsyncIterator[bytes]:
    """Yield the file with its line ends made CRLF; a CR at the end of a chunk waits for what follows."""
    rest = b""
    async for chunk in file.read():
        data = rest + chunk
        rest = b"\r" if data.endswith(b"\r") else b""
        whole = data[:-1] if rest else data
        if whole:
            yield whole.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if rest:
        yield rest


async def _measured(blocks: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    async for block in blocks:
        size -= len(block)
        yield block
    if size:
        raise FileChanged("a file has another size than before")
