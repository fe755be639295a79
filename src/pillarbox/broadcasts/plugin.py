"""The slice of broadcasts: routes, start and copies, previews, the bounce and complaint limits, and
retention."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.broadcasts import copying_queries, routes, start, watch
from pillarbox.broadcasts.copying import CopyMaker
from pillarbox.broadcasts.documents import routes as documents
from pillarbox.broadcasts.documents.storing import BroadcastDocuments
from pillarbox.broadcasts.invariants import INVARIANTS
from pillarbox.broadcasts.limits import BrakeLimits
from pillarbox.broadcasts.plans import routes as plans
from pillarbox.broadcasts.preview import routes as preview
from pillarbox.broadcasts.preview.composing import Previews
from pillarbox.broadcasts.reports import invariants as report_invariants
from pillarbox.broadcasts.reports import routes as reports
from pillarbox.broadcasts.reports.names import names_of
from pillarbox.broadcasts.retention import BroadcastRetention
from pillarbox.broadcasts.settings import (
    BROADCAST_BOUNCE_LIMIT,
    BROADCAST_COMPLAINT_LIMIT,
    BROADCAST_LIMITS_AFTER,
)
from pillarbox.broadcasts.start import BroadcastStart
from pillarbox.broadcasts.store import Broadcasts
from pillarbox.broadcasts.watch import Watch
from pillarbox.delivery.copies import BroadcastCopySource
from pillarbox.delivery.plugin import DeliveryNotifier, SigningThreads
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.documents.rendering import DocumentRendering
from pillarbox.domains.senders import Senders
from pillarbox.emails.broadcast_copies.making import MakingCopies
from pillarbox.emails.permitted_senders import PermittedSenders
from pillarbox.emails.settings import BODY_RETENTION_DAYS
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.work.jobs import Handler, Jobs
from pillarbox.metrics.policy import BroadcastNames
from pillarbox.teams.settings import EMAIL_RETENTION_DAYS
from pillarbox.usage.quotas import Quotas


def _broadcasts(kit: Container) -> Broadcasts:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return Broadcasts(kit.need(Ids), kit.need(PermittedSenders), kit.need(Quotas), wake)


def _start(kit: Container) -> BroadcastStart:
    return BroadcastStart(
        pool=kit.pool,
        ids=kit.need(Ids),
        senders=kit.need(PermittedSenders),
        quotas=kit.need(Quotas),
        wake=kit.need(DeliveryNotifier).notify,
    )


def _copies(kit: Container) -> BroadcastCopySource:
    disks, queue = kit.need(DiskSpace), kit.need(QueueLimit)

    def admits() -> None:
        disks.check()
        queue.check_copies()

    copying = CopyMaker(
        kit.engine_pool, kit.clock, kit.need(MakingCopies), admits, kit.need(ItemClaims).leave_for_later
    )
    return BroadcastCopySource(copying.make, copying.judge, copying_queries.IS_WANTED)


def _previews(kit: Container) -> Previews:
    return Previews(
        ids=kit.need(Ids),
        senders=Senders(kit.pool, kit.clock),
        keys=kit.need(LinkKeys),
        public_url=kit.settings.public_url,
        ring=kit.need(KeyRing),
        threads=kit.need(SigningThreads),
    )


def _watch(kit: Container) -> Watch:
    settings = kit.settings
    limits = BrakeLimits(
        settings[BROADCAST_BOUNCE_LIMIT],
        settings[BROADCAST_COMPLAINT_LIMIT],
        settings[BROADCAST_LIMITS_AFTER],
    )
    return Watch(kit.pool, kit.need(Ids), limits)


def _jobs(kit: Container) -> Mapping[str, Handler]:
    return {**kit.need(BroadcastStart).handlers(), **kit.need(Watch).handlers()}


SLICE = Slice(
    name="broadcasts",
    provides={
        Broadcasts: _broadcasts,
        BroadcastDocuments: lambda kit: BroadcastDocuments(kit.need(Broadcasts), kit.need(DocumentRendering)),
        BroadcastStart: _start,
        Watch: _watch,
        BroadcastCopySource: _copies,
        Previews: _previews,
        BroadcastNames: lambda _: BroadcastNames(names_of),
    },
    routes=[*collect(routes), *collect(reports), *collect(preview), *collect(plans), *collect(documents)],
    jobs=_jobs,
    job_limits=lambda _: [start.LIMIT, watch.LIMIT],
    retention=[
        Retention(
            [
                RetentionItem(
                    "recipients of broadcasts, and their content, when their emails are gone",
                    EMAIL_RETENTION_DAYS,
                    True,
                ),
                RetentionItem("html and text of the copies of broadcasts", BODY_RETENTION_DAYS),
            ],
            lambda kit: BroadcastRetention(
                kit.pool, kit.clock, bodies=kit.settings[BODY_RETENTION_DAYS]
            ).periodic(),
        )
    ],
    invariants=(*INVARIANTS, *report_invariants.INVARIANTS),
)
