"""The slice of receiving: incoming mail, reports about mail that was sent, and their routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pillarbox.domains.settings import INBOUND_DOMAIN, SIMULATOR_DOMAINS
from pillarbox.emails.sharing.shared_page import SharedMailSource
from pillarbox.inboxes.inbox.conditions import InboundDns
from pillarbox.inboxes.received_mail import ReceivedMailSource as MailOfInboxes
from pillarbox.inboxes.sending.originals import ReceivedOriginals
from pillarbox.kernel.http.files import Opener
from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.storage.disk_space import DiskSpace
from pillarbox.mail.message.loop_marks import LoopMarks
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.receiving import event_data, files, routes
from pillarbox.receiving.addresses import AddressLookup, AddressRules
from pillarbox.receiving.files import ReceivedFiles
from pillarbox.receiving.inbox_mail.messages import InboxMail
from pillarbox.receiving.inbox_mail.originals import InboxOriginals
from pillarbox.receiving.invariants import INVARIANTS
from pillarbox.receiving.judging import Judge
from pillarbox.receiving.personal.personal_data import PERSONAL_DATA
from pillarbox.receiving.reading import MessageReader
from pillarbox.receiving.receive import REMEMBERED, MessageReceiver, ReceivingRules
from pillarbox.receiving.reports.return_path import ReturnPath
from pillarbox.receiving.retention import ReceivedRetention
from pillarbox.receiving.settings import (
    INBOUND_REQUIRE_DNS,
    RECEIVED_RETENTION_DAYS,
    RECEIVED_STORAGE,
    REJECT_DMARC_FAIL,
    RSPAMD_URL,
)
from pillarbox.receiving.sharing import SharedReceivedMail
from pillarbox.receiving.spam import EVERYWHERE, Rspamd
from pillarbox.receiving.storage import Storage
from pillarbox.timeline.record import Timeline
from pillarbox.webhooks.publish import Publisher

READING_THREADS = 2


@dataclass(frozen=True, slots=True)
class ArrivalNotice:
    """Is told when mail was stored; a higher slice may provide it."""

    announce: Callable[[], None]


@dataclass(frozen=True, slots=True)
class SpamCheck:
    """rspamd, and the client that asks it."""

    rspamd: Rspamd
    client: Outbound


class ReadingThreads(ThreadPoolExecutor):
    """Where messages are taken apart."""


def _return_path(kit: Container) -> ReturnPath:
    return ReturnPath(
        pool=kit.pool,
        clock=kit.clock,
        signer=kit.need(VerpSigner),
        timeline=kit.need(Timeline),
        ids=kit.need(Ids),
        publisher=kit.need(Publisher),
        windows=kit.need(Windows),
        lookup=kit.resolver,
        simulators=frozenset(kit.settings[SIMULATOR_DOMAINS]),
    )


def _addresses(kit: Container) -> AddressLookup:
    settings = kit.settings
    rules = AddressRules(settings.hostname, settings[INBOUND_DOMAIN], settings[INBOUND_REQUIRE_DNS])
    storage = Storage(kit.engine_pool, kit.clock, settings[RECEIVED_STORAGE])
    return AddressLookup(kit.engine_pool, kit.clock, rules, kit.need(ReturnPath).knows, storage)


def _spam_check(kit: Container) -> SpamCheck | None:
    url = kit.settings[RSPAMD_URL]
    if url is None:
        return None
    client = Outbound(DnsAddresses(kit.resolver), EVERYWHERE)
    return SpamCheck(Rspamd(client, url), client)


def _receiving(kit: Container) -> MessageReceiver:
    settings, spam, notice = kit.settings, kit.find(SpamCheck), kit.find(ArrivalNotice)
    return MessageReceiver(
        pool=kit.engine_pool,
        clock=kit.clock,
        ids=kit.need(Ids),
        blobs=kit.need(BlobStore),
        room=kit.need(DiskSpace),
        publisher=kit.need(Publisher),
        judge=Judge(kit.resolver, kit.clock, settings.hostname, spam.rspamd if spam else None),
        marks=LoopMarks(kit.need(KeyRing).mac_keys("loop")),
        threads=kit.need(ReadingThreads),
        rules=ReceivingRules(settings.hostname, settings[REJECT_DMARC_FAIL]),
        announce=notice.announce if notice else None,
    )


def _retention(kit: Container) -> ReceivedRetention:
    days = kit.settings[RECEIVED_RETENTION_DAYS]
    return ReceivedRetention(kit.pool, kit.clock, kit.need(BlobStore), days=days)


def _files(kit: Container) -> dict[str, Opener]:
    received = ReceivedFiles(kit.pool, kit.need(MessageReader))
    return {files.RAW: received.raw, files.ATTACHMENT: received.attachment}


def _background(kit: Container) -> Sequence[Background]:
    receiving, threads, spam = kit.need(MessageReceiver), kit.need(ReadingThreads), kit.find(SpamCheck)

    async def shut_down(_: float) -> None:
        threads.shutdown(wait=False, cancel_futures=True)

    running = [
        Background(stop=(Stop.COMMITS, lambda _: receiving.drain())),
        Background(stop=(Stop.THREADS, shut_down)),
    ]
    if spam is not None:
        client = spam.client
        running.append(Background(stop=(Stop.CONNECTIONS, lambda _: client.close())))
    return running


SLICE = Slice(
    name="receiving",
    provides={
        ReadingThreads: lambda _: ReadingThreads(READING_THREADS, "pillarbox-read"),
        MessageReader: lambda kit: MessageReader(kit.need(BlobStore), kit.need(ReadingThreads)),
        SharedMailSource: lambda kit: SharedReceivedMail(kit.need(MessageReader)),
        InboundDns: lambda kit: InboundDns(kit.settings[INBOUND_REQUIRE_DNS]),
        MailOfInboxes: lambda kit: InboxMail(kit.need(MessageReader)),
        ReceivedOriginals: lambda kit: InboxOriginals(kit.need(MessageReader)),
        ReturnPath: _return_path,
        AddressLookup: _addresses,
        SpamCheck: _spam_check,
        MessageReceiver: _receiving,
        ReceivedRetention: _retention,
    },
    routes=collect(routes),
    retention=[
        Retention(
            [
                RetentionItem("received emails with their attachments", RECEIVED_RETENTION_DAYS),
                RetentionItem(
                    "fingerprints of received mail, by which a repetition is recognised", REMEMBERED
                ),
            ],
            lambda kit: kit.need(ReceivedRetention).periodic(),
        )
    ],
    background=_background,
    files=_files,
    webhook_shapes=event_data.SHAPES,
    event_bodies={event_data.KIND: event_data.event_data, event_data.JUDGED: event_data.judged_data},
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
)
