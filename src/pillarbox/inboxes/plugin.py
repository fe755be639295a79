"""The slice of inboxes: what the packages `inbox`, `threads`, `drafts`, `search` and `waiting` provide."""

from __future__ import annotations

from pillarbox.inboxes.drafts import plugin_parts as drafts
from pillarbox.inboxes.event_data import SHAPES
from pillarbox.inboxes.inbox import plugin_parts as inbox_parts
from pillarbox.inboxes.personal_data import PERSONAL_DATA
from pillarbox.inboxes.search import plugin_parts as search
from pillarbox.inboxes.threads import plugin_parts as threads
from pillarbox.inboxes.waiting import plugin_parts as waiting
from pillarbox.kernel.slices import Slice

SLICE = Slice(
    name="inboxes",
    provides={**inbox_parts.PROVIDES, **threads.PROVIDES, **drafts.PROVIDES, **waiting.PROVIDES},
    routes=[*inbox_parts.ROUTES, *threads.ROUTES, *drafts.ROUTES, *search.ROUTES],
    periodic=search.periodic,
    files=drafts.files,
    jobs=lambda kit: {**inbox_parts.jobs(kit), **threads.jobs(kit)},
    job_limits=lambda _: [*inbox_parts.JOB_LIMITS, *threads.JOB_LIMITS],
    background=waiting.background,
    retention=[*threads.RETENTION, *drafts.RETENTION],
    webhook_shapes=SHAPES,
    event_bodies=inbox_parts.EVENT_BODIES,
    invariants=(*inbox_parts.INVARIANTS, *threads.INVARIANTS, *drafts.INVARIANTS, *search.INVARIANTS),
    personal_data=PERSONAL_DATA,
)
