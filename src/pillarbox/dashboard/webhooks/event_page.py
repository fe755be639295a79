"""One event of a webhook: what was sent, and each attempt with its answer."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pillarbox.dashboard.frame.json_text import indented, indented_text
from pillarbox.dashboard.frame.screens import act, screen
from pillarbox.dashboard.frame.times import instant_of
from pillarbox.dashboard.frame.visit import Visit
from pillarbox.dashboard.people.page_visits import Form
from pillarbox.dashboard.texts import t
from pillarbox.dashboard.texts.number_format import number
from pillarbox.dashboard.webhooks.webhook_list import HERE
from pillarbox.dashboard.webhooks.webhook_page import ONE
from pillarbox.kernel.http.request import Html, Reply
from pillarbox.kernel.wire.problems import Problem
from pillarbox.people.audit import Act
from pillarbox.people.roles import Right
from pillarbox.webhooks import wire
from pillarbox.webhooks.dispatch.posting import REASONS
from pillarbox.webhooks.log import milliseconds_of

EVENT: Final = f"{ONE}/events/{{event}}"
ATTEMPTS: Final = 50


class ShownAttempt(NamedTuple):
    """One attempt as the screen shows it: when, how it ended, how long it took, and the answer's text."""

    at: str
    outcome: str
    tone: str
    duration: str
    answer: str
    is_refused: bool


@screen(EVENT, title="hook_event.title", query={"done": str})
async def show(visit: Visit) -> Reply[Html]:
    """Show an event with its attempts."""
    return await event_page(visit)


@act(
    f"{EVENT}/replay",
    title="hook_event.replay",
    back=HERE,
    right=Right.MANAGE,
    records=Act.WEBHOOK_EVENTS_REPLAYED,
)
async def replay(visit: Visit, _: Form) -> Reply[Html]:
    """Send the event once more."""
    try:
        await visit.post(f"{_api(visit)}/replay")
    except Problem as problem:
        return await event_page(visit, status=problem.status, problem=problem.message)
    return visit.to(f"{_hook(visit)}/events/{visit.request.param('event')}", done="event_replayed")


async def event_page(visit: Visit, *, status: int = 200, problem: str | None = None) -> Reply[Html]:
    """Show the screen of one event."""
    webhook = await visit.get(f"/webhooks/{visit.request.param('webhook_id')}", shown=False)
    event = await visit.get(_api(visit))
    attempts = await visit.get(f"{_api(visit)}/attempts", limit=ATTEMPTS)
    return await visit.draw(
        "webhooks/event.html",
        status=status,
        problem=problem,
        event=event,
        webhook=webhook,
        endpoint=webhook["endpoint"],
        is_enabled=webhook["status"] == "enabled",
        hook=_hook(visit),
        here=f"{_hook(visit)}/events/{event['id']}",
        email_id=event["payload"]["data"].get("email_id"),
        body=indented(event["payload"]),
        attempts=[shown_attempt(attempt) for attempt in attempts["data"]],
        has_more=attempts["has_more"],
        may_manage=visit.may(Right.MANAGE),
    )


def shown_attempt(attempt: dict[str, Any]) -> ShownAttempt:
    """Return an attempt of the API as the screen shows it."""
    code, attempt_id = attempt["http_status_code"], wire.attempt_id(attempt["id"])
    taken = milliseconds_of(attempt_id, instant_of(attempt["sent_at"])) if attempt_id else None
    return ShownAttempt(
        at=attempt["sent_at"],
        outcome=str(code) if code else t("hook_event.no_answer"),
        tone="good" if 200 <= code < 300 else "bad",
        duration="–" if taken is None else duration_text(taken),
        answer=indented_text(attempt["response"]),
        is_refused=not code and attempt["response"] == REASONS["refused"],
    )


def duration_text(milliseconds: int) -> str:
    """Return a duration as people read it."""
    return f"{number(milliseconds)} ms" if milliseconds < 10_000 else f"{number(milliseconds / 1000)} s"


def _hook(visit: Visit) -> str:
    return f"{HERE}/{visit.request.param('webhook_id')}"


def _api(visit: Visit) -> str:
    return f"/webhooks/{visit.request.param('webhook_id')}/events/{visit.request.param('event')}"
