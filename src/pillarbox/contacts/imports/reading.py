"""The worker's side of the process that reads a file (`reader_process`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from pillarbox.contacts.imports.batches import Plan
from pillarbox.contacts.imports.reader_process import LENGTHS, Head, Start

PROGRAM: Final = "pillarbox.contacts.imports.reader_process"
BUFFER: Final = 256 * 1024
INHERITED: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")

_head = msgspec.json.Decoder(Head)


class ReaderDied(Exception):  # noqa: N818 (a state of affairs)
    """The process ended before the file did."""


class FileReader:
    """Batches of one file, in their order. Each has lines for COPY, which are taken before the next batch
    is."""

    def __init__(self, process: Process) -> None:
        self._out = process.stdout
        self._left = 0

    async def next(self) -> Head:
        """What the next batch is. Its lines are waiting."""
        assert self._out is not None
        assert not self._left
        try:
            head, self._left = LENGTHS.unpack(await self._out.readexactly(LENGTHS.size))
            return _head.decode(await self._out.readexactly(head))
        except (asyncio.IncompleteReadError, msgspec.DecodeError) as trouble:
            raise ReaderDied from trouble

    async def lines(self) -> AsyncIterator[bytes]:
        """The batch's lines for COPY, in pieces."""
        assert self._out is not None
        while self._left:
            piece = await self._out.read(min(self._left, BUFFER))
            if not piece:
                raise ReaderDied
            self._left -= len(piece)
            yield piece


@asynccontextmanager
async def reading(plan: Plan, now: int, file: AsyncIterator[bytes]) -> AsyncIterator[FileReader]:
    """A process that reads the file, whose octets from the plan's offset on are given; it ends with the
    block. Raises what `file` raises."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", PROGRAM, stdin=PIPE, stdout=PIPE, env=_environment(), limit=BUFFER
    )
    feeding = asyncio.create_task(_feed(process, plan, now, file))
    try:
        yield FileReader(process)
    except ReaderDied:
        if feeding.done() and not feeding.cancelled() and (trouble := feeding.exception()):
            raise trouble from None
        raise
    finally:
        feeding.cancel()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(feeding, return_exceptions=True)
        await process.wait()


async def _feed(process: Process, plan: Plan, now: int, file: AsyncIterator[bytes]) -> None:
    """Write the file to the process. Where that cannot be read, the process is ended, so that it does not
    take what came for all of it."""
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(Start(plan, now)) + b"\n")
        async for piece in file:
            process.stdin.write(piece)
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise


def _environment() -> dict[str, str]:
    """Where the program is, and nothing that is secret."""
    found = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**found, "PYTHONPATH": os.pathsep.join([path for path in sys.path if path])}
