"""The slice of webhooks: publishing events, delivering them, and the routes under `/webhooks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pillarbox.kernel.http.routing import collect
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.address_policy import AddressPolicy
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.postgres.notify import Notifier
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.settings.kinds import ProcessRole
from pillarbox.kernel.settings.settings import Settings
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
from pillarbox.kernel.work.jobs import Handler
from pillarbox.kernel.work.queue_poll import SELDOM, QueuePoll
from pillarbox.webhooks import routes
from pillarbox.webhooks.bodies import WebhookBodies
from pillarbox.webhooks.dispatch import prometheus, queries
from pillarbox.webhooks.dispatch.claims import DeliveryClaims
from pillarbox.webhooks.dispatch.engine import WebhookDispatcher
from pillarbox.webhooks.dispatch.posting import Poster
from pillarbox.webhooks.dispatch.queue_metrics import keep_counted
from pillarbox.webhooks.dispatch.settle import DeliverySettler
from pillarbox.webhooks.endpoints import EndpointRules
from pillarbox.webhooks.invariants import INVARIANTS
from pillarbox.webhooks.listening.listener import REMOVE_AFTER, listener_periodic
from pillarbox.webhooks.listening.subscriptions import SubscriptionWake
from pillarbox.webhooks.log import DeliveryLog
from pillarbox.webhooks.notices import Notices, SendToTeam
from pillarbox.webhooks.personal.personal_data import PERSONAL_DATA
from pillarbox.webhooks.publish import Publisher
from pillarbox.webhooks.queries import WEBHOOK_SECRETS
from pillarbox.webhooks.retention import WebhookRetention
from pillarbox.webhooks.settings import (
    WEBHOOKS_ALLOW_HTTP,
    WEBHOOKS_ALLOWED_PORTS,
    WEBHOOKS_RETENTION_DAYS,
    WEBHOOKS_RETRIES,
)

CHANNEL = "pillarbox_webhooks"
"""Notified when deliveries were written."""


@dataclass(frozen=True, slots=True)
class TeamMailer:
    """Accepts mail to a team; a higher slice provides it."""

    send: SendToTeam


class WebhookNotifier(Notifier):
    """Tells the dispatchers of all processes."""


def bodies_of(slices: Iterable[Slice]) -> WebhookBodies:
    """Return the makers of the bodies of events that only refer to a row, from all slices."""
    return WebhookBodies({kind: maker for one in slices for kind, maker in one.event_bodies.items()})


def _endpoint_rules(settings: Settings) -> EndpointRules:
    """Return the rules for the URLs of webhooks of this installation."""
    return EndpointRules(
        settings[WEBHOOKS_ALLOW_HTTP], settings[WEBHOOKS_ALLOWED_PORTS], settings.allow_private
    )


def _waking(kit: Container) -> Callable[[], None]:
    notifier = kit.need(WebhookNotifier)

    def wake() -> None:
        """Wake the dispatchers after a commit: ours, or where we have none those of others."""
        # Not before: a dispatcher needs parts that publish.
        dispatcher = kit.find(WebhookDispatcher)
        if dispatcher is not None:
            dispatcher.wake()
        else:
            notifier.notify()
        subscriptions = kit.find(SubscriptionWake)
        if subscriptions is not None:
            subscriptions.wake()

    return wake


def _poster(kit: Container) -> Poster:
    rules = kit.need(EndpointRules)
    reach = AddressPolicy(kit.settings.allow_private, ports=rules.permits_port)
    return Poster(Outbound(DnsAddresses(kit.resolver), policy=reach), rules)


def _dispatcher(kit: Container) -> WebhookDispatcher | None:
    settings = kit.settings
    if ProcessRole.WEBHOOKS not in settings.roles:
        return None
    process, ids = kit.runtime.process_id, kit.need(Ids)
    dispatcher = WebhookDispatcher(
        clock=kit.clock,
        ids=ids,
        claims=DeliveryClaims(
            kit.engine_pool, kit.clock, process, kit.need(KeyRing), kit.need(WebhookBodies)
        ),
        settler=DeliverySettler(kit.engine_pool, ids, process),
        poster=kit.need(Poster),
        retries=settings[WEBHOOKS_RETRIES],
        notify=kit.need(WebhookNotifier).notify,
        roles=",".join(settings.roles),
        look_every=SELDOM,
    )
    kit.need(QueuePoll).add(queries.DELIVERIES.is_busy, dispatcher.notified)
    return dispatcher


def _delivery_log(kit: Container) -> DeliveryLog:
    days = kit.settings[WEBHOOKS_RETENTION_DAYS]
    return DeliveryLog(
        bodies=kit.need(WebhookBodies), ids=kit.need(Ids), clock=kit.clock, wake=_waking(kit), days=days
    )


def _retention(kit: Container) -> WebhookRetention:
    return WebhookRetention(kit.pool, kit.clock, days=kit.settings[WEBHOOKS_RETENTION_DAYS])


def _jobs(kit: Container) -> Mapping[str, Handler]:
    notices = Notices(kit.pool, kit.need(TeamMailer).send)
    return {**notices.handlers(), **kit.need(WebhookRetention).handlers()}


def _background(kit: Container) -> Sequence[Background]:
    dispatcher = kit.find(WebhookDispatcher)
    if dispatcher is None:
        return ()
    return [Background(start=(StartOrder.ENGINES, dispatcher.start), stop=(Stop.ENGINES, dispatcher.stop))]


def _listeners(kit: Container) -> Mapping[str, Callable[[], None]]:
    dispatcher, subscriptions = kit.find(WebhookDispatcher), kit.find(SubscriptionWake)
    if dispatcher is None:
        return {}

    def heard() -> None:
        dispatcher.notified()
        if subscriptions is not None:
            subscriptions.wake()

    return {CHANNEL: heard}


def _metrics(kit: Container) -> Iterable[Loop]:
    dispatcher = kit.find(WebhookDispatcher)
    if dispatcher is not None:
        prometheus.watch(dispatcher)
    return [keep_counted(kit.pool, kit.clock)] if kit.runtime.index == 0 else []


SLICE = Slice(
    name="webhooks",
    provides={
        WebhookNotifier: lambda kit: WebhookNotifier(kit.pool, CHANNEL),
        Publisher: lambda kit: Publisher(kit.need(Ids), _waking(kit)),
        WebhookBodies: lambda kit: bodies_of(kit.slices),
        EndpointRules: lambda kit: _endpoint_rules(kit.settings),
        Poster: _poster,
        WebhookDispatcher: _dispatcher,
        DeliveryLog: _delivery_log,
        WebhookRetention: _retention,
    },
    routes=collect(routes),
    jobs=_jobs,
    retention=[
        Retention(
            [RetentionItem("events, deliveries and answers of webhooks", WEBHOOKS_RETENTION_DAYS)],
            lambda kit: kit.need(WebhookRetention).periodic(),
        ),
        Retention(
            [
                RetentionItem(
                    "listeners of `pillarbox webhooks listen` that nobody reads any more", REMOVE_AFTER
                )
            ],
            lambda kit: listener_periodic(kit.pool, kit.clock, kit.need(Ids)),
        ),
    ],
    listeners=_listeners,
    background=_background,
    metrics=_metrics,
    clock_corrections=lambda kit: [partial(queries.make_misdated_due, kit.pool)],
    sealed=(WEBHOOK_SECRETS,),
    invariants=INVARIANTS,
    personal_data=PERSONAL_DATA,
)
