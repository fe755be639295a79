"""The tables of the house: which parts there are, which routes, which kinds of work.

`build` makes one process's parts from the settings and hands each the others that it needs; nothing
else in the house builds a part.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from pillarbox.api_keys import routes as api_key_routes
from pillarbox.api_keys.credentials import KeyCredentials, LastUsed
from pillarbox.capture import json_routes as capture_json_routes
from pillarbox.capture import routes as capture_routes
from pillarbox.capture.access import CaptureAccess
from pillarbox.capture.arrivals import CHANNEL as CAPTURE_CHANNEL
from pillarbox.capture.reading import Reader
from pillarbox.capture.store import Capture
from pillarbox.dashboard.page_work import PageWork
from pillarbox.dashboard.shared import SharedPages
from pillarbox.delivery import prometheus
from pillarbox.delivery.attempts import Transport
from pillarbox.delivery.composing import Composer
from pillarbox.delivery.engine import Engine
from pillarbox.delivery.items import Item
from pillarbox.delivery.queue.claims import Claims
from pillarbox.delivery.queue.misdated import misdated_items
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.delivery.queue.queue_metrics import QueueMetrics
from pillarbox.delivery.settle import KeepCaptured, Settler, keep_nothing
from pillarbox.delivery.smtp.connections import Connections
from pillarbox.delivery.smtp.known_domains import KnownDomains, known_domains_periodic
from pillarbox.delivery.smtp.mta_sts_policies import Policies, mta_sts_periodic
from pillarbox.delivery.smtp.next_hops import DirectHops, Greeting, RelayHop
from pillarbox.delivery.smtp.site_sharing import SiteSharing
from pillarbox.delivery.smtp.transport import SmtpTransport
from pillarbox.delivery.transports import CaptureStore, Simulator, TransportChoice
from pillarbox.domains import domain_events
from pillarbox.domains import routes as domain_routes
from pillarbox.domains.checks.inspection import Inspector
from pillarbox.domains.checks.jobs import Checking
from pillarbox.domains.checks.jobs import lane as check_lane
from pillarbox.domains.checks.outcome import CheckOutcome
from pillarbox.domains.checks.start import JOB as JOB_CHECK
from pillarbox.domains.claims import routes as claim_routes
from pillarbox.domains.claims.jobs import LANE as CLAIM_LANE
from pillarbox.domains.claims.jobs import Claiming, claim_periodic
from pillarbox.domains.claims.policy import JOB as JOB_CLAIM
from pillarbox.domains.claims.policy import ClaimRules
from pillarbox.domains.claims.transfer import Transfers
from pillarbox.domains.context import DomainContext
from pillarbox.domains.dns.answers import UncachedDns
from pillarbox.domains.dns.uncached_resolver import UncachedResolver
from pillarbox.domains.installation import Installation, OwnershipProof
from pillarbox.domains.senders import Senders
from pillarbox.emails import event_data as email_events
from pillarbox.emails import fetching, shared_page
from pillarbox.emails import routes as email_routes
from pillarbox.emails.accept import Accept, Rules
from pillarbox.emails.activity import DomainActivity
from pillarbox.emails.commits import Commits
from pillarbox.emails.files import AttachmentFiles
from pillarbox.emails.jobs import Orphans, email_periodic
from pillarbox.emails.loading import EmailLoader
from pillarbox.emails.retention import Retention
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.emails.share import Sharing
from pillarbox.emails.shared_page import OtherMail, SharedScreens
from pillarbox.emails.team_mail import TeamMail
from pillarbox.kernel.clock import Clock, SystemClock
from pillarbox.kernel.http import files as file_routes
from pillarbox.kernel.http import health as health_routes
from pillarbox.kernel.http import openapi as openapi_routes
from pillarbox.kernel.http.files import Files
from pillarbox.kernel.http.health import DatabaseProbe
from pillarbox.kernel.http.idempotency import IdempotencyRows, IdempotencyStore
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.http.openapi import ApiDocument
from pillarbox.kernel.http.pipeline import Api, HttpSettings
from pillarbox.kernel.http.quota_headers import Meter
from pillarbox.kernel.http.routing import Route, RouteTable, collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.address_policy import AddressPolicy
from pillarbox.kernel.network.dns import DnsResolver, Resolver
from pillarbox.kernel.network.listeners import LMTP, SMTP, submission_names
from pillarbox.kernel.network.outbound import DnsAddresses, Outbound
from pillarbox.kernel.network.post_client import PostClient
from pillarbox.kernel.observability.metrics import MetricsFile
from pillarbox.kernel.observability.request_log import Journal
from pillarbox.kernel.postgres.bounded_pool import close_within
from pillarbox.kernel.postgres.database import ENGINE, open_pool
from pillarbox.kernel.postgres.notify import Listener, Notifier
from pillarbox.kernel.postgres.pool_metrics import watch
from pillarbox.kernel.process.clock_watch import ClockWatch, Mend
from pillarbox.kernel.process.runtime import Runtime
from pillarbox.kernel.security.authentication import Credentials
from pillarbox.kernel.security.certificates import Certificate, self_made
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tokens import Signer
from pillarbox.kernel.services import Services
from pillarbox.kernel.settings.kinds import Relay, Role, RouteKind
from pillarbox.kernel.settings.settings import Settings, load_or_create_key_ring_text
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace, disks_of
from pillarbox.kernel.work import periodic
from pillarbox.kernel.work.collectors import misdated_keys, own_periodic
from pillarbox.kernel.work.jobs import Handler, Jobs
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.logs import routes as log_routes
from pillarbox.logs.policy import LogPolicy
from pillarbox.logs.retention import log_periodic
from pillarbox.logs.writing import RequestLog
from pillarbox.mail.message.loop_marks import LoopMarks
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.mail.smtp.client import TlsMode
from pillarbox.mail.smtp.listener import ListenerOptions
from pillarbox.mail.smtp.mx import HostPolicy
from pillarbox.metrics import routes as metric_routes
from pillarbox.metrics.cache import Cache
from pillarbox.metrics.policy import MetricsPolicy
from pillarbox.receiving import event_data as received_events
from pillarbox.receiving import routes as received_routes
from pillarbox.receiving.addresses import Addresses, AddressRules
from pillarbox.receiving.files import ATTACHMENT as RECEIVED_ATTACHMENT
from pillarbox.receiving.files import RAW as RECEIVED_RAW
from pillarbox.receiving.files import ReceivedFiles
from pillarbox.receiving.judging import Judge
from pillarbox.receiving.reading import Reading
from pillarbox.receiving.receive import Receiving, ReceivingRules
from pillarbox.receiving.reports.return_path import ReturnPath
from pillarbox.receiving.retention import ReceivedRetention
from pillarbox.receiving.sharing import ReceivedMail
from pillarbox.receiving.spam import EVERYWHERE, Rspamd
from pillarbox.receiving.storage import Storage
from pillarbox.smtp.clients import Allowance, Clients
from pillarbox.smtp.inbound import InboundHandler
from pillarbox.smtp.listeners import MOST_OCTETS, SmtpListeners
from pillarbox.smtp.local import LmtpHandler
from pillarbox.smtp.submission import SubmissionHandler
from pillarbox.teams.allowances import Allowances
from pillarbox.timeline.announcing import Announcer
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rollups import metric_periodic
from pillarbox.usage import routes as usage_routes
from pillarbox.usage.jobs import usage_periodic
from pillarbox.usage.meter import UsageMeter
from pillarbox.usage.quotas import Quotas
from pillarbox.usage.wire import Limits
from pillarbox.webhooks import routes as webhook_routes
from pillarbox.webhooks.bodies import Bodies
from pillarbox.webhooks.dispatch import prometheus as webhook_figures
from pillarbox.webhooks.dispatch.claims import Claims as WebhookClaims
from pillarbox.webhooks.dispatch.engine import Dispatcher
from pillarbox.webhooks.dispatch.misdated import misdated_deliveries
from pillarbox.webhooks.dispatch.posting import Poster
from pillarbox.webhooks.dispatch.queue_metrics import WebhookQueueMetrics
from pillarbox.webhooks.dispatch.settle import Settler as WebhookSettler
from pillarbox.webhooks.endpoints import EndpointRules
from pillarbox.webhooks.listening.listener import listener_periodic
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.notices import Notices
from pillarbox.webhooks.publish import Publisher
from pillarbox.webhooks.retention import WebhookRetention

ROUTES: list[Route] = collect(
    metric_routes,
    received_routes,
    email_routes,
    shared_page,
    api_key_routes,
    domain_routes,
    webhook_routes,
    claim_routes,
    log_routes,
    usage_routes,
    file_routes,
    health_routes,
    openapi_routes,
)
CAPTURE_ROUTES: list[Route] = collect(capture_routes, capture_json_routes)
"""Only with the route `capture`."""

WEBHOOKS = {**email_events.SHAPES, **received_events.SHAPES, **domain_events.SHAPES}
"""The type of the data of each kind of event that something publishes."""

CONNECTIONS = 16
ENGINE_CONNECTIONS = 10
CLOSE_SECONDS = 5.0
SIGNING_THREADS = 2
READING_THREADS = 2
DELIVERY_CHANNEL = "pillarbox_delivery"
WEBHOOK_CHANNEL = "pillarbox_webhooks"


@dataclass(frozen=True, slots=True)
class Externals:
    """What a test puts in the place of the world."""

    clock: Clock
    resolver: Resolver
    chance: Callable[[], float]
    shuffle: Callable[[list[str]], None]
    asks: UncachedDns
    trust: ssl.SSLContext | None = None
    """Whose certificates count where they are checked; the system's authorities."""
    https_port: int = 443

    @classmethod
    def real(cls, settings: Settings) -> Externals:
        clock = SystemClock()
        servers = [(at.host, at.port) for at in settings.dns] or None
        asker = UncachedResolver(servers, clock, allowed=settings.allow_private)
        return cls(clock, DnsResolver(servers, clock=clock), random.random, random.shuffle, asker)


