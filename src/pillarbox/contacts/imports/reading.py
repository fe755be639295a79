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

from pillarbox.contacts.imports.batches import ImportPlan
from pillarbox.contacts.imports.reader_process import LENGTHS, WANTED, BatchHead, ReaderInput

PROGRAM: Final = "pillarbox.contacts.imports.reader_process"
BUFFER: Final = 256 * 1024
AHEAD: Final = 1
"""Batches that are made while one is applied."""

INHERITED: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ")

_head = msgspec.json.Decoder(BatchHead)


class ReaderDied(Exception):  # noqa: N818 (a state of affairs)
    """The process ended before the file did."""


class FileReader:
    """Batches of one file, in their order. Each has lines for COPY, which are taken before the next batch
    is."""

    def __init__(self, process: Process, requests: int) -> None:
        self._out = process.stdout
        self._requests = requests
        self._asked = 0
        self._left = 0

    async def next(self, rows: int) -> BatchHead:
        """Return the head of the next batch, whose lines then wait to be read. Meanwhile the process makes
        the batch after it, with up to `rows` rows; that limit also holds for the first batch."""
        assert self._out is not None
        assert not self._left
        self._ask(rows)
        try:
            head, self._left = LENGTHS.unpack(await self._out.readexactly(LENGTHS.size))
            self._asked -= 1
            return _head.decode(await self._out.readexactly(head))
        except (asyncio.IncompleteReadError, msgspec.DecodeError) as trouble:
            raise ReaderDied from trouble

    def _ask(self, rows: int) -> None:
        """Ask for batches. They are few, so the pipe has room for all that were not read."""
        with contextlib.suppress(BrokenPipeError):
            while self._asked < 1 + AHEAD:
                os.write(self._requests, WANTED.pack(rows))
                self._asked += 1

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the batch's lines for COPY, in pieces."""
        assert self._out is not None
        while self._left:
            piece = await self._out.read(min(self._left, BUFFER))
            if not piece:
                raise ReaderDied
            self._left -= len(piece)
            yield piece


@asynccontextmanager
async def reading(plan: ImportPlan, now: int, file: AsyncIterator[bytes]) -> AsyncIterator[FileReader]:
    """Yield a process that reads the file, whose octets from the plan's offset on are given; it ends with the
    block. Raises what `file` raises."""
    told, requests = os.pipe()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                PROGRAM,
                stdin=PIPE,
                stdout=PIPE,
                env=child_environment(),
                limit=BUFFER,
                pass_fds=(told,),
            )
        finally:
            os.close(told)
        feeding = asyncio.create_task(_feed(process, ReaderInput(plan, now, told), file))
        try:
            yield FileReader(process, requests)
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
            # That the pipe broke is as it should be here; nobody else asks for it, and asyncio would log it.
            assert process.stdin is not None
            await asyncio.gather(process.stdin.wait_closed(), return_exceptions=True)
    finally:
        os.close(requests)


async def _feed(process: Process, start: ReaderInput, file: AsyncIterator[bytes]) -> None:
    """Write the file to the process. Where that cannot be read, the process is ended, so that it does not
    take what came for all of it."""
    assert process.stdin is not None
    try:
        process.stdin.write(msgspec.json.encode(start) + b"\n")
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


def child_environment() -> dict[str, str]:
    """Return the environment of the process: the place of the program, and nothing that is secret."""
    found = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**found, "PYTHONPATH": os.pathsep.join([path for path in sys.path if path])}
