"""The list of webhooks, and the form of a new one. Its secret is shown on the answer to the form alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final
from uuid import UUID

from pillarbox.dashboard.frame.paging import list_page
from pillarbox.dashboard.frame.screen_table import NavigationEntry
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.roles import Right
from pillarbox.webhooks.kinds import KINDS
from pillarbox.webhooks.log import DeliveryLog

HERE: Final = "/dashboard/webhooks"
USUAL: Final = ("email.delivered", "email.bounced", "email.complained", "email.failed")
"""Kinds that the form of a new webhook has chosen."""

RECEIVER: Final = """import os
from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook

app, webhook = FastAPI(), Webhook(os.environ["WEBHOOK_SECRET"])

@app.post("/in")
async def receive(request: Request) -> Response:
    event = webhook.verify(await request.body(), dict(request.headers))
    print(event["type"], event["data"])
    return Response(status_code=204)
"""
"""A receiver in Python, shown where there is no webhook yet."""


@screen(
    HERE,
    title="webhooks.title",
    words="webhooks.words",
    navigation=NavigationEntry(group="email", order=50, icon="webhook", keys="w"),
    query={"after": str, "before": str, "done": str},
)
async def index(visit: Visit) -> Reply[Html]:
    """Show the webhooks of the team."""
    page = await list_page(visit, "/webhooks", HERE)
    ids = [UUID(webhook["id"]) for webhook in page.rows]
    failures = await visit.request.use(DeliveryLog).failures(visit.db, ids, visit.request.at) if ids else []
    return await visit.draw(
        "webhooks/list.html",
        failed={str(entry.webhook_id): entry.failed for entry in failures},
        webhooks=page.rows,
        paging=page.paging,
        may_manage=visit.may(Right.MANAGE),
        receiver=RECEIVER,
    )


@screen(f"{HERE}/new", title="webhooks.new", words="webhooks.new.words", right=Right.MANAGE)
async def new(visit: Visit) -> Reply[Html]:
    """Show the form of a new webhook."""
    return await visit.draw("webhooks/new.html", groups=kind_groups(), endpoint="", chosen=USUAL)


@act(HERE, title="webhooks.new", back=f"{HERE}/new", right=Right.MANAGE, keeps=("endpoint",))
async def create(visit: Visit, form: Form) -> Reply[Html]:
    """Create a webhook, and show its secret."""
    endpoint, events = form.get("endpoint").strip(), form.every("event")
    try:
        webhook = await visit.post("/webhooks", {"endpoint": endpoint, "events": events})
    except Problem as problem:
        return await visit.draw(
            "webhooks/new.html",
            status=problem.status,
            problem=problem.message,
            groups=kind_groups(),
            endpoint=endpoint,
            chosen=events,
        )
    return await secret_page(visit, webhook["id"], webhook["signing_secret"], is_new=True)


async def secret_page(visit: Visit, webhook_id: str, secret: str, *, is_new: bool) -> Reply[Html]:
    """Return the page that shows a new secret, which no other page does."""
    webhook = await visit.get(f"/webhooks/{webhook_id}", shown=False)
    return await visit.draw(
        "webhooks/secret.html",
        endpoint=webhook["endpoint"],
        here=f"{HERE}/{webhook_id}",
        secret=secret,
        is_new=is_new,
    )


def kind_groups() -> Mapping[str, Sequence[str]]:
    """Return the kinds of events by the first word of their names."""
    return {group: list(kinds) for group, kinds in groupby(KINDS, key=lambda kind: kind.partition(".")[0])}