@dataclass(frozen=True, slots=True)
class Pools:
    """Two pools, because a claim that holds row locks must always find the connection it still needs:
    requests that wait for those very locks may hold every connection of the doors."""

    doors: asyncpg.Pool
    engine: asyncpg.Pool

    @classmethod
    async def open(cls, url: str) -> Pools:
        return cls(
            await open_pool(url, most=CONNECTIONS),
            await open_pool(url, most=ENGINE_CONNECTIONS, application=ENGINE, by_key=True),
        )

    async def close(self) -> None:
        """Within a few seconds, even where the database stands still."""
        await close_within(self.engine, CLOSE_SECONDS)
        await close_within(self.doors, CLOSE_SECONDS)


class Parts:
    """One process's parts."""

    def __init__(self, settings: Settings, runtime: Runtime, pools: Pools, seams: Externals) -> None:
        self.settings = settings
        self.runtime = runtime
        self.pools = pools
        self.pool = pool = pools.doors
        self.clock = seams.clock
        self.asks = seams.asks
        self.ids = Ids(seams.clock)
        self.ring = KeyRing.parse(load_or_create_key_ring_text(settings))
        self.signer = Signer(self.ring, seams.clock)
        self.blobs = BlobStore.open(settings.blobs)
        self.room = DiskSpace(seams.clock, disks_of(settings.data, settings.blobs))
        self.probe = DatabaseProbe(settings.database_url or "")
        self.depth = QueueLimit(pool, seams.clock, settings.queue_limit)
        self.webhook_bell = Notifier(pool, WEBHOOK_CHANNEL)
        self.publisher = Publisher(self.ids, self.wake_webhooks)
        self.bodies = event_bodies()
        self.timeline = timeline_of(seams.clock, self.ids, self.publisher)
        self.senders = Senders(pool, seams.clock)
        self.simulators = frozenset(settings.simulator_domains)
        self.installation = installation(settings)
        self.workshop = DomainContext(self.installation, self.ring, self.ids, self.publisher)
        self.threads = ThreadPoolExecutor(SIGNING_THREADS, "pillarbox-sign")
        self.verp = VerpSigner(self.ring.mac_keys("verp"))
        self.capture = Capture(pool, seams.clock, self.ids, self.blobs, settings.capture_limit)
        self.bell = Notifier(pool, DELIVERY_CHANNEL)
        self.outbound = Outbound(DnsAddresses(seams.resolver), settings.allow_private, tls=seams.trust)
        self.policies = Policies(pools.engine, seams.clock, seams.resolver, self.outbound, seams.https_port)
        self.parcels = EmailLoader(
            Senders(pools.engine, seams.clock), domain_required=settings.verified_domain_required
        )
        self.claims = Claims(pools.engine, seams.clock, runtime.process_id, self.timeline, self.parcels.load)
        self.pauses = Pauses(pools.engine)
        self.log_policy = LogPolicy(settings.log_retention_days)
        self.journal = RequestLog(pool, seams.clock, self.log_policy)
        self.meter = UsageMeter(pool, seams.clock)
        self.maintenance = Maintenance(pool, seams.clock)
        is_direct = settings.route.kind is RouteKind.DIRECT
        self.familiar = KnownDomains(pools.engine, seams.clock) if is_direct else None
        self.engine = self._engine(seams) if Role.DELIVERY in settings.roles else None
        self.dispatcher = self._dispatcher(seams) if Role.WEBHOOKS in settings.roles else None
        self.accept = self._accept()
        self.return_path = self._return_paths(seams)
        self.last_used = LastUsed(pool, seams.clock)
        self.credentials = KeyCredentials(pool, seams.clock, self.last_used)
        self.idempotency = IdempotencyRows(pool, seams.clock)
        self.windows = Windows(runtime.shared_memory, seams.clock)
        self.reading_threads = ThreadPoolExecutor(READING_THREADS, "pillarbox-read")
        self.reading = Reading(self.blobs, self.reading_threads)
        self.page_work = PageWork()
        self.addresses = self._addresses()
        self.rspamd_client: Outbound | None = None
        self.receiving = self._receiving(seams)
        self.submission = self._submission()
        self.smtp = self._smtp_doors()
        self.rounds = self._rounds()
        self.clock_watch = ClockWatch(pool, seams.clock, self.ids, self.mends())
        checking = self._checking(seams)
        self.jobs = Jobs(
            pool,
            seams.clock,
            runtime.process_id,
            self._handlers(checking),
            lanes=(check_lane(runtime.count), fetching.JOB_LIMIT, CLAIM_LANE),
        )
        self.files = Files(self.signer, seams.clock, self.blobs, settings.public_url)
        self.files.register("attachment", AttachmentFiles(pool).open)
        received = ReceivedFiles(pool, self.reading)
        self.files.register(RECEIVED_RAW, received.raw)
        self.files.register(RECEIVED_ATTACHMENT, received.attachment)

    def _engine(self, seams: Externals) -> Engine:
        sealer = Composer(self.ring, self.blobs.stream, self.threads)
        outside, keep = self._outside(seams, sealer)
        carrier = TransportChoice(self.simulators, Simulator(seams.clock), outside)
        settler = Settler(
            self.pools.engine,
            self.timeline,
            self.ids,
            self.publisher,
            seams.clock,
            self.runtime.process_id,
            keep,
            self.familiar,
        )
        return Engine(
            clock=seams.clock,
            claims=self.claims,
            settler=settler,
            transport=carrier,
            pauses=self.pauses,
            site_sharing=SiteSharing(self.pools.engine, seams.clock, self.runtime.process_id),
            window=self.settings.delivery_window,
            chance=seams.chance,
            roles=",".join(self.settings.roles),
        )

    def _dispatcher(self, seams: Externals) -> Dispatcher:
        rules, process = endpoint_rules(self.settings), self.runtime.process_id
        private = self.settings.allow_private
        reach = AddressPolicy(private, ports=rules.permits_port)
        posts = PostClient(Outbound(DnsAddresses(seams.resolver), private, reach=reach))
        return Dispatcher(
            clock=seams.clock,
            ids=self.ids,
            claims=WebhookClaims(self.pools.engine, seams.clock, process, self.ring, self.bodies),
            settler=WebhookSettler(self.pools.engine, self.ids, process),
            poster=Poster(posts, rules),
            retries=self.settings.webhooks_retries,
            notify=self.webhook_bell.ring,
            roles=",".join(self.settings.roles),
        )

    def wake_webhooks(self) -> None:
        """Something was committed for the dispatchers: ours, or where we have none those of others."""
        if self.dispatcher is not None:
            self.dispatcher.wake()
        else:
            self.webhook_bell.ring()

    def _outside(self, seams: Externals, sealer: Composer) -> tuple[Transport, KeepCaptured]:
        route = self.settings.route
        if route.kind is RouteKind.CAPTURE:
            return CaptureStore(seams.clock, sealer, self._return_path), self.capture.keep
        hello = self.settings.hostname
        way: RelayHop | DirectHops
        if route.relay is not None:
            way = RelayHop(route.relay.host, route.relay.port, relay_tls(route.relay))
            greeting = Greeting(hello, relay_login(route.relay))
        else:
            reach = HostPolicy(self.settings.allow_private, frozenset({hello}))
            policies = self.policies if self.settings.mta_sts else None
            way = DirectHops(seams.resolver, reach, seams.shuffle, self.settings.remote_smtp_port, policies)
            greeting = Greeting(hello, trust=seams.trust)
        network = SmtpTransport(
            clock=seams.clock,
            next_hops=way,
            composer=sealer,
            connections=Connections(greeting.open),
            return_path=self._return_path,
            known_domains=self.familiar,
        )
        return network, keep_nothing

    def _return_path(self, item: Item) -> str:
        token = self.verp.token(item.email.team_number, item.email_id, item.grp)
        return f"{token}@{item.email.return_path}"

    def _return_paths(self, seams: Externals) -> ReturnPath:
        return ReturnPath(
            pool=self.pool,
            clock=self.clock,
            signer=self.verp,
            timeline=self.timeline,
            ids=self.ids,
            publisher=self.publisher,
            windows=Windows(self.runtime.shared_memory, self.clock),
            lookup=seams.resolver,
            simulators=self.simulators,
        )

    def _accept(self) -> Accept:
        return Accept(
            pool=self.pools.engine,
            ids=self.ids,
            writer=Commits(
                pool=self.pools.engine,
                clock=self.clock,
                ids=self.ids,
                timeline=self.timeline,
                quotas=Quotas(self.clock, self.meter.note),
                journal=self.journal,
                owner=self.runtime.process_id,
            ),
            senders=self.senders,
            blobs=self.blobs,
            admits=self._admits,
            rules=Rules(
                self.simulators,
                self.settings.verified_domain_required,
                self.settings.reject_reserved_recipients,
            ),
            engine=self.engine,
            claims=self.claims,
            wake=self.bell.ring,
        )

    def _admits(self) -> None:
        """Refuse outgoing mail where there is no room for it, on the disk or in the queue."""
        self.room.check()
        self.depth.check()

    def _addresses(self) -> Addresses:
        settings = self.settings
        rules = AddressRules(settings.hostname, settings.inbound_domain, settings.inbound_require_dns)
        storage = Storage(self.pools.engine, self.clock, settings.received_storage)
        return Addresses(self.pools.engine, self.clock, rules, self.return_path.knows, storage)

    def _receiving(self, seams: Externals) -> Receiving:
        settings = self.settings
        rspamd = None
        if settings.rspamd_url is not None:
            self.rspamd_client = Outbound(DnsAddresses(seams.resolver), EVERYWHERE)
            rspamd = Rspamd(self.rspamd_client, settings.rspamd_url)
        return Receiving(
            pool=self.pools.engine,
            clock=self.clock,
            ids=self.ids,
            blobs=self.blobs,
            room=self.room,
            publisher=self.publisher,
            judge=Judge(seams.resolver, self.clock, settings.hostname, rspamd),
            marks=LoopMarks(self.ring.mac_keys("loop")),
            threads=self.reading_threads,
            rules=ReceivingRules(settings.hostname, settings.reject_dmarc_fail),
            announce=self.capture.arrivals.announce if settings.route.kind is RouteKind.CAPTURE else None,
        )

    def _submission(self) -> SubmissionHandler:
        return SubmissionHandler(
            accept=self.accept,
            credentials=self.credentials,
            idempotency=self.idempotency,
            windows=self.windows,
            rate_limit=self.settings.rate_limit,
            clock=self.clock,
            ids=self.ids,
            is_closed=self._is_closed,
        )

    def _is_closed(self) -> bool:
        return self.maintenance.is_on

    def _smtp_doors(self) -> SmtpListeners | None:
        """The listeners of the SMTP doors, where this process has any."""
        settings, runtime = self.settings, self.runtime
        if not {SMTP, LMTP, *submission_names(settings.submission)} & runtime.doors.keys():
            return None
        sessions = ceil(settings.smtp_sessions / runtime.count)
        allowance = Allowance(sessions, settings.smtp_client_sessions, settings.smtp_client_rate)
        parts = (self.receiving, self.addresses, self.return_path.take, self.clock)
        return SmtpListeners(
            doors=runtime.doors,
            submission=self.submission,
            inbound=InboundHandler(*parts, is_closed=self._is_closed),
            local=LmtpHandler(*parts, is_closed=self._is_closed),
            manner=smtp_manner(settings),
            asked=settings.submission,
            certificate=smtp_certificate(settings, self.clock),
            clients=Clients(self.windows, self.clock, allowance, index=runtime.index, count=runtime.count),
            neighbours=Clients(self.windows, self.clock, Allowance(sessions, None, None)),
            clock=self.clock,
        )

    def _checking(self, seams: Externals) -> Checking:
        passes = CheckOutcome(self.workshop, self.settings.delivery_window)
        looker = Inspector(self.asks, self.clock)
        return Checking(self.pool, self.clock, looker, passes, seams.chance, self.senders.forget)

    def _handlers(self, checking: Checking) -> dict[str, Handler]:
        if Role.JOBS not in self.settings.roles:
            return {}
        return {
            JOB_FETCH: self._fetching().run,
            JOB_CHECK: checking.run,
            JOB_CLAIM: self._claiming().run,
            **Notices(self.pool, TeamMail(self.pool, self.accept, self.settings.hostname).send).handlers(),
            **self._webhook_retention().handlers(),
            **periodic.handlers(self.rounds, self.clock),
        }

    def _fetching(self) -> fetching.Fetching:
        return fetching.Fetching(self.pool, self.clock, self.outbound, self.blobs, self.timeline)

    def _claiming(self) -> Claiming:
        transfers = Transfers(self.pool, self.workshop, claim_rules(self.settings), DomainActivity())
        return Claiming(self.pool, self.clock, self.asks, transfers)

    def _rounds(self) -> list[Periodic]:
        settings = self.settings
        kept = Retention(
            self.pool,
            self.clock,
            self.blobs,
            emails=settings.email_retention_days,
            bodies=settings.body_retention_days,
        )
        orphans = Orphans(
            self.pool,
            self.clock,
            self.blobs,
            days=settings.orphan_blob_days,
            is_ours=settings.blob_url is None,
        )
        counted = metric_periodic(self.pool, self.clock, settings.metrics_retention_days)
        webhooks = self._webhook_retention().rounds()
        webhooks += listener_periodic(self.pool, self.clock, self.ids)
        own = [*own_periodic(self.pool, self.clock), *claim_periodic(self.pool, self.clock)]
        own += [*mta_sts_periodic(self.pool, self.clock), *known_domains_periodic(self.pool, self.clock)]
        received = self._received_retention().rounds()
        own += [*log_periodic(self.pool, self.clock, self.log_policy), *usage_periodic(self.pool, self.clock)]
        return [*email_periodic(kept, orphans), *received, *own, *counted, *webhooks]

    def _received_retention(self) -> ReceivedRetention:
        days = self.settings.received_retention_days
        return ReceivedRetention(self.pool, self.clock, self.blobs, days=days)

    def _webhook_retention(self) -> WebhookRetention:
        return WebhookRetention(self.pool, self.clock, days=self.settings.webhooks_retention_days)

    def services(self) -> Services:
        """What the doors may ask for."""
        services = Services(
            self.ids,
            self.accept,
            self.timeline,
            self.files,
            self.signer,
            self.ring,
            self.senders,
            self.blobs,
            self.room,
            self.probe,
            self.last_used,
            Sharing(self.signer, self.settings.public_url),
            self.windows,
            self.installation,
            self.workshop,
            claim_rules(self.settings),
            endpoint_rules(self.settings),
            self._delivery_log(),
            self.log_policy,
            self.maintenance,
            self.meter,
            Limits(self.settings.rate_limit, self.settings.most_domains),
            ApiDocument(self.settings.public_url, WEBHOOKS),
        )
        services.add(Allowances(self.settings.most_webhooks, self.settings.most_api_keys))
        services.add(self.journal, Journal)
        services.add(self.meter, Meter)
        if self.settings.route.kind is RouteKind.CAPTURE:
            hosts = (self.settings.http.host, self.settings.hostname)
            services.add(self.capture)
            services.add(self._received_retention())
            services.add(Reader(self.pool, self.blobs, self.page_work))
            services.add(CaptureAccess.named(self.runtime.capture_token, hosts, self.settings.public_url))
        services.add(SharedPages(self.page_work), SharedScreens)
        services.add(self.reading)
        services.add(ReceivedMail(self.reading), OtherMail)
        services.add(self.pool, asyncpg.Pool)
        services.add(
            MetricsPolicy(self.settings.metrics_retention_days, Cache(self.settings.metrics_cache_seconds))
        )
        services.add(self.clock, Clock)
        services.add(self.credentials)
        services.add(self.credentials, Credentials)
        services.add(self.idempotency, IdempotencyStore)
        return services

    def mends(self) -> list[Mend]:
        """What corrects rows that were dated by a clock that was ahead."""
        return [
            partial(periodic.bring_forward, self.pool, self.rounds),
            partial(misdated_keys, self.pool),
            partial(misdated_items, self.pool),
            partial(misdated_deliveries, self.pool),
        ]

    def _delivery_log(self) -> DeliveryLog:
        days = self.settings.webhooks_retention_days
        return DeliveryLog(self.bodies, self.ids, self.clock, self.wake_webhooks, days)


