"""What links to unsubscribe bring to the program."""

from __future__ import annotations

from pillarbox.contacts.store import Contacts
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.timeline.record import Timeline
from pillarbox.unsubscribe import routes
from pillarbox.unsubscribe.choices import Unsubscribing


def _unsubscribing(kit: Kit) -> Unsubscribing:
    return Unsubscribing(kit.pool, kit.clock, kit.need(Contacts), kit.need(Timeline))


SLICE = Slice(name="unsubscribe", provides={Unsubscribing: _unsubscribing}, pages=collect(routes))
