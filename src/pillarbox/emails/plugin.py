"""The slice of emails: accepting mail, loading it for delivery, and the routes under `/emails`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pillarbox.delivery.engine import Engine
from pillarbox.delivery.plugin import DeliveryNotifier, EmailSource
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.domains.claims.transfer import OwnerActivity
from pillarbox.domains.senders import Senders
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.emails import event_data, fetching, routes
from pillarbox.emails.accept import Accept, SendingPolicy
from pillarbox.emails.broadcast_copies.loading import CopyLoader
from pillarbox.emails.broadcast_copies.making import MakingCopies
from pillarbox.emails.commits import Commits
from pillarbox.emails.copies import TopicCopies, TopicRules
from pillarbox.emails.files import AttachmentFiles
from pillarbox.emails.integrity.invariants import INVARIANTS
from pillarbox.emails.jobs import OrphanBlobs, email_periodic
from pillarbox.emails.loading import EmailLoader
from pillarbox.emails.overview_queries import DomainActivity
from pillarbox.emails.own_mail.sealed_queries import SEALED_MAILS
from pillarbox.emails.own_mail.system_mail import StoredSystemMail
from pillarbox.emails.own_mail.team_mail import TeamMail
from pillarbox.emails.permitted_senders import NoSenderPolicies, PermittedSenders, SenderPolicies
from pillarbox.emails.personal.personal_data import PERSONAL_DATA
from pillarbox.emails.raw_mail.messages import RAW, KeptMessages, SentMessages
from pillarbox.emails.recent_mail import RecentMail
from pillarbox.emails.requests.templating import ContactSource, TemplateRendering
from pillarbox.emails.retention import EmailRetention
from pillarbox.emails.rows import JOB_FETCH
from pillarbox.emails.search.blocks import SearchBlocks, search_periodic
from pillarbox.emails.settings import (
    BODY_RETENTION_DAYS,
    ORPHAN_BLOB_DAYS,
    REJECT_RESERVED_RECIPIENTS,
    verified_domain_required,
)
from pillarbox.emails.sharing import shared_page
from pillarbox.emails.sharing.share import ShareLinks
from pillarbox.emails.tracked_copies import TrackedCopies
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.observability.request_log import RequestLogWriter
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.tokens import Signer
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.work.jobs import EndingHandler, Handler
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.people.mails import SystemMail
from pillarbox.people.settings import SYSTEM_SENDER
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.teams.settings import EMAIL_RETENTION_DAYS
from pillarbox.timeline.record import Timeline
from pillarbox.usage.quotas import Quotas
from pillarbox.webhooks.plugin import TeamMailer


def _accept(kit: Container) -> Accept:
    settings, disks, queue = kit.settings, kit.need(DiskSpace), kit.need(QueueLimit)

    def admits() -> None:
        """Refuse outgoing mail where there is no room for it, on the disk or in the queue."""
        disks.check()
        queue.check()

    return Accept(
        pool=kit.engine_pool,
        ids=kit.need(Ids),
        writer=_commits(kit),
        senders=kit.need(PermittedSenders),
        topics=kit.need(TopicRules),
        tracked=kit.need(TrackedCopies),
        blobs=kit.need(BlobStore),
        check_capacity=admits,
        rules=SendingPolicy(settings[REJECT_RESERVED_RECIPIENTS]),
        policies=kit.find(SenderPolicies) or NoSenderPolicies(),  # type: ignore[type-abstract]
        engine=kit.find(Engine),
        claims=kit.need(ItemClaims),
        note_mail=kit.need(RecentMail).note,
        wake=kit.need(DeliveryNotifier).notify,
    )


def _permitted_senders(kit: Container) -> PermittedSenders:
    simulated = frozenset(kit.settings[SIMULATOR_DOMAINS])
    return PermittedSenders(kit.need(Senders), simulated, verified_domain_required(kit.settings))


def _commits(kit: Container) -> Commits:
    request_log: RequestLogWriter = kit.need(RequestLogWriter)  # type: ignore[type-abstract]
    return Commits(
        pool=kit.engine_pool,
        clock=kit.clock,
        ids=kit.need(Ids),
        timeline=kit.need(Timeline),
        quotas=kit.need(Quotas),
        request_log=request_log,
        owner=kit.runtime.process_id,
        shards=kit.settings.database_shards,
        erased=kit.need(ErasedAddresses),
    )


def _loader(kit: Container) -> EmailLoader:
    required = verified_domain_required(kit.settings)
    copies = TopicCopies(kit.need(LinkKeys), kit.settings.public_url)
    senders = Senders(kit.engine_pool, kit.clock)
    tracked = kit.need(TrackedCopies)
    parts = kit.need(TopicRules), copies, tracked, kit.need(CopyLoader)
    return EmailLoader(senders, *parts, domain_required=required, erased=kit.need(ErasedAddresses))


def _copy_loader(kit: Container) -> CopyLoader:
    return CopyLoader(
        Senders(kit.engine_pool, kit.clock),
        kit.need(LinkKeys),
        kit.need(TrackedCopies),
        kit.settings.public_url,
        domain_required=verified_domain_required(kit.settings),
    )


def _making_copies(kit: Container) -> MakingCopies:
    return MakingCopies(
        clock=kit.clock,
        ids=kit.need(Ids),
        timeline=kit.need(Timeline),
        loader=kit.need(CopyLoader),
        claims=kit.need(ItemClaims),
        owner=kit.runtime.process_id,
    )


def _sent_messages(kit: Container) -> SentMessages:
    return SentMessages(kit.pool, kit.need(BlobStore), kit.find(KeptMessages))


def _team_mailer(kit: Container) -> TeamMailer:
    return TeamMailer(TeamMail(kit.pool, kit.need(Accept), kit.settings.hostname).send)


def _system_mail(kit: Container) -> SystemMail:
    settings = kit.settings
    parts = kit.need(Accept), kit.need(Senders)
    return StoredSystemMail(*parts, kit.need(KeyRing), settings[SYSTEM_SENDER], settings.hostname)


def _jobs(kit: Container) -> Mapping[str, Handler]:
    parts = kit.need(Outbound), kit.need(BlobStore), kit.need(Timeline)
    fetcher = fetching.AttachmentFetcher(kit.pool, kit.clock, *parts)
    return {JOB_FETCH: EndingHandler(fetcher.run, fetcher.give_up)}


def _retention(kit: Container) -> Sequence[Periodic]:
    settings, blobs = kit.settings, kit.need(BlobStore)
    retention = EmailRetention(
        kit.pool,
        kit.clock,
        blobs,
        emails=settings[EMAIL_RETENTION_DAYS],
        bodies=settings[BODY_RETENTION_DAYS],
    )
    orphans = OrphanBlobs(
        kit.pool,
        kit.clock,
        blobs,
        days=settings[ORPHAN_BLOB_DAYS],
        is_ours=settings.blob_url is None,
    )
    return email_periodic(retention, orphans, kit.pool)


def _background(kit: Container) -> Sequence[Background]:
    accept = kit.need(Accept)
    return [Background(stop=(Stop.COMMITS, lambda _: accept.drain()))]


SLICE = Slice(
    name="emails",
    sealed=[SEALED_MAILS],
    provides={
        Accept: _accept,
        RecentMail: lambda kit: RecentMail(kit.clock),
        PermittedSenders: _permitted_senders,
        EmailLoader: _loader,
        CopyLoader: _copy_loader,
        MakingCopies: _making_copies,
        TemplateRendering: lambda kit: TemplateRendering(kit.need(ContactSource)),
        TrackedCopies: lambda kit: TrackedCopies(kit.need(LinkKeys), kit.settings.public_url),
        EmailSource: lambda kit: EmailSource(kit.need(EmailLoader).load),
        TeamMailer: _team_mailer,
        SystemMail: _system_mail,
        OwnerActivity: lambda _: DomainActivity(),
        SentMessages: _sent_messages,
        ShareLinks: lambda kit: ShareLinks(kit.need(Signer), kit.settings.public_url),
    },
    routes=collect(routes),
    pages=collect(shared_page),
    jobs=_jobs,
    job_limits=lambda _: [fetching.JOB_LIMIT],
    periodic=lambda kit: search_periodic(SearchBlocks(kit.pool, kit.clock)),
    clock_corrections=lambda kit: [SearchBlocks(kit.pool, kit.clock).drop_ahead],
    retention=[
        Retention(
            [
                RetentionItem(
                    "emails with recipients, history, content and attachments", EMAIL_RETENTION_DAYS, True
                ),
                RetentionItem("html, text and attachments of emails", BODY_RETENTION_DAYS),
                RetentionItem("blobs that no row names, which a crash can leave behind", ORPHAN_BLOB_DAYS),
            ],
            _retention,
        )
    ],
    background=_background,
    files=lambda kit: {"attachment": AttachmentFiles(kit.pool).open, RAW: kit.need(SentMessages).open},
    webhook_shapes=event_data.SHAPES,
    event_bodies={"email": event_data.event_data},
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
)
