"""The slice of delivery: the queue of outgoing mail and the engine that works it off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pillarbox.delivery import prometheus, queries
from pillarbox.delivery.attempts import Transport
from pillarbox.delivery.composing import Composer
from pillarbox.delivery.copies import BroadcastCopySource
from pillarbox.delivery.engine import Engine
from pillarbox.delivery.items import Item, LoadEmails
from pillarbox.delivery.other_mail import TransactionalActivity
from pillarbox.delivery.queue import final_dots
from pillarbox.delivery.queue.claims import ItemClaims
from pillarbox.delivery.queue.destination_metrics import keep_destinations_counted
from pillarbox.delivery.queue.final_dots import FinalDots
from pillarbox.delivery.queue.invariants import INVARIANTS
from pillarbox.delivery.queue.missing_keys import missing_keys_periodic, release
from pillarbox.delivery.queue.pausing import Pauses
from pillarbox.delivery.queue.queue_limit import QueueLimit
from pillarbox.delivery.queue.queue_metrics import keep_counted
from pillarbox.delivery.settings import DELIVERY_WINDOW, MTA_STS, QUEUE_LIMIT, REMOTE_SMTP_PORT
from pillarbox.delivery.settle import AttemptSettler, KeepCaptured, keep_nothing
from pillarbox.delivery.smtp.connections import Connections
from pillarbox.delivery.smtp.known_domains import KEPT, KnownDomains, known_domains_periodic
from pillarbox.delivery.smtp.mta_sts_policies import Policies, mta_sts_periodic
from pillarbox.delivery.smtp.next_hops import DirectHops, Greeting, RelayHop
from pillarbox.delivery.smtp.site_sharing import SiteSharing
from pillarbox.delivery.smtp.transport import SmtpTransport
from pillarbox.delivery.transports import CaptureTransport, Simulator, TransportChoice
from pillarbox.domains.plugin import DeliveryWindow
from pillarbox.domains.settings import SIMULATOR_DOMAINS
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.notify import Notifier
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.kinds import ProcessRole, Relay, RouteKind
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
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.kernel.work.queue_poll import SELDOM, QueuePoll
from pillarbox.mail.reports.verp import VerpSigner
from pillarbox.mail.smtp.client import TlsMode
from pillarbox.mail.smtp.mx import HostPolicy
from pillarbox.timeline.record import Timeline
from pillarbox.webhooks.publish import Publisher

CHANNEL = "pillarbox_delivery"
"""Notified when mail was queued."""

SIGNING_THREADS = 2


@dataclass(frozen=True, slots=True)
class EmailSource:
    """Loads what is to be sent; a higher slice provides it."""

    load: LoadEmails


@dataclass(frozen=True, slots=True)
class CapturedMail:
    """Keeps what the route `capture` sends; a higher slice provides it."""

    keep: KeepCaptured


class DeliveryNotifier(Notifier):
    """Tells the engines of all processes."""


class SigningThreads(ThreadPoolExecutor):
    """Where messages are composed and signed."""


def relay_tls(relay: Relay) -> TlsMode:
    """Return the TLS mode of the relay. A password goes over verified TLS only; without one the relay's TLS
    is used where offered."""
    if relay.smtps:
        return TlsMode.IMPLICIT
    if relay.user is not None and relay.host not in ("127.0.0.1", "::1", "localhost"):
        return TlsMode.VERIFIED
    return TlsMode.OPPORTUNISTIC


def relay_login(relay: Relay) -> tuple[str, str] | None:
    """Return the user and password, when the relay's URL carries them."""
    return (relay.user, relay.password or "") if relay.user is not None else None


def _offered(kit: Container) -> Path:
    return final_dots.folder_of(kit.settings.data)


def _claims(kit: Container) -> ItemClaims:
    load = kit.need(EmailSource).load
    return ItemClaims(
        kit.engine_pool,
        kit.clock,
        kit.runtime.process_id,
        kit.need(Timeline),
        load,
        kit.settings.route.public,
        _offered(kit),
    )


def _policies(kit: Container) -> Policies:
    outside = kit.externals
    return Policies(kit.engine_pool, kit.clock, kit.resolver, kit.need(Outbound), outside.https_port)


def _known_domains(kit: Container) -> KnownDomains | None:
    is_direct = kit.settings.route.kind is RouteKind.DIRECT
    return KnownDomains(kit.engine_pool, kit.clock) if is_direct else None


def _engine(kit: Container) -> Engine | None:
    settings = kit.settings
    if ProcessRole.DELIVERY not in settings.roles:
        return None
    other_mail = kit.need(TransactionalActivity)
    composer = Composer(kit.need(KeyRing), kit.need(BlobStore).stream, kit.need(SigningThreads), other_mail)
    is_captured = settings.route.kind is RouteKind.CAPTURE
    outside = _captured(kit, composer) if is_captured else _network(kit, composer)
    sharing = SiteSharing(kit.engine_pool, kit.clock, kit.runtime.process_id, is_polled=True)
    copies = kit.find(BroadcastCopySource)
    engine = Engine(
        clock=kit.clock,
        claims=kit.need(ItemClaims),
        settler=_settler(kit, kit.need(CapturedMail).keep if is_captured else keep_nothing),
        transport=TransportChoice(frozenset(settings[SIMULATOR_DOMAINS]), Simulator(kit.clock), outside),
        pauses=kit.need(Pauses),
        site_sharing=sharing,
        window=settings[DELIVERY_WINDOW],
        chance=kit.externals.random,
        roles=",".join(settings.roles),
        other_mail=other_mail,
        copies=copies,
        final_dots=FinalDots(_offered(kit), kit.runtime.process_id),
        look_every=SELDOM,
    )
    poll = kit.need(QueuePoll)
    poll.add(queries.ITEMS.is_busy, engine.look_again)
    pauses = kit.need(Pauses)
    poll.add(queries.IS_PAUSED, pauses.news.set, keeps=lambda: pauses.hold_any)
    poll.add(queries.HAS_COMPLAINTS, sharing.changed, keeps=lambda: sharing.keeps_complaints)
    if copies is not None:
        poll.add(copies.is_wanted, engine.make_copies)
    return engine


