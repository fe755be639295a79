"""What inboxes bring to the program."""

from __future__ import annotations

from pillarbox.inboxes.threads import plugin_parts as threads
from pillarbox.kernel.slices import Slice

SLICE = Slice(
    name="inboxes",
    provides={**threads.PROVIDES},
    routes=threads.ROUTES,
    retention=threads.RETENTION,
    invariants=threads.INVARIANTS,
)
