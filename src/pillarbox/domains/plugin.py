"""What domains bring: the domains of teams, their checks, and what may be sent from them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from pillarbox.domains import domain_events, routes
from pillarbox.domains.checks.inspection import Inspector
from pillarbox.domains.checks.jobs import Checking
from pillarbox.domains.checks.jobs import job_limit as check_limit
from pillarbox.domains.checks.outcome import CheckOutcome
from pillarbox.domains.checks.start import JOB as JOB_CHECK
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.answers import UncachedDns
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.domains.installation import Installation, OwnershipProof
from pillarbox.domains.keys import DKIM_KEYS
from pillarbox.domains.senders import Senders
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Kit, Slice
from pillarbox.kernel.work.jobs import Handler
from pillarbox.webhooks.publish import Publisher


def installation(settings: Settings) -> Installation:
    """What the records of a domain say about this installation."""
    public_host = urlsplit(settings.public_url).hostname or settings.hostname
    return Installation(
        settings.hostname,
        settings.hostname,
        public_host,
        frozenset(settings.simulator_domains),
        settings.inbound_domain,
        spf_value=settings.spf_value,
        receiving_ownership_proof=OwnershipProof(settings.receiving_ownership_proof),
        most_domains=settings.most_domains,
    )


def _resolver(kit: Kit) -> UncachedDns:
    servers = [(at.host, at.port) for at in kit.settings.dns] or None
    return UncachedResolver(servers, kit.clock, allowed=kit.settings.allow_private)


def _context(kit: Kit) -> DomainContext:
    return DomainContext(kit.need(Installation), kit.need(KeyRing), kit.need(Ids), kit.need(Publisher))


def _jobs(kit: Kit) -> Mapping[str, Handler]:
    outcome = CheckOutcome(kit.need(DomainContext), kit.settings.delivery_window)
    inspector = Inspector(kit.need(UncachedDns), kit.clock)  # type: ignore[type-abstract]
    forget = kit.need(Senders).forget
    checking = Checking(kit.pool, kit.clock, inspector, outcome, kit.externals.random, forget)
    return {JOB_CHECK: checking.run}


SLICE = Slice(
    name="domains",
    provides={
        Senders: lambda kit: Senders(kit.pool, kit.clock),
        Installation: lambda kit: installation(kit.settings),
        DomainContext: _context,
        UncachedDns: _resolver,
    },
    routes=collect(routes),
    jobs=_jobs,
    job_limits=lambda kit: [check_limit(kit.runtime.count)],
    webhook_shapes=domain_events.SHAPES,
    sealed=(DKIM_KEYS,),
)
