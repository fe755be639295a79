"""The slice of suppressions: the routes under `/suppressions`, their events, and invariants."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Slice
from pillarbox.suppressions import changes, routes
from pillarbox.suppressions.invariants import INVARIANTS

SLICE = Slice(
    name="suppressions",
    routes=collect(routes),
    webhook_shapes=changes.SHAPES,
    invariants=INVARIANTS,
)
