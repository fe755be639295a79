"""HTTP routes of the webhooks."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from pillarbox.kernel.http.request import Reply, Request
from pillarbox.kernel.http.routing import Access, route
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.wire.fields import parse
from pillarbox.kernel.wire.paging import PAGING, ListOf, Page, envelope, listed, paging
from pillarbox.kernel.wire.problems import NotFound
from pillarbox.people.audit import Act, record_call
from pillarbox.teams.allowances import Allowances
from pillarbox.webhooks import queries, signing_secrets, wire
from pillarbox.webhooks.endpoints import EndpointRules
from pillarbox.webhooks.log import DeliveryLog, webhook_of

EVENT = {"event": wire.EventId}


@route(
    "POST",
    "/webhooks",
    needs=Access.FULL,
    status=201,
    body=wire.NewWebhook,
    summary="Create a webhook",
)
async def create(request: Request, db: TeamDb) -> Reply[wire.WebhookSecret]:
    wanted = parse(wire.NewWebhook, request.json())
    endpoint = request.use(EndpointRules).check(wanted.endpoint)
    kinds = wire.kinds_of(wanted.events)
    await request.use(Allowances).admit_webhook(db)
    stamp = request.use(Ids).stamp()
    secret = signing_secrets.new_secret()
    sealed = signing_secrets.seal(request.use(KeyRing), stamp.id, secret)
    await queries.insert(db, stamp.id, stamp.at, endpoint, kinds, sealed)
    await record_call(request, db, Act.WEBHOOK_CREATED, str(stamp.id))
    return Reply(wire.WebhookSecret(object="webhook", id=stamp.id, signing_secret=secret))


@route("GET", "/webhooks", needs=Access.FULL, query=PAGING, summary="List webhooks")
async def index(request: Request, db: TeamDb) -> Reply[ListOf[wire.WebhookItem]]:
    page = Page.read(request.query, default=None)
    return Reply(await listed(partial(queries.page, db), page, wire.item))


@route("GET", "/webhooks/{webhook_id}", needs=Access.FULL, summary="Retrieve a webhook")
async def show(request: Request, db: TeamDb) -> Reply[wire.FullWebhook]:
    webhook = await webhook_of(db, request.uuid("webhook_id"))
    return Reply(wire.full(webhook, signing_secrets.shown(request.use(KeyRing), webhook.id, webhook.sealed)))


@route(
    "PATCH",
    "/webhooks/{webhook_id}",
    needs=Access.FULL,
    body=wire.ChangedWebhook,
    summary="Update a webhook",
)
async def update(request: Request, db: TeamDb) -> Reply[wire.WebhookRef]:
    change = parse(wire.ChangedWebhook, request.json())
    wire.refuse_empty(change)
    endpoint = None if change.endpoint is UNSET else request.use(EndpointRules).check(change.endpoint)
    kinds = None if change.events is UNSET else wire.kinds_of(change.events)
    status = None if change.status is UNSET else change.status
    webhook_id = request.uuid("webhook_id")
    now = request.use(Ids).now()
    if not await queries.change(db, webhook_id, endpoint, kinds, status, now):
        raise NotFound("Webhook")
    await record_call(request, db, Act.WEBHOOK_CHANGED, str(webhook_id))
    return Reply(wire.WebhookRef(object="webhook", id=webhook_id))


@route(
    "DELETE",
    "/webhooks/{webhook_id}",
    needs=Access.FULL,
    summary="Delete a webhook",
)
async def remove(request: Request, db: TeamDb) -> Reply[wire.DeletedWebhook]:
    webhook_id = request.uuid("webhook_id")
    ids = request.use(Ids)
    if not await queries.delete(db, webhook_id, ids.new(), ids.now()):
        raise NotFound("Webhook")
    await record_call(request, db, Act.WEBHOOK_DELETED, str(webhook_id))
    return Reply(wire.DeletedWebhook(object="webhook", id=webhook_id, deleted=True))


@route(
    "POST",
    "/webhooks/{webhook_id}/signing-secret/rotate",
    needs=Access.FULL,
    summary="Rotate the signing secret of a webhook",
)
async def rotate(request: Request, db: TeamDb) -> Reply[wire.WebhookSecret]:
    webhook_id = request.uuid("webhook_id")
    secret = signing_secrets.new_secret()
    sealed = signing_secrets.seal(request.use(KeyRing), webhook_id, secret)
    if not await queries.rotate(db, webhook_id, sealed, request.use(Ids).now()):
        raise NotFound("Webhook")
    await record_call(request, db, Act.WEBHOOK_SECRET_ROTATED, str(webhook_id))
    return Reply(wire.WebhookSecret(object="webhook", id=webhook_id, signing_secret=secret))


@route(
    "GET",
    "/webhooks/{webhook_id}/events",
    needs=Access.FULL,
    query=paging(wire.EventId),
    summary="List the events of a webhook",
)
async def events(request: Request, db: TeamDb) -> Reply[ListOf[wire.WebhooksEventItem]]:
    page = Page.read(request.query, cursor=wire.event_id)
    webhook = await webhook_of(db, request.uuid("webhook_id"))
    found = await queries.logged_events(db, webhook.id, page, request.use(DeliveryLog).oldest)
    return Reply(envelope(found, page, wire.event_item))


@route(
    "GET",
    "/webhooks/{webhook_id}/events/{event}",
    needs=Access.FULL,
    path_types=EVENT,
    summary="Retrieve an event of a webhook",
)
async def event(request: Request, db: TeamDb) -> Reply[wire.FullEvent]:
    log = request.use(DeliveryLog)
    webhook = await webhook_of(db, request.uuid("webhook_id"))
    found = await log.event(db, webhook, wire.event_id(request.param("event")))
    return Reply(wire.full_event(found, await log.body(db, found)))


@route(
    "POST",
    "/webhooks/{webhook_id}/events/{event}/replay",
    needs=Access.FULL,
    path_types=EVENT,
    summary="Send an event of a webhook once more",
)
async def replay(request: Request, db: TeamDb) -> Reply[wire.WebhooksEventRef]:
    log = request.use(DeliveryLog)
    webhook = await webhook_of(db, request.uuid("webhook_id"))
    found = await log.event(db, webhook, wire.event_id(request.param("event")))
    await log.replay(db, webhook, found)
    return Reply(wire.WebhooksEventRef(object="webhook_event", id=request.param("event")))


@route(
    "GET",
    "/webhooks/{webhook_id}/events/{event}/attempts",
    needs=Access.FULL,
    path_types=EVENT,
    query=paging(wire.AttemptId),
    summary="List the attempts of an event",
)
async def attempts(request: Request, db: TeamDb) -> Reply[ListOf[wire.AttemptItem]]:
    page = Page.read(request.query, cursor=wire.attempt_id)
    webhook = await webhook_of(db, request.uuid("webhook_id"))
    event_id = wire.event_id(request.param("event"))
    found = await request.use(DeliveryLog).event(db, webhook, event_id)
    made = await queries.attempts(db, webhook.id, found.event_id, page)
    return Reply(envelope(made, page, wire.attempt_item))
