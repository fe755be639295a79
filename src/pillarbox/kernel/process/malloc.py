"""How the C library keeps memory that was given back to it (mallopt(3)).

After the first large allocation is freed, glibc takes allocations of that size from its own heap, where a
small one behind them keeps all of it from the system: one mail of 40 MB, and a process stays 80 MB larger for
ever. And each thread that allocates gets a heap of its own. With fixed thresholds large pieces are mapped and
unmapped one by one, and two heaps serve all threads.
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_ARENA_MAX = -8

MAPPED_FROM = 1024 * 1024
KEPT_FREE = 8 * 1024 * 1024
HEAPS = 2


def give_back_early() -> None:
    """From now on this process keeps little of what it has freed. Other C libraries have no such settings."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM)
    mallopt(M_TRIM_THRESHOLD, KEPT_FREE)
    mallopt(M_ARENA_MAX, HEAPS)
