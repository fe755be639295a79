"""The slice of contact properties: routes, the removal of values, and invariants."""

from __future__ import annotations

from pillarbox.contact_properties import routes
from pillarbox.contact_properties.invariants import INVARIANTS
from pillarbox.contact_properties.removal import LIMIT, ValueRemoval
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Slice

SLICE = Slice(
    name="contact_properties",
    provides={ValueRemoval: lambda kit: ValueRemoval(kit.pool)},
    routes=collect(routes),
    jobs=lambda kit: kit.need(ValueRemoval).handlers(),
    job_limits=lambda _: [LIMIT],
    invariants=INVARIANTS,
)