def _queue_limit(kit: Container) -> QueueLimit:
    limit = QueueLimit(kit.pool, kit.clock, kit.settings[QUEUE_LIMIT])
    kit.need(QueuePoll).add(queries.HAS_MAIL, limit.look_again, keeps=lambda: limit.is_full_for_copies)
    return limit


def _settler(kit: Container, keep: KeepCaptured) -> AttemptSettler:
    return AttemptSettler(
        kit.engine_pool,
        kit.need(Timeline),
        kit.need(Ids),
        kit.need(Publisher),
        kit.clock,
        kit.runtime.process_id,
        keep,
        kit.find(KnownDomains),
    )


def _captured(kit: Container, composer: Composer) -> Transport:
    return CaptureTransport(kit.clock, composer, _return_path(kit))


def _network(kit: Container, composer: Composer) -> Transport:
    next_hops, greeting = _next_hops(kit)
    return SmtpTransport(
        clock=kit.clock,
        next_hops=next_hops,
        composer=composer,
        connections=Connections(greeting.open),
        return_path=_return_path(kit),
        known_domains=kit.find(KnownDomains),
    )


def _next_hops(kit: Container) -> tuple[RelayHop | DirectHops, Greeting]:
    """Return where mail goes, and how we greet there."""
    settings, outside = kit.settings, kit.externals
    hello, relay = settings.hostname, settings.route.relay
    if relay is not None:
        return RelayHop(relay.host, relay.port, relay_tls(relay)), Greeting(hello, relay_login(relay))
    allowed = HostPolicy(settings.allow_private, frozenset({hello}))
    policies = kit.need(Policies) if settings[MTA_STS] else None
    hops = DirectHops(
        lookup=kit.resolver,
        reach=allowed,
        shuffle=outside.shuffle,
        remote_port=settings[REMOTE_SMTP_PORT],
        policies=policies,
    )
    return hops, Greeting(hello, trust=outside.trust)


def _return_path(kit: Container) -> Callable[[Item], str]:
    verp = kit.need(VerpSigner)

    def return_path(item: Item) -> str:
        token = verp.token(item.email.team_number, item.email_id, item.grp)
        return f"{token}@{item.email.return_path}"

    return return_path


def _background(kit: Container) -> Sequence[Background]:
    engine, claims = kit.find(Engine), kit.need(ItemClaims)
    policies, threads = kit.need(Policies), kit.need(SigningThreads)

    async def shut_down(_: float) -> None:
        threads.shutdown(wait=False, cancel_futures=True)

    running = [
        Background(stop=(Stop.LEASES, lambda _: claims.leave())),
        Background(stop=(Stop.CLIENTS, lambda _: policies.close())),
        Background(stop=(Stop.THREADS, shut_down)),
    ]
    if engine is not None:
        ring = kit.need(KeyRing)
        running.append(
            Background(
                start=(StartOrder.STATE, lambda: release(kit.engine_pool, ring.key_ids, kit.clock.now()))
            )
        )
        running.append(Background(start=(StartOrder.ENGINES, engine.start), stop=(Stop.ENGINES, engine.stop)))
    return running


def _listeners(kit: Container) -> Mapping[str, Callable[[], None]]:
    engine = kit.find(Engine)
    return {CHANNEL: engine.wake} if engine is not None else {}


def _periodic(kit: Container) -> Sequence[Periodic]:
    return [
        *mta_sts_periodic(kit.pool, kit.clock),
        *missing_keys_periodic(kit.pool, kit.clock, kit.need(KeyRing)),
    ]


def _metrics(kit: Container) -> Iterable[Loop]:
    engine = kit.find(Engine)
    prometheus.ITEMS_IN_MEMORY.read = lambda: {(): engine.items_in_memory if engine else 0}
    prometheus.SMARTHOST_HELD.read = lambda: {(): engine is not None and engine.is_refused}
    if kit.runtime.index:
        return []
    return [keep_counted(kit.pool, kit.clock), keep_destinations_counted(kit.pool, kit.clock)]


SLICE = Slice(
    name="delivery",
    provides={
        DeliveryWindow: lambda kit: DeliveryWindow(kit.settings[DELIVERY_WINDOW]),
        QueueLimit: _queue_limit,
        SigningThreads: lambda _: SigningThreads(SIGNING_THREADS, "pillarbox-sign"),
        VerpSigner: lambda kit: VerpSigner(kit.need(KeyRing).mac_keys("verp")),
        DeliveryNotifier: lambda kit: DeliveryNotifier(kit.pool, CHANNEL),
        Policies: _policies,
        ItemClaims: _claims,
        Pauses: lambda kit: Pauses(kit.engine_pool),
        KnownDomains: _known_domains,
        TransactionalActivity: lambda kit: TransactionalActivity(kit.runtime.shared_memory),
        Engine: _engine,
    },
    periodic=_periodic,
    retention=[
        Retention(
            [RetentionItem("domains that a team's mail has reached", KEPT)],
            lambda kit: known_domains_periodic(kit.pool, kit.clock),
        )
    ],
    listeners=_listeners,
    background=_background,
    loops=lambda kit: [kit.need(QueueLimit).run()],
    metrics=_metrics,
    clock_corrections=lambda kit: [partial(queries.misdated_items, kit.pool)],
    invariants=INVARIANTS,
)
