"""What the inboxes themselves, their labels and their agent settings bring to the slice."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.domains.context import DomainDependents
from pillarbox.domains.settings import INBOUND_DOMAIN
from pillarbox.emails.settings import verified_domain_required
from pillarbox.inboxes import event_data
from pillarbox.inboxes.agents import routes as agent_routes
from pillarbox.inboxes.boxes import routes
from pillarbox.inboxes.boxes.changes import Inboxes
from pillarbox.inboxes.boxes.conditions import InboundDns, InboxRules
from pillarbox.inboxes.boxes.invariants import INVARIANTS as INVARIANTS
from pillarbox.inboxes.boxes.removal import LIMIT, InboxRemoval
from pillarbox.inboxes.labels import routes as label_routes
from pillarbox.inboxes.labels.changes import Labels
from pillarbox.inboxes.received_mail import ReceivedMail
from pillarbox.inboxes.settings import MOST_INBOXES
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Kit
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.jobs import Handler
from pillarbox.webhooks.publish import Publisher


def _rules(kit: Kit) -> InboxRules:
    inbound = kit.find(InboundDns)
    return InboxRules(
        inbound_domain=kit.settings[INBOUND_DOMAIN],
        verified_domains=verified_domain_required(kit.settings),
        inbound_dns=inbound is None or inbound.is_required,
        most=kit.settings[MOST_INBOXES],
    )


def _inboxes(kit: Kit) -> Inboxes:
    return Inboxes(kit.need(Ids), kit.need(Publisher), kit.need(InboxRules))


def jobs(kit: Kit) -> Mapping[str, Handler]:
    received = kit.need(ReceivedMail)  # type: ignore[type-abstract]
    return InboxRemoval(kit.pool, kit.need(BlobStore), received).handlers()


PROVIDES = {
    InboxRules: _rules,
    Inboxes: _inboxes,
    Labels: lambda kit: Labels(kit.need(Ids), kit.externals.random),
    DomainDependents: lambda kit: DomainDependents(kit.need(Inboxes).delete_of_domain),
}

ROUTES = collect(routes, agent_routes, label_routes)

JOB_LIMITS = [LIMIT]

EVENT_BODIES = {"inbox": event_data.event_data}