class App:
    """What a worker process runs."""

    def __init__(self, house: Parts, ears: Sequence[Listener]) -> None:
        self.house = house
        self._ears = ears
        self._writing: list[asyncio.Task[None]] = []
        settings = house.settings
        self._api = Api(
            RouteTable(ROUTES + (CAPTURE_ROUTES if settings.route.kind is RouteKind.CAPTURE else [])),
            house.services(),
            HttpSettings(
                settings.rate_limit,
                trusted_proxies=settings.trusted_proxy,
                require_user_agent=settings.require_user_agent,
            ),
        )

    @property
    def asgi(self) -> Any:
        return self._api

    async def start(self) -> None:
        """Return when the background work runs and requests can be answered."""
        house = self.house
        if house.engine is not None:
            await house.engine.start()
        if house.dispatcher is not None:
            await house.dispatcher.start()
        for ear in self._ears:
            await ear.start()
        await house.capture.start()
        if Role.JOBS in house.settings.roles:
            await periodic.ensure(house.pool, house.rounds, house.ids, house.clock)
            await house.jobs.start()
        await house.maintenance.look()
        kept = [house.last_used.run(), house.journal.run(), house.maintenance.run(), house.depth.run()]
        if house.runtime.index == 0:
            kept.append(house.clock_watch.run())
        self._writing = [*map(asyncio.create_task, kept), *self._counting()]
        if house.smtp is not None:
            await house.smtp.open()

    def _counting(self) -> list[asyncio.Task[None]]:
        """Figures are written only where somebody asks for them; one process counts what is in the queue."""
        house, folder = self.house, self.house.runtime.figures
        if folder is None:
            return []
        engine, dispatcher = house.engine, house.dispatcher
        if dispatcher is not None:
            webhook_figures.watch(dispatcher)
        prometheus.HELD.read = lambda: {(): engine.held if engine else 0}
        watch({"doors": house.pools.doors, "engine": house.pools.engine})
        kept = [MetricsFile(folder, house.clock).keep()]
        if house.runtime.index == 0:
            kept.append(QueueMetrics(house.pool, house.clock).keep())
            kept.append(WebhookQueueMetrics(house.pool, house.clock).keep())
        return [asyncio.create_task(work) for work in kept]

    def closing(self) -> None:
        """The doors are about to close: let nobody wait for a mail any longer."""
        self.house.capture.arrivals.close()
        if self.house.smtp is not None:
            self.house.smtp.close()

    async def stop(self, grace: float) -> None:
        """Finish what is on the wire within `grace` seconds and give back the leases."""
        house = self.house
        if house.smtp is not None:
            await house.smtp.stop(grace)
        await house.accept.drain()
        await house.receiving.drain()
        await house.journal.drain()
        for ear in self._ears:
            await ear.stop()
        await house.capture.stop()
        await house.jobs.stop(grace)
        if house.engine is not None:
            await house.engine.stop(grace)
        if house.dispatcher is not None:
            await house.dispatcher.stop(grace)
        await house.claims.leave()
        for task in self._writing:
            task.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)
        await house.policies.close()
        await house.outbound.close()
        await house.blobs.close()
        if house.rspamd_client is not None:
            await house.rspamd_client.close()
        house.threads.shutdown(wait=False, cancel_futures=True)
        house.reading_threads.shutdown(wait=False, cancel_futures=True)
        await house.probe.close()
        house.page_work.close()
        await house.pools.close()


