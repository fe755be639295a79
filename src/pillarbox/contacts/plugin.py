"""The slice of contacts: routes, imports, the values of placeholders, retention and invariants."""

from __future__ import annotations

from pillarbox.contacts import routes
from pillarbox.contacts.bulk_acts import routes as bulk_act_routes
from pillarbox.contacts.bulk_acts.acts import BulkActs
from pillarbox.contacts.bulk_acts.jobs import KEPT as BULK_ACTS_KEPT
from pillarbox.contacts.bulk_acts.jobs import LIMIT as BULK_LIMIT
from pillarbox.contacts.bulk_acts.jobs import BulkActJobs
from pillarbox.contacts.engagement.counting import EngagementCounting, engagement_periodic
from pillarbox.contacts.event_data import SHAPES
from pillarbox.contacts.imports import routes as import_routes
from pillarbox.contacts.imports.files import DETAIL_KEPT, UPLOAD_KEPT, ImportRetention
from pillarbox.contacts.imports.intake import ImportIntake
from pillarbox.contacts.imports.invariants import INVARIANTS as IMPORT_INVARIANTS
from pillarbox.contacts.imports.jobs import LIMIT, ImportJobs
from pillarbox.contacts.imports.undo import ImportUndo
from pillarbox.contacts.imports.uploads import ImportUploads
from pillarbox.contacts.invariants import INVARIANTS
from pillarbox.contacts.mail_values import mail_values
from pillarbox.contacts.name_search.keeping import TermKeeping, term_periodic
from pillarbox.contacts.personal_data import PERSONAL_DATA
from pillarbox.contacts.store import ContactEnds, Contacts
from pillarbox.emails.recent_mail import RecentMail
from pillarbox.emails.requests.templating import ContactSource
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.slices import Container, Retention, RetentionItem, Slice
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.kernel.work.jobs import Jobs
from pillarbox.suppressions.erased_addresses import ErasedAddresses
from pillarbox.webhooks.publish import Publisher


def _import_intake(kit: Container) -> ImportIntake:
    def wake() -> None:
        # Not before: jobs need parts that are built later.
        kit.need(Jobs).wake()

    return ImportIntake(kit.need(BlobStore), kit.need(Ids), kit.need(DiskSpace), wake)


def _bulk_acts(kit: Container) -> BulkActs:
    def wake() -> None:
        kit.need(Jobs).wake()

    return BulkActs(kit.need(Ids), wake)


def _contacts(kit: Container) -> Contacts:
    return Contacts(kit.need(Ids), kit.need(Publisher), kit.find(ContactEnds), kit.need(ErasedAddresses))


SLICE = Slice(
    name="contacts",
    provides={
        Contacts: _contacts,
        ContactSource: lambda _: ContactSource(mail_values),
        BulkActs: _bulk_acts,
        BulkActJobs: lambda kit: BulkActJobs(kit.pool, kit.clock, kit.need(Contacts)),
        ImportIntake: _import_intake,
        ImportUploads: lambda kit: ImportUploads(kit.need(ImportIntake)),
        ImportUndo: lambda kit: ImportUndo(kit.engine_pool, kit.clock, kit.find(ContactEnds)),
        ImportJobs: lambda kit: ImportJobs(
            kit.engine_pool,
            kit.need(BlobStore),
            kit.clock,
            kit.need(RecentMail),
            erased=kit.need(ErasedAddresses),
        ),
        ImportRetention: lambda kit: ImportRetention(kit.pool, kit.need(BlobStore), kit.clock),
    },
    routes=collect(routes, import_routes, bulk_act_routes),
    jobs=lambda kit: {
        **kit.need(ImportJobs).handlers(),
        **kit.need(ImportUndo).handlers(),
        **kit.need(BulkActJobs).handlers(),
    },
    job_limits=lambda _: [LIMIT, BULK_LIMIT],
    retention=[
        Retention(
            [
                RetentionItem("row errors and other details of imports of contacts", DETAIL_KEPT),
                RetentionItem("files with contacts whose columns nobody has mapped", UPLOAD_KEPT),
            ],
            lambda kit: kit.need(ImportRetention).periodic(),
        ),
        Retention(
            [RetentionItem("acts on many contacts that ended", BULK_ACTS_KEPT)],
            lambda kit: kit.need(BulkActJobs).periodic(),
        ),
    ],
    periodic=lambda kit: [
        *engagement_periodic(EngagementCounting(kit.pool, kit.clock)),
        *term_periodic(TermKeeping(kit.pool, kit.clock)),
    ],
    invariants=(*INVARIANTS, *IMPORT_INVARIANTS),
    webhook_shapes=SHAPES,
    personal_data=PERSONAL_DATA,
)
