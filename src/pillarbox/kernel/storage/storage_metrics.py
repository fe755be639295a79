"""The metrics of the blob store for Prometheus: durations and failures."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from pillarbox.kernel.observability.metrics import SECONDS, Counter, Gauge, Histogram
from pillarbox.kernel.storage.backend import BlobFailed, BlobsSilent

T = TypeVar("T")

OPERATIONS: Final = ("put", "get", "stream", "delete", "list")
FAILED, TIMEOUT = "failed", "timeout"

TAKEN = Histogram(
    "pillarbox_blob_seconds",
    "How long the blob store took: put, get, delete; stream and list until their first part.",
    SECONDS,
    ("operation",),
)
ERRORS = Counter(
    "pillarbox_blob_errors",
    "Operations of the blob store that failed, or had no answer in time (timeout).",
    ("operation", "reason"),
    [(operation, reason) for operation in OPERATIONS for reason in (FAILED, TIMEOUT)],
)
UNWRITABLE = Gauge(
    "pillarbox_blob_unwritable_processes",
    "Processes that store no blobs: a sync has failed, or the store is not the one of this database.",
)


@contextmanager
def timed(operation: str) -> Iterator[None]:
    """Count the operation inside the block, and how it ended. A blob that is missing is no failure."""
    began = time.monotonic()
    with _failures(operation):
        yield
    TAKEN.observe(time.monotonic() - began, (operation,))


async def timed_parts(operation: str, parts: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the parts as they come; how long the first one took is counted, because the others wait for
    their reader."""
    began: float | None = time.monotonic()
    with _failures(operation):
        try:
            async for part in parts:
                if began is not None:
                    TAKEN.observe(time.monotonic() - began, (operation,))
                    began = None
                yield part
        finally:
            # A reader that stops early closes this generator, and with it the file or connection behind it.
            if isinstance(parts, AsyncGenerator):
                await parts.aclose()
    if began is not None:
        TAKEN.observe(time.monotonic() - began, (operation,))


@contextmanager
def _failures(operation: str) -> Iterator[None]:
    try:
        yield
    except BlobsSilent:
        ERRORS.add(1, (operation, TIMEOUT))
        raise
    except BlobFailed:
        ERRORS.add(1, (operation, FAILED))
        raise
