"""A small piece of memory that all worker processes of this host share (the rate limiter's).

The first `WINDOWS` bytes hold counts of this host alone, the rest the limits of teams, which it may share
with others. What nobody has written takes no memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile

WINDOWS = 8 * 2**20
PORTIONS = 4 * 2**20
SIZE = WINDOWS + PORTIONS


def create(size: int = SIZE) -> int:
    """The descriptor of `size` zero bytes without a name: it is gone when its last holder is."""
    try:
        descriptor = os.memfd_create("pillarbox")
    except (AttributeError, OSError):
        descriptor, path = tempfile.mkstemp(prefix="pillarbox-")
        os.unlink(path)
    os.ftruncate(descriptor, size)
    return descriptor


def attach(descriptor: int) -> mmap.mmap:
    """The shared bytes behind an inherited descriptor."""
    return mmap.mmap(descriptor, os.fstat(descriptor).st_size)
