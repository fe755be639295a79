"""The process that reads the file of one import: CSV on standard input, batches on standard output.

A process of its own, because a worker's event loop would wait for a thread that computes as long as this. It
has no database, no settings and no secrets, and ends with its worker. On standard input come the plan, as
one line of JSON, and the octets of the file from the plan's offset on. On a pipe of its own comes how many
rows are wanted, once for each batch: nothing is made that was not asked for. On standard output go batches:
two lengths, a head (JSON) and lines for COPY. Little is loaded here: its memory comes on top of the workers'.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from io import BufferedReader, FileIO
from typing import Final

from pillarbox.contacts.imports.batches import ImportBatch, ImportPlan, ImportRowError, batches
from pillarbox.contacts.imports.dialect import PIECE
from pillarbox.kernel.process.parent import die_with_parent

LENGTHS: Final = struct.Struct(">II")
WANTED: Final = struct.Struct(">I")
NICENESS: Final = 10
"""Requests come first."""


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The head of a batch, sent before its lines; see `batches.Batch`."""

    rows: int
    failed: int
    given: int
    staged: int
    row: int
    offset: int
    at: int
    is_last: bool
    fault: str | None
    errors: list[ImportRowError]


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """The input of the process: how to read, the time in milliseconds since 1970, and a pipe's descriptor.
    Through the pipe it learns how many rows are wanted."""

    plan: ImportPlan
    now: int
    wanted: int


def main() -> int:
    """Read the file; the exit status."""
    die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    gc.disable()
    source = BufferedReader(FileIO(sys.stdin.fileno(), closefd=False), PIECE)
    start = json.loads(source.readline())
    requests = FileIO(start["wanted"])
    plan, now = ImportPlan(**start["plan"]), clock(start["now"])
    for batch in batches(lambda: source.read1(PIECE), plan, now, lambda: wanted(requests)):
        write(batch)
    return 0


def wanted(requests: FileIO) -> int:
    """Return how many rows the worker wants next. The process ends where it wants no more."""
    said = requests.read(WANTED.size)
    if not said:
        sys.exit(0)
    rows: int = WANTED.unpack(said)[0]
    return rows


def write(batch: ImportBatch) -> None:
    """Hand a batch to the worker; returns when the worker has taken most of it."""
    text, batch.lines = "".join(batch.lines), []
    lines = text.encode()
    del text
    said = BatchHead(
        rows=batch.rows,
        failed=batch.failed,
        given=batch.given,
        staged=batch.staged,
        row=batch.row,
        offset=batch.offset,
        at=batch.at,
        is_last=batch.is_last,
        fault=batch.fault,
        errors=batch.errors,
    )
    head = json.dumps(asdict(said)).encode()
    sys.stdout.buffer.write(LENGTHS.pack(len(head), len(lines)) + head)
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def clock(now: int) -> Callable[[], int]:
    """Return the worker's time as it goes on from here."""
    began = time.monotonic()
    return lambda: now + int((time.monotonic() - began) * 1000)


if __name__ == "__main__":
    sys.exit(main())
