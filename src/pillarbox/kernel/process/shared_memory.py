"""A small piece of memory that all worker processes of this host share.

The first `WINDOWS` bytes hold the rate limiter's counts of this host alone, the next `PORTIONS` the limits of
teams, which it may share with others. The last say when there was mail that is no copy of a broadcast
(`delivery.other_mail`). What nobody has written takes no memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile

WINDOWS = 8 * 2**20
PORTIONS = 4 * 2**20
OTHER_MAIL = 8
SIZE = WINDOWS + PORTIONS + OTHER_MAIL


def create(size: int = SIZE) -> int:
    """Return the descriptor of `size` zero bytes without a name: it is gone when its last holder is."""
    try:
        descriptor = os.memfd_create("pillarbox")
    except (AttributeError, OSError):
        descriptor, path = tempfile.mkstemp(prefix="pillarbox-")
        os.unlink(path)
    os.ftruncate(descriptor, size)
    return descriptor


def attach(descriptor: int) -> mmap.mmap:
    """Return the shared bytes behind an inherited descriptor."""
    return mmap.mmap(descriptor, os.fstat(descriptor).st_size)
