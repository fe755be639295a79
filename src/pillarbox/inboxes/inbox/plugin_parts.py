"""The parts of the slice for inboxes, labels and agent settings: routes, removal and event bodies."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.domains.context import DomainDependents
from pillarbox.domains.settings import INBOUND_DOMAIN
from pillarbox.emails.permitted_senders import SenderPolicies
from pillarbox.emails.settings import verified_domain_required
from pillarbox.inboxes import event_data
from pillarbox.inboxes.agents import routes as agent_routes
from pillarbox.inboxes.inbox import routes
from pillarbox.inboxes.inbox.changes import Inboxes
from pillarbox.inboxes.inbox.conditions import InboundDns, InboxRules
from pillarbox.inboxes.inbox.invariants import INVARIANTS as INVARIANTS
from pillarbox.inboxes.inbox.removal import LIMIT, InboxRemoval
from pillarbox.inboxes.labels import routes as label_routes
from pillarbox.inboxes.labels.changes import Labels
from pillarbox.inboxes.policy import routes as policy_routes
from pillarbox.inboxes.policy.sending import InboxPolicies
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.settings import MOST_INBOXES
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.jobs import Handler
from pillarbox.webhooks.publish import Publisher


def _rules(kit: Container) -> InboxRules:
    inbound = kit.find(InboundDns)
    return InboxRules(
        inbound_domain=kit.settings[INBOUND_DOMAIN],
        verified_domains=verified_domain_required(kit.settings),
        inbound_dns=inbound is None or inbound.is_required,
        most=kit.settings[MOST_INBOXES],
    )


def _inboxes(kit: Container) -> Inboxes:
    return Inboxes(kit.need(Ids), kit.need(Publisher), kit.need(InboxRules))


def jobs(kit: Container) -> Mapping[str, Handler]:
    received = kit.need(ReceivedMailSource)  # type: ignore[type-abstract]
    return InboxRemoval(kit.pool, kit.need(BlobStore), received).handlers()


PROVIDES = {
    InboxRules: _rules,
    Inboxes: _inboxes,
    Labels: lambda kit: Labels(kit.need(Ids), kit.externals.random),
    SenderPolicies: lambda kit: InboxPolicies(kit.engine_pool, kit.clock),
    DomainDependents: lambda kit: DomainDependents(kit.need(Inboxes).delete_of_domain),
}

ROUTES = collect(routes, agent_routes, label_routes, policy_routes)

JOB_LIMITS = [LIMIT]

EVENT_BODIES = {"inbox": event_data.event_data}
