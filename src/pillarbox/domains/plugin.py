"""The slice of domains: the domains of teams, their checks, and what may be sent from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from pillarbox.domains import domain_events, routes
from pillarbox.domains.checks.check_queries import DKIM_KEYS
from pillarbox.domains.checks.inspection import Inspector
from pillarbox.domains.checks.jobs import DomainChecker
from pillarbox.domains.checks.jobs import job_limit as check_limit
from pillarbox.domains.checks.outcome import CheckOutcome
from pillarbox.domains.checks.start import JOB as JOB_CHECK
from pillarbox.domains.context import DomainContext, DomainDependents
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.domains.installation import MailInstallation, OwnershipProof
from pillarbox.domains.senders import Senders
from pillarbox.domains.settings import INBOUND_DOMAIN, RECEIVING_OWNERSHIP_PROOF, SIMULATOR_DOMAINS, spf_value
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.dns_answers import UncachedDns
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.settings import Settings
from pillarbox.kernel.slices import Container, Slice
from pillarbox.kernel.work.jobs import Handler
from pillarbox.teams.settings import MOST_DOMAINS
from pillarbox.webhooks.publish import Publisher


@dataclass(frozen=True, slots=True)
class DeliveryWindow:
    """How long delivery is tried; a higher slice provides it."""

    length: timedelta


def installation(settings: Settings) -> MailInstallation:
    """Return the installation's own names and values in the records of domains, from the settings."""
    public_host = urlsplit(settings.public_url).hostname or settings.hostname
    return MailInstallation(
        hostname=settings.hostname,
        tracking_host=settings.hostname,
        public_host=public_host,
        simulator_domains=frozenset(settings[SIMULATOR_DOMAINS]),
        inbound_domain=settings[INBOUND_DOMAIN],
        spf_value=spf_value(settings),
        receiving_ownership_proof=OwnershipProof(settings[RECEIVING_OWNERSHIP_PROOF]),
        most_domains=settings[MOST_DOMAINS],
    )


def _resolver(kit: Container) -> UncachedDns:
    servers = [(at.host, at.port) for at in kit.settings.dns] or None
    return UncachedResolver(servers, kit.clock, allowed=kit.settings.allow_private)


def _context(kit: Container) -> DomainContext:
    return DomainContext(
        here=kit.need(MailInstallation),
        ring=kit.need(KeyRing),
        ids=kit.need(Ids),
        publisher=kit.need(Publisher),
        dependents=kit.find(DomainDependents) or DomainDependents(),
    )


def _jobs(kit: Container) -> Mapping[str, Handler]:
    outcome = CheckOutcome(kit.need(DomainContext), kit.need(DeliveryWindow).length)
    inspector = Inspector(kit.need(UncachedDns), kit.clock)  # type: ignore[type-abstract]
    forget = kit.need(Senders).forget
    checking = DomainChecker(kit.pool, kit.clock, inspector, outcome, kit.externals.random, forget)
    return {JOB_CHECK: checking.run}


SLICE = Slice(
    name="domains",
    provides={
        Senders: lambda kit: Senders(kit.pool, kit.clock),
        MailInstallation: lambda kit: installation(kit.settings),
        DomainContext: _context,
        UncachedDns: _resolver,
    },
    routes=collect(routes),
    jobs=_jobs,
    job_limits=lambda kit: [check_limit(kit.runtime.count)],
    webhook_shapes=domain_events.SHAPES,
    sealed=(DKIM_KEYS,),
)
