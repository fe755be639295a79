"""The parts of the slice for threads and their messages: routes, reading, and the purge of the trash."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.inboxes.folders import KEPT_IN_TRASH
from pillarbox.inboxes.messages import routes as message_routes
from pillarbox.inboxes.messages.reading import MessageReading
from pillarbox.inboxes.messages.safe_texts import SafeTexts
from pillarbox.inboxes.received_mail import ReceivedMailSource
from pillarbox.inboxes.threads import routes
from pillarbox.inboxes.threads.changes import Threads
from pillarbox.inboxes.threads.invariants import INVARIANTS as INVARIANTS
from pillarbox.inboxes.threads.purge import LIMIT, ThreadPurge
from pillarbox.inboxes.trust import routes as trust_routes
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.security.link_keys import LinkKeys
from pillarbox.kernel.slices import Container, Retention, RetentionItem
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.work.jobs import Handler
from pillarbox.webhooks.publish import Publisher


def _purge(kit: Container) -> ThreadPurge:
    received = kit.need(ReceivedMailSource)  # type: ignore[type-abstract]
    return ThreadPurge(kit.pool, kit.clock, kit.need(Ids), kit.need(BlobStore), received)


def jobs(kit: Container) -> Mapping[str, Handler]:
    return kit.need(ThreadPurge).handlers()


def _reading(kit: Container) -> MessageReading:
    return MessageReading(kit.need(ReceivedMailSource))  # type: ignore[type-abstract]


PROVIDES = {
    Threads: lambda kit: Threads(kit.need(Publisher), kit.clock),
    MessageReading: _reading,
    SafeTexts: lambda kit: SafeTexts(kit.need(MessageReading), kit.need(LinkKeys), kit.clock),
    ThreadPurge: _purge,
}

ROUTES = collect(routes, message_routes, trust_routes)

JOB_LIMITS = [LIMIT]

RETENTION = [
    Retention(
        [RetentionItem("threads of inboxes in the trash, with their messages", KEPT_IN_TRASH)],
        lambda kit: kit.need(ThreadPurge).periodic(),
    )
]