async def build(settings: Settings, runtime: Runtime, seams: Externals | None = None) -> App:
    """The application of one worker process; the database must be migrated already."""
    if settings.database_url is None:
        raise ValueError("a worker needs the address of its database")
    pools = await Pools.open(settings.database_url)
    house = Parts(settings, runtime, pools, seams or Externals.real(settings))
    ears = []
    if house.engine is not None:
        ears.append(Listener(settings.database_url, DELIVERY_CHANNEL, house.engine.wake))
    if house.dispatcher is not None:
        ears.append(Listener(settings.database_url, WEBHOOK_CHANNEL, house.dispatcher.notified))
    if settings.route.kind is RouteKind.CAPTURE:
        ears.append(Listener(settings.database_url, CAPTURE_CHANNEL, house.capture.arrivals.heard))
    return App(house, ears)


def timeline_of(clock: Clock, ids: Ids | None = None, publisher: Publisher | None = None) -> Timeline:
    """The timeline with the hooks of this house; also for commands that change the fate of emails."""
    ids = ids or Ids(clock)
    return Timeline(ids, Announcer(publisher or Publisher(ids)))


def event_bodies() -> Bodies:
    """Who makes the bodies of events that only refer to a row."""
    return Bodies({"email": received_events.beside(email_events.event_data)})


