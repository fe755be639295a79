"""What contacts bring to the program."""

from __future__ import annotations

from pillarbox.contacts import routes
from pillarbox.contacts.event_data import SHAPES
from pillarbox.contacts.invariants import INVARIANTS
from pillarbox.contacts.store import Contacts
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Slice
from pillarbox.webhooks.publish import Publisher

SLICE = Slice(
    name="contacts",
    provides={Contacts: lambda kit: Contacts(kit.need(Ids), kit.need(Publisher))},
    routes=collect(routes),
    invariants=INVARIANTS,
    webhook_shapes=SHAPES,
)
