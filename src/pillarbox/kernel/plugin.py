"""The slice of the kernel: the parts of every process, and the code that joins the parts of all slices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.http import files as file_routes
from pillarbox.kernel.http import health as health_routes
from pillarbox.kernel.http import openapi as openapi_routes
from pillarbox.kernel.http.files import FileLinks
from pillarbox.kernel.http.health import DatabaseProbe
from pillarbox.kernel.http.hosts import HostRules
from pillarbox.kernel.http.idempotency import LIFETIME, IdempotencyRows, IdempotencyStore
from pillarbox.kernel.http.maintenance import Maintenance
from pillarbox.kernel.http.openapi import ApiDocument
from pillarbox.kernel.http.pipeline import Api, HttpSettings, Meter
from pillarbox.kernel.http.queries import IS_IN_MAINTENANCE
from pillarbox.kernel.http.routing import RouteTable, collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.observability.backup_age import BackupAge
from pillarbox.kernel.observability.metrics import MetricsFile
from pillarbox.kernel.observability.request_log import RequestLogWriter
from pillarbox.kernel.postgres.bounded_pool import watch_pools
from pillarbox.kernel.postgres.notify import NotifyListener
from pillarbox.kernel.process.clock_watch import ClockCorrection, ClockWatch
from pillarbox.kernel.security import rate_queries
from pillarbox.kernel.security.authentication import AccessTokens, CredentialLookup
from pillarbox.kernel.security.link_key_queries import LINK_KEYS
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.ring_check import RingWatch
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.shared_limits import SharedLimits
from pillarbox.kernel.security.team_rate import TeamRate
from pillarbox.kernel.security.tokens import Signer
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.slices import (
    Background,
    Container,
    Loop,
    Retention,
    RetentionItem,
    Slice,
    StartOrder,
    Stop,
)
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import SHORT, DiskSpace, disks_of
from pillarbox.kernel.storage.storage_metrics import UNWRITABLE
from pillarbox.kernel.storage.store_check import StoreWatch
from pillarbox.kernel.work import periodic
from pillarbox.kernel.work.claim_queries import IS_DUE, IS_HELD
from pillarbox.kernel.work.collectors import DEAD_AFTER, misdated_keys, own_periodic
from pillarbox.kernel.work.invariants import INVARIANTS
from pillarbox.kernel.work.jobs import Handler, Jobs
from pillarbox.kernel.work.lone_attempts import LoneAttempts
from pillarbox.kernel.work.misdated_queries import misdated_jobs
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.kernel.work.queue_poll import SELDOM, QueuePoll


class PeriodicJobs(tuple[Periodic, ...]):
    """The periodic jobs of all slices."""


def http_application(kit: Container) -> Api:
    """Return the ASGI application of everything that is served over HTTP."""
    needed: tuple[type, ...] = (asyncpg.Pool, Ids, Windows, TeamRate, CredentialLookup, IdempotencyStore)
    for kind in needed:
        kit.need(kind)
    wanted: tuple[type, ...] = (AccessTokens, RequestLogWriter, Meter, Maintenance, HostRules)
    for kind in wanted:
        kit.find(kind)
    settings = kit.settings
    return Api(
        RouteTable(kit.routes),
        kit.services,
        HttpSettings(
            settings.rate_limit,
            trusted_proxies=settings.trusted_proxy,
            require_user_agent=settings.require_user_agent,
            issuer=settings.public_url,
        ),
    )


def _team_rate(kit: Container) -> TeamRate:
    runtime = kit.runtime
    windows = kit.need(Windows)
    is_first = runtime.index == 0
    rate = TeamRate(windows, runtime.shared_memory, kit.pool, kit.clock, is_first=is_first)
    if _counts_requests(kit):
        kit.need(QueuePoll).add(rate_queries.HAS_OTHERS, rate.look_again, keeps=lambda: rate.nodes > 1)
    return rate


def _maintenance(kit: Container) -> Maintenance:
    maintenance = Maintenance(kit.pool)
    kit.need(QueuePoll).add(IS_IN_MAINTENANCE, maintenance.look_again, keeps=lambda: maintenance.is_on)
    return maintenance


def _counts_requests(kit: Container) -> bool:
    return bool({ProcessRole.API, ProcessRole.SMTP} & set(kit.settings.roles))


def _files(kit: Container) -> FileLinks:
    files = FileLinks(kit.need(Signer), kit.clock, kit.need(BlobStore), kit.settings.public_url)
    for one in kit.slices:
        for kind, opener in one.files(kit).items():
            files.register(kind, opener)
    return files


def _document(kit: Container) -> ApiDocument:
    shapes = {kind: shape for one in kit.slices for kind, shape in one.webhook_shapes.items()}
    return ApiDocument(kit.settings.public_url, shapes)


def _outbound(kit: Container) -> Outbound:
    outside = kit.externals
    return Outbound(DnsAddresses(outside.resolver), kit.settings.allow_private, tls=outside.trust)


def _periodic_jobs(kit: Container) -> PeriodicJobs:
    return PeriodicJobs(kit.periodic)


def _jobs(kit: Container) -> Jobs:
    limits = tuple(limit for one in kit.slices for limit in one.job_limits(kit))
    roles = ",".join(kit.settings.roles)
    process, lone = kit.runtime.process_id, kit.need(LoneAttempts)
    jobs = Jobs(kit.pool, kit.clock, process, _handlers(kit), limits, roles, lone, SELDOM)
    if ProcessRole.JOBS in kit.settings.roles:
        kit.need(QueuePoll).add(IS_DUE, jobs.look_again)
        kit.need(QueuePoll).add(IS_HELD, jobs.look_for_lost)
    return jobs


def _handlers(kit: Container) -> dict[str, Handler]:
    """Return the handler of each kind of job; none in a process without the role `jobs`."""
    if ProcessRole.JOBS not in kit.settings.roles:
        return {}
    found: dict[str, Handler] = {}
    for one in kit.slices:
        found |= one.jobs(kit)
    return found | periodic.handlers(kit.need(PeriodicJobs), kit.clock)


def _clock_watch(kit: Container) -> ClockWatch:
    return ClockWatch(kit.pool, kit.clock, kit.need(Ids), clock_corrections_of(kit))


def clock_corrections_of(kit: Container) -> list[ClockCorrection]:
    """Return the corrections of rows that were dated by a clock that was ahead."""
    return [correction for one in kit.slices for correction in one.clock_corrections(kit)]


def _clock_corrections(kit: Container) -> Sequence[ClockCorrection]:
    return [
        partial(periodic.bring_forward, kit.pool, kit.need(PeriodicJobs)),
        partial(misdated_keys, kit.pool),
        partial(misdated_jobs, kit.pool),
    ]


def _background(kit: Container) -> Sequence[Background]:
    jobs, maintenance, pools = kit.need(Jobs), kit.need(Maintenance), kit.pools
    outbound, blobs, probe = kit.need(Outbound), kit.need(BlobStore), kit.need(DatabaseProbe)

    async def begin_jobs() -> None:
        if ProcessRole.JOBS in kit.settings.roles:
            await periodic.ensure(kit.pool, kit.need(PeriodicJobs), kit.need(Ids), kit.clock)
            await jobs.start()

    rate = kit.need(TeamRate)
    counting = [Background((StartOrder.STATE, rate.look), stop=(Stop.CLIENTS, lambda _: rate.leave()))]
    return [
        *(_listening(listener) for listener in _listeners(kit)),
        *(counting if _counts_requests(kit) else ()),
        Background(start=(StartOrder.JOBS, begin_jobs), stop=(Stop.JOBS, jobs.stop)),
        Background(start=(StartOrder.STATE, maintenance.look)),
        Background(start=(StartOrder.STATE, kit.need(StoreWatch).look)),
        Background(stop=(Stop.CONNECTIONS, lambda _: outbound.close())),
        Background(stop=(Stop.CONNECTIONS, lambda _: blobs.close())),
        Background(stop=(Stop.DATABASE, lambda _: probe.close())),
        Background(stop=(Stop.DATABASE, lambda _: pools.close())),
    ]


def _listeners(kit: Container) -> list[NotifyListener]:
    url = kit.settings.database_url or ""
    return [
        NotifyListener(url, channel, heard)
        for one in kit.slices
        for channel, heard in one.listeners(kit).items()
    ]


def _listening(listener: NotifyListener) -> Background:
    return Background(
        start=(StartOrder.NOTIFICATIONS, listener.start), stop=(Stop.NOTIFICATIONS, lambda _: listener.stop())
    )


def _loops(kit: Container) -> list[Loop]:
    loops = [kit.need(RingWatch).run(), kit.need(StoreWatch).run(), kit.need(Maintenance).run()]
    loops.append(kit.need(QueuePoll).run())
    if _counts_requests(kit):
        loops.append(kit.need(TeamRate).run())
    if kit.runtime.index == 0:
        loops.append(kit.need(ClockWatch).run())
    return loops


def _metrics(kit: Container) -> list[Loop]:
    assert kit.runtime.metrics_folder is not None
    disk_space, blobs = kit.need(DiskSpace), kit.need(BlobStore)
    UNWRITABLE.read = lambda: {(): not blobs.writable or blobs.refusal is not None}
    SHORT.read = lambda: {(): disk_space.is_short}
    watch_pools({"requests": kit.pools.requests, "engine": kit.pools.engine})
    loops = [MetricsFile(kit.runtime.metrics_folder, kit.clock).keep()]
    if kit.runtime.index == 0:
        loops.append(BackupAge(kit.pool, kit.clock).keep())
    return loops


SLICE = Slice(
    name="kernel",
    provides={
        asyncpg.Pool: lambda kit: kit.pool,
        Clock: lambda kit: kit.clock,
        Ids: lambda kit: Ids(kit.clock),
        KeyRing: lambda kit: KeyRing.parse(kit.settings.secret_key or ""),
        RingWatch: lambda kit: RingWatch(kit.pool, kit.clock, kit.need(KeyRing)),
        Signer: lambda kit: Signer(kit.need(KeyRing), kit.clock),
        # A claim asks for them while it holds row locks, for which requests may wait with all of their pool.
        LinkKeys: lambda kit: LinkKeys(kit.engine_pool, kit.clock, kit.need(KeyRing)),
        BlobStore: lambda kit: BlobStore.open(kit.settings.blobs),
        StoreWatch: lambda kit: StoreWatch(kit.pool, kit.clock, kit.need(BlobStore), kit.settings),
        DiskSpace: lambda kit: DiskSpace(kit.clock, disks_of(kit.settings.data, kit.settings.blobs)),
        DatabaseProbe: lambda kit: DatabaseProbe(kit.settings.database_url or ""),
        Windows: lambda kit: Windows(kit.runtime.shared_memory, kit.clock),
        TeamRate: _team_rate,
        QueuePoll: lambda kit: QueuePoll(kit.engine_pool, kit.clock, kit.need(Windows)),
        SharedLimits: lambda kit: SharedLimits(kit.need(Windows), kit.need(TeamRate), kit.pool),
        Maintenance: _maintenance,
        IdempotencyRows: lambda kit: IdempotencyRows(kit.pool, kit.clock),
        IdempotencyStore: lambda kit: kit.need(IdempotencyRows),
        Outbound: _outbound,
        FileLinks: _files,
        ApiDocument: _document,
        PeriodicJobs: _periodic_jobs,
        Jobs: _jobs,
        LoneAttempts: lambda _: LoneAttempts(),
        ClockWatch: _clock_watch,
    },
    routes=collect(file_routes, health_routes, openapi_routes),
    retention=[
        Retention(
            [
                RetentionItem("answers to repeated requests with the same Idempotency-Key", LIFETIME),
                RetentionItem("processes that are gone", DEAD_AFTER),
                RetentionItem("counts of limits that several nodes share", rate_queries.KEPT),
            ],
            lambda kit: own_periodic(kit.pool, kit.clock),
        )
    ],
    clock_corrections=_clock_corrections,
    invariants=INVARIANTS,
    background=_background,
    sealed=[LINK_KEYS],
    loops=_loops,
    metrics=_metrics,
)
