"""The slice of links to unsubscribe."""

from __future__ import annotations

from pillarbox.contacts.store import Contacts
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.slices import Container, Slice
from pillarbox.timeline.record import Timeline
from pillarbox.unsubscribe import routes
from pillarbox.unsubscribe.choices import SubscriptionChoices


def _unsubscribing(kit: Container) -> SubscriptionChoices:
    return SubscriptionChoices(kit.pool, kit.clock, kit.need(Contacts), kit.need(Timeline))


SLICE = Slice(name="unsubscribe", provides={SubscriptionChoices: _unsubscribing}, pages=collect(routes))
