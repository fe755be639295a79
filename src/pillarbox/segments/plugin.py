"""The slice of segments."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Slice
from pillarbox.segments import routes
from pillarbox.segments.audiences import routes as audiences_routes
from pillarbox.segments.invariants import INVARIANTS
from pillarbox.segments.jobs import LIMIT, MemberRemoval

SLICE = Slice(
    name="segments",
    routes=collect(routes, audiences_routes),
    jobs=lambda kit: MemberRemoval(kit.pool).handlers(),
    job_limits=lambda _: [LIMIT],
    invariants=INVARIANTS,
)
