"""The slice of suppressions: the routes under `/suppressions`, their events, and invariants."""

from __future__ import annotations

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.slices import Slice
from pillarbox.suppressions import changes, routes
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.suppressions.invariants import INVARIANTS
from pillarbox.suppressions.personal_data import PERSONAL_DATA

SLICE = Slice(
    name="suppressions",
    provides={ErasedAddresses: lambda kit: ErasedAddresses(kit.need(LinkKeys))},
    routes=collect(routes),
    webhook_shapes=changes.SHAPES,
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
)
