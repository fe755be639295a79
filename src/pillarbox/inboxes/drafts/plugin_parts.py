"""The parts of the slice for sending and drafts: routes, attachments and retention."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.emails.accept import Accept
from pillarbox.emails.inbox_mail.draft_emails import DraftEmails
from pillarbox.inboxes.drafts import files as draft_files
from pillarbox.inboxes.drafts import queries, retention, routes
from pillarbox.inboxes.drafts.attachments import DraftFiles
from pillarbox.inboxes.drafts.changes import Drafts
from pillarbox.inboxes.drafts.send import DraftSending
from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.inboxes.sending import routes as sending_routes
from pillarbox.inboxes.sending.invariants import INVARIANTS as INVARIANTS
from pillarbox.inboxes.sending.joined import OutboundJoining
from pillarbox.inboxes.sending.originals import Originals, ReceivedOriginals
from pillarbox.inboxes.sending.send import InboxSender
from pillarbox.kernel.http.files import Opener
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.slices import Container, Retention, RetentionItem
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.webhooks.publish import Publisher


def _originals(kit: Container) -> Originals:
    received = kit.need(ReceivedOriginals)  # type: ignore[type-abstract]
    return Originals(received, kit.need(BlobStore))


def _drafts(kit: Container) -> Drafts:
    files = kit.need(DraftFiles)
    return Drafts(kit.need(Ids), kit.clock, kit.need(Publisher), kit.need(Originals), files)


def _draft_sending(kit: Container) -> DraftSending:
    files = kit.need(DraftFiles)
    return DraftSending(kit.need(Ids), kit.need(Publisher), kit.need(InboxSender), files)


def _sending(kit: Container) -> InboxSender:
    return InboxSender(
        kit.need(Accept), kit.need(Originals), OutboundJoining(kit.need(Ids), kit.need(Publisher))
    )


def files(kit: Container) -> Mapping[str, Opener]:
    return {draft_files.KIND: draft_files.DraftAttachments(kit.pool).open}


PROVIDES = {
    Originals: _originals,
    InboxSender: _sending,
    DraftFiles: lambda kit: DraftFiles(kit.need(Ids), kit.need(Outbound), kit.need(BlobStore)),
    Drafts: _drafts,
    DraftSending: _draft_sending,
    DraftEmails: lambda _: DraftEmails(queries.email_of),
}

ROUTES = collect(sending_routes, routes)

RETENTION = [
    Retention(
        [RetentionItem("drafts of inboxes that were sent, once their thread is purged", KEPT_IN_TRASH)],
        lambda kit: retention.periodic(kit.pool),
    )
]
