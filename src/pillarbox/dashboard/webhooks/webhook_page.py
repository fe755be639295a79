"""One webhook: its state, its events, and everything that is done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from pillarbox.dashboard.frame.paging import ROWS, ListPage, PageLinks, list_page
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit, with_query
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.webhooks.webhook_list import HERE, kind_groups, secret_page
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right
from pillarbox.webhooks import wire
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.log import DeliveryLog, webhook_of

ONE: Final = f"{HERE}/{{webhook_id}}"
PERIODS: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
"""How far back failed events are sent again."""
USUAL_PERIOD: Final = "7d"
MOST_REPLAYED: Final = 200


@screen(
    ONE,
    title="webhook.title",
    query={"state": str, "after": str, "before": str, "replayed": int, "done": str},
)
async def show(visit: Visit) -> Reply[Html]:
    """Show a webhook with its events."""
    return await webhook_page(visit)


@screen(f"{ONE}/edit", title="webhook.edit", right=Right.MANAGE)
async def edit(visit: Visit) -> Reply[Html]:
    """Show the form that changes a webhook."""
    webhook = await _webhook(visit)
    return await _edit_page(visit, webhook["endpoint"], webhook["events"])


@act(f"{ONE}/edit", title="webhook.edit", back=HERE, right=Right.MANAGE)
async def change(visit: Visit, form: Form) -> Reply[Html]:
    """Give the webhook another endpoint or other events."""
    endpoint, events = form.get("endpoint").strip(), form.every("event")
    try:
        await visit.patch(_api(visit), {"endpoint": endpoint, "events": events})
    except Problem as problem:
        return await _edit_page(visit, endpoint, events, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done="webhook_changed")


@act(f"{ONE}/status", title="webhook.switch", back=HERE, right=Right.MANAGE)
async def switch(visit: Visit, form: Form) -> Reply[Html]:
    """Enable or disable the webhook."""
    status = "disabled" if form.get("status") == "disabled" else "enabled"
    try:
        await visit.patch(_api(visit), {"status": status})
    except Problem as problem:
        return await webhook_page(visit, status=problem.status, problem=problem.message)
    return visit.to(_here(visit), done=f"webhook_{status}")


@act(f"{ONE}/rotate", title="webhook.rotate", back=HERE, right=Right.MANAGE)
async def rotate(visit: Visit, _: Form) -> Reply[Html]:
    """Give the webhook a new secret, and show it."""
    try:
        rotated = await visit.post(f"{_api(visit)}/signing-secret/rotate")
    except Problem as problem:
        return await webhook_page(visit, status=problem.status, problem=problem.message)
    return await secret_page(visit, rotated["id"], rotated["signing_secret"], is_new=False)


@act(f"{ONE}/delete", title="webhook.delete", back=HERE, right=Right.MANAGE)
async def delete(visit: Visit, form: Form) -> Reply[Html]:
    """Delete the webhook, if its endpoint was typed."""
    webhook = await _webhook(visit)
    if form.get("typed_name") != webhook["endpoint"]:
        return await webhook_page(visit, status=422, problem=t("webhook.typed_wrong"))
    try:
        await visit.delete(_api(visit))
    except Problem as problem:
        return await webhook_page(visit, status=problem.status, problem=problem.message)
    return visit.to(HERE, done="webhook_deleted")


@act(
    f"{ONE}/test",
    title="webhook.test",
    back=HERE,
    right=Right.MANAGE,
    records=Act.WEBHOOK_SAMPLE_SENT,
)
async def send_sample(visit: Visit, form: Form) -> Reply[Html]:
    """Send a sample event to this webhook alone."""
    kind = form.get("kind")
    if kind not in KINDS:
        return await webhook_page(visit, status=422, problem=t("webhook.no_kind"))
    webhook = await webhook_of(visit.db, visit.request.uuid("webhook_id"))
    try:
        async with visit.change() as db:
            event_id = await visit.request.use(DeliveryLog).send_sample(db, webhook, kind)
    except Problem as problem:
        return await webhook_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{_here(visit)}/events/{wire.shown_event(event_id)}", done="webhook_sample")


@act(
    f"{ONE}/replay",
    title="webhook.replay_failed",
    back=HERE,
    right=Right.MANAGE,
    records=Act.WEBHOOK_EVENTS_REPLAYED,
)
async def replay_failed(visit: Visit, form: Form) -> Reply[Html]:
    """Send the events of a period that failed once more, the newest `MOST_REPLAYED` of them."""
    period = PERIODS.get(form.get("period"), PERIODS[USUAL_PERIOD])
    webhook = await webhook_of(visit.db, visit.request.uuid("webhook_id"))
    log, since = visit.request.use(DeliveryLog), visit.request.at - period
    events = await log.failed(visit.db, webhook, since=since, limit=MOST_REPLAYED)
    if not events:
        return await webhook_page(visit, notice=t("done.webhook_none_failed"))
    visit.acts_on(visit.request.param("webhook_id"), count=len(events))
    try:
        for event in reversed(events):
            await visit.post(f"{_api(visit)}/events/{wire.shown_event(event.event_id)}/replay")
    except Problem as problem:
        return await webhook_page(visit, status=problem.status, problem=problem.message)
    return visit.to(with_query(_here(visit), state="failed", replayed=str(len(events))))


async def webhook_page(
    visit: Visit, *, status: int = 200, problem: str | None = None, notice: str | None = None
) -> Reply[Html]:
    """Show the screen of one webhook."""
    replayed = visit.request.query.text("replayed")
    if notice is None and replayed:
        notice = t("webhook.replayed", count=replayed)
    webhook = await _webhook(visit)
    here, only_failed = _here(visit), visit.request.query.text("state") == "failed"
    page = await (_failed(visit) if only_failed else list_page(visit, f"{_api(visit)}/events", here))
    return await visit.draw(
        "webhooks/one.html",
        status=status,
        problem=problem,
        notice=notice,
        usual_period=USUAL_PERIOD,
        webhook=webhook,
        here=here,
        view=f"{here}?state=failed" if only_failed else here,
        only_failed=only_failed,
        events=page.rows,
        paging=page.paging,
        may_manage=visit.may(Right.MANAGE),
        periods={name: t(f"webhook.period.{name}") for name in PERIODS},
        kinds={kind: kind for kind in webhook["events"]},
        most_replayed=MOST_REPLAYED,
    )


async def _failed(visit: Visit) -> ListPage:
    """Return the events that failed, the newest first."""
    webhook = await webhook_of(visit.db, visit.request.uuid("webhook_id"))
    after = visit.request.query.text("after")
    events = await visit.request.use(DeliveryLog).failed(
        visit.db, webhook, since=None, before=wire.event_id(after) if after else None, limit=ROWS + 1
    )
    rows = [
        {
            "id": wire.shown_event(event.event_id),
            "type": event.kind,
            "created_at": event.at,
            "status": "failed",
        }
        for event in events[:ROWS]
    ]
    older = None
    if len(events) > ROWS:
        older = with_query(_here(visit), state="failed", after=str(rows[-1]["id"]))
    return ListPage(rows, PageLinks(None, older))


async def _edit_page(
    visit: Visit, endpoint: str, events: Sequence[str], *, status: int = 200, problem: str | None = None
) -> Reply[Html]:
    return await visit.draw(
        "webhooks/edit.html",
        status=status,
        problem=problem,
        here=_here(visit),
        groups=kind_groups(),
        endpoint=endpoint,
        chosen=events,
    )


async def _webhook(visit: Visit) -> dict[str, Any]:
    """Return the webhook as the API shows it, without its secret."""
    webhook: dict[str, Any] = await visit.get(_api(visit))
    return {name: value for name, value in webhook.items() if name != "signing_secret"}


def _api(visit: Visit) -> str:
    return f"/webhooks/{visit.request.param('webhook_id')}"


def _here(visit: Visit) -> str:
    return f"{HERE}/{visit.request.param('webhook_id')}"