def endpoint_rules(settings: Settings) -> EndpointRules:
    """Where webhooks of this installation may lead."""
    return EndpointRules(
        settings.webhooks_allow_http, settings.webhooks_allowed_ports, settings.allow_private
    )


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


def smtp_manner(settings: Settings) -> ListenerOptions:
    """How the SMTP doors speak."""
    return ListenerOptions(
        settings.hostname,
        MOST_OCTETS,
        offers_login=True,
        login_needs_tls=settings.smtp_login_needs_tls,
        folder=str(settings.data),
    )


def smtp_certificate(settings: Settings, clock: Clock) -> Certificate:
    """The operator's certificate, or one that we make."""
    if settings.tls_cert is not None and settings.tls_key is not None:
        return Certificate(settings.tls_cert, settings.tls_key, clock)
    made = self_made(settings.data, settings.hostname, clock.now())
    return Certificate(made, made, clock)


def claim_rules(settings: Settings) -> ClaimRules:
    """What a claim of a domain name has to wait for."""
    return ClaimRules(
        settings.claim_grace,
        settings.claim_quiet,
        settings.claim_scheduled,
        settings.claim_token_prefix,
    )


def relay_tls(relay: Relay) -> TlsMode:
    """A password goes over verified TLS only; without one the relay's TLS is used where offered."""
    if relay.smtps:
        return TlsMode.IMPLICIT
    if relay.user is not None and relay.host not in ("127.0.0.1", "::1", "localhost"):
        return TlsMode.VERIFIED
    return TlsMode.OPPORTUNISTIC


def relay_login(relay: Relay) -> tuple[str, str] | None:
    """User and password, when the relay's URL carries them."""
    return (relay.user, relay.password or "") if relay.user is not None else None
